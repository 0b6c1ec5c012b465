"""Verdicts of Tables 1, 7 and 8 on hand-made curves, and of Table 1 on the paper's own scores."""

from __future__ import annotations

import csv
import dataclasses
import io
import math

import numpy as np
import pytest
from hand_made import FALLS, HOLDS, Findings, at_expert, claim, curves, found, outcome, summary, verdicts

from cwbc.grids.outcomes import Outcome
from cwbc.paper.published import DATASETS, MAIN, named
from cwbc.paper.table_claims import BC, TABLE_1
from cwbc.paper.verdicts import Case, judged
from cwbc.reports.page import to_csv
from cwbc.results.evidence import Evidence
from cwbc.results.intervals import finite
from cwbc.results.sweeps import Sweep

LABELS = BC


def test_table1_as_in_the_paper_and_the_other_way_round() -> None:
    better = curves(DATASETS, rvs=FALLS, rvs__cwbc=HOLDS, dt=(20, 45, 40, 40), dt__cwbc=(20, 45, 48, 45))
    assert verdicts(found("table1", better)) == [
        True, False, True, True, True, True, False, True, None, True, False, True,
    ]  # fmt: skip
    worse = curves(DATASETS, rvs=HOLDS, rvs__cwbc=FALLS, dt=FALLS, dt__cwbc=(20, 45, 9, 40))
    assert verdicts(found("table1", worse)) == [False] * 8 + [None] + [False] * 3


ABOUT = {name: dataclasses.replace(summary(name), name=named(name, "d4rl")) for name in DATASETS}


def on_d4rl(scores: dict[str, dict[str, float]]) -> Findings:
    """The item on D4RL's own data, with these scores at 1x expert by method and dataset."""
    outcomes = [
        outcome(dataset, label, (20, 50, at, at), about=ABOUT[dataset])
        for label, of in scores.items()
        for dataset, at in of.items()
    ]
    return found("table1", outcomes)


def published(label: str) -> dict[str, float]:
    return {dataset: score.mean for dataset, score in MAIN.scores[label].items()}


def test_the_paper_s_own_scores_support_what_it_says_of_them() -> None:
    findings = on_d4rl({label: published(label) for label in LABELS})
    assert verdicts(findings)[:9] == [True] * 9
    assert claim(findings, "RvS+CWBC performs similarly").cases[0].numbers == "87.7 against 87.7"


def test_other_bc_methods_and_value_based_ones_as_published() -> None:
    low = {label: dict.fromkeys(DATASETS, 50.0) for label in LABELS}
    # TTO has 72.6 on average, CQL 80.6.
    for ours, best, competitive in ((72.0, False, False), (72.55, False, True), (73.0, True, True)):
        findings = on_d4rl({**low, "rvs+cwbc": dict.fromkeys(DATASETS, ours)})
        assert claim(findings, "best performing").holds is best
        assert "tto 72.6" in claim(findings, "best performing").reason
        assert claim(findings, "competitively").holds is competitive
    on_ours = found("table1", curves(DATASETS, rvs=FALLS, rvs__cwbc=HOLDS, dt=FALLS, dt__cwbc=FALLS))
    assert claim(on_ours, "best performing").holds is True
    assert "tto" not in claim(on_ours, "best performing").reason
    assert claim(on_ours, "competitively").holds is None
    assert claim(on_ours, "competitively").reason == "No dataset has all results that it compares."


@pytest.mark.parametrize(
    ("ours", "apart", "verdict"),
    [
        (63.1, 0.0, "supported"),  # 90 % of CQL's average, 70
        (62.9, 0.0, "contradicted"),
        (66.0, 3.0, "inconclusive"),
    ],
)
def test_competitive_with_value_based_methods_on_the_same_data(
    ours: float, apart: float, verdict: str
) -> None:
    scores = {"rvs+cwbc": ours, "td3bc": 40.0, "cql": 70.0, "iql": 55.0, "rebrac": 99.0}
    outcomes = [
        outcome(dataset, label, (20, 50, at, at), apart)
        for dataset in DATASETS[:2]
        for label, at in scores.items()
    ]
    (text,) = (text for text in TABLE_1.rules if "competitively" in text)
    about = dataclasses.replace(TABLE_1, rules={text: TABLE_1.rules[text]})
    (found,) = judged(about.claims, Evidence.of(outcomes, DATASETS[:2]))
    assert found.verdict == verdict
    assert f"rvs+cwbc {ours}, td3bc 40.0, cql 70.0, iql 55.0 on average over 2 datasets" in found.reason
    # Without one of the three, or on fewer datasets, it is not judged.
    without = [each for each in outcomes if each.sweep.method != "iql"]
    for part in (without, outcomes[5:]):
        (left,) = about.claims(Evidence.of(part, DATASETS[:2]))
        assert left.holds is None


