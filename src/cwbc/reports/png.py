"""Charts as pictures in files, drawn by matplotlib: PNG for reports, also SVG and PDF for papers."""

from __future__ import annotations

import dataclasses
import io
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from cwbc.reports.chart import Axis, Chart, Curve, Panel, Stairs, place_labels
from cwbc.reports.method_styles import COLOURS, DASHES, is_dashed, shortened
from cwbc.system.errors import InputError
from cwbc.system.files import write_atomically
from cwbc.system.formatting import amount

DOTS_PER_INCH = 200
TINT = 0.16  # how much of a colour bands and shades have
WIDTH, HEIGHT, LOWER = 9.0, 5.2, 1.2  # inches; LOWER for every further panel
_LINE_WIDTH = 1.9
MARKERS = "osD^vPXh"
INK, FAINT, GROUND, BARS = "#333333", "#8A8A8A", "#F4F4F2", "#9AA5B1"
BESIDE = ("data", "axes fraction")  # coordinates of what stands at a value of the horizontal axis
_POINTS = 540.0  # of the horizontal axis, about: the layout decides later
_TIER = 26  # points: the height of a landmark's label
# How such a label is aligned, and its offset from its line in points.
_SIDES = {"end": ("right", -3), "start": ("left", 3), "middle": ("center", 0)}
_STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # a '$' in a name is a dollar
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
}
# What would differ from one writing to the next is left out.
_METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


@dataclasses.dataclass(frozen=True)
class Illustration:
    """What is drawn above a chart."""

    draw: Callable[[Axes], None]
    inches: float = 5.0  # of its height


def picture(chart: Chart, heading: str = "") -> bytes:
    """The chart as a PNG; its heading is by default its title."""
    return to_png(draw(chart, heading))


def save(chart: Chart, path: Path, above: Illustration | None = None) -> None:
    """Write the chart to a file whose suffix says the format, below another drawing where there is one."""
    suffix = path.suffix.lower()
    if suffix not in _METADATA:
        raise InputError(
            f"{path}: a picture is a file in {', '.join(_METADATA)}; got {suffix or 'no suffix'}"
        )
    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "cwbc"}):  # the same names of elements every time
        draw(chart, above=above).savefig(content, format=suffix[1:], metadata=_METADATA[suffix])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue())


