"""Charts as blocks of a page: lines with bands, histograms, one interval per method."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cwbc.intervals import Array
from cwbc.reporting import svg
from cwbc.reporting.figures import padded, shortened
from cwbc.reporting.interactive import Chart, Hovering, Value, drawing
from cwbc.reporting.looks import marker
from cwbc.reporting.panels import CHARACTER, Curve, Panel, Size, margin, series
from cwbc.reporting.scales import Scale
from cwbc.wording import amount

FEW = 30  # points that have room for a marker each


@dataclasses.dataclass(frozen=True)
class Axis:
    """What a side of a chart shows."""

    title: str
    logarithmic: bool = False
    limits: tuple[float, float] | None = None  # by default just around what is drawn
    written: Callable[[float], str] = amount


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number of a method; NaN ends where there is no interval, `published` what others found."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    published: float | None = None
    of: str = ""  # the method, where it has several numbers

    @property
    def method(self) -> str:
        return self.of or self.name


def line_chart(
    title: str,
    curves: Sequence[Curve],
    across: Axis,
    up: Axis,
    names: Sequence[str] = (),
    caption: str = "",
) -> Chart:
    """Lines with bands, such as losses or performance profiles.

    Args:
        names: every name of the page, in order: a method looks alike in all charts that are given the same.
    """
    looks = looks_of([curve.name for curve in curves], names)
    values = [ends for curve in curves for ends in (curve.value, curve.low, curve.high)]
    along = limits(across, [curve.x for curve in curves], 0.01)
    beside = limits(up, values, 0.04)

    def draw(size: Size) -> str:
        vertical = Scale(*beside, size.height - 44, 26, up.logarithmic)
        left = margin(vertical, 6)
        panel = Panel(Scale(*along, left, size.width - 14, across.logarithmic), vertical)
        lines = [panel.curve(curve, looks[curve.name], len(curve.x) <= FEW) for curve in curves]
        head = svg.text(0, 12, up.title, class_="title")
        frame = panel.horizontal(6) + panel.bottom(across.title)
        return drawing(title, size, panel, head, frame, panel.inside(*lines))

    hovering = over_curves(curves, lambda x: f"{across.title} {across.written(x)}", up.written)
    rows = curve_rows(curves, "method", across.title, up.title)
    return Chart(title, draw, hovering, looks, rows, caption=caption)


def histogram_chart(
    title: str,
    edges: Sequence[float],  # [bin + 1]
    held: Sequence[float],  # [bin]: the shares of the data
    drawn: Mapping[str, Sequence[float]],  # [bin] by name: the shares of what is drawn from it
    across: Axis,
    looks: Mapping[str, int],
    caption: str = "",
) -> Chart:
    """What data holds, as bars, and what is drawn from it, as outlines; all in shares."""
    shares = {"the dataset": held, **drawn}
    looks_of_all: dict[str, int | None] = {"the dataset": None, **looks}
    top = 105 * max(max(values) for values in shares.values())
    bins = list(itertools.pairwise(edges))

    def draw(size: Size) -> str:
        vertical = Scale(0, top, size.height - 44, 26)
        horizontal = Scale(*padded(np.array(edges), 0.01), margin(vertical, 6), size.width - 14)
        panel = Panel(horizontal, vertical)
        parts = [
            series(
                name,
                looks_of_all[name],
                svg.path(
                    "bars" if looks_of_all[name] is None else "steps",
                    panel.stairs(edges, [100 * v for v in values]),
                ),
            )
            for name, values in shares.items()
        ]
        head = svg.text(0, 12, "share, %", class_="title")
        frame = panel.horizontal(6) + panel.bottom(across.title)
        return drawing(title, size, panel, head, frame, panel.inside(*parts))

    stops = [
        ((low + high) / 2, f"{across.title} {across.written(low)} to {across.written(high)}")
        for low, high in bins
    ]
    values = {name: [(100 * v, _share(v)) for v in shares[name]] for name in shares}
    rows: list[Sequence[object]] = [("drawn", "from", "to", "share")]
    rows += [
        (name, low, high, share)
        for name, of_bins in shares.items()
        for (low, high), share in zip(bins, of_bins, strict=True)
    ]
    return Chart(title, draw, Hovering(stops, values), looks_of_all, rows, caption=caption)


def interval_chart(
    title: str,
    estimates: Sequence[Estimate],
    across: Axis,
    names: Sequence[str] = (),
    caption: str = "",
) -> Chart:
    """Numbers of methods with their intervals, and beside them what was published."""
    looks = looks_of([estimate.method for estimate in estimates], names)
    published = [e.published for e in estimates if e.published is not None]
    ends = np.array([(e.value, e.low, e.high) for e in estimates])
    along = limits(across, [ends, np.array(published)], 0.04)

    def draw(size: Size) -> str:
        apart = 44 if size.narrow else 32  # names stand above their intervals where there is no room beside
        size = Size(size.width, 60 + apart * len(estimates))
        label = max(CHARACTER * 1.1 * len(shortened(e.name, 32)) for e in estimates)
        left = 10.0 if size.narrow else min(240.0, 14 + label)
        rows = Scale(0, len(estimates), 10, size.height - 50)
        panel = Panel(Scale(*along, left, size.width - 14), Scale(0, 1, size.height - 50, 10))
        drawn = [_row(panel, e, looks[e.method], rows(i + 0.5), size) for i, e in enumerate(estimates)]
        hovered = Panel(panel.across, Scale(0, len(estimates), 10, size.height - 50))
        return drawing(title, size, hovered, panel.bottom(across.title, lines=True), *drawn)

    stops = [
        (i + 0.5, f"{across.title}, {e.name}" if e.of else across.title) for i, e in enumerate(estimates)
    ]
    values: dict[str, list[Value | None]] = {
        method: [_estimate(e, across.written) if e.method == method else None for e in estimates]
        for method in looks
    }
    rows: list[Sequence[object]] = [("method", across.title, "low", "high", "published")]
    rows += [(e.name, *_finite(e.value, e.low, e.high), e.published) for e in estimates]
    keys = {"published": svg.line(13, 0, 13, 12, "published")} if published else {}
    return Chart(title, draw, Hovering(stops, values, "up"), looks, rows, keys, caption)


def _row(panel: Panel, estimate: Estimate, look: int, y: float, size: Size) -> str:
    ends = svg.polyline([(panel.across(estimate.low), y), (panel.across(estimate.high), y)])
    at = panel.across(estimate.value)
    parts = [
        svg.text(0, y - 11, shortened(estimate.name, 50), class_="label")
        if size.narrow
        else svg.text(panel.across.start - 10, y + 4, shortened(estimate.name, 32), class_="label end"),
        svg.path("reach", ends),
        svg.path("marks", marker(look, at, y) if math.isfinite(at) else ""),
    ]
    if estimate.published is not None:
        x = panel.across(estimate.published)
        parts.append(svg.line(x, y - 7, x, y + 7, "published"))
    return series(estimate.method, look, *parts)


def _estimate(estimate: Estimate, written: Callable[[float], str]) -> Value:
    others = () if estimate.published is None else (f"published {written(estimate.published)}",)
    interval = reach(estimate.low, estimate.high, written)
    return estimate.value, written(estimate.value), interval, *others


def looks_of(drawn: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    """The looks of what is drawn: places among the names of the page, the others after them."""
    every = list(dict.fromkeys([*names, *drawn]))
    return {name: every.index(name) for name in drawn}


def limits(axis: Axis, values: Sequence[Array], share: float) -> tuple[float, float]:
    """The ends of an axis: as given, or around the values with a little room."""
    if axis.limits is not None:
        return axis.limits
    known = np.concatenate([np.ravel(v) for v in values]) if values else np.empty(0)
    known = known[np.isfinite(known) & (known > 0 if axis.logarithmic else True)]
    if known.size == 0:
        return (0.1, 1.0) if axis.logarithmic else (0.0, 1.0)
    if not axis.logarithmic:
        return padded(known, share)
    low, high = padded(np.log10(known), share)
    return 10**low, 10**high


def over_curves(
    curves: Sequence[Curve],
    heading: Callable[[float], str],
    written: Callable[[float], str],
    notes: Callable[[float], tuple[str, ...]] = lambda value: (),
) -> Hovering:
    """What lines tell at every place where one of them has a point."""
    places = sorted({float(x) for curve in curves for x in curve.x})
    values: dict[str, list[Value | None]] = {}
    for curve in curves:
        known: dict[float, Value] = {}
        for x, value, low, high in zip(curve.x, curve.value, curve.low, curve.high, strict=True):
            words: tuple[str, ...] = (written(value), reach(low, high, written), *notes(float(value)))
            known[float(x)] = (float(value), *words)
        values[curve.name] = [known.get(x) for x in places]
    return Hovering([(x, heading(x)) for x in places], values)


def reach(low: float, high: float, written: Callable[[float], str]) -> str:
    """An interval in words, or nothing."""
    return f"{written(low)} to {written(high)}" if math.isfinite(low) and math.isfinite(high) else ""


def curve_rows(curves: Sequence[Curve], *columns: str) -> list[Sequence[object]]:
    """Curves as the rows of a CSV."""
    rows: list[Sequence[object]] = [(*columns, "low", "high")]
    for curve in curves:
        rows += [
            (curve.name, *_finite(*map(float, point)))
            for point in zip(curve.x, curve.value, curve.low, curve.high, strict=True)
        ]
    return rows


def _finite(*values: float) -> list[float | None]:
    return [float(f"{value:.7g}") if math.isfinite(value) else None for value in values]


def _share(value: float) -> str:
    return f"{100 * value:.3g}\u00a0%"