def test_value_based_methods_stand_beside_published_scores_where_they_were_run() -> None:
    outcomes = curves(DATASETS[:2], rvs=HOLDS, cql=HOLDS, rebrac=HOLDS, rvs__q=HOLDS)
    outcomes = [without_target(each) if each.sweep.method != "rvs" else each for each in outcomes]
    table = found("table1", outcomes).tables["table1"]
    assert [(column.name, column.note) for column in table.columns] == [
        *((label, "") for label in BC),
        *((label, "without a target") for label in ("cql", "rebrac", "rvs+q")),
        *((label, "published") for label in ("td3bc", "iql", "tto")),
    ]
    cql, rebrac, rvs_q, td3bc = table.rows[0].cells[4:8]
    assert [cell.value for cell in (cql, rebrac, rvs_q)] == pytest.approx([20.0] * 3)  # their only score
    assert [cql.published, td3bc.value] == [82.9, 83.7]
    assert math.isnan(rebrac.published)
    assert "nan" not in table.to_markdown()


def without_target(made: Outcome) -> Outcome:
    """The first point of a curve, as the scores of a method that was evaluated without a target."""
    of = made.sweep
    sweep = Sweep(of.method, of.seeds, np.array([np.nan]), of.returns[:, :1], of.lengths[:, :1])
    return dataclasses.replace(made, sweep=sweep)


@pytest.mark.parametrize(("ours", "verdict"), [(48.0, True), (52.0, True), (47.0, False), (53.0, False)])
def test_similar_goes_both_ways(ours: float, verdict: bool) -> None:
    outcomes = curves(["hopper-medium-replay"], rvs=HOLDS, rvs__cwbc=(20, 50, ours, ours))
    assert claim(found("table1", outcomes), "performs similarly").holds is verdict
    elsewhere = found("table1", outcomes, datasets=["walker2d-medium"])
    assert claim(elsewhere, "performs similarly").holds is verdict


def test_where_dt_does_not_gain_it_loses_little() -> None:
    for ours, verdict in ((48.0, True), (47.0, False)):
        outcomes = curves(DATASETS[1:], dt=FALLS, dt__cwbc=HOLDS)
        outcomes += curves(DATASETS[:1], dt=HOLDS, dt__cwbc=(20, 50, ours, ours))
        assert claim(found("table1", outcomes), "comparably to DT").holds is verdict
    assert claim(found("table1", outcomes[2:]), "comparably to DT").holds is False
    assert claim(found("table1", outcomes[:-2]), "comparably to DT").holds is None


def test_similar_findings_on_the_other_robots() -> None:
    others = [dataset for dataset in DATASETS if not dataset.startswith("walker2d")]
    replays = [dataset for dataset in others if dataset.endswith("replay")]
    rest = [dataset for dataset in others if dataset not in replays]
    outcomes = curves(replays, rvs=FALLS, dt=HOLDS) + curves(rest, rvs=HOLDS, dt=HOLDS)
    findings = found("table1", outcomes + curves(DATASETS[:3], rvs=FALLS, dt=FALLS))
    assert verdicts(findings)[-2:] == [True, True]  # walker2d has no say
    outcomes = curves(replays, rvs=HOLDS, dt=HOLDS) + curves(rest, rvs=HOLDS, dt=HOLDS)
    assert verdicts(found("table1", outcomes))[-2:] == [False, True]
    outcomes = curves(replays, rvs=FALLS, dt=HOLDS) + curves(rest, rvs=FALLS, dt=FALLS)
    assert verdicts(found("table1", outcomes))[-2:] == [False, False]
    assert verdicts(found("table1", curves(replays, rvs=FALLS, dt=HOLDS)))[-2:] == [None, None]


def test_table1_counts_wins_as_a_fraction() -> None:
    outcomes = curves(DATASETS[:2], rvs__cwbc=FALLS, dt=HOLDS, rvs=HOLDS)
    outcomes += curves(DATASETS[2:], rvs__cwbc=HOLDS, dt=HOLDS, rvs=FALLS)
    wins = claim(found("table1", outcomes), "8 of 9")
    assert wins.holds is False  # 7 of 9, and 8 are claimed
    assert "Holds on 7 of 9, needs 8" in wins.reason
    assert wins.cases[0] == Case(DATASETS[0], "−40.0 points (−40.0 to −40.0)", holds=False)
    assert Case("halfcheetah-medium", "40.0 points (40.0 to 40.0)", holds=True) in wins.cases
    assert claim(found("table1", outcomes[6:]), "8 of 9").holds is None  # 7 of the 7 that are there


