"""The tables' extra rows and emphasis, as the paper prints them."""

from __future__ import annotations

import csv
import dataclasses
import re

import numpy as np
import pytest
from hand_made import FALLS, HOLDS, at_expert, curves, found, outcome
from printed import FILTERED_BC_BY_QUALITY

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.paper.published import DATASETS, FILTERED_BC
from cwbc.reports.showing import cell_at, scores_in_words
from cwbc.reports.tables import ReportTable, TableRow
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.intervals import finite


def row(table: ReportTable, name: str) -> TableRow:
    (wanted,) = [each for each in table.rows if each.name == name]
    return wanted


def test_deviations_are_the_papers() -> None:
    # Of ten episodes one seed of ten wins one, four of them win one: "1.0 ± 3.0" and "4.0 ± 4.9" in the
    # paper's table of mazes. Divided by nine, the deviations would be 3.16 and 5.16.
    task = (each := outcome("hopper-medium", "rvs", HOLDS)).dataset.task
    for winning, mean, deviation in ((1, 1.0, 3.0), (4, 4.0, 4.9)):
        scores = np.repeat(10.0 * (np.arange(10) < winning)[:, None, None], len(each.sweep.targets), axis=1)
        returns = task.random_score + scores / 100 * (task.expert_score - task.random_score)
        sweep = dataclasses.replace(each.sweep, seeds=np.arange(10), returns=returns)
        cell = cell_at(EvaluatedMethod.of(sweep, each.dataset), task.expert_return)
        assert cell.value == pytest.approx(mean)
        assert round(cell.spread, 1) == deviation


def test_of_successes_a_table_has_rates() -> None:
    data = DatasetSummary("m", None, "abc", 10, 90, 0.0, 1.0, 0.4, (0.0, 0.5, 1.0), (6, 4))
    assert scores_in_words([data, data]) == "Success rates in\u00a0%"
    assert scores_in_words([data, dataclasses.replace(data, best=2.0)]) == "Scores"
    assert scores_in_words([]) == "Scores"


def test_wins_are_counted_and_written_as_whole_numbers() -> None:
    outcomes = curves(DATASETS[:7], rvs=FALLS, rvs__cwbc=HOLDS, dt=HOLDS, dt__cwbc=HOLDS)
    outcomes += curves(DATASETS[7:], rvs=HOLDS, rvs__cwbc=FALLS, dt=HOLDS, dt__cwbc=FALLS)
    table = found("table1", outcomes).tables["table1"]
    assert [each.name for each in table.rows[-2:]] == ["# wins", "average"]
    cells = row(table, "# wins").cells
    assert [finite(cell.number) for cell in cells] == [None, 7, None, 0, *[None] * 4]  # a tie is no win
    assert [finite(cell.published) for cell in cells[:4]] == [None, 8, None, 6]
    line = next(line for line in table.to_markdown().splitlines() if line.startswith("| # wins"))
    assert re.sub(r"[ *]+", " ", line).split("|")[2:6] == [" – ", " 7 (8, −1) ", " – ", " 0 (6, −6) "]
    named = {each["dataset"]: each for each in csv.DictReader(table.to_csv().splitlines())}
    assert named["# wins"]["rvs+cwbc"] == "7"
    assert named["# wins"]["rvs+cwbc published"] == "8"


def test_wins_of_some_datasets_are_not_compared_with_those_of_nine() -> None:
    scores = {"rvs": 20.0, "rvs+w": 30, "rvs+c": 10, "rvs+cwbc": 60, "rvs+f": 30}
    outcomes = [each for dataset in DATASETS[:2] for each in at_expert(dataset, scores)]
    cells = row(found("hard-filtering", outcomes).tables["hard-filtering"], "# wins").cells
    assert [finite(cell.number) for cell in cells] == [None, 2, 0, 2, 2, None]  # rvs+f+c was not measured
    assert {finite(cell.published) for cell in cells} == {None}


def test_averages_by_quality_are_those_that_the_paper_prints() -> None:
    outcomes = [
        each
        for dataset in ("walker2d-medium", "hopper-medium", *DATASETS[1::3])
        for each in at_expert(dataset, {"rvs": 40.0 if dataset.startswith("walker2d") else 10.0})
    ]
    table = found("filtered-bc", outcomes).tables["filtered-bc"]
    names = [each.name for each in table.rows[-3:]]
    assert names == ["medium average", "medium-replay average", "average"]
    assert [row(table, name).cells[1].number for name in names] == pytest.approx([25, 20, 22])
    whole = found("filtered-bc", curves(DATASETS, rvs=HOLDS)).tables["filtered-bc"]
    for quality, printed in FILTERED_BC_BY_QUALITY.items():
        theirs = [cell.published for cell in row(whole, f"{quality} average").cells]
        assert [f"{number:.1f}" for number in theirs] == [str(printed[name]) for name in FILTERED_BC.scores]


def test_one_kind_of_data_has_one_average() -> None:
    table = found("filtered-bc", curves(DATASETS[1::3], rvs=HOLDS)).tables["filtered-bc"]
    assert [each.name for each in table.rows[3:]] == ["average"]


def test_scores_of_others_are_never_emphasized() -> None:
    table = found("table1", curves(DATASETS, rvs=FALLS, rvs__cwbc=HOLDS)).tables["table1"]
    line = table.to_markdown().splitlines()[2]  # walker2d-medium, where TD3+BC has 83.7
    assert re.findall(r"\*\*(.+?)\*\*", line) == ["50.0 ± 0.0"]
    assert "83.7" in line
