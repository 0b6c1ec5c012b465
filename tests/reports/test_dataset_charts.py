from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from itertools import combinations

import numpy as np
import pytest
from pages import DATASET, Read, history, html, once, sweep

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.dataset_charts import (
    distinct_weightings,
    loss_curves,
    reliability_chart,
    sampled_chart,
    training_chart,
)
from cwbc.reports.svg import NARROW, WIDE, Size, drawing

TARGETS = (1500.0, 3200.0, 6400.0)
SWEEPS = [
    sweep("rvs", 1400.0, 500.0, 0.0, targets=TARGETS, spread=10.0),
    sweep("rvs+cwbc", 1400.0, 1400.0, float("nan"), targets=TARGETS),
]


def shown(dataset: DatasetSummary = DATASET) -> Read:
    return Read(html(reliability_chart(SWEEPS, dataset)))


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


@pytest.mark.parametrize("best", [-20.0, 1500.0, 3190.0, 3213.0, 6390.0])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_labels_never_meet_and_stay_inside(best: float, size: Size) -> None:
    chart = reliability_chart(SWEEPS, dataclasses.replace(DATASET, best=best))
    labels = [label for _, label in drawing(chart, size).labels]
    assert len(labels) == 3
    assert not any(one.meets(other) for one, other in combinations(labels, 2))
    assert all(label.start >= 0 and label.end <= size.width for label in labels)


def test_one_seed_has_no_band_and_says_nothing_of_one() -> None:
    alone = [dataclasses.replace(s, seeds=s.seeds[:1], returns=s.returns[:1]) for s in SWEEPS]
    read = Read(html(reliability_chart(alone, DATASET)))
    assert not read.having("class", "band")
    assert "95 %" not in read.text
    assert "One seed: too few seeds for an interval." in read.text


def test_two_seeds_are_shown_as_they_are_and_said_to_be_few() -> None:
    read = shown()
    assert read.having("class", "band")
    assert "Bands span both seeds: too few seeds for an interval." in read.text
    assert "95 %" not in read.text


def test_a_method_that_takes_no_target_is_a_flat_line() -> None:
    chart = reliability_chart([SWEEPS[0], once("bc", 690.0, 700.0, 710.0)], DATASET)
    read = Read(html(chart))
    assert "Flat lines: bc takes no target." in read.text
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
    (data,) = Read(html(reliability_chart([once("bc", 690.0, 700.0, 710.0)], DATASET))).data
    assert [words for _, words in data["stops"]] == [
        "target return 1,500 · dataset's best",
        "target return 3,200 · 1× expert",
        "target return 6,400 · 2× expert",
    ]


NAN = float("nan")
HISTORIES = {
    "bc": history("ByLength", (0.5, 0.5), [[4.0, 8.0], [2.0, 4.0], [1.0, 3.0], [1.0, 1.0]]),
    "rvs": history("ByLength", (0.5, 0.5), [[3.0, 3.0], [2.0, 2.0]], every=200),
    "rvs+w": history("ByReturn", (0.1, 0.9), [[0.5, 0.5], [0.25, 0.25]], every=200),
    "rvs+f": history("TopFraction", (0.0, 1.0), []),
    "old": history("ByReturn", None, [[NAN, NAN]]),
}


def test_losses_are_compared_at_the_same_steps() -> None:
    curves = {curve.name: curve for curve in loss_curves(HISTORIES)}
    assert list(curves) == ["bc", "rvs", "rvs+w"]  # the others have no loss to show
    # Rows of 100 steps are joined to those of 200.
    for curve in curves.values():
        np.testing.assert_array_equal(curve.x, [200, 400])
    np.testing.assert_array_equal(curves["bc"].value, [4.5, 1.5])
    np.testing.assert_array_equal(curves["bc"].low, [3.0, 1.0])
    np.testing.assert_array_equal(curves["bc"].high, [6.0, 2.0])


def test_long_trainings_are_thinned_without_losing_their_mean() -> None:
    losses = np.random.default_rng(0).uniform(1, 2, (1000, 1))
    (curve,) = loss_curves({"rvs": history("ByLength", None, losses.tolist())})
    assert len(curve.x) <= 125
    assert curve.x[-1] == 100_000
    np.testing.assert_allclose(curve.value.mean(), losses.mean(), rtol=1e-2)
    assert np.isnan(curve.low).all()  # one seed has no range


def test_a_training_that_was_shorter_ends_earlier() -> None:
    short = {"long": HISTORIES["bc"], "short": history("ByLength", None, [[1.0, 1.0]])}
    long, cut = loss_curves(short)
    assert (long.x[-1], cut.x[-1]) == (400, 100)


def test_methods_with_one_weighting_share_a_line() -> None:
    found = distinct_weightings(HISTORIES, DATASET)
    assert found == {
        "by length: bc, rvs": (["bc", "rvs"], (0.5, 0.5)),
        "by return: rvs+w": (["rvs+w"], (0.1, 0.9)),
        "the best 10\u00a0%: rvs+f": (["rvs+f"], (0.0, 1.0)),
    }
    many = {str(i): HISTORIES["bc"] for i in range(5)}
    assert list(distinct_weightings(many, DATASET)) == ["by length: 0, 1, 2 and 2 more"]


def test_the_dataset_stands_beside_what_is_drawn() -> None:
    chart = sampled_chart(HISTORIES, DATASET)
    assert chart is not None
    (data,) = Read(html(chart)).data
    rows = list(csv.DictReader(io.StringIO(data["csv"])))
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["series"], []).append(float(row["fraction, %"]))
    assert found["the dataset"] == pytest.approx([400 / 6, 200 / 6])
    assert found["by return: rvs+w"] == [10, 90]


def test_what_was_not_kept_is_not_drawn() -> None:
    old = {"old": HISTORIES["old"]}
    assert training_chart(old) is None
    assert sampled_chart(old, DATASET) is None
    other_bins = {"rvs": history("ByLength", (0.2, 0.3, 0.5), [])}
    assert sampled_chart(other_bins, DATASET) is None


def test_the_axis_says_that_it_is_of_prediction_losses_and_logarithmic() -> None:
    chart = training_chart(HISTORIES)
    assert chart is not None
    shown = Read(html(chart))
    assert "Prediction loss" in shown.text
    assert "prediction loss, logarithmic scale" in shown.text
    (data,) = shown.data
    assert "prediction loss, logarithmic scale" in data["csv"].splitlines()[0]
    negative = training_chart({"td": history("ByLength", None, [[1.0], [-1.0]])})  # has no logarithm
    assert negative is not None
    assert "logarithmic" not in Read(html(negative)).text
