"""D4RL's mazes with its flat observations, on Gymnasium-Robotics' models; importing this registers them.

A policy that learned from D4RL's data sees what it saw there: positions in the same frame, the same starts,
goals, rewards and ends, and an ant of the same strength.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.errors import need_extra
from cwbc.simulators.quiet import quiet_mujoco

_MAPS = {"umaze": "U_MAZE", "medium": "MEDIUM_MAZE", "large": "LARGE_MAZE"}
# The goals stand in these cells of the maps, counted from 0: (row, column).
_ANT_GOALS = {"umaze": (3, 1), "medium": (6, 6), "large": (7, 9)}
_POINT_GOALS = {"umaze": (1, 1), "medium": (6, 6), "large": (7, 9)}
_RADIUS = 0.5  # of a goal; Gymnasium-Robotics has 0.45
_ANT_CELL = 4.0  # width of a cell; the point's are 1 wide


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """The physics of one maze, which the copies of its environment share."""

    model: mujoco.MjModel
    origin: NDArray[np.float64]  # [2] where D4RL's (0, 0) lies in the model
    cells: NDArray[np.int64]  # [cell, (row, column)] that have no wall


class _Maze(gymnasium.Env[NDArray[np.float64], NDArray[np.float32]]):
    """One robot among walls. All positions but the model's own are in D4RL's frame."""

    goal: NDArray[np.float64]  # [2] x and y

    def __init__(self, world: World, substeps: int) -> None:
        model = world.model
        self._world, self._substeps, self._data = world, substeps, mujoco.MjData(model)
        self.observation_space = spaces.Box(-np.inf, np.inf, (model.nq + model.nv,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (model.nu,), np.float32)

    def _begin(
        self, positions: NDArray[np.float64], velocities: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        model, data = self._world.model, self._data
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = positions, velocities
        data.qpos[:2] += self._world.origin
        # The MuJoCo of D4RL's time did so by itself before anything was observed.
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_forward(model, data)
        return self._observe(), {}

    def _advance(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float64], float]:
        """The next observation, and how far from the goal it is."""
        self._data.ctrl[:] = np.clip(action, -1.0, 1.0)
        mujoco.mj_step(self._world.model, self._data, self._substeps)
        observation = self._observe()
        return observation, float(np.linalg.norm(observation[:2] - self.goal))

    def _observe(self) -> NDArray[np.float64]:
        observation = np.concatenate((self._data.qpos, self._data.qvel))
        observation[:2] -= self._world.origin
        return observation


class AntMaze(_Maze):
    """An ant that begins at (0, 0) and is paid once, for reaching a goal that it does not see."""

    def __init__(self, size: str) -> None:
        super().__init__(_ant_world(size), substeps=5)
        row, column = _ANT_GOALS[size]
        self._goal_cell = _ANT_CELL * np.array([column - 1, row - 1])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Begin an episode with a new goal, as D4RL's v2 does."""
        super().reset(seed=seed)
        model, draw = self._world.model, self.np_random
        # Two draws are what D4RL makes: the goal is anywhere but near two sides of its cell.
        self.goal = self._goal_cell + draw.uniform(0, 1, 2) + draw.uniform(0, 0.5, 2)
        positions = model.qpos0 + draw.uniform(-0.1, 0.1, model.nq)
        return self._begin(positions, 0.1 * draw.standard_normal(model.nv))

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Advance by 0.1 seconds; the goal pays 1 and ends the episode."""
        observation, distance = self._advance(action)
        reached = distance <= _RADIUS
        return observation, float(reached), reached, False, {}


class Maze2d(_Maze):
    """A point that begins anywhere and is paid for every step near a goal that stays where it is."""

    def __init__(self, size: str, dense: bool = False) -> None:
        super().__init__(_point_world(size), substeps=1)
        self.goal = np.array(_POINT_GOALS[size], np.float64)
        self._dense = dense

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Begin an episode in any cell, the goal's too."""
        super().reset(seed=seed)
        draw = self.np_random
        place = draw.choice(self._world.cells) + draw.uniform(-0.1, 0.1, 2)
        return self._begin(place, 0.1 * draw.standard_normal(2))

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Advance by 0.01 seconds; only the time limit ends the episode."""
        self._data.qvel[:] = self._data.qvel.clip(-5, 5)
        mujoco.mj_forward(self._world.model, self._data)
        observation, distance = self._advance(action)
        reward = np.exp(-distance) if self._dense else distance <= _RADIUS
        return observation, float(reward), False, False, {}


@functools.cache
def _ant_world(size: str) -> World:
    walls = _walls(size)
    # D4RL's y grows with the row, Gymnasium-Robotics' falls. A mirrored maze would need a mirrored ant, so
    # the map is turned over instead, and what is left between the two frames is a shift.
    model, maze = _build("ant_maze_v4", "AntMazeEnv", walls[::-1])
    # D4RL's ant is another one than Gymnasium's: a fifth of its torque, twice its time step, softer contacts.
    model.actuator_gear[:, 0] = 30.0
    model.opt.timestep = 0.02
    model.geom_solimp[:, :3] = (0.8, 0.8, 0.01)
    return World(model, maze.cell_rowcol_to_xy((len(walls) - 2, 1)), np.argwhere(~walls))


@functools.cache
def _point_world(size: str) -> World:
    walls = _walls(size)
    # D4RL's x grows with the row and y with the column, Gymnasium-Robotics' x with the column and y against
    # the row: of this map it makes D4RL's maze, but for a shift.
    model, maze = _build("point_maze", "PointMazeEnv", walls.T[::-1])
    # D4RL counts from where its point rests, which is 0.2 beyond the middle of cell (0, 0); so the middles of
    # its cells are at row - 0.2 and column - 0.2, although its starts and goals are at row and column.
    return World(model, maze.cell_rowcol_to_xy((walls.shape[1] - 1, 0)) + 0.2, np.argwhere(~walls))


def _walls(size: str) -> NDArray[np.bool_]:
    """Which cells of a maze are walls; the maps are D4RL's. [row, column]"""
    maps = _robotics("maps")
    return np.array(getattr(maps, _MAPS[size])) == 1


