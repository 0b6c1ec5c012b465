"""The scores that the README and the docs tell are those that lie in results/."""

from __future__ import annotations

import csv
import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cwbc.evidence.naming import short_name
from cwbc.results import read_results
from cwbc.tasks import TASKS
from cwbc.wording import percent, score

ROOT = Path(__file__).parents[1]
Curve = dict[float, list[float]]  # the scores of all seeds, by asked return


@functools.cache
def curves(item: str = "table1") -> dict[str, dict[str, Curve]]:
    """Those of an item, by method and dataset."""
    found: dict[str, dict[str, Curve]] = {}
    with (ROOT / "results" / item / "seeds.csv").open() as file:
        for row in csv.DictReader(file):
            curve = found.setdefault(row["method"], {}).setdefault(short_name(row["dataset"]), {})
            curve.setdefault(float(row["target"]), []).append(float(row["normalized"]))
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
def test_the_readme_tells_the_averages_of_table_1(method: str) -> None:
    kept = np.mean([np.mean(far(*item)) / np.mean(top(*item)) for item in curves()[method].items()])
    numbers = [score(average(method, scores)) for scores in (best, near, far)]
    told = " | ".join([*numbers, percent(float(kept)).replace("\u00a0", " ")])
    assert f"| `{method}` | {told} |" in lines("README.md")


@pytest.mark.parametrize("dataset", sorted(curves()["rvs"]))
def test_the_docs_tell_the_scores_of_table_1(dataset: str) -> None:
    line = next(line for line in lines("docs/results.md") if line.startswith(f"| {dataset} |"))
    told = [
        f"{score(float(np.mean(scores)))} ± {score(float(np.std(scores)))}"
        for at in (best, near, far)
        for scores in (at(dataset, curves()[method][dataset]) for method in ("rvs", "rvs+cwbc"))
    ]
    assert " | ".join(told) in line


def test_the_docs_tell_the_averages_of_table_1() -> None:
    rvs = [score(average(method, at)) for at in (best, near, far) for method in ("rvs", "rvs+cwbc")]
    dt = [score(average(method, at)) for at in (near, far) for method in ("dt", "dt+cwbc")]
    text = lines("docs/results.md")
    assert any(line.startswith(f"| average | | {' | '.join(rvs)} |") for line in text)
    assert any(line.startswith(f"| average | {' | '.join(dt)} |") for line in text)


def test_the_docs_tell_how_two_trainings_differ() -> None:
    twice, text = ("hard-filtering", "table1"), lines("docs/results.md")
    for method, words in (("rvs", ", first and second"), ("rvs+cwbc", "")):
        told = [", ".join(score(average(method, at, item)) for item in twice) for at in (best, near, far)]
        assert f"| averages of `{method}`{words} | {' | '.join(told)} |" in text
    for name in ("rvs+cwbc on hopper-medium", "rvs+cwbc on walker2d-medium", "rvs on hopper-medium"):
        method, dataset = name.split(" on ")
        both = [curves(item)[method][dataset] for item in twice]
        means = [[np.mean(at(dataset, curve)) for curve in both] for at in (best, near, far)]
        told = [", ".join(score(float(mean)) for mean in pair) for pair in means]
        assert f"| `{method}` on {dataset} | {' | '.join(told)} |" in text


@pytest.mark.parametrize("dataset", sorted(curves("dt-concat")["dt"]))
def test_the_docs_tell_how_reliable_dt_is(dataset: str) -> None:
    text = lines("docs/results.md")
    first = next(number for number, line in enumerate(text) if line.startswith(f"| {dataset} | `rvs` |"))
    for line, item in zip(text[first:], ("reliability", "dt-concat", "dt-concat"), strict=False):
        method = line.split("`")[1]
        curve = curves(item)[method][dataset]
        told = [
            f"{score(float(np.mean(scores)))} ± {score(float(np.std(scores)))}"
            for scores in (at(dataset, curve) for at in (best, near, far))
        ]
        assert line.endswith(f"| `{method}` | {' | '.join([*told, kept(dataset, curve)])} |")


def kept(dataset: str, curve: Curve) -> str:
    share = float(np.mean(far(dataset, curve)) / np.mean(top(dataset, curve)))
    return percent(share).replace("\u00a0", " ")


@pytest.mark.parametrize("dataset", sorted(curves()["dt"]))
def test_the_docs_tell_what_cwbc_does_for_dt(dataset: str) -> None:
    both = [curves()[method][dataset] for method in ("dt", "dt+cwbc")]
    told = [
        f"{score(float(np.mean(scores)))} ± {score(float(np.std(scores)))}"
        for scores in (at(dataset, curve) for at in (near, far) for curve in both)
    ]
    told.append(", ".join(kept(dataset, curve) for curve in both))
    assert any(line.startswith(f"| {dataset} | {' | '.join(told)} |") for line in lines("docs/results.md"))


@pytest.mark.parametrize("item", ["table1", "reliability", "dt-concat", "components", "max-return"])
def test_every_episode_behind_it_is_there(item: str) -> None:
    with (ROOT / "results" / item / "cells.csv").open() as file:
        cells = list(csv.DictReader(file))
    for cell in cells:
        (sweep,) = read_results(ROOT / cell["directory"] / "results.csv")
        dataset = short_name(cell["dataset"])
        scores = TASKS[dataset.split("-")[0]].normalize(sweep.returns.mean(axis=2))
        told = curves(item)[cell["method"]][dataset]
        np.testing.assert_allclose(np.array(list(told.values())).T, scores, atol=1e-4)


def test_the_docs_count_the_claims() -> None:
    found = [json.loads(file.read_text())["claims"] for file in (ROOT / "results").glob("*/summary.json")]
    verdicts = [claim["verdict"] for claims in found for claim in claims]
    decided = len(verdicts) - verdicts.count(None)
    for page in ("README.md", "docs/results.md"):
        told = " ".join(lines(page))
        supported = rf"they support {verdicts.count(True)}\b"
        assert re.search(f"Of {decided} claims of the paper that these runs can decide, {supported}", told)


@pytest.mark.parametrize("method", ["rvs", "rvs+w", "rvs+c", "rvs+cwbc", "rvs+f", "rvs+f+c"])
def test_the_docs_tell_what_the_parts_do(method: str) -> None:
    summary = json.loads((ROOT / "results" / "hard-filtering" / "summary.json").read_text())
    names, *rows = summary["tables"]["overall"]
    row = next(found for row in rows if (found := dict(zip(names, row, strict=True)))["method"] == method)
    centres = [
        f"{score(row[name])} ({score(row[f'{name} low'])} to {score(row[f'{name} high'])})"
        for name in ("IQM", "IQM at 2×")
    ]
    kept = percent(row["retention"]).replace("\u00a0", " ")
    told = " | ".join([score(row["mean"]), *centres, kept])
    assert any(line.startswith(f"| `{method}`") and told in line for line in lines("docs/results.md"))
