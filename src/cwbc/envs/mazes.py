"""D4RL's mazes with its flat observations, many copies at a time.

They match D4RL's data: positions in the same frame, the same starts, goals, rewards and terminations, and an
ant of the same strength.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from cwbc.core.simulation import Transition
from cwbc.envs.maze_worlds import ANT_CELL, World, ant_world, point_world
from cwbc.envs.physics import BatchedPhysics, Episodes, Floats
from cwbc.envs.scenes import Mark, Scene

# The cells of the goals in the maps, counted from 0: (row, column).
_ANT_GOALS = {"umaze": (3, 1), "medium": (6, 6), "large": (7, 9)}
_POINT_GOALS = {"umaze": (1, 1), "medium": (6, 6), "large": (7, 9)}
RADIUS = 0.5  # of a goal; Gymnasium-Robotics has 0.45

Outcome = tuple[NDArray[np.float64], NDArray[np.bool_]]  # rewards and terminations, [episode]


class Start(NamedTuple):
    """How an episode starts, in D4RL's frame."""

    positions: Floats  # [position]
    velocities: Floats  # [velocity]
    goal: Floats  # [2] x and y


class Maze(Protocol):
    """The task of one robot among walls."""

    substeps: ClassVar[int]  # steps of the physics per step
    top_speed: ClassVar[float | None]  # at which every step begins, at most

    @property
    def horizon(self) -> int: ...

    @property
    def world(self) -> World: ...

    @property
    def goal(self) -> Floats:
        """Where the goal is, or is on average. [2]"""
        ...

    def start(self, generator: np.random.Generator) -> Start:
        """Sample the start of an episode."""
        ...

    def place_goal(self, middle: Floats, generator: np.random.Generator) -> Floats:
        """Sample a goal in the cell with this middle, as the task has its own. [2]"""
        ...

    def outcome(self, distances: Floats) -> Outcome:
        """The rewards and terminations at these distances from the goals."""
        ...


def _once(distances: Floats) -> Outcome:
    """A reward of 1 at the goal, which terminates the episode."""
    reached = distances <= RADIUS
    return reached.astype(np.float64), reached


@dataclasses.dataclass(frozen=True)
class AntMaze:
    """An ant that starts at (0, 0) and is rewarded once, for reaching a goal that it does not observe."""

    size: str
    horizon: int
    substeps: ClassVar[int] = 5  # 0.1 seconds
    top_speed: ClassVar[float | None] = None

    @property
    def world(self) -> World:
        return ant_world(self.size)

    @property
    def goal(self) -> Floats:
        return self._corner + 0.75

    @property
    def _corner(self) -> Floats:
        row, column = _ANT_GOALS[self.size]
        return ANT_CELL * np.array([column - 1, row - 1])

    def start(self, generator: np.random.Generator) -> Start:
        """Sample a start near the origin and a goal, as D4RL's v2 does."""
        model = self.world.model
        goal = self.place_goal(self._corner, generator)
        positions = model.qpos0 + generator.uniform(-0.1, 0.1, model.nq)
        velocities = 0.1 * generator.standard_normal(model.nv)
        # D4RL's version of MuJoCo did so itself before the first observation.
        mujoco.mju_normalize4(positions[3:7])
        return Start(positions, velocities, goal)

    def place_goal(self, middle: Floats, generator: np.random.Generator) -> Floats:
        """Sample a goal in a cell, as D4RL does, in two steps: never near two of its sides."""
        goal: Floats = middle + generator.uniform(0, 1, 2) + generator.uniform(0, 0.5, 2)
        return goal

    def outcome(self, distances: Floats) -> Outcome:
        """A reward of 1 at the goal, which terminates the episode."""
        return _once(distances)


@dataclasses.dataclass(frozen=True)
class PointMaze:
    """A point that starts anywhere and is rewarded near a fixed goal: for every step there, or once."""

    size: str
    horizon: int
    reward: Literal["near", "dense", "once"]
    substeps: ClassVar[int] = 1  # 0.01 seconds
    top_speed: ClassVar[float | None] = 5.0

    @property
    def world(self) -> World:
        return point_world(self.size)

    @property
    def goal(self) -> Floats:
        return np.array(_POINT_GOALS[self.size], np.float64)

    def start(self, generator: np.random.Generator) -> Start:
        """Sample a start in any cell; where the reward ends the episode, not in the goal's."""
        cells = self.world.cells
        if self.reward == "once":
            cells = cells[(cells != self.goal).any(axis=1)]
        positions = generator.choice(cells) + generator.uniform(-0.1, 0.1, 2)
        return Start(positions, 0.1 * generator.standard_normal(2), self.goal)

    def place_goal(self, middle: Floats, generator: np.random.Generator) -> Floats:
        """The middle itself."""
        return middle

    def outcome(self, distances: Floats) -> Outcome:
        """The rewards; only the time limit ends an episode, unless the reward is given once."""
        if self.reward == "once":
            return _once(distances)
        near = (distances <= RADIUS).astype(np.float64)
        rewards = np.exp(-distances) if self.reward == "dense" else near
        return rewards, np.zeros(len(distances), np.bool_)


