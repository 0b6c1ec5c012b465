"""The geometry of charts on pages, in pixels: a wide and a narrow layout, which drawing.svg writes down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cwbc.core.tasks import Landmark
from cwbc.reports.chart import Axis, Chart, Curve, Label, Layer, Panel, Shade, Stairs, place_labels
from cwbc.reports.method_styles import shortened
from cwbc.results.intervals import Array
from cwbc.system.formatting import amount

CHARACTER = 6.4  # the width of one in pixels, about; only browsers know fonts
TIER = 30  # the height of a landmark's label
# Around a point that a path has moved to: circle, square, diamond, two triangles, plus, cross and hexagon.
_MARKERS = (
    "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z",
    "m-3-3h6v6h-6z",
    "m0-4.4l4.4 4.4l-4.4 4.4l-4.4-4.4z",
    "m0-4l4 7h-8z",
    "m0 4l4-7h-8z",
    "m-1.4-3.8h2.8v2.4h2.4v2.8h-2.4v2.4h-2.8v-2.4h-2.4v-2.8h2.4z",
    "m0-1.9l1.9-1.9l1.9 1.9l-1.9 1.9l1.9 1.9l-1.9 1.9l-1.9-1.9l-1.9 1.9l-1.9-1.9l1.9-1.9l-1.9-1.9l1.9-1.9z",
    "m0-4l3.5 2v4l-3.5 2l-3.5-2v-4z",
)


class Size(NamedTuple):
    """The pixels of a drawing; a page carries two and shows the one that fits."""

    width: int
    height: int
    narrow: bool = False  # for phones


WIDE, NARROW = Size(760, 400), Size(360, 330, narrow=True)


class PixelScale(NamedTuple):
    """The values of an axis laid over a range of pixels."""

    axis: Axis
    start: float  # the pixel of the lowest value
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a value; NaN for what has no place."""
        low, high = self.axis.limits
        if not self.axis.logarithmic:
            fraction = (value - low) / (high - low)
        else:
            fraction = math.log(value / low) / math.log(high / low) if value > 0 else math.nan
        return self.start + fraction * (self.end - self.start)


