"""The scores in the README and the docs are those in results/, and its verdicts follow from its scores."""

from __future__ import annotations

import collections
import csv
import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cwbc.core.tasks import TASKS
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.paper import ITEMS
from cwbc.paper.verdicts import judged
from cwbc.results.dataset_names import short_name
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.evidence import Evidence
from cwbc.results.statistics import difference
from cwbc.results.sweeps import Sweep, read_results
from cwbc.system.formatting import percent, score

ROOT = Path(__file__).parents[1]
Curve = dict[float, list[float]]  # the scores of all seeds, by target return


@functools.cache
def curves(item: str = "table1") -> dict[str, dict[str, Curve]]:
    """Those of an item, by method and dataset."""
    found: dict[str, dict[str, Curve]] = {}
    with (ROOT / "results" / item / "seeds.csv").open() as file:
        for row in csv.DictReader(file):
            curve = found.setdefault(row["method"], {}).setdefault(short_name(row["dataset"]), {})
            # Methods that take no target have one score, which counts for any.
            curve.setdefault(float(row["target"] or 0), []).append(float(row["normalized"]))
    return found


def near(dataset: str, curve: Curve) -> list[float]:
    return curve[TASKS[dataset.split("-")[0]].expert_return]


def far(dataset: str, curve: Curve) -> list[float]:
    return curve[TASKS[dataset.split("-")[0]].far_return]


def top(dataset: str, curve: Curve) -> list[float]:
    return max(curve.values(), key=np.mean)


def best(dataset: str, curve: Curve) -> list[float]:
    """At the dataset's best return."""
    return curve[min(curve, key=lambda target: abs(target - bests()[dataset]))]


@functools.cache
def bests() -> dict[str, float]:
    summary = json.loads((ROOT / "results" / "table1" / "summary.json").read_text())
    return {short_name(dataset["name"]): dataset["best"] for dataset in summary["datasets"]}


def average(method: str, scores: Callable[[str, Curve], list[float]], item: str = "table1") -> float:
    return float(np.mean([np.mean(scores(*found)) for found in curves(item)[method].items()]))


def lines(file: str) -> list[str]:
    """Without emphasis."""
    return (ROOT / file).read_text().replace("**", "").splitlines()


@pytest.mark.parametrize("method", ["rvs", "rvs+cwbc", "dt", "dt+cwbc"])
def test_the_readme_has_the_averages_of_table_1(method: str) -> None:
    retention = np.mean([np.mean(far(*item)) / np.mean(top(*item)) for item in curves()[method].items()])
    numbers = [score(average(method, scores)) for scores in (best, near, far)]
    expected = " | ".join([*numbers, percent(float(retention)).replace("\u00a0", " ")])
    assert f"| `{method}` | {expected} |" in lines("README.md")


@pytest.mark.parametrize("dataset", sorted(curves()["rvs"]))
def test_the_docs_have_the_scores_of_table_1(dataset: str) -> None:
    line = next(line for line in lines("docs/results.md") if line.startswith(f"| {dataset} |"))
    expected = [
        f"{score(float(np.mean(scores)))} ± {score(float(np.std(scores)))}"
        for at in (best, near, far)
        for scores in (at(dataset, curves()[method][dataset]) for method in ("rvs", "rvs+cwbc"))
    ]
    assert " | ".join(expected) in line


def test_the_docs_have_the_averages_of_table_1() -> None:
    rvs = [score(average(method, at)) for at in (best, near, far) for method in ("rvs", "rvs+cwbc")]
    dt = [score(average(method, at)) for at in (near, far) for method in ("dt", "dt+cwbc")]
    text = lines("docs/results.md")
    assert any(line.startswith(f"| average | | {' | '.join(rvs)} |") for line in text)
    assert any(line.startswith(f"| average | {' | '.join(dt)} |") for line in text)