class BatchedMaze:
    """Copies of one maze. All positions but the model's own are in D4RL's frame."""

    discrete = False
    image_shape: tuple[int, ...] | None = None

    def __init__(self, maze: Maze, count: int, threads: int = 0) -> None:
        world = maze.world
        self.maze, self.physics = maze, BatchedPhysics(world.model, count, threads)
        self.goals = np.zeros((count, 2))  # [episode, (x, y)]
        self.horizon, self.substeps = maze.horizon, maze.substeps
        self.action_size = world.model.nu
        self.observation_size = world.model.nq + world.model.nv
        self.action_bounds: tuple[NDArray[Any], NDArray[Any]] | None = self.physics.action_bounds
        self._origin = world.origin
        self._trails: dict[int, list[Floats]] = {}  # of episodes that are drawn: places in the model

    def reset(self, episodes: Episodes, seeds: Sequence[int]) -> Floats:
        """Reset the given episodes, each to a start of its own."""
        return self.begin(episodes, [self.maze.start(np.random.default_rng(seed)) for seed in seeds])

    def begin(self, episodes: Episodes, starts: Sequence[Start]) -> Floats:
        """Start the given episodes in this way; returns their first observations."""
        if not starts:
            return np.empty((0, self.observation_size))
        positions, velocities, self.goals[episodes] = (np.array(part) for part in zip(*starts, strict=True))
        positions[:, :2] += self._origin
        self.physics.reset(episodes, positions, velocities)
        for episode in episodes.tolist():
            self._trails.pop(episode, None)
        return self._observe(episodes)

    def step(self, episodes: Episodes, actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step."""
        controls = np.clip(np.asarray(actions, np.float32), *self.physics.action_bounds)
        self.physics.step(episodes, controls, self.substeps, self.maze.top_speed)
        observations = self._observe(episodes)
        distances = np.sqrt(np.square(observations[:, :2] - self.goals[episodes]).sum(axis=1))
        rewards, terminated = self.maze.outcome(distances)
        truncated = self.physics.elapsed[episodes] >= self.horizon
        return Transition(observations, rewards, terminated, truncated)

    def picture(self, episode: int) -> NDArray[np.uint8]:
        """The maze from above, with the goal and the path in the pictures so far. [height, width, 3]"""
        positions = self.physics.positions[episode]
        trail = self._trails.setdefault(episode, [positions[:2].copy()])
        trail.append(positions[:2].copy())
        return self._scene.picture(positions, Mark(trail, self.goals[episode] + self._origin, RADIUS))

    def close(self) -> None:
        """Nothing to release: the threads end with the batch."""

    @functools.cached_property
    def _scene(self) -> Scene:
        return Scene(self.physics.model, above=True)

    def _observe(self, episodes: Episodes) -> Floats:
        states = self.physics.positions[episodes], self.physics.velocities[episodes]
        observations = np.concatenate(states, axis=1)
        observations[:, :2] -= self._origin
        return observations


def _mazes() -> dict[str, Maze]:
    found: dict[str, Maze] = {}
    for size, ant_limit, point_limit in (("umaze", 700, 300), ("medium", 1000, 600), ("large", 1000, 800)):
        for dataset in ("" if size == "umaze" else "-play", "-diverse"):  # they share an environment
            found[f"d4rl/antmaze-{size}{dataset}-v2"] = AntMaze(size, ant_limit)
        found[f"d4rl/maze2d-{size}-v1"] = PointMaze(size, point_limit, "near")
        found[f"d4rl/maze2d-{size}-dense-v1"] = PointMaze(size, point_limit, "dense")
        found[f"cwbc/pointmaze-{size}-v0"] = PointMaze(size, point_limit, "once")
    return found


MAZES = _mazes()
