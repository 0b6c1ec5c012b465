"""The paths of a dataset in its maze, coloured by return: what goes where, and what succeeds."""

from __future__ import annotations

import functools

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Circle, Rectangle

from cwbc.core.trajectories import Trajectories
from cwbc.envs.maze_worlds import World
from cwbc.envs.mazes import MAZES, RADIUS
from cwbc.envs.physics import Floats
from cwbc.reports.png import BARS, FAINT, INK, Illustration

_MOST = 150  # paths: of more, none can be seen
_POINTS = 200  # of a path
_COLOURS = "viridis"


def maze_picture(data: Trajectories) -> Illustration | None:
    """How to draw the maze of a dataset with its paths; None where its environment is no maze."""
    maze = MAZES.get(data.environment or "")
    return None if maze is None else Illustration(functools.partial(_draw, data, maze.world, maze.goal))


def _draw(data: Trajectories, world: World, goal: Floats, axes: Axes) -> None:
    shown = chosen(data)
    scale = Normalize(data.lowest, max(data.best, data.lowest + 1e-9))
    corners, side = world.wall_middles - world.width / 2, world.width
    for corner in corners:
        axes.add_patch(Rectangle((corner[0], corner[1]), side, side, facecolor=BARS, linewidth=0))
    paths = LineCollection(
        [path(data, episode) for episode in shown.tolist()],
        array=data.returns[shown],
        norm=scale,
        cmap=_COLOURS,
        linewidths=0.8,
        alpha=0.7,
    )
    axes.add_collection(paths)
    x, y = goal.tolist()
    axes.add_patch(Circle((x, y), RADIUS, facecolor="none", edgecolor=INK, linewidth=1.5, zorder=4))
    (left, low), (right, high) = corners.min(axis=0), corners.max(axis=0) + side
    axes.set(xlim=(left, right), ylim=(low, high), aspect="equal", xlabel="x", ylabel="y")
    axes.tick_params(colors=INK, labelsize=9, color=FAINT)
    number = f"{len(shown):,} of {data.episodes:,} episodes" if len(shown) < data.episodes else "all episodes"
    axes.set_title(f"paths of {number}; circle: the goal", fontsize=9, color=INK)
    mapped = ScalarMappable(scale, _COLOURS)
    colours = axes.figure.colorbar(mapped, ax=axes, label="return", shrink=0.8, panchor=(0.5, 0.5))
    colours.ax.tick_params(colors=INK, labelsize=9)


def chosen(data: Trajectories) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The episodes that are drawn, spread over the data, the highest returns last and so on top."""
    spread = np.unique(np.linspace(0, data.episodes - 1, min(_MOST, data.episodes)).astype(np.int64))
    return spread[np.argsort(data.returns[spread], kind="stable")]


def path(data: Trajectories, episode: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The places of an episode, a few of them. [point, (x, y)]"""
    steps = np.unique(np.linspace(0, data.lengths[episode] - 1, _POINTS).astype(np.int64))
    return data.observations[data.starts[episode] + steps, :2].astype(np.float64)
