"""Charts as pictures in files, drawn by matplotlib: PNG for reports, also SVG and PDF for papers."""

from __future__ import annotations

import io
import math
import textwrap
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter
from PIL import Image

from cwbc.reports.chart import Axis, Chart, Curve, Panel, Stairs, place_labels
from cwbc.reports.looks import COLOURS, is_dashed, shortened
from cwbc.system.errors import InputError
from cwbc.system.files import write_atomically
from cwbc.system.formatting import amount

DOTS_PER_INCH = 200
TINT = 0.16  # how much of a colour bands and shades have
WIDTH, HEIGHT, LOWER = 9.0, 5.2, 1.2  # inches; LOWER for every further panel
MARKERS = "osD^vPXh"
INK, FAINT, GROUND, BARS = "#333333", "#8A8A8A", "#F4F4F2", "#9AA5B1"
BESIDE = ("data", "axes fraction")  # coordinates of what stands at a value of the horizontal axis
_POINTS = 540.0  # of the horizontal axis, about: the layout decides later
_TIER = 26  # points: the height of a landmark's label
_OFFSETS = {"end": -3, "start": 3, "middle": 0}  # of such a label from its line, in points
_ALIGNED = {"end": "right", "start": "left", "middle": "center"}
# What would differ from one writing to the next is left out.
_METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def picture(chart: Chart, heading: str = "") -> bytes:
    """The chart as a PNG; its heading is by default its title."""
    return to_png(draw(chart, heading))


def save(chart: Chart, path: Path) -> None:
    """Write the chart to a file whose suffix says the format."""
    suffix = path.suffix.lower()
    if suffix not in _METADATA:
        raise InputError(
            f"{path}: a picture is a file in {', '.join(_METADATA)}; got {suffix or 'no suffix'}"
        )
    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "cwbc"}):  # the same names of elements every time
        draw(chart).savefig(content, format=suffix[1:], metadata=_METADATA[suffix])
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


def draw(chart: Chart, heading: str = "") -> Figure:
    """The chart as a figure, a pair of axes for each of its panels."""
    lower = len(chart.panels) - 1
    figure = blank((WIDTH, HEIGHT + LOWER * lower))
    ratios = (4.5, *[1.0] * lower)
    every = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    for axes, panel in zip(every, chart.panels, strict=True):
        _panel(axes, panel, chart)
    _scale(every[-1], "x", chart.across, 7)
    every[-1].set_xlabel(chart.across.title, color=INK)
    _heading(every[0], chart, shortened(heading or chart.title, 56))
    _legend(figure, chart)
    return figure


