"""The picture of reliability: achieved vs. target return, above the histogram of the dataset's returns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from cwbc.dataset_summary import DatasetSummary
from cwbc.intervals import LEAST, Array, band, bands
from cwbc.reporting.png import blank, to_png
from cwbc.results import Sweep
from cwbc.tasks import Landmark, Task, landmarks
from cwbc.wording import amount

# Okabe and Ito's colours for colour-blind readers; wine stands in for their yellow, unreadable on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255")
MARKERS = "osD^vPXh"
DASHES = ("-", (0, (5, 1.5)))  # the second round of eight methods

INK, FAINT, GROUND = "#333333", "#8A8A8A", "#F4F4F2"
INCHES = (9.0, 6.4)


def reliability_figure(sweeps: Sequence[Sweep], dataset: DatasetSummary) -> bytes:
    """Achieved vs. target return with bands over seeds, and the dataset's returns, as a PNG."""
    figure = blank(INCHES)
    draw(figure, sweeps, dataset)
    return to_png(figure)


def draw(figure: Figure, sweeps: Sequence[Sweep], dataset: DatasetSummary) -> tuple[Axes, Axes]:
    """Draw into an empty figure; hands back the axes of the curves and of the histogram."""
    curves, histogram = figure.subplots(2, 1, sharex=True, height_ratios=(4.5, 1))
    marks = landmarks(dataset.task, dataset.best)
    for axes in (curves, histogram):
        clean(axes)
    across, up = limits(sweeps, marks, dataset)
    lines = [_curve(curves, index, sweep, across) for index, sweep in enumerate(sweeps)]
    curves.set_xlim(*across)
    curves.set_ylim(*up)
    lines.append(_reference(curves))
    for axes in (curves, histogram):
        axes.axvspan(dataset.best, curves.get_xlim()[1], color=GROUND, zorder=0, linewidth=0)
        for mark in marks:
            axes.axvline(mark.target, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    label_marks(curves, marks)
    _histogram(histogram, dataset)
    curves.set_ylabel("achieved return", color=INK)
    _normalized_axis(curves, dataset.task)
    curves.set_title(
        dataset.name, loc="left", fontsize=14, fontweight="bold", color=INK, pad=34, parse_math=False
    )
    legend(figure, lines, _measured(sweeps))
    return curves, histogram


def clean(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, color=FAINT)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}".replace("-", "−")))
    axes.yaxis.grid(True, color="#E6E6E6", linewidth=0.7)
    axes.set_axisbelow(True)


