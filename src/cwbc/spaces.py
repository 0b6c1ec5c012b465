"""The two kinds of actions: how each enters a network, is scored, and comes out again."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import optax


@dataclasses.dataclass(frozen=True)
class Continuous:
    """Real vectors in [-scale, scale]; the scale is 1 unless the data goes beyond it."""

    scale: tuple[float, ...]  # [dimension]

    @property
    def size(self) -> int:
        return len(self.scale)

    def encode(self, actions: jax.Array) -> jax.Array:
        """Logged actions as a network sees them. [..., size]"""
        return actions / jnp.asarray(self.scale, actions.dtype)

    def loss(self, outputs: jax.Array, actions: jax.Array) -> jax.Array:
        """Squared error per step, averaged over the action's dimensions."""
        return jnp.mean(jnp.square(jnp.tanh(outputs) - self.encode(actions)), axis=-1)

    def choose(self, outputs: jax.Array) -> jax.Array:
        """The action that the outputs stand for."""
        return jnp.tanh(outputs) * jnp.asarray(self.scale, outputs.dtype)


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