def _build(module: str, environment: str, walls: NDArray[np.bool_]) -> tuple[mujoco.MjModel, Any]:
    """The model of a robot among walls, and the maze that knows where the cells are in it."""
    with quiet_mujoco():
        built = getattr(_robotics(module), environment)(maze_map=walls.astype(int).tolist())
    Path(built.tmp_xml_file_path).unlink(missing_ok=True)  # left behind by every one that is built
    return built.model, built.maze


def _robotics(module: str) -> Any:
    with contextlib.redirect_stderr(io.StringIO()):  # it greets with news of other environments
        return need_extra(f"gymnasium_robotics.envs.maze.{module}", "mazes", "D4RL's mazes")


def _register() -> None:
    """Tell Gymnasium the ids and time limits; nothing is built or needed for that."""
    ants = {
        "umaze": (700, ("", "-diverse")),
        "medium": (1000, ("-play", "-diverse")),
        "large": (1000, ("-play", "-diverse")),
    }
    for size, (steps, datasets) in ants.items():  # the datasets of a size are from one environment
        for dataset in datasets:
            gymnasium.register(
                f"d4rl/antmaze-{size}{dataset}-v2",
                entry_point=f"{__name__}:AntMaze",
                max_episode_steps=steps,
                kwargs={"size": size},
            )
    for size, steps in {"umaze": 300, "medium": 600, "large": 800}.items():
        for reward in ("", "-dense"):
            gymnasium.register(
                f"d4rl/maze2d-{size}{reward}-v1",
                entry_point=f"{__name__}:Maze2d",
                max_episode_steps=steps,
                kwargs={"size": size, "dense": bool(reward)},
            )


_register()