def level(sweep: Sweep, across: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Targets, means and bands of a sweep; of a method that takes no target, the same at all of `across`."""
    means, lows, highs = band(sweep.returns.mean(axis=2))
    if sweep.takes_target:
        return sweep.targets, means, lows, highs
    places = np.asarray(across, np.float64)
    mean, low, high = (np.full(len(places), ends[0]) for ends in (means, lows, highs))
    return places, mean, low, high


def _curve(axes: Axes, index: int, sweep: Sweep, across: tuple[float, float]) -> Line2D:
    targets, mean, low, high = level(sweep, across)
    colour = COLOURS[index % len(COLOURS)]
    (line,) = axes.plot(
        targets,
        mean,
        color=colour,
        linewidth=1.9,
        linestyle=DASHES[index // len(COLOURS) % len(DASHES)],
        marker=MARKERS[index % len(MARKERS)] if sweep.takes_target else None,
        markersize=4.5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        label=shortened(sweep.method) + " (takes no target)" * (not sweep.takes_target),
        zorder=3,
    )
    if len(sweep.seeds) > 1:
        axes.fill_between(targets, low, high, color=colour, alpha=0.16, linewidth=0, zorder=2)
    return line


def limits(
    sweeps: Sequence[Sweep], marks: Sequence[Landmark], dataset: DatasetSummary
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ends of the axes of target and of achieved returns."""
    named = [mark.target for mark in marks]
    across = np.concatenate([*(sweep.targets for sweep in sweeps), named, dataset.histogram_edges])
    # By the seeds, not by the bands: of few seeds those may be several times as wide, and flatten all else.
    up = np.concatenate(
        [*(sweep.returns.mean(axis=2).ravel() for sweep in sweeps), [dataset.lowest, dataset.best]]
    )
    return padded(across, 0.02), padded(up, 0.08)


def padded(values: Array, share: float) -> tuple[float, float]:
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    margin = share * (high - low) or max(1.0, abs(high)) * share
    return low - margin, high + margin


def _reference(axes: Axes) -> Line2D:
    ends = axes.get_xlim()
    line = Line2D(ends, ends, color=FAINT, linewidth=1, label="achieved = target", zorder=1)
    return axes.add_line(line)


def label_marks(axes: Axes, marks: Sequence[Landmark]) -> None:
    low, high = axes.get_xlim()
    ordered = sorted(marks, key=lambda mark: mark.target)
    for index, mark in enumerate(ordered):
        near = 0.14 * (high - low)
        crowded_right = index + 1 < len(ordered) and ordered[index + 1].target - mark.target < near
        crowded_left = index > 0 and mark.target - ordered[index - 1].target < near
        side = "right" if crowded_right and not crowded_left else "left" if crowded_left else "center"
        axes.annotate(
            f"{mark.label}\n{amount(mark.target)}",
            (mark.target, 1),
            xycoords=("data", "axes fraction"),
            xytext=({"right": -3, "left": 3, "center": 0}[side], 4),
            textcoords="offset points",
            ha=side,
            va="bottom",
            fontsize=8.5,
            color=INK,
            linespacing=1.25,
        )


def _histogram(axes: Axes, dataset: DatasetSummary) -> None:
    axes.stairs(dataset.histogram_counts, dataset.histogram_edges, fill=True, color="#9AA5B1", zorder=2)
    axes.set_ylabel("episodes", color=INK)
    axes.set_xlabel("target return", color=INK)
    axes.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    axes.set_title(
        f"returns of the dataset's {dataset.episodes:,} episodes", loc="left", fontsize=8.5, color=INK, pad=3
    )


def _normalized_axis(axes: Axes, task: Task) -> None:
    def normalize(returns: ArrayLike) -> Array:
        return task.normalize(np.asarray(returns))

    def achieve(scores: ArrayLike) -> Array:
        return task.random_score + np.asarray(scores) / 100 * (task.expert_score - task.random_score)

    right = axes.secondary_yaxis("right", functions=(normalize, achieve))
    right.set_ylabel("normalized score", color=INK)
    right.tick_params(colors=INK, labelsize=9, color=FAINT)
    right.spines["right"].set_color(FAINT)


def legend(figure: Figure, lines: Sequence[Artist], title: str) -> None:
    """A legend below all axes, in as many columns as its names leave room for."""
    longest = max(len(str(line.get_label())) for line in lines)
    drawn = figure.legend(
        handles=list(lines),
        title=title,
        title_fontproperties={"size": 8.5},
        loc="outside lower center",
        ncols=max(1, min(len(lines), 5, 100 // (longest + 4))),
        frameon=False,
        fontsize=9.5,
        labelcolor=INK,
    )
    drawn.get_title().set_color(INK)
    for text in drawn.get_texts():
        text.set_parse_math(False)  # a '$' in a name is a dollar


def _measured(sweeps: Sequence[Sweep]) -> str:
    seeds = sorted({len(sweep.seeds) for sweep in sweeps})
    if seeds == [1]:
        return "one seed: too few seeds for an interval"
    if seeds[0] < LEAST:
        drawn = bands(seeds).rstrip(".")
        return f"means over {' or '.join(map(str, seeds))} seeds. {drawn}"
    return f"means and 95 % intervals over {' or '.join(map(str, seeds))} seeds"


def shortened(name: str, length: int = 38) -> str:
    if len(name) <= length:
        return name
    # From the middle: names that share a beginning often differ at the end.
    return f"{name[: length // 2]}…{name[-(length // 2 - 1) :]}"
