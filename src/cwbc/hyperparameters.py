"""Hyper-parameters that are only numbers: compiled programs take them as arguments.

Methods that differ in these alone share a program, and can be trained side by side in it.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from cwbc.methods import Method, Optimizer
from cwbc.regularizers import Conservative
from cwbc.weighting import ByLength


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Numbers:
    """The numbers of a method."""

    learning_rate: jax.Array  # []
    weight_decay: jax.Array  # []
    warmup_steps: jax.Array  # []
    raise_width: jax.Array  # [] how far beyond the best the regularizer raises, in the condition's unit
    coefficient: jax.Array  # [] alpha

    @classmethod
    def of(cls, method: Method) -> Numbers:
        """Those of a method that is fitted to its data."""
        optimizer, regularizer, condition = method.optimizer, method.regularizer, method.condition
        unit = condition.unit if condition else 1.0
        values = (
            optimizer.learning_rate,
            optimizer.weight_decay,
            optimizer.warmup_steps,
            regularizer.width / unit if regularizer else 0.0,
            regularizer.coefficient if regularizer else 0.0,
        )
        return cls(*(jnp.asarray(value, jnp.float32) for value in values))


def form(method: Method) -> Method:
    """What a program depends on: the same for methods that differ in numbers, or in what they draw."""
    return dataclasses.replace(
        method,
        name="",
        condition=method.condition and method.condition.form,
        weighting=ByLength(),
        regularizer=Conservative(noise=0.0) if method.regularizer else None,
        optimizer=Optimizer(clip_norm=method.optimizer.clip_norm),
    )