class Frame(NamedTuple):
    """The rectangle of a panel: a scale along its bottom and one along its left side."""

    panel: Panel
    across: PixelScale
    up: PixelScale

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, width and height."""
        left, top = self.across.start, self.up.end
        return left, top, self.across.end - left, self.up.start - top

    @property
    def columns(self) -> int:
        """How many ticks its bottom has room for."""
        return max(2, int((self.across.end - self.across.start) / 62))

    def shaded(self, shade: Shade) -> tuple[float, float]:
        """Where a shade begins, and its width."""
        low, high = self.across.axis.limits
        start, end = (self.across(min(max(end, low), high)) for end in (shade.start, shade.end))
        return start, end - start

    def paths(self, layer: Layer, look: int | None) -> dict[str, str]:
        """The steps of a layer's paths, by their class in the style sheet."""
        match layer:
            case Curve():
                drawn = layer.spanning(self.across.axis.limits)
                points = self._points(drawn.x, drawn.value)
                marks = "".join(marker(look, *point) for point in points) if layer.is_marked else ""
                return {"band": self._band(drawn), "line": polyline(points), "marks": marks}
            case Stairs():
                corners = self._points(np.repeat(layer.edges, 2), np.pad(np.repeat(layer.heights, 2), 1))
                return {"bars" if layer.filled or look is None else "steps": polyline(corners)}
            case _:
                row = np.full(3, self.panel.layers.index(layer) + 0.5)
                low, value, high = self._points(np.array([layer.low, layer.value, layer.high]), row)
                return {"reach": polyline([low, high]), "marks": marker(look, *value)}

    def _band(self, curve: Curve) -> str:
        floor = self.up.axis.limits[0] if self.up.axis.logarithmic else -math.inf
        known = np.isfinite(curve.low) & np.isfinite(curve.high)
        steps = ""
        for part in np.ma.clump_masked(np.ma.masked_where(known, curve.x)):  # type: ignore[no-untyped-call]
            upper = self._points(curve.x[part], curve.high[part])
            lower = self._points(curve.x[part], np.maximum(curve.low[part], floor))
            steps += polyline([*upper, *reversed(lower)]) + "z"
        return steps

    def _points(self, x: Array, y: Array) -> list[tuple[float, float]]:
        """The pixels of values."""
        return [(self.across(a), self.up(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


class Drawing(NamedTuple):
    """A chart laid out in one size; the pointer reads the values of the first frame."""

    chart: Chart
    size: Size
    frames: Sequence[Frame]
    labels: Sequence[tuple[Landmark, Label]] = ()
    right: PixelScale | None = None  # the same values as along the left side in another unit

    @property
    def scales(self) -> dict[str, list[float | bool]]:
        """Where the pointer finds values, for the page's script."""
        _, across, up = self.frames[0]
        return {
            name: [*(round(v, 6) for v in (start, end, *axis.limits)), axis.logarithmic]
            for name, (axis, start, end) in (("across", across), ("up", up))
        }

    def has_room(self, shade: Shade) -> bool:
        """Whether the name of a shade fits into the lowest frame, beside the bars."""
        _, width = self.frames[-1].shaded(shade)
        return len(self.frames) > 1 and shade.look is None and width >= CHARACTER * len(shade.name) + 16


def drawing(chart: Chart, size: Size) -> Drawing:
    """The chart laid out in a size: panels above each other, the landmarks' labels above all of them."""
    if chart.estimates:
        return _rows(chart, size)
    first, *lower = chart.panels
    size = size._replace(height=size.height + len(lower) * (70 if size.narrow else 90))
    right = first.right if not size.narrow else None
    left = 12 + CHARACTER * max((len(words) for _, words in first.up.ticks()), default=1)
    across = PixelScale(chart.across, left, size.width - (46 if right else 14))
    wanted = [(across(m.target), CHARACTER * max(len(m.label), len(amount(m.target)))) for m in chart.marks]
    labels = place_labels(wanted, 0, size.width)
    top = 26 + TIER * (1 + max((label.tier for label in labels), default=-1))
    frames: list[Frame] = []
    floor = size.height - 44.0
    for panel in reversed(chart.panels):
        roof = top if panel is first else floor - (46 if size.narrow else 58)
        frames.insert(0, Frame(panel, across, PixelScale(panel.up, floor, roof)))
        floor = roof - 30
    marks = list(zip(chart.marks, labels, strict=bool(labels)))
    return Drawing(chart, size, frames, marks, frames[0].up._replace(axis=right) if right else None)


def _rows(chart: Chart, size: Size) -> Drawing:
    """A row for each interval; names stand above them where there is no room beside."""
    size = size._replace(height=60 + (44 if size.narrow else 32) * len(chart.estimates))
    longest = max(len(shortened(each.title, 32)) for each in chart.estimates)
    left = 10.0 if size.narrow else min(240.0, 14 + CHARACTER * 1.1 * longest)
    across = PixelScale(chart.across, left, size.width - 14)
    rows = PixelScale(chart.panels[0].up, 10, size.height - 50)
    return Drawing(chart, size, [Frame(chart.panels[0], across, rows)])


def marker(look: int | None, x: float, y: float) -> str:
    """The steps of a path that draw a look's marker at a point; none where it is not finite."""
    start = polyline([(x, y)])
    return start and start + _MARKERS[(look or 0) % len(_MARKERS)]


def polyline(points: Iterable[tuple[float, float]]) -> str:
    """The steps of a path through points; one that is not finite leaves a gap."""
    steps, letter = [], "M"
    for x, y in points:
        there = math.isfinite(x) and math.isfinite(y)
        steps.append(f"{letter}{pixel(x)} {pixel(y)}" if there else "")
        letter = "L" if there else "M"
    return "".join(steps)


def pixel(value: float) -> str:
    """A coordinate to a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")
