"""The replay buffer, on the device: a ring of packed rows, so that a batch is one gather."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Replay:
    """The newest transitions; the oldest are overwritten."""

    rows: jax.Array  # [capacity, column]
    position: jax.Array  # of the next row
    filled: jax.Array  # how many rows hold a transition


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Transitions:
    """Transitions by their parts."""

    observations: jax.Array  # [..., dimension]
    actions: jax.Array  # [..., action], within -1 and 1
    rewards: jax.Array  # [...]
    terminated: jax.Array  # [...], 1 where the episode terminated and 0 where it was truncated
    next_observations: jax.Array  # [..., dimension], before any reset


def columns(observation_size: int, action_size: int) -> int:
    """The width of a packed row."""
    return 2 * observation_size + action_size + 2


def restore(history: NDArray[np.float32], steps: int) -> Replay:
    """The replays of several learners after so many steps each, from all their rows [seed, row, column]."""
    count, capacity = history.shape[:2]
    position, filled = (jnp.full(count, n, jnp.int32) for n in (steps % capacity, min(steps, capacity)))
    # A copy: on a CPU the device's array could be the file's own memory, which is written to.
    return Replay(jnp.array(history, copy=True), position, filled)


def insert(replay: Replay, fresh: jax.Array) -> Replay:
    """Overwrite the oldest rows by fresh ones, [row, column]; the capacity is a multiple of their number."""
    capacity, count = len(replay.rows), len(fresh)
    if capacity % count:  # a slice that crossed the end would be moved back over newer rows
        raise ValueError(f"a replay of {capacity} rows cannot take {count} at a time")
    rows = jax.lax.dynamic_update_slice(replay.rows, fresh, (replay.position, jnp.zeros((), jnp.int32)))
    return Replay(rows, (replay.position + count) % capacity, jnp.minimum(replay.filled + count, capacity))


def pack(
    observations: NDArray[np.floating[Any]],
    actions: NDArray[np.floating[Any]],
    rewards: NDArray[np.floating[Any]],
    terminated: NDArray[np.bool_],
    next_observations: NDArray[np.floating[Any]],
) -> NDArray[np.float32]:
    """Transitions as rows, on the host."""
    parts = (observations, actions, rewards[..., None], terminated[..., None], next_observations)
    return np.concatenate(parts, axis=-1, dtype=np.float32, casting="unsafe")


def unpack(rows: jax.Array, observation_size: int, action_size: int) -> Transitions:
    """The parts of packed rows."""
    ends = (observation_size, observation_size + action_size, observation_size + action_size + 2)
    observations, actions, outcome, next_observations = jnp.split(rows, ends, axis=-1)
    return Transitions(observations, actions, outcome[..., 0], outcome[..., 1], next_observations)
