"""The table of ant mazes: what is trained, and its verdicts on the published scores."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hand_made import Findings, claim, found, summary, verdicts
from scipy import stats

from cwbc.grids.cells import Cell
from cwbc.grids.outcomes import Outcome, Results
from cwbc.grids.preparation import target_returns
from cwbc.paper import ITEMS
from cwbc.paper.published import ANT_MAZE, ANT_MAZES, MAZES
from cwbc.paper.reproduction import Extent, report
from cwbc.results.evidence import Evidence
from cwbc.results.sweeps import Sweep

ITEM = ITEMS["antmaze"]


def cells() -> dict[str, Cell]:
    """Those of one dataset."""
    scale = dataclasses.replace(ITEM.benchmark.full, precision="float32")
    return {cell.label: cell for cell in ITEM.cells(["cwbc/antmaze/umaze-v0"], scale)}


def outcomes(rates: Mapping[str, Mapping[str, float]], episodes: int = 1000) -> list[Outcome]:
    """Three seeds of each method on each dataset that succeed in as many percent of their episodes."""
    known, made = cells(), []
    for label, of in rates.items():
        targets = np.array(target_returns(known[label], summary("antmaze-umaze").task, 1.0) or (math.nan,))
        for dataset, rate in of.items():
            successes = (np.arange(episodes) < round(rate / 100 * episodes)).astype(np.float64)
            returns = np.broadcast_to(successes, (3, len(targets), episodes))
            sweep = Sweep(label, np.arange(3), targets, returns, np.ones(returns.shape, np.int64))
            about = summary(dataset)
            made.append(
                Outcome(dataclasses.replace(known[label], dataset=about.name), Path(label), sweep, about)
            )
    return made


def judged_on(rates: Mapping[str, Mapping[str, float]]) -> Findings:
    return found("antmaze", outcomes(rates))


def published(label: str) -> dict[str, float]:
    return {dataset: score.mean for dataset, score in ANT_MAZE.scores[label].items()}


def test_methods_have_the_settings_of_their_authors_in_mazes() -> None:
    found = cells()
    assert list(found) == [
        "rvs", "rvs+w", "rvs+c", "rvs+cwbc", "dt", "bc", "td3bc", "cql", "iql", "rebrac", "rvs+q",
    ]  # fmt: skip
    iql, rebrac, cql = (vars(found[label].method.learner) for label in ("iql", "rebrac", "cql"))
    assert (iql["expectile"], iql["advantage_temperature"], iql["discount"]) == (0.9, 10, 0.99)
    assert (rebrac["discount"], rebrac["learning_rate"], rebrac["critic_learning_rate"]) == (
        0.999,
        3e-4,
        5e-5,
    )
    assert found["rebrac"].training.batch_size == 256
    assert (cql["conservative_weight"], cql["learning_rate"]) == (5, 1e-4)
    for label, cell in found.items():
        assert (len(cell.seeds), cell.episodes) == (3, 100)
        open_ended = label in ("bc", "td3bc", "cql", "iql", "rebrac", "rvs+q")
        targets = target_returns(cell, summary("antmaze-umaze").task, 1.0)
        assert targets == (() if open_ended else (0, 1, 2))


def test_factors_of_rewards_give_the_values_of_the_authors_rewards_but_for_a_constant() -> None:
    def value(rewards: list[float], discount: float = 0.99) -> float:
        return sum(reward * discount**step for step, reward in enumerate(rewards))

    for label, factor, shift in (("iql", 1.0, -1.0), ("td3bc", 1.0, -1.0), ("cql", 10.0, -5.0)):
        scale = vars(cells()[label].method.learner)["reward_scale"]
        constants = [
            value([shift] * steps + [factor + shift]) - value([0] * steps + [scale])
            for steps in (0, 1, 50, 700)
        ]
        assert constants == pytest.approx([constants[0]] * 4)
        assert constants[0] == pytest.approx(shift / (1 - 0.99))  # of failures for ever, too


def test_the_published_scores_support_what_the_paper_says_of_them() -> None:
    findings = judged_on({label: published(label) for label in ANT_MAZE.scores})
    assert verdicts(findings) == [True] * 7
    assert "10.8 points" in claim(findings, "significantly boosts").reason
    corl = {"cql": {name: score.mean for name, score in MAZES.scores["cql"].items()}}
    findings = judged_on({label: published(label) for label in ANT_MAZE.scores} | corl)
    assert verdicts(findings) == [*[True] * 6, False]


def test_claims_fail_where_weighting_does_nothing_and_the_regularizer_helps() -> None:
    same, better, lower = (dict.fromkeys(ANT_MAZES, rate) for rate in (30.0, 60.0, 10.0))
    rates = {
        "rvs": same,
        "rvs+w": lower,
        "rvs+c": better,
        "rvs+cwbc": same,
        "dt": same,
        "bc": lower,
        "cql": same,
    }
    assert verdicts(judged_on(rates)) == [False] * 7
    equal = judged_on(dict.fromkeys(("rvs", "rvs+w", "rvs+c", "rvs+cwbc"), same))
    assert verdicts(equal)[:5] == [None, False, False, True, True]


def test_the_interval_of_a_gain_is_newcombes() -> None:
    level = 2 * stats.norm.cdf(stats.t.ppf(0.975, 2)) - 1
    ours, theirs = (stats.binomtest(count, 300).proportion_ci(level, "wilson") for count in (300, 210))
    one = {"antmaze-umaze": 100.0}, {"antmaze-umaze": 70.0}
    findings = found(
        "antmaze", outcomes(dict(zip(("rvs+w", "rvs"), one, strict=True)), 100), ["antmaze-umaze"]
    )
    low = 0.3 - math.hypot(1 - ours.low, theirs.high - 0.7)
    high = 0.3 + math.hypot(0, 0.7 - theirs.low)
    expected = f"30.0 points ({100 * low:.1f} to {100 * high:.1f}) on average over 1 dataset"
    assert expected in claim(findings, "significantly boosts").reason


@pytest.mark.usefixtures("no_pictures")
def test_the_report_has_rates_with_intervals_beside_what_was_published_and_by_whom() -> None:
    made = outcomes({label: published(label) for label in ("rvs", "rvs+w", "cql")})
    extent = Extent(ITEM, "ours", False, ITEM.benchmark.full, {})
    evidence = Evidence.of(made, ANT_MAZES)
    shown, _ = report(
        extent, evidence, Results([], []), {each.dataset.name: each.dataset for each in made}, {}
    )
    remarks = " ".join(shown.remarks).replace("\u00a0%", " %")
    assert (
        "Means over 3 seeds with 100 episodes per target return; small numbers are 95 % intervals" in remarks
    )
    assert "Scores are success rates in %; the target return is 1" in remarks
    assert "no evidence" not in remarks  # three seeds are the paper's
    table = shown.tables["antmaze"].to_markdown().replace("\u00a0%", " %")
    head, _, *lines = table.splitlines()
    assert "cql (without a target, beside it CORL's)" in head
    assert "cql (RvS's paper) (published)" in head
    assert "iql (published by CORL)" in head
    umaze = next(line for line in lines if line.startswith("| antmaze-umaze "))
    assert "65.0** (61.2 to 68.6) (65.0 ± 18.0, 0.0)" in umaze
    assert "44.8 (40.9 to 48.7) (92.8, −48.0)" in umaze
    assert next(line for line in lines if "# wins" in line).split("|")[3].strip() == "5 (4, +1)"
