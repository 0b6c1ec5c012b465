"""Verdicts take the resamples of the seeds into account."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from conftest import with_returns
from hand_made import FALLS, HOLDS, curves, outcome

from cwbc.grids.outcomes import Outcome
from cwbc.paper import ITEMS
from cwbc.paper.published import WALKERS
from cwbc.paper.verdicts import Claim, Judged, judged
from cwbc.results.evaluated import resampled
from cwbc.results.evidence import Evidence
from cwbc.results.intervals import interval

REPLAY, MEDIUM, EXPERT = WALKERS


def with_seeds(made: Outcome, offsets: list[float]) -> Outcome:
    """The same curve with other seeds, that many returns above and below it."""
    mean = made.sweep.returns.mean(axis=0)
    returns = mean + np.array(offsets)[:, None, None]
    sweep = dataclasses.replace(made.sweep, seeds=np.arange(len(offsets)), returns=returns)
    return dataclasses.replace(made, sweep=sweep)


def claims(item: str, outcomes: list[Outcome]) -> list[Claim]:
    return judged(ITEMS[item].claims, Evidence.of(outcomes, ITEMS[item].datasets))


@pytest.mark.parametrize(
    ("holds", "holds_in", "fails_in", "verdict"),
    [
        (True, 0.95, 0.05, "supported"),
        (True, 0.94, 0.06, "inconclusive"),
        (True, 0.02, 0.98, "inconclusive"),  # the observed scores and the resamples disagree
        (False, 0.05, 0.95, "contradicted"),
        (False, 0.06, 0.94, "inconclusive"),
        (False, 0.0, 0.5, "inconclusive"),  # open in the rest
        (None, 0.0, 0.0, "inconclusive"),
        (True, None, None, "inconclusive"),
    ],
)
def test_a_verdict_takes_the_observed_scores_and_nearly_all_resamples(
    holds: bool | None, holds_in: float | None, fails_in: float | None, verdict: str
) -> None:
    assert Judged(holds=holds, holds_in=holds_in, fails_in=fails_in).verdict == verdict


@pytest.mark.parametrize(
    ("far", "verdict", "least", "most"),
    [
        (50.0, "supported", 0.95, 1.0),  # all of its best score at 2x expert, where 80 % are needed
        (20.0, "contradicted", 0.0, 0.05),
        (40.5, "inconclusive", 0.05, 0.95),  # it holds by a hair, and seeds are up to 25 apart
        (39.5, "inconclusive", 0.05, 0.95),
    ],
)
def test_coin_flips_are_inconclusive(far: float, verdict: str, least: float, most: float) -> None:
    rng = np.random.default_rng(1)
    seeds = [float(each) for each in rng.normal(0, 0.05 * 4592, 10)]  # 5 points
    # Only the last point is noisy: the others are as they are with every seed.
    dt = [with_seeds(outcome(dataset, "dt", (20, 50, 50, far)), seeds) for dataset in WALKERS[:1]]
    for each in dt:
        each.sweep.returns[:, :3] = each.sweep.returns[:, :3].mean(axis=0)
    dt += curves(WALKERS[1:], dt=HOLDS)
    reliable = claims("reliability", dt)[2]
    assert reliable.text.startswith("Unlike RvS, DT performs reliably")
    assert reliable.verdict == verdict
    assert reliable.holds_in is not None
    assert least <= reliable.holds_in <= most
    assert [case.verdict for case in reliable.cases] == [verdict, "supported", "supported"]
    said = f"Holds in {100 * reliable.holds_in:.4g}\u00a0% of the resamples."
    assert said in reliable.reason


def test_the_same_scores_get_the_same_verdicts() -> None:
    outcomes = curves(WALKERS, rvs=FALLS, dt=HOLDS, apart=3)
    assert claims("reliability", outcomes) == claims("reliability", outcomes)


def test_one_seed_decides_nothing() -> None:
    single = [with_seeds(each, [0.0]) for each in curves(WALKERS, dt=HOLDS, rvs=FALLS)]
    found = claims("reliability", single)
    assert {claim.verdict for claim in found} == {"inconclusive"}
    assert found[2].holds is True
    assert found[2].reason.endswith("One seed cannot decide it.")
    assert {claim.verdict for claim in claims("table1", single)} == {"inconclusive"}


def test_data_is_not_left_to_chance() -> None:
    data = dict.fromkeys(WALKERS, with_returns(*np.linspace(0, 100, 200)))
    evidence = Evidence.of([outcome(REPLAY, "z = 99", HOLDS)], WALKERS, data)
    of_data, *of_trainings = judged(ITEMS["kappa"].claims, evidence)
    assert (of_data.verdict, of_data.holds_in) == ("supported", 1.0)
    assert {case.verdict for case in of_data.cases} == {"supported"}
    assert "resamples" not in of_data.reason
    assert {claim.verdict for claim in of_trainings} == {"inconclusive"}


def test_where_a_method_scores_nothing_in_a_resample_it_is_left_out() -> None:
    outcomes = [with_seeds(each, [-3000.0, 3000.0]) for each in curves(WALKERS, rvs=(1, 1, 1, 1), dt=FALLS)]
    assert {claim.verdict for claim in claims("reliability", outcomes)[:4]} == {"inconclusive"}


@pytest.mark.parametrize("seeds", [3, 10])
def test_resampled_means_reach_as_far_as_student_s_interval(seeds: int) -> None:
    scores = np.random.default_rng(seeds).normal(50, 5, (seeds, 2))
    generator = np.random.default_rng(0)
    means = np.array([resampled(scores, generator).mean(axis=0) for _ in range(4000)])
    value, low, _ = interval(scores)
    np.testing.assert_allclose(means.mean(axis=0), value, atol=0.3)
    np.testing.assert_allclose(1.96 * means.std(axis=0), value - low, rtol=0.05)


def test_a_seed_is_resampled_with_its_whole_curve() -> None:
    scores = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    found = resampled(scores, np.random.default_rng(0))
    np.testing.assert_allclose(found[:, 1], 10 * found[:, 0])


def test_what_is_missing_leaves_a_claim_open_whatever_the_seeds() -> None:
    part = claims("reliability", curves(WALKERS[:2], dt=HOLDS))[2]
    assert (part.holds, part.verdict) == (None, "inconclusive")
    assert [case.verdict for case in part.cases] == ["supported", "supported"]
    assert part.reason.startswith("Results for only 2 of its 3 datasets")
    assert part.reason.endswith("needs 3.")