def clean(axes: Axes) -> None:
    """Leave of the axes what is needed to read values."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, color=FAINT)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}".replace("-", "−")))
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
        axes.set_ylabel(panel.up.title, color=INK)
        axes.spines["left"].set_visible(panel.up.most > 0)
    if panel.heading:
        axes.set_title(panel.heading, loc="left", fontsize=8.5, color=INK, pad=3, parse_math=False)
    for shade in chart.shades:
        colour = GROUND if shade.look is None else (_colour(shade.look), TINT)
        order = 0.0 if shade.look is None else 0.5
        axes.axvspan(shade.start, min(shade.end, high), color=colour, linewidth=0, zorder=order)
        if is_lower and shade.look is None and high - shade.start > 0.2 * (high - low):  # it has room
            name, place = f"  {shade.name}", (shade.start, 0.95)
            axes.annotate(name, place, xycoords=BESIDE, va="top", fontsize=8.5, color=FAINT)
    for mark in chart.marks:
        axes.axvline(mark.target, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    if panel.diagonal:
        axes.add_line(Line2D((low, high), (low, high), color=FAINT, linewidth=1, zorder=1))
    if panel.right is not None:
        _right(axes, panel.right)
    for layer in panel.layers:
        look = chart.looks.get(layer.name)
        if isinstance(layer, Curve):
            _curve(axes, layer, look or 0, chart.across.limits)
        elif isinstance(layer, Stairs):
            _stairs(axes, layer, look)


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
    other.set_ylabel(axis.title, color=INK)


def _curve(axes: Axes, curve: Curve, look: int, limits: tuple[float, float]) -> None:
    drawn, style = curve.spanning(limits), _line(look, curve.is_marked)
    axes.plot(drawn.x, drawn.value, markersize=4.5, label=curve.name, zorder=3, **style)
    if np.isfinite(drawn.low).any():
        band: dict[str, Any] = {"color": _colour(look), "alpha": TINT, "linewidth": 0, "zorder": 2}
        axes.fill_between(drawn.x, drawn.low, drawn.high, **band)


def _line(look: int, marked: bool) -> dict[str, Any]:
    return {
        "color": _colour(look),
        "linewidth": 1.9,
        "linestyle": (0, (5, 1.5)) if is_dashed(look) else "-",
        "marker": MARKERS[look % len(MARKERS)] if marked else None,
        "markeredgecolor": "white",
        "markeredgewidth": 0.6,
    }


def _stairs(axes: Axes, stairs: Stairs, look: int | None) -> None:
    if look is None:
        style: dict[str, Any] = {"color": BARS, "zorder": 2.0}
    elif stairs.filled:
        style = {"color": _colour(look), "zorder": 0.8}  # below the landmarks
    else:
        style = {"facecolor": (_colour(look), 0.12), "edgecolor": _colour(look), "zorder": 3}
        style |= {"linewidth": 1.9, "linestyle": "--" if is_dashed(look) else "-"}
    axes.stairs(stairs.heights, stairs.edges, fill=True, **style)


def _rows(axes: Axes, chart: Chart) -> None:
    """A row for each interval, the first at the top."""
    axes.set_ylim(len(chart.estimates), 0)
    places = [row + 0.5 for row in range(len(chart.estimates))]
    axes.set_yticks(places, labels=[shortened(each.title, 32) for each in chart.estimates])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    ends: dict[str, Any] = {"alpha": 0.35, "linewidth": 5, "solid_capstyle": "round"}
    for y, each in zip(places, chart.estimates, strict=True):
        look = chart.looks[each.name] or 0
        axes.plot((each.low, each.high), (y, y), color=_colour(look), **ends)
        axes.plot([each.value], [y], **_line(look, True))
        if math.isfinite(each.published):
            axes.plot([each.published], [y], "|", color=INK, markersize=12)


def _heading(axes: Axes, chart: Chart, heading: str) -> None:
    """The title, and below it the names of the landmarks, which stand above their lines."""
    low, high = chart.across.limits
    texts = [(mark.label, amount(mark.target)) for mark in chart.marks]
    places = [_POINTS * (mark.target - low) / (high - low) for mark in chart.marks]
    widths = [5.0 * max(map(len, text)) for text in texts]
    labels = place_labels(list(zip(places, widths, strict=True)), -30, _POINTS + 40)
    style: dict[str, Any] = {"va": "bottom", "fontsize": 8.5, "color": INK, "linespacing": 1.25}
    for mark, text, label in zip(chart.marks, texts, labels, strict=bool(labels)):
        axes.annotate(
            "\n".join(text),
            (mark.target, 1),
            xycoords=BESIDE,
            xytext=(_OFFSETS[label.side], 4 + _TIER * label.tier),
            textcoords="offset points",
            ha=_ALIGNED[label.side],
            **style,
        )
    pad = 14 + _TIER * (1 + max((label.tier for label in labels), default=-1))
    axes.set_title(heading, loc="left", fontsize=14, fontweight="bold", color=INK, pad=pad, parse_math=False)


def _legend(figure: Figure, chart: Chart) -> None:
    """The names and the caption below all axes, in as many columns as the names leave room for."""
    handles = [_handle(chart, name, look) for name, look in chart.looks.items()]
    handles += [
        Patch(color=_colour(shade.look), alpha=TINT, linewidth=0, label=shade.name)
        for shade in chart.shades
        if shade.look is not None
    ]
    handles += [
        Line2D([], [], color=FAINT, linewidth=1, label=name)
        if kind == "equal"
        else Line2D([], [], color=INK, marker="|", linestyle="", markersize=12, label=name)
        for name, kind in chart.keys.items()
    ]
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    drawn = figure.legend(
        handles=handles,
        title=textwrap.fill(chart.caption, 120),
        title_fontproperties={"size": 8.5},
        loc="outside lower center",
        ncols=max(1, min(len(handles), 5, 100 // (longest + 4))),
        frameon=False,
        fontsize=9.5,
        labelcolor=INK,
    )
    drawn.get_title().set(color=INK, parse_math=False, multialignment="center")
    for text in drawn.get_texts():
        text.set_parse_math(False)  # a '$' in a name is a dollar


def _handle(chart: Chart, name: str, look: int | None) -> Artist:
    label = shortened(name, 60)
    layers = [layer for panel in chart.panels for layer in panel.layers if layer.name == name]
    if look is None or any(isinstance(layer, Stairs) and layer.filled for layer in layers):
        return Patch(color=BARS if look is None else _colour(look), label=label)
    is_marked = bool(chart.estimates) or any(isinstance(each, Curve) and each.is_marked for each in layers)
    return Line2D([], [], markersize=4.5, label=label, **_line(look, is_marked))


def _colour(look: int) -> str:
    return COLOURS[look % len(COLOURS)]
