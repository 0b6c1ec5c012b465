"""Paths in a maze, coloured by return: what goes where, and what succeeds, in the data and when achieved."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
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
from cwbc.reports.png import BARS, FAINT, INK, WIDTH, Drawing, blank, to_png
from cwbc.results.evaluated import Methods
from cwbc.results.sweeps import Sweep
from cwbc.system.formatting import amount

_MOST = 150  # paths: of more, none can be seen
_POINTS = 200  # of a path
_COLOURS = "viridis"
_ACROSS = 4  # methods beside each other

Paths = Sequence[tuple[Floats, float]]  # places [point, (x, y)] and return of each


def maze_picture(data: Trajectories) -> Drawing | None:
    """How to draw the maze of a dataset with its paths; None where its environment is no maze."""
    maze = MAZES.get(data.environment or "")
    return None if maze is None else functools.partial(_draw_data, data, maze)


def achieved_picture(methods: Methods) -> bytes:
    """The maze with the recorded paths of each method, one target above the other, as a PNG."""
    first = next(iter(methods.values()))
    maze = MAZES[first.dataset.environment or ""]
    panels = {name: _by_target(method.sweep) for name, method in methods.items()}
    across, down = min(len(panels), _ACROSS), math.ceil(len(panels) / _ACROSS)
    rows = max(map(len, panels.values()))
    x, y = np.ptp(maze.world.wall_middles, axis=0) + maze.world.width
    width = WIDTH / max(across, 2)
    figure = blank((width * across + 0.7, down * rows * (width * y / x + 0.35)))
    axes = figure.subplots(down * rows, across, squeeze=False)
    scale = _scale(first.dataset.lowest, first.dataset.best)
    for each in axes.ravel():
        each.set_axis_off()
    for number, (name, by_target) in enumerate(panels.items()):
        for row, (target, paths) in enumerate(by_target.items()):
            each = axes[number // _ACROSS * rows + row, number % _ACROSS]
            each.set_axis_on()
            _draw_paths(each, maze, paths, scale)
            each.set(xticks=[], yticks=[])
            asked = "without a target" if math.isnan(target) else f"target {amount(target)}"
            each.set_title(f"{shortened(name, 24)}, {asked}", fontsize=9, color=INK)
    _colourbar(figure, axes.ravel().tolist(), scale)
    return to_png(figure)


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
    _colourbar(axes.figure, axes, scale)


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


def _colourbar(figure: Any, axes: Any, scale: Normalize) -> None:
    mapped = ScalarMappable(scale, _COLOURS)
    colours = figure.colorbar(mapped, ax=axes, label="return", shrink=0.8, panchor=(0.5, 0.5))
    colours.ax.tick_params(colors=INK, labelsize=9)


def chosen(data: Trajectories) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The episodes that are drawn, spread over the data, the highest returns last and so on top."""
    spread = np.unique(np.linspace(0, data.episodes - 1, min(_MOST, data.episodes)).astype(np.int64))
    return spread[np.argsort(data.returns[spread], kind="stable")]


def path(data: Trajectories, episode: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The places of an episode, a few of them. [point, (x, y)]"""
    steps = np.unique(np.linspace(0, data.lengths[episode] - 1, _POINTS).astype(np.int64))
    return data.observations[data.starts[episode] + steps, :2].astype(np.float64)
