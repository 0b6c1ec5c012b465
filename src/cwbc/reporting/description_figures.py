"""The picture of a description: what is drawn with and without weighting, and what is raised."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cwbc.description import Description
from cwbc.errors import InputError
from cwbc.files import write_atomically
from cwbc.reporting.description import raising
from cwbc.reporting.figures import (
    COLOURS,
    FAINT,
    GROUND,
    INCHES,
    INK,
    clean,
    label_marks,
    padded,
    shortened,
)
from cwbc.reporting.png import blank
from cwbc.tasks import landmarks, task_for

BEFORE, AFTER, RAISED, SHADE = "#9AA5B1", COLOURS[0], COLOURS[1], 0.16
# What would differ from one writing to the next is left out.
METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def plot(description: Description, path: Path) -> None:
    """Write the picture of the returns before and after weighting; the suffix of the file says the format."""
    suffix = path.suffix.lower()
    if suffix not in METADATA:
        raise InputError(f"{path}: a picture is a file in {', '.join(METADATA)}; got {suffix or 'no suffix'}")
    figure = blank(INCHES)
    draw(figure, description)
    picture = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "cwbc"}):  # the same names of elements every time
        figure.savefig(picture, format=suffix[1:], metadata=METADATA[suffix])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, picture.getvalue())


def draw(figure: Figure, description: Description) -> tuple[Axes, Axes]:
    """Draw into an empty figure; hands back the axes of the draws and of the raised targets."""
    draws, targets = figure.subplots(2, 1, sharex=True, height_ratios=(7, 1))
    returns, raised = description.returns, description.raised
    task = task_for(description.environment, returns.lowest, returns.best)
    marks = landmarks(task, returns.best)[:-1]
    low, high = _limits([returns.lowest, raised.highest, *(mark.target for mark in marks)])
    draws.set_xlim(low, high)
    hair = 0.004 * (high - low)  # what has no width must be seen as well
    clean(draws)
    clean(targets)
    targets.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}".replace("-", "−"))
    handles = [*_draws(draws, description, hair), *_targets(targets, description, hair)]
    for axes in (draws, targets):
        axes.axvspan(returns.best, high, color=GROUND, zorder=0, linewidth=0)
        first = min(raised.lowest_return, returns.best - hair)
        axes.axvspan(first, returns.best, color=RAISED, alpha=SHADE, zorder=0.5, linewidth=0)
        for mark in marks:
            axes.axvline(mark.target, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    label_marks(draws, marks)
    title = shortened(description.name, 56)
    draws.set_title(title, loc="left", fontsize=14, fontweight="bold", color=INK, pad=34, parse_math=False)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9.5, labelcolor=INK
    )
    return draws, targets


def _limits(values: Sequence[float]) -> tuple[float, float]:
    across = np.array(values)
    # Returns that differ by rounding only would make an axis of no width.
    distinct = np.ptp(across) > 1e-6 * np.abs(across).max()
    return padded(across if distinct else across[:1], 0.02)


def _draws(axes: Axes, d: Description, hair: float) -> list[Patch]:
    edges = np.array(d.bin_edges)
    before, after = (100 * np.array(draws.masses) for draws in (d.by_length, d.by_return))
    if d.returns.equal:
        edges = d.returns.best + np.array([-2 * hair, 2 * hair])
        before = after = np.array([100.0])
    axes.set_ylabel("share of draws, %", color=INK)
    without = axes.stairs(
        before, edges, fill=True, color=BEFORE, zorder=2, label="drawn without +w (by length)"
    )
    weighted = axes.stairs(
        after,
        edges,
        fill=True,
        facecolor=(AFTER, 0.2),
        edgecolor=AFTER,
        linewidth=1.9,
        zorder=3,
        label="drawn with +w (by return)",
    )
    axes.set_ylim(bottom=0)
    return [without, weighted]


def _targets(axes: Axes, d: Description, hair: float) -> list[Patch]:
    far = max(d.raised.highest, d.raised.lowest + hair)
    targets = axes.stairs([1], [d.raised.lowest, far], fill=True, color=(RAISED, 0.75), zorder=0.8)
    targets.set_label("to these targets")
    axes.set_ylim(0, 1.4)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("return", color=INK)
    axes.set_title(f"+c {raising(d)}", loc="left", fontsize=8.5, color=INK, pad=3)
    return [Patch(color=RAISED, alpha=SHADE, linewidth=0, label="raised by +c"), targets]
