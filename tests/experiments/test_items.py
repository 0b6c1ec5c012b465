"""Verdicts on outcomes made by hand: what supports a claim, what contradicts it, and what tells nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from conftest import with_returns
from hand_made import outcome, summary

from cwbc.experiments.catalogue import ITEMS
from cwbc.experiments.evidence import Evidence
from cwbc.experiments.item import Case, Findings
from cwbc.experiments.naming import WALKERS, named, short_name
from cwbc.experiments.published import DATASETS
from cwbc.grids.outcomes import Outcome
from cwbc.networks import Transformer
from cwbc.trajectories import Trajectories

REPLAY, MEDIUM, EXPERT = WALKERS
HOLDS = (20.0, 50.0, 50.0, 50.0)  # scores at a low return, the data's best, 1x and 2x expert
FALLS = (20.0, 50.0, 10.0, 0.0)


def found(name: str, outcomes: Sequence[Outcome], **data: Trajectories) -> Findings:
    return ITEMS[name].findings(
        Evidence.of(outcomes, {key.replace("_", "-"): value for key, value in data.items()})
    )


def verdicts(findings: Findings) -> list[bool | None]:
    return [claim.verdict for claim in findings.claims]


def curves(
    datasets: Sequence[str], apart: float = 0.0, **scores: tuple[float, float, float, float]
) -> list[Outcome]:
    """The same curves on all datasets; a method's + is written as two underscores."""
    return [
        outcome(dataset, label.replace("__", "+").replace("_", "-"), points, apart)
        for dataset in datasets
        for label, points in scores.items()
    ]


def test_names_go_both_ways() -> None:
    assert named("walker2d-medium-replay", "d4rl") == "d4rl/walker2d/medium-replay-v2"
    for dataset in DATASETS:
        assert short_name(named(dataset, "ours")) == short_name(named(dataset, "d4rl")) == dataset
    assert short_name("my/logs.hdf5") == "logs"


def test_table1_as_in_the_paper_and_the_other_way_round() -> None:
    better = curves(DATASETS, rvs=FALLS, rvs__cwbc=HOLDS, dt=(20, 45, 40, 40), dt__cwbc=(20, 45, 48, 45))
    assert verdicts(found("table1", better)) == [True, True, True, True, False, True, True]
    worse = curves(DATASETS, rvs=HOLDS, rvs__cwbc=FALLS, dt=HOLDS, dt__cwbc=(20, 45, 40, 40))
    assert verdicts(found("table1", worse)) == [False] * 7


def test_table1_counts_wins_by_share() -> None:
    outcomes = curves(DATASETS[:2], rvs__cwbc=FALLS, dt=HOLDS, rvs=HOLDS)
    outcomes += curves(DATASETS[2:], rvs__cwbc=HOLDS, dt=HOLDS, rvs=FALLS)
    claim = found("table1", outcomes).claims[0]
    assert claim.verdict is False  # 7 of 9, and 8 are claimed
    assert "Holds on 7 of 9, needs 8" in claim.reason
    assert claim.cases[0] == Case(DATASETS[0], False, "10.0 against 50.0")
    assert Case("halfcheetah-medium", True, "50.0 against 10.0") in claim.cases


def test_table1_shows_published_numbers_and_differences() -> None:
    table = found("table1", curves(DATASETS, rvs=HOLDS, rvs__cwbc=HOLDS, dt=HOLDS)).tables["table1"]
    medium, *_, average = table.rows
    assert medium.name == "walker2d-medium"
    assert medium.cells[0].value == pytest.approx(50)
    assert (medium.cells[0].published, medium.cells[0].published_spread) == (73.3, 5.7)
    assert medium.cells[0].difference == pytest.approx(50 - 73.3)
    assert medium.cells[3].value is None  # dt+cwbc failed; its published number still stands
    assert medium.cells[3].published == 70.4
    assert (average.name, round(average.cells[0].published or 0, 1)) == ("average", 64.6)
    assert [round(cell.number or 0, 1) for cell in average.cells[4:]] == [75.3, 80.6, 77.0, 72.6]
    assert "published" in table.to_markdown()


def test_a_gain_over_nothing_cannot_be_told() -> None:
    outcomes = curves(DATASETS, rvs=(0, 0, -1, -1), rvs__cwbc=HOLDS)
    claim = found("table1", outcomes).claims[1]
    assert claim.verdict is None
    assert "-1.0" in claim.reason.replace("−", "-")


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


def test_a_simulation_that_broke_down_scores_nothing() -> None:
    broken = outcome(REPLAY, "rvs+cwbc", (20, 50, np.nan, np.nan))
    claims = found("components", [broken, outcome(REPLAY, "rvs", HOLDS)]).claims
    assert [claim.verdict for claim in claims[2:]] == [False, False, False]
    assert "0.0 against 50.0" in claims[2].cases[0].numbers


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


def at_expert(dataset: str, scores: Mapping[str, float]) -> list[Outcome]:
    return [outcome(dataset, label, (20, 50, at, at)) for label, at in scores.items()]


