"""A simulator of mazes that remembers where some episodes went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.simulation import Simulator, Transition
from cwbc.results.paths import MazePath
from cwbc.results.sweeps import Sweep

_PATHS = 24  # at a target: more would hide each other
_POINTS = 80  # of a path


class PathRecorder:
    """Another simulator, whose observations begin with x and y, and the places of a few episodes in it."""

    def __init__(self, simulator: Simulator, rows: NDArray[np.int64]) -> None:
        self.observation_size, self.image_shape = simulator.observation_size, simulator.image_shape
        self.action_size, self.discrete = simulator.action_size, simulator.discrete
        self.action_bounds, self.horizon = simulator.action_bounds, simulator.horizon
        self._simulator = simulator
        self._places: dict[int, list[NDArray[Any]]] = {row: [] for row in rows.tolist()}

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[Any]:
        """Start the given episodes."""
        observations = self._simulator.reset(episodes, seeds)
        self._record(episodes, observations)
        return observations

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step."""
        outcome = self._simulator.step(episodes, actions)
        self._record(episodes, outcome.observations)
        return outcome

    def close(self) -> None:
        self._simulator.close()

    def paths(self, sweep: Sweep) -> list[MazePath]:
        """The paths of the recorded episodes of a sweep, a few points of each."""
        found = []
        for row, places in self._places.items():
            seed, target, episode = np.unravel_index(row, sweep.returns.shape)
            points = np.unique(np.linspace(0, len(places) - 1, _POINTS).astype(np.int64))
            named = int(sweep.seeds[seed]), float(sweep.targets[target]), int(episode)
            found.append(MazePath(*named, np.array([places[point] for point in points], np.float64)))
        return found

    def _record(self, episodes: NDArray[np.integer[Any]], observations: NDArray[Any]) -> None:
        for episode, observation in zip(episodes.tolist(), observations, strict=True):
            if episode in self._places:
                self._places[episode].append(observation[:2].copy())


def recorded_rows(
    shape: tuple[int, int, int],  # seeds, targets, episodes
    targets: NDArray[np.float64],
    best: float,
) -> NDArray[np.int64]:
    """The first episodes of every seed at the lowest target and at the one nearest to the best return."""
    nearest = int(np.argmin(np.abs(targets - best))) if np.isfinite(targets).all() else 0
    rows = np.arange(np.prod(shape)).reshape(shape)
    return rows[:, sorted({0, nearest}), : max(1, _PATHS // shape[0])].ravel()
