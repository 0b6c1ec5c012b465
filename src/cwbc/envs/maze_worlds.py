"""The models of D4RL's mazes, on Gymnasium-Robotics' robots and maps, and where their cells are."""

from __future__ import annotations

import contextlib
import functools
import io
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from cwbc.envs.physics import Floats, quiet_mujoco
from cwbc.system.errors import need_extra

ANT_CELL = 4.0  # width of a cell; the point's are 1 wide
_MAPS = {"umaze": "U_MAZE", "medium": "MEDIUM_MAZE", "large": "LARGE_MAZE"}


class World(NamedTuple):
    """The physics of one maze, shared by all its copies; places are in D4RL's frame, as observations are."""

    model: mujoco.MjModel
    origin: Floats  # [2] D4RL's (0, 0) in the model
    walls: NDArray[np.bool_]  # [row, column]
    cells: NDArray[np.int64]  # [cell, (row, column)] without a wall
    middles: Floats  # [cell, (x, y)] between the walls
    wall_middles: Floats  # [wall, (x, y)]
    width: float  # of a cell


@functools.cache
def ant_world(size: str) -> World:
    """A maze for ants: x grows with the column and y with the row, from the cell that ants start in."""
    walls = _walls(size)
    # D4RL's y grows with the row, Gymnasium-Robotics' falls. A mirrored maze would need a mirrored ant, so
    # the map is flipped instead, and the two frames differ only by a shift.
    model, maze = _build("ant_maze_v4", "AntMazeEnv", walls[::-1])
    # D4RL's ant differs from Gymnasium's: a fifth of its torque, twice its time step, softer contacts.
    model.actuator_gear[:, 0] = 30.0
    model.opt.timestep = 0.02
    model.geom_solimp[:, :3] = (0.8, 0.8, 0.01)
    origin, cells = maze.cell_rowcol_to_xy((len(walls) - 2, 1)), np.argwhere(~walls)

    def middles(cells: NDArray[np.int64]) -> Floats:
        return np.multiply(ANT_CELL, cells[:, ::-1] - 1, dtype=np.float64)

    return World(model, origin, walls, cells, middles(cells), middles(np.argwhere(walls)), ANT_CELL)


@functools.cache
def point_world(size: str) -> World:
    """A maze for points, in which x grows with the row and y with the column."""
    walls = _walls(size)
    # D4RL's x grows with the row and y with the column, Gymnasium-Robotics' x with the column and y against
    # the row: this map gives D4RL's maze, up to a shift.
    model, maze = _build("point_maze", "PointMazeEnv", walls.T[::-1])
    model.geom_rgba[:, 3] = 1  # the point is transparent
    # D4RL's origin is where its point rests, 0.2 beyond the middle of cell (0, 0); so the middles of cells
    # are at row - 0.2 and column - 0.2, although its starts and goals are at row and column.
    origin, cells = maze.cell_rowcol_to_xy((walls.shape[1] - 1, 0)) + 0.2, np.argwhere(~walls)

    def middles(cells: NDArray[np.int64]) -> Floats:
        return np.subtract(cells, 0.2, dtype=np.float64)

    return World(model, origin, walls, cells, middles(cells), middles(np.argwhere(walls)), 1.0)


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