def test_kappa() -> None:
    data = with_returns(*np.linspace(0, 100, 200))
    well = {"rvs+c": 50, "z = 99": 60, "z = 90": 60, "z = 50": 58, "z = 0": 40}
    outcomes = [each for dataset in WALKERS for each in at_expert(dataset, well)]
    findings = found("kappa", outcomes, walker2d_medium_replay=data)
    assert verdicts(findings) == [True, True, True]
    (distribution,) = findings.distributions
    assert [shares.sum() for shares in distribution.drawn.values()] == pytest.approx([1] * 4)
    poor = {"rvs+c": 50, "z = 99": 20, "z = 90": 60, "z = 50": 58, "z = 0": 61}
    outcomes = [each for dataset in WALKERS for each in at_expert(dataset, poor)]
    assert verdicts(found("kappa", outcomes, walker2d_medium_replay=data)) == [True, False, False]
    assert verdicts(found("kappa", [])) == [None, None, None]


def test_lambda() -> None:
    data = with_returns(*(np.arange(200) ** 2 / 400))
    labels = [f"lambda = {value}" for value in (0, 0.01, 0.1, 1, 10)]
    outcomes = at_expert(REPLAY, {"rvs+c": 50, **dict.fromkeys(labels, 52)})
    assert verdicts(found("lambda", outcomes, walker2d_medium_replay=data)) == [True, True, True, True]
    outcomes = at_expert(REPLAY, {"rvs+c": 50, **dict.fromkeys(labels, 52), labels[0]: 30})
    assert verdicts(found("lambda", outcomes, walker2d_medium_replay=data)) == [True, True, False, False]
    # Where all returns are equal, nothing can weigh more than it did.
    level = found("lambda", [], walker2d_medium_replay=with_returns(1, 1, 1))
    assert level.claims[1].verdict is False


def test_q() -> None:
    replay = at_expert(REPLAY, {"q = 0": 10, "q = 50": 20, "q = 95": 60, "q = 99": 58})
    others = at_expert(MEDIUM, {"q = 0": 50, "q = 50": 50, "q = 95": 52, "q = 99": 51})
    assert verdicts(found("q", replay + others)) == [True, True, True]
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
    assert verdicts(found("filtered-bc", curves(replays, filtered_bc=HOLDS, rvs__cwbc=HOLDS))) == [
        None, None, False, False,
    ]  # fmt: skip


def test_transformed() -> None:
    # Filtering keeps ten of a hundred; weighting draws half from the best one, or evenly from the best ten.
    one = with_returns(*([1.0] * 90 + [50.0] * 9 + [99.0]))
    assert verdicts(found("transformed", [], walker2d_medium_replay=one)) == [True, True, False]
    ten = with_returns(*([1.0] * 90 + [99.0] * 10))
    assert verdicts(found("transformed", [], walker2d_medium_replay=ten)) == [True, True, True]
    high = with_returns(*np.linspace(0, 100, 100))
    assert verdicts(found("transformed", [], walker2d_medium_replay=high))[0] is False


def test_bias_variance() -> None:
    returns = np.linspace(0, 100, 1000) ** 2
    findings = found("bias-variance", [], walker2d_medium=with_returns(*returns))
    assert [claim.verdict for claim in findings.claims][-1] is None
    table = findings.tables["bias-variance-walker2d-medium"]
    rows = {row.name: [cell.number for cell in row.cells] for row in table.rows}
    assert rows["uniform"][1] == pytest.approx(1 / 1000)
    assert rows["top 10 %"][1] == pytest.approx(1 / 100)
    # Where most episodes tie at the best, to train on those alone is no extreme.
    ties = found("bias-variance", [], walker2d_medium=with_returns(*([1.0] * 50 + [2.0] * 50)))
    assert ties.claims[2].verdict is False


@pytest.mark.parametrize("item", ITEMS.values(), ids=lambda item: item.name)
def test_every_item_declares_what_it_needs(item) -> None:  # type: ignore[no-untyped-def]
    assert set(item.quick_datasets) <= set(item.datasets)
    for quick in (False, True):
        cells = item.cells("ours", quick)
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
    assert {claim.verdict for claim in item.findings(Evidence({})).claims} == {None}


def test_the_nine_datasets_are_summed_up_with_what_the_seeds_allow_to_say() -> None:
    outcomes = curves(DATASETS, apart=5, rvs=FALLS, rvs__cwbc=HOLDS)
    findings = found("table1", outcomes)
    rvs, cwbc = findings.tables["overall"].rows
    assert [round(cell.number or 0, 2) for cell in rvs.cells] == [10, 10, 0, 0, 0, 0]
    assert [round(cell.number or 0, 2) for cell in cwbc.cells] == [50, 50, 50, 1, 1, 1]
    assert rvs.cells[3].value is None  # it is compared with nothing
    middle = cwbc.cells[1]
    assert middle.low is not None
    assert middle.high is not None
    assert 45 <= middle.low < 50 < middle.high <= 55
    profile, *_ = findings.charts
    above = {(row[0], row[1]): row[2] for row in list(profile.rows)[1:]}
    assert above["rvs", 0.0] == 1  # 5 and 15 on each dataset
    assert above["rvs+cwbc", 44.0] == 1
    assert above["rvs+cwbc", 46.75] == 0.5
    assert above["rvs", 16.5] == 0


def test_what_was_not_measured_on_all_datasets_does_not_spoil_the_sum() -> None:
    outcomes = curves(DATASETS[:2], rvs=HOLDS, rvs__w=HOLDS) + curves(DATASETS[2:3], rvs=FALLS)
    table = found("hard-filtering", outcomes).tables["overall"]
    assert [(row.name, round(row.cells[0].number or 0)) for row in table.rows] == [("rvs", 50), ("rvs+w", 50)]
    assert table.rows[1].cells[3].value == 0.5  # all ties
    assert found("filtered-bc", []).tables["overall"].rows == []
