"""Verdicts about what weightings make of data, and how much their parameters matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from conftest import logged, with_returns
from hand_made import at_expert, claim, found, verdicts

from cwbc.evidence.naming import WALKERS
from cwbc.evidence.published import DATASETS
from cwbc.experiments.catalogue import ITEMS
from cwbc.trajectories import Trajectories

REPLAY, MEDIUM, EXPERT = WALKERS


def on_all(data: Trajectories, datasets: Sequence[str] = WALKERS) -> dict[str, Any]:
    """The same data in the place of all datasets."""
    return {dataset.replace("-", "_"): data for dataset in datasets}


def test_kappa() -> None:
    data = with_returns(*np.linspace(0, 100, 200))
    well = {"rvs+c": 50, "z = 99": 60, "z = 90": 60, "z = 50": 58, "z = 0": 40}
    outcomes = [each for dataset in WALKERS for each in at_expert(dataset, well)]
    findings = found("kappa", outcomes, **on_all(data))
    assert verdicts(findings) == [True, False, True, True]
    (distribution, *_) = findings.distributions
    assert (distribution.dataset, [case.dataset for case in findings.claims[0].cases]) == (REPLAY, [*WALKERS])
    assert [shares.sum() for shares in distribution.drawn.values()] == pytest.approx([1] * 4)
    poor = {"rvs+c": 50, "z = 99": 20, "z = 90": 60, "z = 50": 58, "z = 0": 61}
    outcomes = [each for dataset in WALKERS for each in at_expert(dataset, poor)]
    assert verdicts(found("kappa", outcomes, **on_all(data))) == [True, False, False, False]
    assert verdicts(found("kappa", [])) == [None] * 4


def test_robust_to_kappa_but_for_what_the_paper_excepts() -> None:
    even = {"z = 99": 52, "z = 90": 60, "z = 50": 58, "z = 0": 51}
    outcomes = at_expert(REPLAY, even) + at_expert(MEDIUM, even)
    with_exception = outcomes + at_expert(EXPERT, {**even, "z = 0": 10})
    assert claim(found("kappa", with_exception), "robust").holds is True
    assert claim(found("kappa", outcomes), "robust").holds is None
    without = outcomes + at_expert(EXPERT, {**even, "z = 50": 40})
    assert claim(found("kappa", without), "robust").holds is False


def test_kappa_spreads_what_is_drawn_over_low_returns() -> None:
    words = "density for low returns increases"
    two = with_returns(*([0.0] * 50 + [100.0] * 50))  # kappa is 10 where the top ties, and 100 for z = 0
    low = np.exp(-1) / (1 + np.exp(-1))
    holds = claim(found("kappa", [], [REPLAY], walker2d_medium_replay=two), words)
    assert holds.holds is True
    assert f"low returns 0.00, 0.00, 0.00, {low:.2f}" in holds.cases[0].numbers
    # With a larger kappa, two crowded bins of medium returns outweigh the scattered high ones.
    crowds = [*np.linspace(22, 31, 230), *[55.0] * 496, *np.linspace(49, 82, 7), *np.linspace(59, 67, 11)]
    findings = found("kappa", [], [REPLAY], walker2d_medium_replay=with_returns(0, 100, *crowds))
    assert claim(findings, words).holds is False
    # A little against the rule from one value to the next is no contradiction.
    crowds = [*[6.0] * 75, *[7.0] * 76, *[31.0] * 142, *np.linspace(41, 70, 4), *np.linspace(12, 42, 82)]
    findings = found("kappa", [], [REPLAY], walker2d_medium_replay=with_returns(0, 100, *crowds))
    assert claim(findings, words).holds is True
    assert "distance 0.40, 0.40, 0.41, 0.42" in claim(findings, words).cases[0].numbers


def test_kappa_ascends_where_the_top_ties() -> None:
    # The best two tie, so that z = 99 gives kappa a tenth of the range; for z = 90 it is 1.
    ties = with_returns(*np.linspace(0, 98, 80), *([99.0] * 18), 100, 100)
    (distribution,) = found("kappa", [], [REPLAY], walker2d_medium_replay=ties).distributions
    assert [name.split(",")[0] for name in distribution.drawn] == ["z = 90", "z = 99", "z = 50", "z = 0"]


def test_lambda() -> None:
    data = with_returns(*(np.arange(200) ** 2 / 400))
    labels = [f"lambda = {value}" for value in (0, 0.01, 0.1, 1, 10)]
    on_one: dict[str, Any] = {"datasets": [REPLAY], "walker2d_medium_replay": data}
    outcomes = at_expert(REPLAY, {"rvs+c": 50, **dict.fromkeys(labels, 52)})
    assert verdicts(found("lambda", outcomes, **on_one)) == [True, True, True, True]
    assert verdicts(found("lambda", outcomes, walker2d_medium_replay=data)) == [None] * 4
    outcomes = at_expert(REPLAY, {"rvs+c": 50, **dict.fromkeys(labels, 52), labels[0]: 30})
    assert verdicts(found("lambda", outcomes, **on_one)) == [True, True, False, False]
    # Where all returns are equal, nothing can weigh more than it did.
    level = found("lambda", [], walker2d_medium_replay=with_returns(1, 1, 1))
    assert level.claims[1].holds is False


def test_lambda_comes_closer_to_the_data_up_to_a_little() -> None:
    def correlated(*groups: tuple[float, int]) -> bool | None:
        returns = [each for value, count in groups for each in [value] * count]
        data = with_returns(0, 100, *returns)
        return claim(found("lambda", [], [REPLAY], walker2d_medium_replay=data), "correlated").holds

    assert correlated((69.0, 48), (4.0, 25)) is True  # 0.27, 0.46, 0.86, 0.906, 0.903
    assert correlated((78.0, 196), (60.0, 100), (46.0, 103)) is False  # 0.29, 0.85, 0.96, 0.93, 0.92


def test_transformed() -> None:
    # Filtering keeps ten of a hundred; weighting draws half from the best one, or evenly from the best ten.
    one = with_returns(*([1.0] * 90 + [50.0] * 9 + [99.0]))
    assert verdicts(found("transformed", [], **on_all(one, DATASETS))) == [True, True, False]
    ten = with_returns(*([1.0] * 90 + [99.0] * 10))
    assert verdicts(found("transformed", [], **on_all(ten, DATASETS))) == [True, True, True]
    assert verdicts(found("transformed", [], walker2d_medium_replay=ten)) == [None, None, None]
    high = with_returns(*np.linspace(0, 100, 100))
    assert verdicts(found("transformed", [], **on_all(high, DATASETS)))[0] is False
    # Most datasets must be low, not all of them.
    assert verdicts(found("transformed", [], **{**on_all(ten, DATASETS), "walker2d_medium": high}))[0] is True
    assert set(ITEMS["transformed"].quick_datasets) == set(WALKERS)


def test_bias_variance() -> None:
    returns = np.linspace(0, 100, 1000) ** 2
    findings = found("bias-variance", [], walker2d_medium=with_returns(*returns))
    assert verdicts(findings)[2:] == [None, None]
    assert "by definition" in findings.claims[2].reason
    table = findings.tables["bias-variance-walker2d-medium"]
    rows = {row.name: [cell.number for cell in row.cells] for row in table.rows}
    assert rows["uniform"][1] == pytest.approx(1 / 1000)
    assert rows["top 10 %"][1] == pytest.approx(1 / 100)


def test_bias_variance_can_be_contradicted() -> None:
    # Most of a thousand are low and all of the best differ: filtering uses a hundred of them, weighting more.
    low = with_returns(*np.linspace(0, 100, 1000) ** 2)
    assert verdicts(found("bias-variance", [], **on_all(low)))[:2] == [True, True]
    # Nine tenths are the best already: weighting draws from the rest, bin by bin, more than it is.
    best = with_returns(*([100.0] * 90 + list(np.linspace(0, 90, 10))))
    assert verdicts(found("bias-variance", [], **on_all(best)))[:2] == [False, False]
    # The best episode is by far the longest: drawing by length has the least bias.
    longest = logged([1.0] * 100, *([each] for each in np.linspace(0, 90, 9)))
    assert verdicts(found("bias-variance", [], **on_all(longest)))[0] is False
    # Two kinds: filtering keeps all of the better one, and so does weighting.
    two = with_returns(*([0.0] * 90 + [100.0] * 10))
    assert verdicts(found("bias-variance", [], **on_all(two)))[:2] == [True, False]


def test_bias_variance_is_about_what_is_trained() -> None:
    # A good long episode and bad short ones: by length the best is drawn more often than uniformly.
    data = logged([10.0] * 10, *([[1.0]] * 10))
    table = found("bias-variance", [], walker2d_medium=data).tables["bias-variance-walker2d-medium"]
    rows = {row.name: [cell.number for cell in row.cells] for row in table.rows}
    assert rows["uniform"][3] == pytest.approx((10 / 11) ** 2)
    assert rows["by length"][3] == pytest.approx(1 / 4)
    data = logged([10.0] * 3, [30.0], *([[1.0]] * 18))  # two of twenty are kept, the longer one more often
    table = found("bias-variance", [], walker2d_medium=data).tables["bias-variance-walker2d-medium"]
    rows = {row.name: [cell.number for cell in row.cells] for row in table.rows}
    assert rows["top 10 %"][1] == pytest.approx((3 / 4) ** 2 + (1 / 4) ** 2)
    effective = found("transformed", [], walker2d_medium=data).tables["transformed"].rows[0].cells[-1].number
    assert effective == pytest.approx(1 / ((3 / 4) ** 2 + (1 / 4) ** 2))
