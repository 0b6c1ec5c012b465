"""The rectangles that charts are drawn in: scales, ticks, curves with bands, steps."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cwbc.intervals import Array
from cwbc.reporting import svg
from cwbc.reporting.looks import classes, marker
from cwbc.reporting.scales import Scale

CHARACTER = 6.4  # the width of one in pixels, about; only browsers know fonts


class Size(NamedTuple):
    """The pixels of a drawing; a page carries two and shows the one that fits."""

    width: int
    height: int

    @property
    def narrow(self) -> bool:
        return self.width < 500


@dataclasses.dataclass(frozen=True)
class Curve:
    """A named line: values, and the ends of their intervals; NaN where there are none."""

    name: str
    x: Array  # [point]
    value: Array  # [point]
    low: Array  # [point]
    high: Array  # [point]


@dataclasses.dataclass(frozen=True)
class Panel:
    """A rectangle with a scale along its bottom and one along its left side."""

    across: Scale
    up: Scale

    def inside(self, *content: str) -> str:
        """Content that is cut off at the edges."""
        # A drawing within the drawing needs no clip path, whose name would have to be the page's only one.
        left, top = self.across.start, self.up.end
        width, height = self.across.end - left, self.up.start - top
        box = " ".join(map(svg.number, (left, top, width, height)))
        return svg.element("svg", *content, x=left, y=top, width=width, height=height, viewBox=box)

    def horizontal(self, most: int) -> str:
        """Lines across at round values, with these beside them."""
        parts = []
        for value, words in self.up.ticks(most):
            y = self.up(value)
            parts.append(svg.line(self.across.start, y, self.across.end, y, "grid"))
            parts.append(svg.text(self.across.start - 7, y + 4, words, class_="tick end"))
        return "".join(parts)

    def bottom(self, title: str = "", written: bool = True, lines: bool = False) -> str:
        """The lower edge with its ticks, and below them the values and what they are."""
        start, end, floor = self.across.start, self.across.end, self.up.start
        parts = [svg.line(start, floor, end, floor, "axis")]
        for value, words in self.across.ticks(max(2, int((end - start) / 62))):
            x = self.across(value)
            if lines:
                parts.append(svg.line(x, floor, x, self.up.end, "grid"))
            parts.append(svg.line(x, floor, x, floor + 4, "axis"))
            if written:
                parts.append(svg.text(x, floor + 17, words, class_="tick middle"))
        if title:
            parts.append(svg.text((start + end) / 2, floor + 35, title, class_="title middle"))
        return "".join(parts)

    def curve(self, curve: Curve, look: int, markers: bool) -> str:
        """A line with its band and, where points are few, a marker on each."""
        across, up = [self.across(x) for x in curve.x], [self.up(y) for y in curve.value]
        points = list(zip(across, up, strict=True))
        marks = "".join(marker(look, x, y) for x, y in points if markers and math.isfinite(y))
        parts = (
            svg.path("band", self._band(curve)),
            svg.path("line", svg.polyline(points)),
            svg.path("marks", marks),
        )
        return series(curve.name, look, *parts)

    def _band(self, curve: Curve) -> str:
        floor = self.up.low if self.up.logarithmic else -math.inf
        known = np.isfinite(curve.low) & np.isfinite(curve.high)
        steps = []
        for there, group in itertools.groupby(range(len(known)), key=lambda i: bool(known[i])):
            if there:
                part = list(group)
                upper = [(self.across(curve.x[i]), self.up(curve.high[i])) for i in part]
                lower = [(self.across(curve.x[i]), self.up(max(curve.low[i], floor))) for i in part]
                steps.append(svg.polyline([*upper, *reversed(lower)]) + "z")
        return "".join(steps)

    def stairs(self, edges: Sequence[float], heights: Sequence[float]) -> str:
        """The steps of a path around the bars of a histogram."""
        ends = [0.0, *heights, 0.0]
        corners = [
            (self.across(edge), self.up(height))
            for i, edge in enumerate(edges)
            for height in (ends[i], ends[i + 1])
        ]
        return svg.polyline(corners)


def series(name: str, look: int | None, *content: str) -> str:
    """What belongs to one method: shown and hidden by its name."""
    return svg.element("g", *content, class_=f"series {classes(look)}", data_series=name)


def margin(scale: Scale, most: int) -> float:
    """The room that a scale's values need beside it."""
    return 12 + CHARACTER * max((len(words) for _, words in scale.ticks(most)), default=1)
