"""D4RL's ant on open ground, which learns to walk in any direction: the walker of the ant mazes' data."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from cwbc.core.simulation import Transition
from cwbc.envs.maze_worlds import ant_world
from cwbc.envs.mazes import AntMaze
from cwbc.envs.physics import BatchedPhysics, Episodes, Floats
from cwbc.envs.scenes import Scene

ENVIRONMENT = "cwbc/ant-direction-v0"
HORIZON = 1000
_INTERVAL = 100  # steps between changes of the direction


class DirectedAnt:
    """Copies of the ant; an observation is its state without x and y, and a unit direction.

    The reward of a step is the displacement along the direction. An ant on its back terminates the episode.
    """

    discrete = False
    image_shape: tuple[int, ...] | None = None
    horizon = HORIZON

    def __init__(self, count: int, threads: int = 0) -> None:
        model = copy.copy(ant_world("umaze").model)
        walls = model.geom_type == mujoco.mjtGeom.mjGEOM_BOX
        model.geom_contype[walls] = model.geom_conaffinity[walls] = 0  # nothing touches them
        model.geom_rgba[walls, 3] = 0  # nor sees them
        self.physics = BatchedPhysics(model, count, threads)
        self.observation_size, self.action_size = model.nq + model.nv, model.nu
        self.action_bounds: tuple[NDArray[Any], NDArray[Any]] | None = self.physics.action_bounds
        self._task = AntMaze("umaze", HORIZON)  # whose starts these are
        self._directions = np.zeros((count, 2))  # [episode, (x, y)]
        self._generators = [np.random.default_rng(0)] * count

    def reset(self, episodes: Episodes, seeds: Sequence[int]) -> Floats:
        """Reset the given episodes, each with starts and directions from its own seed."""
        starts = []
        for episode, seed in zip(episodes, seeds, strict=True):
            generator = self._generators[episode] = np.random.default_rng(seed)
            starts.append(self._task.start(generator))
            self._directions[episode] = _direction(generator)
        if starts:
            positions, velocities, _ = map(np.array, zip(*starts, strict=True))
            self.physics.reset(episodes, positions, velocities)
        return self._observe(episodes)

    def step(self, episodes: Episodes, actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step."""
        before = self.physics.positions[episodes, :2]
        controls = np.clip(np.asarray(actions, np.float32), *self.physics.action_bounds)
        self.physics.step(episodes, controls, AntMaze.substeps)
        displacements = self.physics.positions[episodes, :2] - before
        rewards = (displacements * self._directions[episodes]).sum(axis=1)
        elapsed = self.physics.elapsed[episodes]
        for episode in episodes[elapsed % _INTERVAL == 0]:
            self._directions[episode] = _direction(self._generators[episode])
        x, y = self.physics.positions[episodes, 4:6].T  # of the torso's quaternion
        on_its_back = 1 - 2 * (x * x + y * y) < 0
        return Transition(self._observe(episodes), rewards, on_its_back, elapsed >= self.horizon)

    def picture(self, episode: int) -> NDArray[np.uint8]:
        """The ant from the side. [height, width, 3]"""
        return self._scene.picture(self.physics.positions[episode])

    def close(self) -> None:
        """Nothing to release: the threads end with the batch."""

    @functools.cached_property
    def _scene(self) -> Scene:
        return Scene(self.physics.model)

    def _observe(self, episodes: Episodes) -> Floats:
        states = self.physics.positions[episodes, 2:], self.physics.velocities[episodes]
        return np.concatenate((*states, self._directions[episodes]), axis=1)


def _direction(generator: np.random.Generator) -> Floats:
    """A unit vector, uniform over all directions, with the same bits on every machine."""
    vector = generator.standard_normal(2)
    unit: Floats = vector / np.sqrt(np.square(vector).sum())
    return unit