def test_the_docs_show_how_two_trainings_differ() -> None:
    twice, text = ("hard-filtering", "table1"), lines("docs/results.md")
    for method, words in (("rvs", ", first and second"), ("rvs+cwbc", "")):
        expected = [", ".join(score(average(method, at, item)) for item in twice) for at in (best, near, far)]
        assert f"| averages of `{method}`{words} | {' | '.join(expected)} |" in text
    for name in ("rvs+cwbc on hopper-medium", "rvs+cwbc on walker2d-medium", "rvs on hopper-medium"):
        method, dataset = name.split(" on ")
        both = [curves(item)[method][dataset] for item in twice]
        means = [[np.mean(at(dataset, curve)) for curve in both] for at in (best, near, far)]
        expected = [", ".join(score(float(mean)) for mean in pair) for pair in means]
        assert f"| `{method}` on {dataset} | {' | '.join(expected)} |" in text


@pytest.mark.parametrize("dataset", sorted(curves("dt-concat")["dt"]))
def test_the_docs_show_how_reliable_dt_is(dataset: str) -> None:
    text = lines("docs/results.md")
    first = next(number for number, line in enumerate(text) if line.startswith(f"| {dataset} | `rvs` |"))
    for line, item in zip(text[first:], ("reliability", "dt-concat", "dt-concat"), strict=False):
        method = line.split("`")[1]
        curve = curves(item)[method][dataset]
        expected = [
            f"{score(float(np.mean(scores)))} ± {score(float(np.std(scores)))}"
            for scores in (at(dataset, curve) for at in (best, near, far))
        ]
        assert line.endswith(f"| `{method}` | {' | '.join([*expected, ood_retention(dataset, curve)])} |")


def ood_retention(dataset: str, curve: Curve) -> str:
    fraction = float(np.mean(far(dataset, curve)) / np.mean(top(dataset, curve)))
    return percent(fraction).replace("\u00a0", " ")


@pytest.mark.parametrize("dataset", sorted(curves()["dt"]))
def test_the_docs_show_the_effect_of_cwbc_on_dt(dataset: str) -> None:
    both = [curves()[method][dataset] for method in ("dt", "dt+cwbc")]
    expected = [
        f"{score(float(np.mean(scores)))} ± {score(float(np.std(scores)))}"
        for scores in (at(dataset, curve) for at in (near, far) for curve in both)
    ]
    expected.append(", ".join(ood_retention(dataset, curve) for curve in both))
    assert any(
        line.startswith(f"| {dataset} | {' | '.join(expected)} |") for line in lines("docs/results.md")
    )


@pytest.mark.parametrize(
    "item", ["table1", "reliability", "dt-concat", "components", "max-return", "value-based"]
)
def test_every_episode_is_available(item: str) -> None:
    with (ROOT / "results" / item / "cells.csv").open() as file:
        cells = list(csv.DictReader(file))
    for cell in cells:
        (sweep,) = read_results(ROOT / cell["directory"] / "results.csv")
        dataset = short_name(cell["dataset"])
        scores = TASKS[dataset.split("-")[0]].normalize(sweep.returns.mean(axis=2))
        expected = curves(item)[cell["method"]][dataset]
        np.testing.assert_allclose(np.array(list(expected.values())).T, scores, atol=1e-4)


def gain(
    methods: tuple[str, str], at: Callable[[str, Curve], list[float]], *datasets: str, item: str = "table1"
) -> tuple[float, float, float]:
    """How much more the first scores on average over datasets, with its interval."""
    of = [[np.array(at(name, curves(item)[method][name])) for name in datasets] for method in methods]
    return difference(*of)


@pytest.mark.parametrize("dataset", sorted(curves()["rvs"]))
def test_what_is_bold_in_the_docs_is_significantly_higher(dataset: str) -> None:
    rows = [line for line in (ROOT / "docs/results.md").read_text().splitlines() if "±" in line]
    rvs, dt = (
        line.split(" | ")[1:] for line in rows if line.startswith(f"| {dataset} | ") and "`" not in line
    )
    for cells, base, marks in ((rvs[1:], "rvs", (best, near, far)), (dt, "dt", (near, far))):
        for column, at in enumerate(marks):
            _, low, high = gain((f"{base}+cwbc", base), at, dataset)
            bold = ["**" in cell for cell in cells[2 * column : 2 * column + 2]]
            assert bold == [high < 0, low > 0]


