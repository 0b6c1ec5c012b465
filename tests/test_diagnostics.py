"""Trainings that went wrong: each sign by hand, and nothing said of a healthy one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cwbc.diagnostics import seed_warnings, training_warnings
from cwbc.results import Sweep
from cwbc.tasks import task_for

METHOD = {"condition": {"kind": "AverageReturnToGo", "condition_scale": "bounded"}, "regularizer": None}
SEEDS = (0, 1, 7)


def metrics(**columns: Any) -> list[dict[str, Any]]:
    """Forty rows, healthy but for what is given: [row] or [row, seed]."""
    steps = np.arange(1, 41)
    healthy = {"prediction": 0.5 / steps + 0.05, "saturation": 0.0 * steps, "variation": 0.0 * steps + 0.8}
    rows = {
        name: np.broadcast_to(np.reshape(column, (40, -1)), (40, 3))
        for name, column in (healthy | columns).items()
    }
    return [
        {"step": int(step), "seconds": 1.0, **{name: column[row].tolist() for name, column in rows.items()}}
        for row, step in enumerate(steps)
    ]


def seed(number: int, value: float, others: float) -> np.ndarray:
    """A column that is the same in all rows, and another one for one of the seeds."""
    column = np.full((40, 3), others)
    column[:, number] = value
    return column


def test_a_healthy_training_is_not_warned_of() -> None:
    assert training_warnings(metrics(), SEEDS, METHOD) == []


def test_a_loss_that_ends_above_what_it_was() -> None:
    (text,) = training_warnings(metrics(prediction=np.linspace(0.1, 0.4, 40)), SEEDS, METHOD)
    # In tenths of the training: the last one, and the lowest of the first half.
    assert text.startswith("the prediction loss ended at 0.388, above 0.112 early in training (all seeds). ")
    assert "a lower --learning-rate usually helps" in text


@pytest.mark.parametrize(
    ("method", "cure"),
    [
        ({"condition": {"kind": "AverageReturnToGo"}}, "--condition-scale bounded does not"),
        ({"condition": None}, "a lower --learning-rate usually helps"),
        (METHOD | {"regularizer": {"noise": 1.0}}, "a lower --learning-rate or --coefficient usually helps"),
    ],
)
def test_the_cure_depends_on_the_method(method: dict[str, Any], cure: str) -> None:
    (text,) = training_warnings(metrics(prediction=np.linspace(0.1, 0.4, 40)), SEEDS, method)
    assert cure in text


def test_predictions_at_the_ends_of_their_range() -> None:
    (text,) = training_warnings(metrics(saturation=seed(2, 0.9, 0.1)), SEEDS, METHOD)
    assert text.startswith(
        "90\u00a0% more of the predicted than of the logged actions are at the ends of their range (seed 7). "
    )


def test_predictions_that_are_always_the_same() -> None:
    (text,) = training_warnings(metrics(variation=0.01 * np.ones(40)), SEEDS, METHOD)
    assert text.startswith(
        "predicted actions hardly vary: their deviation is 1\u00a0% of that of the logged ones (all"
    )


def test_a_seed_far_from_the_others() -> None:
    (text,) = training_warnings(metrics(prediction=seed(1, 0.5, 0.1)), SEEDS, METHOD)
    assert text.startswith("the prediction loss ended at 0.5, that of the median seed at 0.1 (seed 1). ")
    assert training_warnings(metrics(prediction=seed(1, 5e-4, 1e-4)), SEEDS, METHOD) == []  # both are tiny


@pytest.mark.parametrize(
    "rows",
    [
        [],
        metrics(prediction=np.linspace(0.1, 0.4, 40))[:1],  # too short for a trend
        [{"step": 1, "seconds": 1.0, "loss": [1.0, 2.0, 3.0]}] * 40,  # of an earlier version
        [{"step": 1, "seconds": 1.0, "prediction": [1.0]}] * 40,  # of other seeds
    ],
)
def test_nothing_is_said_where_nothing_is_known(rows: list[dict[str, Any]]) -> None:
    assert training_warnings(rows, SEEDS, METHOD) == []


def test_several_signs_are_one_warning() -> None:
    rising = np.linspace(0.1, 0.4, 40)
    (text,) = training_warnings(metrics(prediction=rising, saturation=np.ones(40)), SEEDS, METHOD)
    assert "(all seeds); 100\u00a0% more of" in text


def test_a_few_rows_are_enough_for_what_is_no_trend() -> None:
    assert training_warnings(metrics(saturation=np.ones(40))[:3], SEEDS, METHOD)


def test_a_seed_that_achieves_far_less_than_the_others_is_named() -> None:
    targets, scores = np.array([1.0, 2.0, 3.0, 4.0]), np.full((3, 4), 80.0)
    scores[1, 3] = 10.0
    task = task_for(None, 0.0, 1000.0)
    (text,) = seed_warnings(sweep(targets, 10 * scores), task)
    assert text == "seed 1 is far below the others at target 4: it achieves 100, the median seed 800."
    (text,) = seed_warnings(sweep(np.array([np.nan]), 10 * scores[:, 3:]), task)
    assert text.startswith("seed 1 is far below the others: it")


@pytest.mark.parametrize("seen", [[80, 80, 65], [80, 50, 10], [80, 10]])
def test_seeds_that_differ_as_the_others_do_are_not(seen: list[float]) -> None:
    scores = np.repeat(np.array(seen)[:, None], 4, axis=1)
    assert seed_warnings(sweep(np.arange(4.0), scores), task_for(None, 0.0, 100.0)) == []


def sweep(targets: np.ndarray, returns: np.ndarray) -> Sweep:
    episodes = returns[:, :, None]
    return Sweep("any", np.array(SEEDS)[: len(returns)], targets, episodes, np.ones(episodes.shape, np.int64))
