"""AdamW with a linear warm-up, as a value; its numbers are arguments of programs."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from cwbc.system.errors import require

MOST_STEPS = 2**31 - 1  # which are counted in 32 bits


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """AdamW with a linear warm-up and then a constant learning rate.

    Args:
        learning_rate: learning rate of AdamW (paper: 1e-3 for RvS, 1e-4 for DT).
        weight_decay: weight decay of AdamW (paper: 1e-4).
        warmup_steps: steps of linear warm-up, at most a tenth of the training (paper: 10,000).
        clip_norm: largest gradient norm (paper: none for RvS, 0.25 for DT).
    """

    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    warmup_steps: int = 10_000
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        require(self.learning_rate > 0, "learning_rate", self.learning_rate, "positive")
        require(self.weight_decay >= 0, "weight_decay", self.weight_decay, "at least 0")
        possible = f"at least 0 and at most {MOST_STEPS:,}"
        require(0 <= self.warmup_steps <= MOST_STEPS, "warmup_steps", self.warmup_steps, possible)
        require(self.clip_norm is None or self.clip_norm > 0, "clip_norm", self.clip_norm, "positive")


def transformation(
    clip_norm: float | None, learning_rate: jax.Array, weight_decay: jax.Array, warmup: jax.Array
) -> optax.GradientTransformation:
    """The optimizer; `methods.as_begun` limits its warm-up: one program serves any number of steps."""
    warmup = jnp.maximum(1, warmup)

    def schedule(step: Any) -> Any:
        return learning_rate * jnp.minimum((step + 1) / warmup, 1.0)

    adamw = optax.adamw(schedule, weight_decay=weight_decay)
    return adamw if clip_norm is None else optax.chain(optax.clip_by_global_norm(clip_norm), adamw)
