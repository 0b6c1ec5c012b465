"""The pictures of training, for where a page cannot go: losses, and what was drawn from the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cwbc.dataset_summary import DatasetSummary
from cwbc.reporting.figures import COLOURS, DASHES, INK, MARKERS, clean, legend, shortened
from cwbc.reporting.png import blank, to_png
from cwbc.reporting.scales import Scale
from cwbc.reporting.training import (
    Histories,
    all_positive,
    distinct_weightings,
    held,
    loss_curves,
    loss_title,
)

INCHES = (9.0, 5.2)


def training_figure(histories: Histories, dataset: DatasetSummary, names: Sequence[str]) -> bytes | None:
    """Prediction losses against steps with their range over seeds, as a PNG; None where there are none."""
    curves = loss_curves(histories)
    if not curves:
        return None
    figure, axes = _empty(dataset.name)
    for curve in curves:
        look = names.index(curve.name)
        colour = COLOURS[look % len(COLOURS)]
        axes.plot(
            curve.x,
            curve.value,
            color=colour,
            linewidth=1.7,
            linestyle=DASHES[look // len(COLOURS) % len(DASHES)],
            marker=MARKERS[look % len(MARKERS)] if len(curve.x) == 1 else None,
            label=shortened(curve.name),
        )
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.16, linewidth=0)
    axes.set_xlim(left=0)
    if all_positive(curves):
        axes.set_yscale("log")
        ticks = Scale(*axes.get_ylim(), 0, 1, logarithmic=True).ticks(6)
        axes.set_yticks([value for value, _ in ticks], labels=[words for _, words in ticks])
        axes.minorticks_off()
    axes.set_xlabel("step", color=INK)
    axes.set_ylabel(loss_title(all_positive(curves)), color=INK)
    several = any(np.isfinite(curve.low).any() for curve in curves)
    legend(figure, axes.get_lines(), "means over seeds, and their range" if several else "one seed")
    return to_png(figure)


def returns_figure(histories: Histories, dataset: DatasetSummary, names: Sequence[str]) -> bytes | None:
    """The dataset's returns and those that training draws, as a PNG; None where no run has kept them."""
    weightings = distinct_weightings(histories, dataset)
    if not weightings:
        return None
    figure, axes = _empty(dataset.name)
    edges = dataset.histogram_edges
    drawn = [axes.stairs(100 * held(dataset), edges, fill=True, color="#9AA5B1", label="the dataset")]
    for weighted in weightings:
        colour = COLOURS[names.index(weighted.methods[0]) % len(COLOURS)]
        heights = 100 * np.array(weighted.drawn)
        axes.stairs(heights, edges, fill=True, color=colour, alpha=0.1)
        drawn.append(
            axes.stairs(heights, edges, color=colour, linewidth=1.9, label=shortened(weighted.name, 60))
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("return", color=INK)
    axes.set_ylabel("share, %", color=INK)
    legend(figure, drawn, "episodes of the dataset, and what training draws from them")
    return to_png(figure)


def _empty(title: str) -> tuple[Figure, Axes]:
    figure = blank(INCHES)
    axes = figure.subplots()
    clean(axes)
    title = shortened(title, 56)
    axes.set_title(title, loc="left", fontsize=14, fontweight="bold", color=INK, pad=14, parse_math=False)
    return figure, axes
