"""The chart and the table of prediction errors on held-out episodes."""

from __future__ import annotations

import csv
import dataclasses
import io

import numpy as np
from pages import CONFIG, Read, history, html

from cwbc.core.measured_errors import MeasuredErrors
from cwbc.reports.chart import Curve
from cwbc.reports.prediction_errors import errors_chart, errors_table
from cwbc.runs.finished import TrainingHistory

ROWS = [
    {"step": 5, "seconds": 1.0, "loss": [1.0, 1.0]},  # without a measurement
    {
        "step": 10,
        "seconds": 2.0,
        "loss": [1.0, 1.0],
        "heldout": [0.4, 0.6],
        "heldout_low": [0.4, 0.6],
        "heldout_middle": [0.4, 0.6],
        "heldout_high": [0.4, 0.6],
        "training_error": [0.4, 0.4],
    },
    {
        "step": 20,
        "seconds": 3.0,
        "loss": [1.0, 1.0],
        "heldout": [0.3, 0.5],
        "heldout_low": [0.1, 0.3],
        "heldout_middle": [0.2, 0.4],
        "heldout_high": [0.6, 0.8],
        "training_error": [0.1, 0.2],
    },
]
HISTORIES = {"rvs": TrainingHistory.of(CONFIG, ROWS), "bc": history("ByLength", None, [[1.0, 1.0]])}


def test_the_errors_over_the_steps() -> None:
    chart = errors_chart(HISTORIES, ["bc", "rvs"])
    assert chart is not None
    held_out, training = chart.panels[0].layers
    assert isinstance(held_out, Curve)
    assert isinstance(training, Curve)
    np.testing.assert_array_equal(held_out.x, [10, 20])
    np.testing.assert_allclose(
        [held_out.value, held_out.low, held_out.high], [[0.5, 0.4], [0.4, 0.3], [0.6, 0.5]]
    )
    np.testing.assert_allclose(training.value, [0.4, 0.15])
    # As in the other charts of the page; the second of the same colour, and dashed.
    assert chart.looks == {"rvs": 1, "rvs, episodes trained on": 9}
    Read(html(chart))


def test_the_errors_by_return() -> None:
    table = errors_table(HISTORIES)
    assert table is not None
    ((name, *_), cells) = list(csv.reader(io.StringIO(table.to_csv())))[1], table.rows[0].cells
    assert name == "rvs"
    np.testing.assert_allclose([cell.number for cell in cells], [0.15, 0.4, 0.2, 0.3, 0.7])
    assert "held-out episodes" in Read(html(table)).text


def test_runs_without_held_out_episodes_have_neither() -> None:
    without = {"bc": HISTORIES["bc"]}
    assert errors_chart(without) is None
    assert errors_table(without) is None
    names = ("heldout_low", "heldout_middle", "heldout_high")
    few = [{name: value for name, value in row.items() if name not in names} for row in ROWS]
    errors = MeasuredErrors.of(few, 2)
    table = errors_table({"bc": dataclasses.replace(HISTORIES["bc"], errors=errors)})
    assert table is not None
    assert len(table.columns) == 2
