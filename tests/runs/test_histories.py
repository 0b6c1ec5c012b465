from __future__ import annotations

from typing import Any

import numpy as np

from cwbc.runs.finished import TrainingHistory

CONFIG: dict[str, Any] = {
    "seeds": [0, 1],
    "method": {"weighting": {"kind": "ByLength"}},
    "drawn": [0.25, 0.75],
    "training": {"steps": 30},
}


def test_a_history_is_read_from_the_files_of_a_run() -> None:
    rows = [
        {"step": 10, "seconds": 1.0, "loss": [1.0, 2.0]},
        {"step": 20, "seconds": 2.0, "loss": [0.5, 1.0]},
    ]
    history = TrainingHistory.of(CONFIG, rows)
    np.testing.assert_array_equal(history.steps, [10, 20])
    np.testing.assert_array_equal(history.losses, [[1.0, 2.0], [0.5, 1.0]])
    assert history.weighting == {"kind": "ByLength"}
    assert history.sampled == (0.25, 0.75)


def test_missing_and_damaged_rows_are_left_out() -> None:
    assert TrainingHistory.of(CONFIG, []).losses.shape == (0, 2)
    rows: list[dict[str, Any]] = [{"step": 10}, {"step": 20, "loss": [1.0]}, {"step": 30, "loss": [1.0, 2.0]}]
    np.testing.assert_array_equal(TrainingHistory.of(CONFIG, rows).steps, [30])
    # A flipped bit can make any number of a step: those that go back or beyond the end are none.
    rows = [{"step": step, "loss": [1.0, 2.0]} for step in (10, 10**9, 5, 20, 20, 0, 30)]
    np.testing.assert_array_equal(TrainingHistory.of(CONFIG, rows).steps, [10, 20, 30])


def test_sampled_fractions_that_are_damaged_are_unknown() -> None:
    for drawn in (None, [0.5, 2.0], [-0.5, 1.0]):
        assert TrainingHistory.of({**CONFIG, "drawn": drawn}, []).sampled is None


def test_losses_are_prediction_losses_with_a_regularizer_and_without() -> None:
    """Older runs without a regularizer have recorded the loss alone, which is the same there."""
    regularized = {"loss": [3.0, 5.0], "prediction": [1.0, 2.0], "conservative": [2.0, 3.0]}
    rows = [
        {"step": 10, "loss": [1.0, 2.0]},
        {"step": 20, **regularized},
        {"step": 30, "prediction": [4.0, 5.0]},
    ]
    np.testing.assert_array_equal(
        TrainingHistory.of(CONFIG, rows).losses, [[1.0, 2.0], [1.0, 2.0], [4.0, 5.0]]
    )
