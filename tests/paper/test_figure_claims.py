"""Verdicts of Figures 2, 3, 5 and 6 on hand-made curves: supported, contradicted and inconclusive."""

from __future__ import annotations

import pytest
from hand_made import FALLS, HOLDS, claim, curves, found, outcome, summary, verdicts

from cwbc.paper.published import WALKERS

REPLAY, MEDIUM, EXPERT = WALKERS


def test_reliability_depends_on_data_and_architecture() -> None:
    datasets = {
        REPLAY: summary(REPLAY, (8, 1, 1, 0), 500),
        MEDIUM: summary(MEDIUM, (1, 1, 4, 4), 2000),
        EXPERT: summary(EXPERT, (1, 1, 2, 6), 3000),
    }
    outcomes = [outcome(dataset, "dt", HOLDS, about=about) for dataset, about in datasets.items()]
    falls = {REPLAY: FALLS, MEDIUM: HOLDS, EXPERT: HOLDS}
    outcomes += [outcome(dataset, "rvs", falls[dataset], about=datasets[dataset]) for dataset in datasets]
    assert verdicts(found("reliability", outcomes)) == [True] * 5
    # RvS falls everywhere, DT on one, and the replay holds many good episodes.
    good = {**datasets, REPLAY: summary(REPLAY, (1, 1, 4, 4), 500)}
    outcomes = [outcome(dataset, "rvs", FALLS, about=about) for dataset, about in good.items()]
    outcomes += [outcome(REPLAY, "dt", FALLS, about=good[REPLAY])]
    assert verdicts(found("reliability", outcomes)) == [False, True, False, False, False]


@pytest.mark.parametrize(("medium", "verdict"), [(40.0, True), (44.0, True), (46.0, False)])
def test_reliability_on_medium_is_not_above_that_on_medium_expert(medium: float, verdict: bool) -> None:
    far = {REPLAY: 10.0, MEDIUM: medium, EXPERT: 42.0}  # of 50: medium-expert retains 84 %
    outcomes = [outcome(dataset, "rvs", (20, 50, 50, at)) for dataset, at in far.items()]
    assert claim(found("reliability", outcomes), "Reliability decreases").holds is verdict


def test_dt_concat() -> None:
    followed = curves(WALKERS, dt=HOLDS, dt_concat=FALLS)
    assert verdicts(found("dt-concat", followed)) == [True, True, True]
    ignored = curves(WALKERS, dt=FALLS, dt_concat=(50, 20, 50, 50))
    assert verdicts(found("dt-concat", ignored)) == [False, False, False]


def test_components() -> None:
    outcomes = curves(WALKERS, rvs=(20, 40, 10, 0), rvs__cwbc=HOLDS)
    outcomes += curves([REPLAY], rvs__w=(20, 55, 10, 0)) + curves([MEDIUM, EXPERT], rvs__w=(20, 41, 10, 0))
    assert verdicts(found("components", outcomes)) == [True] * 5
    outcomes = curves(WALKERS, rvs=HOLDS, rvs__w=HOLDS, rvs__cwbc=FALLS)
    assert verdicts(found("components", outcomes)) == [False] * 5


def components(*scores: tuple[float, float, float, float]) -> list[bool | None]:
    """What becomes of "performs better" and "more reliable", with these curves of CWBC beside RvS's HOLDS."""
    pairs = zip(WALKERS, scores, strict=True)
    outcomes = [outcome(dataset, "rvs+cwbc", points) for dataset, points in pairs]
    findings = found("components", outcomes + curves(WALKERS, rvs=(20, 50, 50, 45)))
    return [claim(findings, words).holds for words in ("performs better", "more reliable")]


def test_better_is_on_average_and_comparable_on_each() -> None:
    assert components((20, 60, 60, 60), (20, 48, 48, 48), (20, 48, 48, 48)) == [True, True]
    assert components((20, 90, 90, 90), (20, 47, 47, 47), (20, 50, 50, 50))[0] is False  # 94 % on one
    assert components((20, 49, 49, 49), (20, 49, 49, 49), (20, 49, 49, 49))[0] is False


