"""The reliability chart: curves, bands, landmarks and labels, as a page shows them."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import re
from itertools import combinations

import numpy as np
import pytest
from pages import DATASET, Read, html, once, sweep

from cwbc.core.simulation import offline
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.reliability_chart import reliability_chart
from cwbc.reports.svg import NARROW, WIDE, Size, drawing
from cwbc.results.estimates import Estimates
from cwbc.results.evaluated import evaluated
from cwbc.results.replays import Replays

TARGETS = (1500.0, 3200.0, 6400.0)
SWEEPS = [
    sweep("rvs", 1400.0, 500.0, 0.0, targets=TARGETS, spread=10.0),
    sweep("rvs+cwbc", 1400.0, 1400.0, float("nan"), targets=TARGETS),
]


def shown(dataset: DatasetSummary = DATASET) -> Read:
    return Read(html(reliability_chart(evaluated(SWEEPS, dataset))))


def test_hovering_tells_return_interval_and_score() -> None:
    (data,) = shown().data
    assert [words for _, words in data["stops"]] == [
        "target return 1,500 · dataset's best",
        "target return 3,200 · 1× expert",
        "target return 6,400 · 2× expert",
    ]
    rvs, cwbc = data["series"]
    # Two seeds, 10 below and 10 above: the two themselves, not their interval of ±127.
    assert rvs["values"][1] == [500.0, "500", "490 to 510", "score 16.0"]
    assert cwbc["values"][2] is None
    assert data["file"] == "hops-reliability"


def test_bands_of_estimates_include_the_error_of_the_model() -> None:
    of = dataclasses.replace(DATASET, environment=offline(DATASET.environment))
    replays = Replays(np.linspace(0, 400, 5), np.linspace(-30, 370, 5))  # 30 too low everywhere
    rvs = SWEEPS[0]
    known = Estimates(rvs.seeds, rvs.targets, rvs.means, np.ones(rvs.means.shape), replays)
    chart = reliability_chart(evaluated([rvs], of, estimates={"rvs": known}))
    (data,) = Read(html(chart)).data
    reach = math.hypot(10, 1.959964 * 30)
    assert data["series"][0]["values"][1][2] == f"{500 - reach:,.0f} to {500 + reach:,.0f}"
    assert "Bands span both seeds and the model's error on held-out episodes" in chart.caption


def test_landmarks_shade_and_diagonal_lie_on_the_axis() -> None:
    read = shown()
    for number, found in enumerate(read.having("data-scales")):
        start, end, low, high, _ = json.loads(found["data-scales"])["across"]
        places = [start + (x - low) / (high - low) * (end - start) for x in TARGETS]
        marks = [float(line["x1"]) for line in read.having("class", "mark")][3 * number :][:3]
        assert marks == pytest.approx(places, abs=0.06)
        grounds = [float(rect["x"]) for rect in read.having("class", "beyond")][2 * number :][:2]
        assert grounds == pytest.approx([places[0]] * 2, abs=0.06)  # under the curves and under the bars
    for words in ("dataset's best", "1,500", "2× expert", "achieved return", "target return", "6 episodes"):
        assert words in read.text


def test_unpublished_references_are_not_called_expert() -> None:
    text = shown(dataclasses.replace(DATASET, environment="Unknown-v0")).text
    assert "expert" not in text
    assert "best + range" in text


def test_clipped_rewards_have_no_diagonal_as_targets_have_another_unit() -> None:
    same, other = shown(), shown(dataclasses.replace(DATASET, clipped_rewards=True))
    assert "achieved = target" in same.text
    assert "achieved = target" not in other.text
    assert "target return, of clipped rewards" in other.text
    assert "clipped" not in same.text


@pytest.mark.parametrize("best", [-20.0, 1500.0, 3190.0, 3213.0, 6390.0])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_labels_never_meet_and_stay_inside(best: float, size: Size) -> None:
    chart = reliability_chart(evaluated(SWEEPS, dataclasses.replace(DATASET, best=best)))
    labels = [label for _, label in drawing(chart, size).labels]
    assert len(labels) == 3
    assert not any(one.meets(other) for one, other in combinations(labels, 2))
    assert all(label.start >= 0 and label.end <= size.width for label in labels)


def test_one_seed_has_no_band_and_says_nothing_of_one() -> None:
    alone = [dataclasses.replace(s, seeds=s.seeds[:1], returns=s.returns[:1]) for s in SWEEPS]
    read = Read(html(reliability_chart(evaluated(alone, DATASET))))
    assert not read.having("class", "band")
    assert "95 %" not in read.text
    assert "One seed: too few seeds for an interval." in read.text


def test_two_seeds_are_shown_as_they_are_and_said_to_be_few() -> None:
    read = shown()
    assert read.having("class", "band")
    assert "Bands span both seeds: too few seeds for an interval." in read.text
    assert "95 %" not in read.text


def test_a_method_that_takes_no_target_is_a_flat_line() -> None:
    chart = reliability_chart(evaluated([SWEEPS[0], once("bc", 690.0, 700.0, 710.0)], DATASET))
    read = Read(html(chart))
    assert "Flat lines: bc has no target." in read.text
    (data,) = read.data
    assert [place for place, _ in data["stops"]] == list(TARGETS)  # and not the ends of the axis
    assert [values[:2] for values in data["series"][1]["values"]] == [[700.0, "700"]] * 3
    rows = [row for row in csv.DictReader(io.StringIO(data["csv"])) if row["method"] == "bc"]
    assert [(row["target return"], float(row["achieved return"])) for row in rows] == [("", 700.0)]
    line = [found["d"] for found in read.having("class", "line") if "d" in found][-1]
    (start, left), (end, right) = (map(float, at.split()) for at in re.findall(r"[\d.]+ [\d.]+", line))
    assert left == right
    assert end - start > 100  # from edge to edge


def test_without_any_target_the_named_ones_can_be_read() -> None:
    (data,) = Read(html(reliability_chart(evaluated([once("bc", 690.0, 700.0, 710.0)], DATASET)))).data
    assert [words for _, words in data["stops"]] == [
        "target return 1,500 · dataset's best",
        "target return 3,200 · 1× expert",
        "target return 6,400 · 2× expert",
    ]
