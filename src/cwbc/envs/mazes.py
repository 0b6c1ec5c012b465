"""D4RL's mazes with its flat observations, on Gymnasium-Robotics' models; importing this registers them.

They match D4RL's data: positions in the same frame, the same starts, goals, rewards and terminations, and an
ant of the same strength.
"""

from __future__ import annotations

import contextlib
import functools
import io
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import mujoco
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.envs.locomotion import quiet_mujoco
from cwbc.system.errors import need_extra

_MAPS = {"umaze": "U_MAZE", "medium": "MEDIUM_MAZE", "large": "LARGE_MAZE"}
# The cells of the goals in the maps, counted from 0: (row, column).
_ANT_GOALS = {"umaze": (3, 1), "medium": (6, 6), "large": (7, 9)}
_POINT_GOALS = {"umaze": (1, 1), "medium": (6, 6), "large": (7, 9)}
_RADIUS = 0.5  # of a goal; Gymnasium-Robotics has 0.45
_ANT_CELL = 4.0  # width of a cell; the point's are 1 wide

Floats = NDArray[np.float64]
Reset = tuple[Floats, dict[str, Any]]
Step = tuple[Floats, float, bool, bool, dict[str, Any]]


class World(NamedTuple):
    """The physics of one maze, shared by the copies of its environment."""

    model: mujoco.MjModel
    origin: Floats  # [2] D4RL's (0, 0) in the model
    cells: NDArray[np.int64]  # [cell, (row, column)] without a wall


