"""Claims about several datasets, of which some were not measured."""

from __future__ import annotations

import pytest
from hand_made import FALLS, HOLDS, claim, curves, found, outcome, summary

from cwbc.evidence.item import Case, Claim
from cwbc.evidence.judging import (
    at_least,
    decided,
    on_average_too,
    on_datasets,
    similar,
    unless_turned,
    well,
)
from cwbc.evidence.naming import WALKERS
from cwbc.evidence.published import DATASETS
from cwbc.wording import score

REPLAY, MEDIUM, EXPERT = WALKERS
EXPERT_NAME = summary(EXPERT).name


@pytest.mark.parametrize(
    ("holding", "failing", "needed", "verdict"),
    [
        (3, 0, None, True),
        (2, 1, None, False),
        (2, 0, None, None),  # the third one decides
        (0, 1, None, False),  # whatever the others say
        (2, 0, 2, True),  # whatever the third one says
        (1, 1, 2, None),
        (0, 2, 2, False),
        (1, 0, 1, True),
        (0, 2, 1, None),
        (0, 0, None, None),
    ],
)
def test_what_is_missing_leaves_a_claim_open_only_where_it_could_turn_it(
    holding: int, failing: int, needed: int | None, verdict: bool | None
) -> None:
    measured = [True] * holding + [False] * failing
    numbers = {name: (holds, "so") for name, holds in zip(WALKERS, measured, strict=False)}
    assert on_datasets("A claim.", "A rule", WALKERS, numbers, needed).holds is verdict


@pytest.mark.parametrize(
    ("share", "count", "needed"),
    [(8 / 9, 9, 8), (2 / 9, 9, 2), (2 / 9, 3, 1), (2 / 3, 3, 2), (2 / 3, 1, 1), (0.5, 9, 5), (7 / 25, 25, 7)],
)
def test_a_share_of_datasets_is_rounded_up(share: float, count: int, needed: int) -> None:
    assert at_least(share, [str(number) for number in range(count)]) == needed


def test_what_was_measured_is_listed_where_it_does_not_decide() -> None:
    half = on_datasets("A claim.", "A rule", WALKERS, {REPLAY: (True, "5 of 6")})
    assert half.reason.startswith("Only 1 of its 3 datasets was measured")
    assert "A rule. Holds on 1 of 3, 2 not measured, needs 3." in half.reason
    assert half.cases == [Case(REPLAY, "5 of 6", holds=True)]


def test_a_failed_cell_does_not_make_a_claim_true() -> None:
    outcomes = curves([REPLAY, MEDIUM], dt=HOLDS, rvs=HOLDS) + curves([EXPERT], dt=FALLS, rvs=HOLDS)
    assert claim(found("reliability", outcomes), "DT performs reliably").holds is False
    failed = [each for each in outcomes if (each.dataset.name, each.cell.label) != (EXPERT_NAME, "dt")]
    assert len(failed) == len(outcomes) - 1
    assert claim(found("reliability", failed), "DT performs reliably").holds is None


def test_a_claim_about_one_kind_of_data_does_not_wait_for_the_others() -> None:
    findings = found("reliability", [outcome(REPLAY, "rvs", FALLS)])
    assert claim(findings, "drops quickly").holds is True
    assert claim(findings, "On medium and medium-expert").holds is None


def test_claims_across_datasets_are_left_open_where_a_missing_one_could_turn_them() -> None:
    holds = decided("A claim.", "A rule", True, "1 and 2")
    assert unless_turned(holds, [], True) == holds
    assert unless_turned(holds, [EXPERT], False) == holds
    assert unless_turned(holds, [EXPERT], True).holds is None
    assert EXPERT in unless_turned(holds, [EXPERT], True).reason
    fails = decided("A claim.", "A rule", False, "1 and 2")
    assert unless_turned(fails, [EXPERT]).holds is unless_turned(holds, [EXPERT]).holds is None
    falls = {REPLAY: FALLS, MEDIUM: HOLDS}
    outcomes = [outcome(dataset, "rvs", scores) for dataset, scores in falls.items()]
    assert claim(found("reliability", outcomes), "Reliability decreases").holds is None
    outcomes = [outcome(dataset, "rvs", HOLDS) for dataset in falls]
    assert claim(found("reliability", outcomes), "Reliability decreases").holds is False


def test_a_part_of_the_datasets_does_not_decide_about_their_average() -> None:
    outcomes = curves(DATASETS, rvs=FALLS, rvs__cwbc=HOLDS)
    assert claim(found("table1", outcomes), "average improvement of 18 %").holds is True
    part = claim(found("table1", outcomes[:-1]), "average improvement of 18 %")
    assert part.holds is None
    assert f"Not measured: {DATASETS[-1]}, which could turn it." in part.reason


def test_an_average_can_only_take_a_verdict_away() -> None:
    for verdict in (True, False, None):
        known = Claim("A claim.", "A rule.", holds=verdict)
        assert on_average_too(known, [(1, 2), (3, 1)], score).holds is verdict
        assert on_average_too(known, [(2, 1), (1, 3)], score).holds is (verdict and False)
        assert on_average_too(known, [], score) == known
    assert on_average_too(known, [(1, 2), (3, 1)], score).reason == "A rule. On average 2.0 against 1.5."


def test_scores_are_similar_up_to_ten_points() -> None:
    assert similar([50, 60, 55])
    assert not similar([50, 60.5])


def test_scores_below_zero_have_no_shares() -> None:
    assert well([9.0, 12.0], 10.0)
    assert not well([8.9, 12.0], 10.0)
    assert well([-2.0, -2.0], -2.0)  # alike, though nine tenths of it is more
    assert not well([-2.1], -2.0)