def test_more_reliable_is_reliable_on_each_and_more_on_average() -> None:
    assert components(HOLDS, HOLDS, (20, 50, 50, 44))[1] is True  # RvS retains 90 % on each
    assert components(HOLDS, HOLDS, (20, 50, 50, 39))[1] is False
    assert components((20, 50, 50, 44), (20, 50, 50, 44), (20, 50, 50, 44))[1] is False


def test_one_collapse_is_enough_to_be_unreliable() -> None:
    def weighting(*far: float) -> bool | None:
        pairs = zip(WALKERS, far, strict=True)
        outcomes = [outcome(dataset, "rvs+w", (20, 50, 50, score)) for dataset, score in pairs]
        return claim(found("components", outcomes), "not reliable").holds

    assert weighting(24, 50, 50) is True  # 48 % of its best score
    assert weighting(26, 50, 50) is False


def test_a_crash_is_a_fall_below_half_anywhere_beyond_the_best() -> None:
    def avoided(lowest: float) -> bool | None:
        outcomes = curves(WALKERS[1:], rvs__cwbc=HOLDS) + curves(WALKERS[:1], rvs__cwbc=(20, 50, lowest, 50))
        return claim(found("components", outcomes), "avoids the performance crash").holds

    assert avoided(26) is True
    assert avoided(24) is False


@pytest.mark.parametrize("words", ["not reliable", "more reliable", "avoids the performance crash"])
def test_without_a_score_there_is_no_retention(words: str) -> None:
    outcomes = curves(WALKERS, rvs=FALLS, rvs__w=FALLS, rvs__cwbc=HOLDS)
    assert claim(found("components", outcomes), words).holds is True
    nothing = curves(WALKERS, rvs=(-9, -9, -9, -9), rvs__w=(-9, -9, -9, -9), rvs__cwbc=(-9, -9, -9, -9))
    assert claim(found("components", nothing), words).holds is None


def test_max_return_has_targets_below_the_best() -> None:
    best_at = {REPLAY: (20, 60, 30, 0), MEDIUM: (20, 40, 30, 0), EXPERT: (20, 60, 30, 0)}
    outcomes = [outcome(dataset, "rvs", best_at[dataset], extra={0.8: 50}) for dataset in WALKERS]
    outcomes += [outcome(dataset, "rvs+cwbc", (20, 50, 58, 50), extra={0.8: 50}) for dataset in WALKERS]
    findings = found("max-return", outcomes)
    assert verdicts(findings) == [True, True, True]
    table = findings.tables["max-return"]
    assert [round(cell.number) for cell in table.rows[0].cells] == [50, 60, 30, 0]
    outcomes = [outcome(dataset, "rvs", HOLDS, extra={0.8: 80}) for dataset in WALKERS]
    outcomes += [outcome(dataset, "rvs+cwbc", HOLDS, extra={0.8: 50}) for dataset in WALKERS]
    assert verdicts(found("max-return", outcomes)) == [False, False, False]


def test_a_strategy_that_is_nearly_the_best_everywhere_is_a_common_one() -> None:
    best_at = {REPLAY: (20, 60, 30, 0), MEDIUM: (20, 58, 30, 0), EXPERT: (20, 60, 30, 0)}
    outcomes = [outcome(dataset, "rvs", best_at[dataset], extra={0.8: 59}) for dataset in WALKERS]
    findings = found("max-return", outcomes)  # the best one differs, but 1x is never far behind
    assert claim(findings, "no common").holds is False
    assert claim(found("max-return", outcomes[1:]), "no common").holds is None
    outcomes[0] = outcome(REPLAY, "rvs", (20, 60, 30, 0), extra={0.8: 50})
    outcomes[1] = outcome(MEDIUM, "rvs", (20, 50, 30, 0), extra={0.8: 59})
    assert claim(found("max-return", outcomes[:2]), "no common").holds is True
