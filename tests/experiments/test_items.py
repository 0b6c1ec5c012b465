"""Verdicts on outcomes made by hand: what supports a claim, what contradicts it, and what tells nothing."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hand_made import FALLS, HOLDS, at_expert, claim, curves, found, outcome, summary, verdicts

from cwbc.evidence.item import FULL, QUICK
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import WALKERS, named, short_name
from cwbc.evidence.published import DATASETS
from cwbc.experiments.catalogue import ITEMS
from cwbc.networks import Transformer

REPLAY, MEDIUM, EXPERT = WALKERS


def test_names_go_both_ways() -> None:
    assert named("walker2d-medium-replay", "d4rl") == "d4rl/walker2d/medium-replay-v2"
    for dataset in DATASETS:
        assert short_name(named(dataset, "ours")) == short_name(named(dataset, "d4rl")) == dataset
    assert short_name("my/logs.hdf5") == "logs"


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
    kept = {REPLAY: 10.0, MEDIUM: medium, EXPERT: 42.0}  # of 50: medium-expert keeps 84 %
    outcomes = [outcome(dataset, "rvs", (20, 50, 50, at)) for dataset, at in kept.items()]
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
    assert components(HOLDS, HOLDS, (20, 50, 50, 44))[1] is True  # RvS keeps 90 % on each
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


@pytest.mark.parametrize("name", [item.name for item in ITEMS.values() if item.variants])
@pytest.mark.parametrize("scores", [(20, 50, np.nan, 50), (np.nan,) * 4])
def test_simulations_that_broke_down_decide_nothing(
    name: str, scores: tuple[float, float, float, float]
) -> None:
    item = ITEMS[name]
    labels = [each if isinstance(each, str) else each.label for each in item.variants]
    findings = found(name, [outcome(dataset, label, scores) for dataset in item.datasets for label in labels])
    assert verdicts(findings) == [None] * len(findings.claims)
    shown = [table.to_markdown() for table in findings.tables.values()]
    shown += [chart.to_html() for chart in findings.charts]
    assert not [text for text in shown if re.search(r"\bnan\b", text)]


@pytest.mark.parametrize("words", ["not reliable", "more reliable", "avoids the performance crash"])
def test_without_a_score_nothing_is_kept_or_lost(words: str) -> None:
    outcomes = curves(WALKERS, rvs=FALLS, rvs__w=FALLS, rvs__cwbc=HOLDS)
    assert claim(found("components", outcomes), words).holds is True
    nothing = curves(WALKERS, rvs=(-9, -9, -9, -9), rvs__w=(-9, -9, -9, -9), rvs__cwbc=(-9, -9, -9, -9))
    assert claim(found("components", nothing), words).holds is None


def test_max_return_asks_for_less_than_the_best() -> None:
    best_at = {REPLAY: (20, 60, 30, 0), MEDIUM: (20, 40, 30, 0), EXPERT: (20, 60, 30, 0)}
    outcomes = [outcome(dataset, "rvs", best_at[dataset], extra={0.8: 50}) for dataset in WALKERS]
    outcomes += [outcome(dataset, "rvs+cwbc", (20, 50, 58, 50), extra={0.8: 50}) for dataset in WALKERS]
    findings = found("max-return", outcomes)
    assert verdicts(findings) == [True, True, True]
    table = findings.tables["max-return"]
    assert [round(cell.number or 0) for cell in table.rows[0].cells] == [50, 60, 30, 0]
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


def test_hard_filtering() -> None:
    scores = {"rvs": 20.0, "rvs+w": 30, "rvs+c": 50, "rvs+cwbc": 60, "rvs+f": 30, "rvs+f+c": 45}
    outcomes = [
        outcome(dataset, label, (20, 50, at, at), apart=10 if "f" in label else 2)
        for dataset in DATASETS
        for label, at in scores.items()
    ]
    findings = found("hard-filtering", outcomes)
    assert verdicts(findings) == [True] * 5
    assert "2.0 against 10.0" in findings.claims[-1].reason
    assert "on average over 9 datasets" in findings.claims[0].reason
    little = [each for dataset in DATASETS for each in at_expert(dataset, {"rvs": 50, "rvs+f+c": 52})]
    assert claim(found("hard-filtering", little), "notable").holds is False  # 4 %, and 11 were published
    scores = {label: 80 - at for label, at in scores.items()}
    outcomes = [
        outcome(dataset, label, (20, 50, at, at), apart=5)
        for dataset in DATASETS
        for label, at in scores.items()
    ]
    assert verdicts(found("hard-filtering", outcomes)) == [False] * 5


def test_filtered_bc() -> None:
    replays = [dataset for dataset in DATASETS if dataset.endswith("replay")]
    others = [dataset for dataset in DATASETS if not dataset.endswith("replay")]
    outcomes = curves(others, filtered_bc=HOLDS, rvs=FALLS, rvs__cwbc=(20, 50, 49, 49))
    outcomes += curves(replays, filtered_bc=(20, 50, 40, 40), rvs=FALLS, rvs__cwbc=HOLDS)
    assert verdicts(found("filtered-bc", outcomes)) == [True, True, True, True]
    outcomes = curves(DATASETS, filtered_bc=HOLDS, rvs=FALLS, rvs__cwbc=(20, 50, 40, 40))
    assert verdicts(found("filtered-bc", outcomes)) == [False] * 4
    part = curves(replays, filtered_bc=HOLDS, rvs__cwbc=HOLDS)
    assert verdicts(found("filtered-bc", part)) == [None, None, False, None]


@pytest.mark.parametrize("item", ITEMS.values(), ids=lambda item: item.name)
def test_every_item_declares_what_it_needs(item) -> None:  # type: ignore[no-untyped-def]
    assert set(item.quick_datasets) <= set(item.datasets)
    for quick in (False, True):
        cells = item.cells(item.names("ours", quick), QUICK if quick else FULL)
        assert len(cells) == item.count(quick)
        names = [(cell.dataset, cell.label) for cell in cells]
        assert len(set(names)) == len(names)
        assert {len(cell.seeds) for cell in cells} <= ({2} if quick else {10})
        steps = {cell.training.steps for cell in cells}
        assert steps <= ({2_000} if quick else {100_000})
        if not quick:
            assert {c.training.batch_size for c in cells} <= {64}
        elif any(isinstance(cell.method.network, Transformer) for cell in cells):
            assert {c.training.batch_size for c in cells if isinstance(c.method.network, Transformer)} == {16}
    assert bool(item.variants) or item.needs_data
    # Without any outcome there is no verdict, and no crash.
    assert {claim.holds for claim in item.findings(Evidence({}, item.datasets)).claims} == {None}