class _Maze(gymnasium.Env[Floats, NDArray[np.float32]]):
    """One robot among walls. All positions but the model's own are in D4RL's frame."""

    goal: Floats  # [2] x and y

    def __init__(self, world: World, substeps: int) -> None:
        model = world.model
        self._world, self._substeps, self._data = world, substeps, mujoco.MjData(model)
        self.observation_space = spaces.Box(-np.inf, np.inf, (model.nq + model.nv,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (model.nu,), np.float32)

    def _start(self, positions: Floats, velocities: Floats) -> Reset:
        model, data = self._world.model, self._data
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = positions, velocities
        data.qpos[:2] += self._world.origin
        # D4RL's version of MuJoCo did so itself before the first observation.
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_forward(model, data)
        return self._observe(), {}

    def _advance(self, action: NDArray[np.float32]) -> tuple[Floats, float]:
        """The next observation, and its distance from the goal."""
        self._data.ctrl[:] = np.clip(action, -1.0, 1.0)
        mujoco.mj_step(self._world.model, self._data, self._substeps)
        observation = self._observe()
        return observation, float(np.linalg.norm(observation[:2] - self.goal))

    def _observe(self) -> Floats:
        observation = np.concatenate((self._data.qpos, self._data.qvel))
        observation[:2] -= self._world.origin
        return observation


class AntMaze(_Maze):
    """An ant that starts at (0, 0) and is rewarded once, for reaching a goal that it does not observe."""

    def __init__(self, size: str) -> None:
        super().__init__(_ant_world(size), substeps=5)
        row, column = _ANT_GOALS[size]
        self._goal_cell = _ANT_CELL * np.array([column - 1, row - 1])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """Start an episode with a new goal, as D4RL's v2 does."""
        super().reset(seed=seed)
        model, generator = self._world.model, self.np_random
        # D4RL samples twice: the goal is anywhere but near two sides of its cell.
        self.goal = self._goal_cell + generator.uniform(0, 1, 2) + generator.uniform(0, 0.5, 2)
        positions = model.qpos0 + generator.uniform(-0.1, 0.1, model.nq)
        return self._start(positions, 0.1 * generator.standard_normal(model.nv))

    def step(self, action: NDArray[np.float32]) -> Step:
        """Advance by 0.1 seconds; reaching the goal has a reward of 1 and terminates the episode."""
        observation, distance = self._advance(action)
        reached = distance <= _RADIUS
        return observation, float(reached), reached, False, {}


class Maze2d(_Maze):
    """A point that starts anywhere and is rewarded for every step near a fixed goal."""

    def __init__(self, size: str, dense: bool = False) -> None:
        super().__init__(_point_world(size), substeps=1)
        self.goal = np.array(_POINT_GOALS[size], np.float64)
        self._dense = dense

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        """Start an episode in any cell, including the goal's."""
        super().reset(seed=seed)
        generator = self.np_random
        place = generator.choice(self._world.cells) + generator.uniform(-0.1, 0.1, 2)
        return self._start(place, 0.1 * generator.standard_normal(2))

    def step(self, action: NDArray[np.float32]) -> Step:
        """Advance by 0.01 seconds; only the time limit truncates the episode."""
        self._data.qvel[:] = self._data.qvel.clip(-5, 5)
        mujoco.mj_forward(self._world.model, self._data)
        observation, distance = self._advance(action)
        reward = np.exp(-distance) if self._dense else distance <= _RADIUS
        return observation, float(reward), False, False, {}


@functools.cache
def _ant_world(size: str) -> World:
    walls = _walls(size)
    # D4RL's y grows with the row, Gymnasium-Robotics' falls. A mirrored maze would need a mirrored ant, so
    # the map is flipped instead, and the two frames differ only by a shift.
    model, maze = _build("ant_maze_v4", "AntMazeEnv", walls[::-1])
    # D4RL's ant differs from Gymnasium's: a fifth of its torque, twice its time step, softer contacts.
    model.actuator_gear[:, 0] = 30.0
    model.opt.timestep = 0.02
    model.geom_solimp[:, :3] = (0.8, 0.8, 0.01)
    return World(model, maze.cell_rowcol_to_xy((len(walls) - 2, 1)), np.argwhere(~walls))


@functools.cache
def _point_world(size: str) -> World:
    walls = _walls(size)
    # D4RL's x grows with the row and y with the column, Gymnasium-Robotics' x with the column and y against
    # the row: this map gives D4RL's maze, up to a shift.
    model, maze = _build("point_maze", "PointMazeEnv", walls.T[::-1])
    # D4RL's origin is where its point rests, 0.2 beyond the middle of cell (0, 0); so the middles of cells
    # are at row - 0.2 and column - 0.2, although its starts and goals are at row and column.
    return World(model, maze.cell_rowcol_to_xy((walls.shape[1] - 1, 0)) + 0.2, np.argwhere(~walls))


def _walls(size: str) -> NDArray[np.bool_]:
    """The cells of a maze that are walls; the maps are D4RL's. [row, column]"""
    return np.array(getattr(_robotics("maps"), _MAPS[size])) == 1


def _build(module: str, environment: str, walls: NDArray[np.bool_]) -> tuple[mujoco.MjModel, Any]:
    """The model of a robot among walls, and the maze with the positions of its cells."""
    with quiet_mujoco():
        built = getattr(_robotics(module), environment)(maze_map=walls.astype(int).tolist())
    Path(built.tmp_xml_file_path).unlink(missing_ok=True)  # not removed by the environment itself
    return built.model, built.maze


def _robotics(module: str) -> Any:
    with contextlib.redirect_stderr(io.StringIO()):  # it prints a greeting
        return need_extra(f"gymnasium_robotics.envs.maze.{module}", "mazes", "D4RL's mazes")


def _register(name: str, maze: str, steps: int, **settings: Any) -> None:
    """Register an id and its time limit with Gymnasium; nothing is built for that."""
    entry_point = f"{__name__}:{maze}"
    gymnasium.register(f"d4rl/{name}", entry_point, max_episode_steps=steps, kwargs=settings)


for _size, _ant_steps, _point_steps in (("umaze", 700, 300), ("medium", 1000, 600), ("large", 1000, 800)):
    for _dataset in ("" if _size == "umaze" else "-play", "-diverse"):  # they share an environment
        _register(f"antmaze-{_size}{_dataset}-v2", "AntMaze", _ant_steps, size=_size)
    for _reward in ("", "-dense"):
        _register(f"maze2d-{_size}{_reward}-v1", "Maze2d", _point_steps, size=_size, dense=bool(_reward))
