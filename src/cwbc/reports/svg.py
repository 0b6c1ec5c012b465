"""The geometry of charts on pages, in pixels: a wide and a narrow layout, which drawing.svg writes down."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cwbc.core.tasks import Landmark
from cwbc.reports.charts import Chart, Curve, EstimateRow, Layer, Panel, Shade, Stairs
from cwbc.reports.looks import shortened
from cwbc.reports.scales import Label, PixelScale, place_labels
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

    @property
    def narrow(self) -> bool:
        """Whether it is for phones."""
        return self.width < 500


WIDE, NARROW = Size(760, 400), Size(360, 330)


class DrawnSeries(NamedTuple):
    """What belongs to one name: the steps of its paths, by their class in the style sheet."""

    name: str
    look: int | None
    paths: dict[str, str]


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

    @property
    def diagonal(self) -> list[float]:
        """The ends of the line on which both coordinates are equal."""
        return [scale(v) for v in (self.across.low, self.across.high) for scale in (self.across, self.up)]

    def shaded(self, shade: Shade) -> tuple[float, float]:
        """Where a shade begins, and its width."""
        ends = (min(max(end, self.across.low), self.across.high) for end in (shade.start, shade.end))
        start, end = map(self.across, ends)
        return start, end - start

    def series(self, layer: Layer, look: int | None) -> DrawnSeries:
        """A layer as paths."""
        match layer:
            case Curve():
                return DrawnSeries(layer.name, look, self._curve(layer, look))
            case Stairs():
                kind = "bars" if layer.filled or look is None else "steps"
                return DrawnSeries(layer.name, look, {kind: self._stairs(layer)})
            case EstimateRow():
                row = self.panel.layers.index(layer) + 0.5
                ends = [(self.across(x), self.up(row)) for x in (layer.low, layer.high)]
                at = marker(look, self.across(layer.value), self.up(row))
                return DrawnSeries(layer.method, look, {"reach": polyline(ends), "marks": at})

    def _curve(self, curve: Curve, look: int | None) -> dict[str, str]:
        drawn = curve.spanning((self.across.low, self.across.high))
        points = [(self.across(x), self.up(y)) for x, y in zip(drawn.x, drawn.value, strict=True)]
        marks = "".join(marker(look, x, y) for x, y in points) if curve.is_marked else ""
        return {"band": self._band(drawn), "line": polyline(points), "marks": marks}

    def _band(self, curve: Curve) -> str:
        floor = self.up.low if self.up.logarithmic else -math.inf
        known = np.isfinite(curve.low) & np.isfinite(curve.high)
        steps = []
        for there, group in itertools.groupby(range(len(known)), key=lambda i: bool(known[i])):
            if there:
                part = list(group)
                upper = [(self.across(curve.x[i]), self.up(curve.high[i])) for i in part]
                lower = [(self.across(curve.x[i]), self.up(max(curve.low[i], floor))) for i in part]
                steps.append(polyline([*upper, *reversed(lower)]) + "z")
        return "".join(steps)

    def _stairs(self, stairs: Stairs) -> str:
        ends = [0.0, *stairs.heights, 0.0]
        return polyline(
            (self.across(edge), self.up(height))
            for i, edge in enumerate(stairs.edges)
            for height in (ends[i], ends[i + 1])
        )


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
            name: [*(round(v, 6) for v in (scale.start, scale.end, scale.low, scale.high)), scale.logarithmic]
            for name, scale in (("across", across), ("up", up))
        }

    @property
    def series(self) -> list[list[DrawnSeries]]:
        """Those of every frame."""
        looks = self.chart.looks
        return [
            [
                frame.series(each, looks.get(each.method if isinstance(each, EstimateRow) else each.name))
                for each in frame.panel.layers
            ]
            for frame in self.frames
        ]

    def has_room(self, shade: Shade) -> bool:
        """Whether the name of a shade fits into the lowest frame, beside the bars."""
        _, width = self.frames[-1].shaded(shade)
        return len(self.frames) > 1 and shade.look is None and width >= CHARACTER * len(shade.name) + 16


def drawing(chart: Chart, size: Size) -> Drawing:
    """The chart laid out in a size."""
    return _rows(chart, size) if chart.estimates else _panels(chart, size)


def _panels(chart: Chart, size: Size) -> Drawing:
    """Panels above each other; the landmarks' labels stand above all of them."""
    first, lower = chart.panels[0], chart.panels[1:]
    size = Size(size.width, size.height + len(lower) * (70 if size.narrow else 90))
    right = first.right if not size.narrow else None
    ticks = PixelScale(*first.up.ends, 1, 0, first.up.logarithmic).ticks(first.up.ticks)
    left = 12 + CHARACTER * max((len(words) for _, words in ticks), default=1)
    across = PixelScale(
        *chart.across.ends, left, size.width - (46 if right else 14), chart.across.logarithmic
    )
    wanted = [(across(m.target), CHARACTER * max(len(m.label), len(amount(m.target)))) for m in chart.marks]
    labels = place_labels(wanted, 0, size.width)
    top = 26 + TIER * (1 + max((label.tier for label in labels), default=-1))
    frames: list[Frame] = []
    floor = size.height - 44.0
    for panel in reversed(lower):
        roof = floor - (46 if size.narrow else 58)
        frames.insert(0, Frame(panel, across, PixelScale(*panel.up.ends, floor, roof)))
        floor = roof - 30
    frames.insert(0, Frame(first, across, PixelScale(*first.up.ends, floor, top, first.up.logarithmic)))
    marks = list(zip(chart.marks, labels, strict=bool(labels)))
    return Drawing(chart, size, frames, marks, PixelScale(*right.ends, floor, top) if right else None)


def _rows(chart: Chart, size: Size) -> Drawing:
    """A row for each interval; names stand above them where there is no room beside."""
    size = Size(size.width, 60 + (44 if size.narrow else 32) * len(chart.estimates))
    longest = max(len(shortened(each.name, 32)) for each in chart.estimates)
    left = 10.0 if size.narrow else min(240.0, 14 + CHARACTER * 1.1 * longest)
    across = PixelScale(*chart.across.ends, left, size.width - 14, chart.across.logarithmic)
    rows = PixelScale(*chart.panels[0].up.ends, 10, size.height - 50)
    return Drawing(chart, size, [Frame(chart.panels[0], across, rows)])


def marker(look: int | None, x: float, y: float) -> str:
    """The steps of a path that draw a look's marker at a point; none where it is not finite."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return ""
    return f"M{pixel(x)} {pixel(y)}{_MARKERS[(look or 0) % len(_MARKERS)]}"


def polyline(points: Iterable[tuple[float, float]]) -> str:
    """The steps of a path through points; one that is not finite leaves a gap."""
    steps, letter = [], "M"
    for x, y in points:
        if not (math.isfinite(x) and math.isfinite(y)):
            letter = "M"
            continue
        steps.append(f"{letter}{pixel(x)} {pixel(y)}")
        letter = "L"
    return "".join(steps)


def pixel(value: float) -> str:
    """A coordinate to a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")
