"""The environments that learners act in: all seeds' copies in one batch, begun anew as they end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc import simulators
from cwbc.behaviours.behaviour import scale
from cwbc.behaviours.replay import pack
from cwbc.errors import InputError


class Collector:
    """Steps the copies of every seed and keeps where each of them is."""

    def __init__(self, environment: str, seeds: tuple[int, ...], copies: int, threads: int = 0) -> None:
        self.simulator = simulators.make(environment, len(seeds) * copies, threads)
        self._environment = environment
        bounds = self.simulator.action_bounds
        if bounds is None or not (np.abs(bounds) < np.finfo(np.float32).max).all():
            raise InputError(f"{environment} has no bounded continuous actions, which this learner needs")
        self.bounds = bounds[0].astype(np.float32), bounds[1].astype(np.float32)  # lowest, highest [action]
        self._seeds, self._copies = seeds, copies
        self._shape = (len(seeds), copies, -1)
        self._rows = np.arange(len(seeds) * copies)
        self.begin(0)

    def begin(self, step: int) -> None:
        """Start all copies anew; a run that is resumed at a later step does not repeat its first episodes."""
        self._generators = [np.random.default_rng((seed, step)) for seed in self._seeds]
        self._observations = self._reset(self._rows)  # [seed * copy, dimension]

    @property
    def observations(self) -> NDArray[np.float32]:
        """Where every copy is, [seed, copy, dimension]."""
        return self._observations.reshape(self._shape)

    def uniform(self) -> NDArray[np.float32]:
        """Random actions within -1 and 1, [seed, copy, action]."""
        shape = (self._copies, self.simulator.action_size)
        actions = np.stack([generator.uniform(-1, 1, shape) for generator in self._generators])
        return actions.astype(np.float32)

    def step(self, actions: NDArray[np.float32]) -> NDArray[np.float32]:
        """Act in every copy, [seed, copy, action]; the transitions as packed rows [seed, copy, column]."""
        flat = actions.reshape(len(self._rows), -1)
        outcome = self.simulator.step(self._rows, scale(flat, *self.bounds))
        arrived = outcome.observations.astype(np.float32)
        rows = pack(self._observations, flat, outcome.rewards, outcome.terminated, arrived)
        if not np.isfinite(rows).all():
            raise InputError(f"{self._environment} gave an observation or a reward that is not finite")
        finished = np.flatnonzero(outcome.terminated | outcome.truncated)
        if len(finished):
            arrived = arrived.copy()  # the rows keep where the episode ended
            arrived[finished] = self._reset(finished)
        self._observations = arrived
        return rows.reshape(self._shape)

    def _reset(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        seeds = [int(self._generators[row // self._copies].integers(2**31)) for row in rows]
        return self.simulator.reset(rows, seeds).astype(np.float32)