def test_table1_shows_published_numbers_and_differences() -> None:
    table = found("table1", curves(DATASETS, rvs=HOLDS, rvs__cwbc=HOLDS, dt=HOLDS)).tables["table1"]
    medium, *_, average = table.rows
    assert medium.name == "walker2d-medium"
    assert medium.cells[0].value == pytest.approx(50)
    assert (medium.cells[0].published, medium.cells[0].published_spread) == (73.3, 5.7)
    assert medium.cells[0].difference == pytest.approx(50 - 73.3)
    assert math.isnan(medium.cells[3].number)  # dt+cwbc failed; its published number still stands
    assert medium.cells[3].published == 70.4
    assert (average.name, round(average.cells[0].published, 1)) == ("average", 64.6)
    assert [round(cell.number, 1) for cell in average.cells[4:]] == [75.3, 80.6, 77.0, 72.6]
    assert "published" in table.to_markdown()


@pytest.mark.parametrize(("ours", "holds"), [(50.0, True), (-0.95, False), (-1.0, False), (-2.0, False)])
def test_a_gain_over_a_score_below_zero_is_a_fraction_of_its_size(ours: float, holds: bool) -> None:
    outcomes = curves(DATASETS, rvs=(0, 0, -1, -1), rvs__cwbc=(20, 50, ours, ours))
    gain = claim(found("table1", outcomes), "18 %")
    assert gain.holds is holds
    assert "against −1.0 on average" in gain.reason


def test_an_average_is_shown_beside_single_datasets() -> None:
    outcomes = curves(DATASETS[:2], rvs=HOLDS, rvs__cwbc=FALLS)
    outcomes += curves(DATASETS[2:], rvs=FALLS, rvs__cwbc=HOLDS)
    gain = claim(found("table1", outcomes), "18 %")
    assert gain.holds is True
    assert "41.1 against 18.9, 118 % on average over 9 datasets. By dataset, holds on 7 of 9." in (
        gain.reason.replace("\u00a0", " ")
    )
    assert gain.cases[0] == Case(DATASETS[0], "10.0 against 50.0, −80\u00a0%", holds=False)
    best = claim(found("table1", outcomes + curves(DATASETS, dt=FALLS, dt__cwbc=FALLS)), "best performing")
    assert "By dataset, holds on 7 of 9." in best.reason


def test_significant_takes_an_interval_without_zero_on_either_side() -> None:
    above, below, around = DATASETS[:7], DATASETS[7:8], DATASETS[8:]
    outcomes = curves(above, rvs=FALLS, rvs__cwbc=HOLDS) + curves(below, rvs=HOLDS, rvs__cwbc=FALLS)
    outcomes += curves(around, rvs=HOLDS, rvs__cwbc=(20, 50, 60, 60), apart=20)
    improves = claim(found("table1", outcomes), "significantly improves")
    assert [case.holds for case in improves.cases] == [True] * 7 + [False, None]
    assert improves.holds is None  # the open one would be the eighth
    assert "Holds on 7 of 9, needs 8. Significantly lower on 1." in improves.reason
    outcomes = curves(DATASETS[:2], rvs=HOLDS, rvs__cwbc=FALLS)
    outcomes += curves(DATASETS[2:], rvs=HOLDS, rvs__cwbc=(20, 50, 60, 60), apart=20)
    assert claim(found("table1", outcomes), "significantly improves").holds is False


def test_the_nine_datasets_are_summed_up_with_what_the_seeds_allow_to_say() -> None:
    outcomes = curves(DATASETS, apart=5, rvs=FALLS, rvs__cwbc=HOLDS)
    findings = found("table1", outcomes)
    rvs, cwbc = findings.tables["overall"].rows
    numbers = [finite(round(cell.number, 2)) for cell in rvs.cells]
    assert numbers == [10, 10, 0, None, None, 0]  # it is compared with nothing
    assert [round(cell.number, 2) for cell in cwbc.cells] == [50, 50, 50, 1, 1, 1]
    middle = cwbc.cells[1]
    assert 45 <= middle.low < 50 < middle.high <= 55
    profile, *_ = findings.charts
    rows = list(csv.reader(io.StringIO(to_csv(profile))))[1:]
    above = {(row[0], float(row[1])): float(row[2]) for row in rows}
    assert above["rvs", 0.0] == 1  # 5 and 15 on each dataset
    assert above["rvs+cwbc", 44.0] == 1
    assert above["rvs+cwbc", 46.75] == 0.5
    assert above["rvs", 16.5] == 0


def test_methods_with_missing_datasets_do_not_change_the_averages_of_others() -> None:
    outcomes = curves(DATASETS[:2], rvs=HOLDS, rvs__w=HOLDS) + curves(DATASETS[2:3], rvs=FALLS)
    table = found("hard-filtering", outcomes).tables["overall"]
    assert [(row.name, round(row.cells[0].number)) for row in table.rows] == [("rvs", 50), ("rvs+w", 50)]
    assert table.rows[1].cells[3].value == 0.5  # all ties
    assert found("filtered-bc", []).tables["overall"].rows == []


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
