"""How claims are decided, also where some datasets are missing."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import FALLS, HOLDS, claim, curves, found, outcome, summary

from cwbc.paper.published import DATASETS, WALKERS
from cwbc.paper.rules import Comparison, decided, on_datasets, on_each, similar, well
from cwbc.paper.verdicts import Case, Claim
from cwbc.results.evidence import Evidence

REPLAY, MEDIUM, EXPERT = WALKERS
EXPERT_NAME = summary(EXPERT).name
CLAIM = Claim("A claim.", "Rule: A rule.", holds=None)


@pytest.mark.parametrize(
    ("holding", "failing", "fraction", "verdict"),
    [
        (3, 0, 1, True),
        (2, 1, 1, False),
        (2, 0, 1, None),  # the third one decides
        (0, 1, 1, False),  # whatever the others say
        (2, 0, 2 / 3, True),  # whatever the third one says
        (1, 1, 2 / 3, None),
        (0, 2, 2 / 3, False),
        (1, 0, 0, True),  # a single one is enough
        (0, 2, 0, None),
    ],
)
def test_what_is_missing_leaves_a_claim_open_only_where_it_could_turn_it(
    holding: int, failing: int, fraction: float, verdict: bool | None
) -> None:
    outcomes = [True] * holding + [False] * failing
    cases = {name: (holds, "so") for name, holds in zip(WALKERS, outcomes, strict=False)}
    assert on_datasets(CLAIM, cases, WALKERS, fraction).holds is verdict


@pytest.mark.parametrize(
    ("fraction", "count", "needed"),
    [(8 / 9, 9, 8), (2 / 9, 9, 2), (2 / 9, 3, 1), (2 / 3, 3, 2), (2 / 3, 1, 1), (0.5, 9, 5), (7 / 25, 25, 7)],
)
def test_a_fraction_of_datasets_is_rounded_up(fraction: float, count: int, needed: int) -> None:
    cases = {str(number): (True, "so") for number in range(count)}
    assert on_datasets(CLAIM, cases, [], fraction).reason.endswith(f"of {count}, needs {needed}.")


def test_cases_are_listed_where_they_do_not_decide() -> None:
    half = on_datasets(CLAIM, {REPLAY: (True, "5 of 6")}, WALKERS)
    assert half.reason.startswith("Results for only 1 of its 3 datasets; the others decide.")
    assert "A rule. Holds on 1 of 3, 2 missing, needs 3." in half.reason
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
    def outcome_of(holds: bool, missing: list[str], turned: bool | None = None) -> Claim:
        return decided(CLAIM, holds, "1 and 2", missing, turned)

    holds = outcome_of(True, [], True)
    assert holds.holds is True
    assert outcome_of(True, [EXPERT], False) == holds
    assert outcome_of(True, [EXPERT], True).holds is None
    assert EXPERT in outcome_of(True, [EXPERT], True).reason
    assert outcome_of(False, [EXPERT]).holds is outcome_of(True, [EXPERT]).holds is None
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
    assert f"Missing: {DATASETS[-1]}, which could change the outcome." in part.reason


def test_an_average_can_only_take_a_verdict_away() -> None:
    def judged(case: bool | None, *pairs: tuple[float, float]) -> Claim:
        results = {str(number): dict(zip("ab", each, strict=True)) for number, each in enumerate(pairs)}
        value: Any = float  # in place of a curve's score
        ahead = Comparison(lambda of: of["a"] > of["b"], lambda of: f"{of['a']:g}, {of['b']:g}", value)
        data: Any = results
        test = on_each(lambda of: (case, "so"), ahead=ahead)
        return test(CLAIM, Evidence({}, list(results), data))

    for case in (True, False, None):
        assert judged(case, (1, 2), (3, 1)).holds is case
        assert judged(case, (2, 1), (1, 3)).holds is (case and False)
    assert judged(True, (1, 2), (3, 1)).reason.endswith("Holds on 2 of 2, needs 2. On average 2, 1.5.")


def test_scores_are_similar_up_to_ten_points() -> None:
    assert similar([50, 60, 55])
    assert not similar([50, 60.5])


def test_scores_below_zero_have_no_shares() -> None:
    assert well([9.0, 12.0], 10.0)
    assert not well([8.9, 12.0], 10.0)
    assert well([-2.0, -2.0], -2.0)  # alike, though nine tenths of it is more
    assert not well([-2.1], -2.0)
