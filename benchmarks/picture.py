"""The curves of a report as a picture; `python -m benchmarks.picture FILE.json` draws stored ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks import rows
from benchmarks.rows import Report, Row
from cwbc.reports.method_styles import COLOURS
from cwbc.reports.png import INK, MARKERS, blank, clean, to_png

PANELS = {
    "ms": ("Time of a training step", "ms per step"),
    "MB": ("Memory of training", "MB"),
    "s": ("Time to load from HDF5", "seconds"),
}  # by unit: title, and what the axis counts


def draw(path: Path, report: Report) -> None:
    """One panel per unit: measured points, and in dashes the course that they should take."""
    curves: dict[str, list[Row]] = {}
    for row in report.rows:
        if row.steps is not None:
            curves.setdefault(row.name, []).append(row)
    panels = {unit: [c for c in curves.values() if c[0].unit == unit] for unit in PANELS}
    panels = {unit: shown for unit, shown in panels.items() if shown}
    figure = blank((4.4 * len(panels), 4.0))
    for axes, unit in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _panel(axes, unit, panels[unit])
    path.write_bytes(to_png(figure))


def _panel(axes: Axes, unit: str, curves: Sequence[Sequence[Row]]) -> None:
    title, counted = PANELS[unit]
    axes.set_xscale("log")
    if unit != "ms":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    clean(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=20)
    dashed = f"dashed: {curves[0][0].limit_is}"
    axes.annotate(dashed, (0, 1), (0, 6), "axes fraction", "offset points", fontsize=8.5, color=INK)
    axes.set_xlabel("steps in the dataset", color=INK)
    axes.set_ylabel(counted, color=INK)
    for index, curve in enumerate(curves):
        _curve(axes, index, curve)
    if unit == "ms":
        axes.set_ylim(0, 1.35 * max(row.measured for curve in curves for row in curve))
    axes.set_xticks([row.steps for row in curves[0] if row.steps is not None])


def _curve(axes: Axes, index: int, curve: Sequence[Row]) -> None:
    """The line of the measured points with its name, and that of what they should be."""
    colour = COLOURS[index]
    sizes, measured, expected = np.array([(row.steps, row.measured, row.limit) for row in curve], float).T
    axes.plot(sizes, expected, color=colour, linewidth=1.1, linestyle=(0, (4, 3)), zorder=2)
    axes.plot(
        sizes,
        measured,
        color=colour,
        linewidth=1.9,
        marker=MARKERS[index],
        markersize=5.5,
        markeredgecolor="white",
        zorder=3,
    )
    # Above a flat line, and below one that rises: there no other is.
    flat = measured.max() < 1.5 * measured.min()
    axes.annotate(
        curve[0].name,
        (sizes[1], measured.max() if flat else measured[1]),
        xytext=(0, 8) if flat else (8, -6),
        textcoords="offset points",
        va="bottom" if flat else "top",
        fontsize=9,
        color=colour,
    )


if __name__ == "__main__":
    draw(Path(sys.argv[1]).with_suffix(".png"), rows.read(Path(sys.argv[1])))
