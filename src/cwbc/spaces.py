"""The two kinds of actions: how each enters a network, is scored, and comes out again."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from cwbc.trajectories import ActionBounds

WIDEST = 4.0  # times the range of the logged actions: bounds that are farther apart are not taken


@dataclasses.dataclass(frozen=True)
class Continuous:
    """Real vectors between two bounds: the environment's where they are known, or else the data's own."""

    lowest: tuple[float, ...]  # [dimension]
    highest: tuple[float, ...]  # [dimension]

    @classmethod
    def of(cls, actions: NDArray[Any], bounds: ActionBounds | None = None) -> Continuous:
        """The bounds of logged actions [step, dimension], and of the environment that they are from."""
        lowest, highest = actions.min(axis=0).astype(np.float64), actions.max(axis=0).astype(np.float64)
        if bounds is not None:
            low, high = np.minimum(lowest, bounds[0]), np.maximum(highest, bounds[1])
            # Bounds that are far away, such as the largest float, would leave the data nothing of the range.
            near = high - low <= WIDEST * (highest - lowest)
            lowest, highest = np.where(near, low, lowest), np.where(near, high, highest)
        constant = lowest == highest  # an action that is always 5 lies between 0 and 10
        room = constant * np.where(lowest == 0, 1.0, np.abs(lowest))
        return cls(tuple((lowest - room).tolist()), tuple((highest + room).tolist()))

    @property
    def size(self) -> int:
        return len(self.lowest)

    def encode(self, actions: jax.Array) -> jax.Array:
        """Logged actions as a network sees them, from -1 to 1. [..., size]"""
        middle, half = self._middle_and_half(actions.dtype)
        return (actions - middle) / half

    def loss(self, outputs: jax.Array, actions: jax.Array) -> jax.Array:
        """Squared error per step, averaged over the action's dimensions."""
        return jnp.mean(jnp.square(jnp.tanh(outputs) - self.encode(actions)), axis=-1)

    def choose(self, outputs: jax.Array) -> jax.Array:
        """The action that the outputs stand for."""
        middle, half = self._middle_and_half(outputs.dtype)
        return middle + jnp.tanh(outputs) * half

    def _middle_and_half(self, dtype: Any) -> tuple[jax.Array, jax.Array]:
        lowest, highest = np.asarray(self.lowest), np.asarray(self.highest)
        return jnp.asarray((lowest + highest) / 2, dtype), jnp.asarray((highest - lowest) / 2, dtype)


@dataclasses.dataclass(frozen=True)
class Discrete:
    """One of `size` actions, numbered from 0."""

    size: int

    def encode(self, actions: jax.Array) -> jax.Array:
        """Logged actions as a network sees them. [..., size]"""
        return jax.nn.one_hot(actions, self.size)

    def loss(self, outputs: jax.Array, actions: jax.Array) -> jax.Array:
        """Cross-entropy per step."""
        return optax.softmax_cross_entropy_with_integer_labels(outputs, actions)

    def choose(self, outputs: jax.Array) -> jax.Array:
        """The most likely action."""
        return jnp.argmax(outputs, axis=-1).astype(jnp.int32)


ActionSpace = Continuous | Discrete
