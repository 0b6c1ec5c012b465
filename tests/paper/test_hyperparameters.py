"""Verdicts of Figures 7 to 10 on hand-made curves and returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from conftest import with_returns
from hand_made import FALLS, HOLDS, at_expert, claim, found, on_all, outcome, verdicts

from cwbc.paper.published import WALKERS
from cwbc.reports.chart import Chart, Stairs

REPLAY, MEDIUM, EXPERT = WALKERS


def outlines(chart: Chart) -> dict[str, Sequence[float]]:
    """The heights of what is sampled, by name; the dataset itself is the first of the layers."""
    return {layer.name: layer.heights for layer in chart.panels[0].layers[1:] if isinstance(layer, Stairs)}


def test_kappa() -> None:
    data = with_returns(*np.linspace(0, 100, 200))
    well = {"rvs+c": 50, "z = 99": 60, "z = 90": 60, "z = 50": 58, "z = 0": 40}
    outcomes = [each for dataset in WALKERS for each in at_expert(dataset, well)]
    findings = found("kappa", outcomes, **on_all(data))
    assert verdicts(findings) == [True, False, True, True]
    assert [*findings.distributions] == [case.dataset for case in findings.claims[0].cases] == [*WALKERS]
    sampled = outlines(findings.distributions[REPLAY])
    assert [sum(heights) for heights in sampled.values()] == pytest.approx([100] * 4)  # percents
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


def test_kappa_spreads_the_sampled_returns() -> None:
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
    distributions = found("kappa", [], [REPLAY], walker2d_medium_replay=ties).distributions
    assert [name.split(",")[0] for name in outlines(distributions[REPLAY])] == [
        "z = 90",
        "z = 99",
        "z = 50",
        "z = 0",
    ]


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


def test_q() -> None:
    replay = at_expert(REPLAY, {"q = 0": 10, "q = 50": 20, "q = 95": 60, "q = 99": 58})
    others = at_expert(MEDIUM, {"q = 0": 50, "q = 50": 50, "q = 95": 52, "q = 99": 51})
    assert verdicts(found("q", replay + others, [REPLAY, MEDIUM])) == [True, True, True]
    assert verdicts(found("q", replay + others)) == [None, True, None]
    replay = at_expert(REPLAY, {"q = 0": 60, "q = 50": 60, "q = 95": 60, "q = 99": 30})
    assert verdicts(found("q", replay)) == [False, False, None]
    others = at_expert(MEDIUM, {"q = 0": 5, "q = 50": 50, "q = 95": 52, "q = 99": 51})
    assert verdicts(found("q", replay + others)) == [False, False, False]


def test_alpha() -> None:
    labels = [f"alpha = {value}" for value in (0, 0.01, 0.1, 1, 10)]
    moderate = dict.fromkeys(labels[1:-1], HOLDS)
    paper = [
        outcome(dataset, label, points)
        for dataset in WALKERS
        for label, points in {labels[0]: FALLS, **moderate, labels[-1]: (20, 30, 30, 30)}.items()
    ]
    assert verdicts(found("alpha", paper)) == [True, True, True]
    other = [
        outcome(dataset, label, points)
        for dataset in WALKERS
        for label, points in {labels[0]: HOLDS, **moderate, labels[1]: FALLS, labels[-1]: HOLDS}.items()
    ]
    assert verdicts(found("alpha", other)) == [False, False, False]


def test_a_claim_needs_only_the_methods_that_it_compares() -> None:
    scores = {"alpha = 10": 30.0, "alpha = 1": 50.0}
    part = [each for dataset in WALKERS for each in at_expert(dataset, scores)]
    assert verdicts(found("alpha", part)) == [None, True, None]
