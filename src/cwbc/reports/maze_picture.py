"""Paths in a maze, coloured by return: what goes where, and what succeeds, in the data and when achieved."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Circle, Rectangle

from cwbc.core.trajectories import Trajectories
from cwbc.envs.mazes import MAZES, RADIUS, Maze
from cwbc.envs.physics import Floats
from cwbc.reports.method_styles import shortened
from cwbc.reports.png import BARS, FAINT, INK, WIDTH, Illustration, blank, to_png
from cwbc.results.evaluated import Methods
from cwbc.results.sweeps import Sweep
from cwbc.system.formatting import amount

_MOST = 150  # paths: of more, none can be seen
_POINTS = 200  # of a path
_COLOURS = "viridis"
_ACROSS = 4  # methods beside each other

Paths = Sequence[tuple[Floats, float]]  # places [point, (x, y)] and return of each


def maze_picture(data: Trajectories) -> Illustration | None:
    """How to draw the maze of a dataset with its paths; None where its environment is no maze."""
    maze = MAZES.get(data.environment or "")
    return None if maze is None else Illustration(functools.partial(_draw_data, data, maze))


def achieved_picture(methods: Methods) -> bytes:
    """The maze with the recorded paths of each method, one target above the other, as a PNG."""
    first = next(iter(methods.values()))
    maze = MAZES[first.dataset.environment or ""]
    places, rows = _places({name: _by_target(method.sweep) for name, method in methods.items()})
    across = min(len(methods), _ACROSS)
    x, y = np.ptp(maze.world.wall_middles, axis=0) + maze.world.width
    width = WIDTH / max(across, 2)
    figure = blank((width * across, rows * (width * y / x + 0.3) + 0.7))
    axes = figure.subplots(rows, across, squeeze=False)
    scale = _scale(first.dataset.lowest, first.dataset.best)
    for each in axes.ravel():
        each.set_axis_off()
    for place, (title, paths) in places.items():
        axes[place].set_axis_on()
        axes[place].set(xticks=[], yticks=[])
        axes[place].set_title(title, fontsize=9, color=INK)
        _draw_paths(axes[place], maze, paths, scale)
    _colourbar(figure, axes, scale, location="bottom", shrink=0.4, aspect=40)
    return to_png(figure)


def _places(
    panels: Mapping[str, Mapping[float, Paths]],
) -> tuple[dict[tuple[int, int], tuple[str, Paths]], int]:
    """The titles and paths of all panels by row and column, the targets of a method below each other."""
    found, row = dict[tuple[int, int], tuple[str, Paths]](), 0
    for first in range(0, len(panels), _ACROSS):
        names = list(panels)[first : first + _ACROSS]
        for column, name in enumerate(names):
            for number, (target, paths) in enumerate(panels[name].items()):
                given = "without a target" if math.isnan(target) else f"target {amount(target)}"
                found[row + number, column] = f"{shortened(name, 24)}, {given}", paths
        row += max(len(panels[name]) for name in names)
    return found, row


def _by_target(sweep: Sweep) -> dict[float, Paths]:
    """The recorded paths at each target with their returns, the highest last and so on top."""
    seeds, found = sweep.seeds.tolist(), dict[float, list[tuple[Floats, float]]]()
    for path in sweep.paths:
        where = seeds.index(path.seed), sweep.index_of(path.target), path.episode
        # One key for all that have no target: no NaN equals another.
        target = path.target if sweep.takes_target else math.nan
        found.setdefault(target, []).append((path.places, float(sweep.returns[where])))
    return {target: sorted(paths, key=lambda path: path[1]) for target, paths in found.items()}


def _draw_data(data: Trajectories, maze: Maze, axes: Axes) -> None:
    shown, scale = chosen(data).tolist(), _scale(data.lowest, data.best)
    _draw_paths(axes, maze, [(path(data, episode), data.returns[episode]) for episode in shown], scale)
    axes.set(xlabel="x", ylabel="y")
    axes.tick_params(colors=INK, labelsize=9, color=FAINT)
    number = f"{len(shown):,} of {data.episodes:,} episodes" if len(shown) < data.episodes else "all episodes"
    axes.set_title(f"paths of {number}; circle: the goal", fontsize=9, color=INK)
    _colourbar(axes.figure, axes, scale, shrink=0.8, panchor=(0.5, 0.5))


def _draw_paths(axes: Axes, maze: Maze, paths: Paths, scale: Normalize) -> None:
    """The walls, the paths coloured by return, and the goal."""
    corners, side = maze.world.wall_middles - maze.world.width / 2, maze.world.width
    for corner in corners:
        axes.add_patch(Rectangle((corner[0], corner[1]), side, side, facecolor=BARS, linewidth=0))
    places, returns = zip(*paths, strict=True)
    style: dict[str, Any] = {"norm": scale, "cmap": _COLOURS, "linewidths": 0.8, "alpha": 0.7}
    axes.add_collection(LineCollection(places, array=np.array(returns), **style))
    x, y = maze.goal.tolist()
    axes.add_patch(Circle((x, y), RADIUS, facecolor="none", edgecolor=INK, linewidth=1.5, zorder=4))
    (left, low), (right, high) = corners.min(axis=0), corners.max(axis=0) + side
    axes.set(xlim=(left, right), ylim=(low, high), aspect="equal")


def _scale(lowest: float, best: float) -> Normalize:
    return Normalize(lowest, max(best, lowest + 1e-9))


def _colourbar(figure: Any, axes: Any, scale: Normalize, **where: Any) -> None:
    colours = figure.colorbar(ScalarMappable(scale, _COLOURS), ax=axes, label="return", **where)
    colours.ax.tick_params(colors=INK, labelsize=9)


def chosen(data: Trajectories) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The episodes that are drawn, spread over the data, the highest returns last and so on top."""
    spread = np.unique(np.linspace(0, data.episodes - 1, min(_MOST, data.episodes)).astype(np.int64))
    return spread[np.argsort(data.returns[spread], kind="stable")]


def path(data: Trajectories, episode: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The places of an episode, a few of them. [point, (x, y)]"""
    steps = np.unique(np.linspace(0, data.lengths[episode] - 1, _POINTS).astype(np.int64))
    return data.observations[data.starts[episode] + steps, :2].astype(np.float64)