def test_the_docs_have_average_gains_with_their_intervals() -> None:
    expected, everywhere = " ".join(lines("docs/results.md")), sorted(curves()["rvs"])
    replays = [name for name in everywhere if name.endswith("replay")]
    for better, worse, datasets in (
        ("rvs+cwbc", "rvs", everywhere),
        ("dt+cwbc", "dt", everywhere),
        ("dt+cwbc", "dt", replays),
        ("dt+cwbc", "rvs+cwbc", everywhere),
    ):
        value, low, high = map(score, gain((better, worse), near, *datasets))
        assert f"{value} points ({low} to {high})" in expected


COMPARED = ["rvs", "rvs+cwbc", "dt", "dt+cwbc", "td3bc", "iql", "rebrac", "rvs+q"]
CHOSEN_ON = ["walker2d-medium-replay", "hopper-medium", "halfcheetah-medium-expert"]  # the critics of +q


def test_the_docs_compare_with_value_based_methods() -> None:
    text, found = lines("docs/which-method.md"), curves("value-based")

    def row(title: str, numbers: Callable[[str], str]) -> None:
        assert f"| {title} | {' | '.join(map(numbers, COMPARED))} |" in text

    def at_best(method: str) -> list[list[float]]:
        return [best(*each) for each in found[method].items()]

    for dataset in found["iql"]:
        scores = {method: best(dataset, found[method][dataset]) for method in COMPARED}
        row(dataset, lambda m, of=scores: f"{score(float(np.mean(of[m])))} ± {score(float(np.std(of[m])))}")  # type: ignore[misc]
    row("average", lambda method: score(float(np.mean([np.mean(each) for each in at_best(method)]))))
    row("the worst seed, on average", lambda method: score(float(np.mean([min(x) for x in at_best(method)]))))
    conditioned = {method: average(method, far, "value-based") for method in COMPARED[:4]}
    others = {method: float(np.mean(at_best(method))) for method in COMPARED[4:]}
    row("average, at twice the expert return", lambda method: score((conditioned | others)[method]))
    differences = {
        ("rebrac", "rvs+cwbc"): found["iql"],
        ("rebrac", "td3bc"): found["iql"],
        ("rebrac", "rvs+q"): found["iql"],
        ("rvs+q", "rvs"): found["iql"],
        ("rvs+q", "rvs+cwbc"): found["iql"],
        ("rvs+q", "iql"): found["iql"],
        ("td3bc", "rvs+cwbc"): found["iql"],
        ("td3bc", "dt+cwbc"): found["iql"],
        ("rvs+cwbc", "iql"): found["iql"],
        ("dt+cwbc", "iql"): found["iql"],
    }
    several = [found["iql"], CHOSEN_ON, [name for name in found["iql"] if name not in CHOSEN_ON]]
    for pair, datasets in [*differences.items(), *((("rvs+q", "td3bc"), names) for names in several)]:
        value, low, high = map(score, gain(pair, best, *datasets, item="value-based"))
        assert f"{value} points ({low} to {high})" in " ".join(text)


def test_the_study_of_target_choice_ends_with_the_present_rule() -> None:
    text, found = lines("results/target-choice/README.md"), curves("value-based")
    for name in found["rvs+q"]:
        means = [
            float(np.mean(best(name, found[method][name])))
            for method in ("rvs+q", "rvs", "td3bc", "iql", "rebrac")
        ]
        error = float(np.std(best(name, found["rvs+q"][name]), ddof=1)) / 10**0.5
        chosen = " (chosen on)" if name in CHOSEN_ON else ""
        first, *others = map(score, means)
        row = " | ".join([f"{name.replace('-', ' ', 1)}{chosen}", f"{first} ± {score(error)}", *others])
        assert f"| {row} |" in text


TRAINED = ["table1", "reliability", "dt-concat", "components", "max-return", "hard-filtering"]


def claims(item: str) -> list[dict[str, Any]]:
    """The claims of an item in results/."""
    found: list[dict[str, Any]] = json.loads((ROOT / "results" / item / "summary.json").read_text())["claims"]
    return found


