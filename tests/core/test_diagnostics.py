"""Trainings that went wrong: each sign by hand, and no warning about a healthy one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cwbc.core.diagnostics import training_warnings

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


def test_a_healthy_training_has_no_warning() -> None:
    assert training_warnings(metrics(), SEEDS, METHOD) == []


def test_a_loss_that_ends_above_its_early_value() -> None:
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
def test_the_remedy_depends_on_the_method(method: dict[str, Any], cure: str) -> None:
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
        "predicted actions hardly vary: their standard deviation is 1\u00a0% of that of the logged ones (all"
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
def test_without_metrics_there_is_no_warning(rows: list[dict[str, Any]]) -> None:
    assert training_warnings(rows, SEEDS, METHOD) == []


def test_several_signs_are_one_warning() -> None:
    rising = np.linspace(0.1, 0.4, 40)
    (text,) = training_warnings(metrics(prediction=rising, saturation=np.ones(40)), SEEDS, METHOD)
    assert "(all seeds); 100\u00a0% more of" in text


def test_a_few_rows_are_enough_for_what_is_no_trend() -> None:
    assert training_warnings(metrics(saturation=np.ones(40))[:3], SEEDS, METHOD)


FALLING = 0.5 / np.arange(1, 41) + 0.05


def test_an_error_on_held_out_episodes_that_rises() -> None:
    rising = FALLING + np.linspace(0, 0.2, 40)
    (text,) = training_warnings(metrics(heldout=rising, training_error=FALLING), SEEDS, METHOD)
    assert text.startswith("the error on held-out episodes ended at 0.246, above 0.15 before (all seeds). ")
    assert "memorizes" in text
    assert "fewer --steps, a smaller --width, more --dropout or more data usually helps" in text
    value_based = METHOD | {"learner": "ImplicitQ"}
    (text,) = training_warnings(metrics(heldout=rising, training_error=FALLING), SEEDS, value_based)
    assert "--dropout" not in text
    one = np.stack([FALLING, rising, FALLING], axis=1)
    (text,) = training_warnings(metrics(heldout=one, training_error=FALLING), SEEDS, METHOD)
    assert "(seed 1)" in text


def test_no_warning_where_held_out_episodes_are_not_the_cause() -> None:
    rising = FALLING + np.linspace(0, 0.2, 40)
    noise = np.random.default_rng(0).normal(size=(200, 40, 3))
    healthy = [{"heldout": FALLING, "training_error": FALLING}]
    healthy += [{"heldout": rising, "training_error": rising}]  # a policy that is meant to leave the data
    healthy += [{"heldout": 1e-3 * rising, "training_error": 1e-3 * FALLING}]  # too small to matter
    healthy += [{"heldout": 0.3 + 0.05 * each, "training_error": FALLING} for each in noise]
    for columns in healthy:
        assert training_warnings(metrics(**columns), SEEDS, METHOD) == []
    few = metrics(heldout=rising, training_error=FALLING)[:5]
    assert training_warnings(few, SEEDS, METHOD) == []
