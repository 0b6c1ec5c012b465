"""Charts of losses and of returns in a dataset and in training."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from pages import DATASET, Read, history, html

from cwbc.reports.dataset_charts import distinct_weightings, loss_curves, sampled_chart, training_chart

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
