"""Whether steps of a policy are like logged ones: estimates elsewhere are extrapolations."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.policy_spec import PolicySpec
from cwbc.core.spaces import Continuous
from cwbc.core.trajectories import Trajectories

_LOGGED, _COMPARED = 10_000, 1_000  # logged steps: that others are compared with, and that set the distance
_QUANTILE = 0.95  # of the distances of logged steps to those of other episodes


@dataclasses.dataclass(frozen=True, eq=False)
class Support:
    """Logged pairs of observation and action, and the distance within which another pair is like them."""

    pairs: NDArray[np.float32]  # [step, dimension] observation and action, as much of each
    squares: NDArray[np.float32]  # [step] squared lengths of the pairs
    distance: float = np.inf  # squared

    @classmethod
    def of(cls, spec: PolicySpec, data: Trajectories) -> Support:
        """The support of a dataset."""
        random = np.random.default_rng(0)
        rows = np.sort(random.choice(data.steps, min(_LOGGED, data.steps), replace=False))
        observations = spec.observations.received(data.observations[rows])
        pairs = _joined(observations, encoded_actions(spec, data.actions[rows]))
        support = cls(pairs, np.square(pairs).sum(axis=1))
        episodes = np.searchsorted(data.starts, rows, side="right")
        some = random.choice(len(rows), min(_COMPARED, len(rows)), replace=False)
        distances = support._distances(pairs[some])
        distances[episodes[some][:, None] == episodes[None, :]] = np.inf
        nearest = distances.min(axis=1)
        known = nearest[np.isfinite(nearest)]
        # With a single episode there is nothing to compare: all is within.
        return dataclasses.replace(
            support, distance=float(np.quantile(known, _QUANTILE)) if len(known) else np.inf
        )

    def is_near(self, observations: NDArray[np.float32], actions: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Whether normalized observations with encoded actions are as near as logged steps are. [row]"""
        return self._distances(_joined(observations, actions)).min(axis=1) <= self.distance

    def _distances(self, pairs: NDArray[np.float32]) -> NDArray[np.float32]:
        squares = np.square(pairs).sum(axis=1)
        found: NDArray[np.float32] = squares[:, None] + self.squares - 2 * pairs @ self.pairs.T
        return found


def encoded_actions(spec: PolicySpec, actions: NDArray[Any]) -> NDArray[np.float32]:
    """Actions as networks read them, without jax. [row, size]"""
    if isinstance(spec.actions, Continuous):
        lowest, highest = np.asarray(spec.actions.lowest), np.asarray(spec.actions.highest)
        return ((actions - (lowest + highest) / 2) / ((highest - lowest) / 2)).astype(np.float32)
    return np.eye(spec.actions.size, dtype=np.float32)[actions]


def _joined(observations: NDArray[np.float32], actions: NDArray[np.float32]) -> NDArray[np.float32]:
    parts = [x / np.sqrt(x.shape[1]) for x in (observations, actions)]
    return np.concatenate(parts, axis=1).astype(np.float32)