def blank(inches: tuple[float, float]) -> Figure:
    """A white figure to draw on."""
    figure = Figure(figsize=inches, dpi=DOTS_PER_INCH, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def to_png(figure: Figure) -> bytes:
    """The figure in the 256 colours that differ most: a third as large as matplotlib's own file."""
    pixels, png = io.BytesIO(), io.BytesIO()
    figure.savefig(pixels, format="rgba")
    whole = Image.frombytes("RGBA", figure.canvas.get_width_height(), pixels.getvalue()).convert("RGB")
    indexed = whole.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    indexed.save(png, "PNG", optimize=True, dpi=(DOTS_PER_INCH, DOTS_PER_INCH))
    return png.getvalue()


@matplotlib.rc_context(_STYLE)
def draw(chart: Chart, heading: str = "", above: Illustration | None = None) -> Figure:
    """The chart as a figure, a pair of axes for each of its panels."""
    lower = len(chart.panels) - 1
    height, ratios = HEIGHT + LOWER * lower, (4.5, *[1.0] * lower)
    if above is None:
        figure = blank((WIDTH, height))
        every = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    else:
        figure = blank((WIDTH, above.inches + height))
        grid = figure.add_gridspec(2, 1, height_ratios=(above.inches, height))
        above.draw(figure.add_subplot(grid[0]))
        panels = grid[1].subgridspec(len(ratios), 1, height_ratios=ratios)
        every = panels.subplots(sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(every, chart.panels, strict=True):
        _panel(axes, panel, chart)
    _scale(every[-1], "x", chart.across, 7)
    every[-1].set_xlabel(chart.across.title)
    _heading(every[0], chart, shortened(heading or chart.title, 56))
    _legend(figure, chart)
    return figure


def clean(axes: Axes) -> None:
    """Leave of the axes what is needed to read values."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, color=FAINT)
    axes.yaxis.grid(True, color="#E6E6E6", linewidth=0.7)
    axes.set_axisbelow(True)


def _panel(axes: Axes, panel: Panel, chart: Chart) -> None:
    clean(axes)
    low, high = chart.across.limits
    is_lower = panel is not chart.panels[0]
    if chart.estimates:
        _rows(axes, chart)
    else:
        _scale(axes, "y", panel.up, min(2, panel.up.most) if is_lower else panel.up.most)
        axes.set_ylabel(panel.up.title)
        axes.spines["left"].set_visible(panel.up.most > 0)
    if panel.heading:
        axes.set_title(panel.heading, fontsize=8.5, pad=3)
    for layer in panel.layers:
        if isinstance(layer, Curve):
            _curve(axes, layer, chart)
        elif isinstance(layer, Stairs):
            _stairs(axes, layer, chart)
    for shade in chart.shades:
        style: dict[str, Any] = {"color": GROUND, "zorder": 0.0}
        if shade.look is not None:
            style = {"color": (_colour(shade.look), TINT), "zorder": 0.5, "label": shade.name}
        axes.axvspan(shade.start, min(shade.end, high), linewidth=0, **style)
        if is_lower and shade.look is None and high - shade.start > 0.2 * (high - low):  # it has room
            name, place = f"  {shade.name}", (shade.start, 0.95)
            axes.annotate(name, place, xycoords=BESIDE, va="top", fontsize=8.5, color=FAINT)
    for mark in chart.marks:
        axes.axvline(mark.target, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    if panel.diagonal:
        ends = (low, high)
        axes.add_line(Line2D(ends, ends, color=FAINT, linewidth=1, zorder=1, label=panel.diagonal))
    if panel.right is not None:
        _right(axes, panel.right)


def _scale(axes: Axes, side: str, axis: Axis, most: int) -> None:
    """Limits and ticks as on a page."""
    ticks = axis.ticks(most)
    if axis.logarithmic:
        axes.set(**{f"{side}scale": "log"})
    axes.set(**{f"{side}lim": axis.limits, f"{side}ticks": [value for value, _ in ticks]})
    axes.set(**{f"{side}ticklabels": [words for _, words in ticks]})
    axes.minorticks_off()


def _right(axes: Axes, axis: Axis) -> None:
    """The same values in another unit."""
    other = axes.twinx()
    other.spines[["top", "left", "bottom"]].set_visible(False)
    other.spines["right"].set_color(FAINT)
    other.tick_params(colors=INK, labelsize=9, color=FAINT)
    _scale(other, "y", axis, axis.most)
    other.set_ylabel(axis.title)


def _curve(axes: Axes, curve: Curve, chart: Chart) -> None:
    drawn, look = curve.spanning(chart.across.limits), chart.looks[curve.name] or 0
    style = _line(look, curve.is_marked)
    axes.plot(drawn.x, drawn.value, markersize=4.5, label=shortened(curve.name, 60), zorder=3, **style)
    if np.isfinite(drawn.low).any():
        band: dict[str, Any] = {"color": _colour(look), "alpha": TINT, "linewidth": 0, "zorder": 2}
        axes.fill_between(drawn.x, drawn.low, drawn.high, **band)


def _line(look: int, marked: bool) -> dict[str, Any]:
    return {
        "color": _colour(look),
        "linewidth": _LINE_WIDTH,
        "linestyle": _linestyle(look),
        "marker": MARKERS[look % len(MARKERS)] if marked else None,
        "markeredgecolor": "white",
        "markeredgewidth": 0.6,
    }


def _linestyle(look: int) -> Any:
    # matplotlib counts dashes in widths of the line.
    return (0, [length / _LINE_WIDTH for length in DASHES]) if is_dashed(look) else "-"


def _stairs(axes: Axes, stairs: Stairs, chart: Chart) -> None:
    look = chart.looks.get(stairs.name)
    if look is None:
        style: dict[str, Any] = {"color": BARS, "zorder": 2.0}
    elif stairs.filled:
        style = {"color": _colour(look), "zorder": 0.8}  # below the landmarks
    else:
        style = {"facecolor": (_colour(look), 0.12), "edgecolor": _colour(look), "zorder": 3}
        style |= {"linewidth": _LINE_WIDTH, "linestyle": _linestyle(look)}
    if stairs.name in chart.looks:
        style["label"] = shortened(stairs.name, 60)
    axes.stairs(stairs.heights, stairs.edges, fill=True, **style)


def _rows(axes: Axes, chart: Chart) -> None:
    """A row for each interval, the first at the top."""
    axes.set_ylim(len(chart.estimates), 0)
    places = [row + 0.5 for row in range(len(chart.estimates))]
    axes.set_yticks(places, labels=[shortened(each.title, 32) for each in chart.estimates])
    for y, each in zip(places, chart.estimates, strict=True):
        look = chart.looks[each.name] or 0
        ends: dict[str, Any] = {"color": _colour(look), "alpha": 0.35, "linewidth": 5}
        axes.plot((each.low, each.high), (y, y), solid_capstyle="round", **ends)
        axes.plot([each.value], [y], label=shortened(each.name, 60), **_line(look, True))


def _heading(axes: Axes, chart: Chart, heading: str) -> None:
    """The title, and below it the names of the landmarks, which stand above their lines."""
    low, high = chart.across.limits
    texts = [f"{mark.label}\n{amount(mark.target)}" for mark in chart.marks]
    wanted = [
        (_POINTS * (mark.target - low) / (high - low), 5.0 * max(map(len, text.splitlines())))
        for mark, text in zip(chart.marks, texts, strict=True)
    ]
    labels = place_labels(wanted, -30, _POINTS + 40)
    style: dict[str, Any] = {"va": "bottom", "fontsize": 8.5, "color": INK, "linespacing": 1.25}
    style |= {"xycoords": BESIDE, "textcoords": "offset points"}
    for mark, text, label in zip(chart.marks, texts, labels, strict=bool(labels)):
        aligned, offset = _SIDES[label.side]
        axes.annotate(text, (mark.target, 1), (offset, 4 + _TIER * label.tier), ha=aligned, **style)
    pad = 14 + _TIER * (1 + max((label.tier for label in labels), default=-1))
    axes.set_title(heading, fontsize=14, fontweight="bold", pad=pad)


def _legend(figure: Figure, chart: Chart) -> None:
    """The names and the caption below all axes, in as many columns as the names leave room for."""
    named: dict[str, Artist] = {}  # a method may have several rows
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    longest = max(map(len, named), default=0)
    drawn = figure.legend(
        handles=list(named.values()),
        title=textwrap.fill(chart.caption, 120),
        title_fontproperties={"size": 8.5},
        loc="outside lower center",
        ncols=max(1, min(len(named), 5, 100 // (longest + 4))),
        frameon=False,
        fontsize=9.5,
        labelcolor=INK,
    )
    drawn.get_title().set(color=INK, multialignment="center")


def _colour(look: int) -> str:
    return COLOURS[look % len(COLOURS)]