def evidence(item: str) -> Evidence:
    """All scores of seeds.csv, which has one mean return for the episodes of a seed at a target."""
    summary = json.loads((ROOT / "results" / item / "summary.json").read_text())
    datasets = {short_name(each["name"]): DatasetSummary.from_json(each) for each in summary["datasets"]}
    measured: dict[str, dict[str, EvaluatedMethod]] = {}
    for method, of in curves(item).items():
        for dataset, curve in of.items():
            about, targets = datasets[dataset], sorted(curve)
            task = about.task
            scores = np.array([curve[target] for target in targets]).T[:, :, None]  # [seed, target, episode]
            returns = task.random_score + scores / 100 * (task.expert_score - task.random_score)
            lengths = np.ones(returns.shape, np.int64)
            sweep = Sweep(method, np.arange(len(returns)), np.array(targets), returns, lengths)
            measured.setdefault(dataset, {})[method] = EvaluatedMethod.of(sweep, about)
    order = [dataset for dataset in datasets if dataset in measured]
    return Evidence({name: measured[name] for name in order}, ITEMS[item].datasets)


def digits(text: str) -> list[str]:
    """The numbers in a sentence, whose words may have changed since."""
    return re.findall(r"−?[\d.,]*\d", text)


@pytest.mark.parametrize("item", TRAINED)
def test_verdicts_are_those_of_the_seeds(item: str) -> None:
    again = judged(ITEMS[item].claims, evidence(item))
    for ours, theirs in zip(again, claims(item), strict=True):
        assert (ours.text, ours.holds, ours.verdict) == (theirs["text"], theirs["holds"], theirs["verdict"])
        # The file has eight digits: a resample that comes close to a limit may fall on its other side.
        assert ours.holds_in == pytest.approx(theirs["holds_in"], abs=2e-3)
        assert [(case.dataset, case.holds, case.verdict, digits(case.numbers)) for case in ours.cases] == [
            (case["dataset"], case["holds"], case["verdict"], digits(case["numbers"]))
            for case in theirs["cases"]
        ]


def test_the_docs_count_the_claims() -> None:
    items = [*TRAINED, "transformed", "bias-variance"]
    found = [claim for item in items for claim in claims(item)]
    tested = [claim for claim in found if claim["holds"] is not None or claim["cases"]]
    count = collections.Counter(claim["verdict"] for claim in tested)
    expected = (
        f"Of {len(tested)} claims of the paper that they test, these runs support {count['supported']} and "
        f"contradict {count['contradicted']}; {count['inconclusive']} are inconclusive"
    )
    for page in ("README.md", "docs/results.md"):
        assert expected in " ".join(" ".join(lines(page)).split())


@pytest.mark.parametrize("item", [*TRAINED, "transformed", "bias-variance"])
def test_the_docs_list_every_verdict(item: str) -> None:
    count = collections.Counter(claim["verdict"] for claim in claims(item))
    expected = [str(count[verdict]) for verdict in ("supported", "contradicted", "inconclusive")]
    link = f"[{ITEMS[item].place}](../results/{item}/claims.md)"
    assert any(line.startswith(f"| {link} | {' | '.join(expected)} |") for line in lines("docs/results.md"))


@pytest.mark.parametrize("method", ["rvs", "rvs+w", "rvs+c", "rvs+cwbc", "rvs+f", "rvs+f+c"])
def test_the_docs_show_the_effect_of_the_parts(method: str) -> None:
    summary = json.loads((ROOT / "results" / "hard-filtering" / "summary.json").read_text())
    names, *rows = summary["tables"]["overall"]
    row = next(found for row in rows if (found := dict(zip(names, row, strict=True)))["method"] == method)
    centres = [
        f"{score(row[name])} ({score(row[f'{name} low'])} to {score(row[f'{name} high'])})"
        for name in ("IQM", "IQM at 2×")
    ]
    retention = percent(row["retention"]).replace("\u00a0", " ")
    expected = " | ".join([score(row["mean"]), *centres, retention])
    assert any(line.startswith(f"| `{method}`") and expected in line for line in lines("docs/results.md"))
