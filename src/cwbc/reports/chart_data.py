"""The numbers of a chart for its page: what the pointer reads at every stop, and the rows of its CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from cwbc.reports.charts import Chart, Curve, EstimateRow, Layer, Panel, Stairs, bins
from cwbc.reports.looks import classes
from cwbc.reports.tables import csv_text
from cwbc.results.sweeps import same_target

Reading = list[float | str]  # where the dot goes, and in words: the value, its interval, more
Stops = list[tuple[float, str]]  # places along an axis, and their headings


def page_data(chart: Chart) -> dict[str, Any]:
    """What the page's script needs to know of a chart."""
    stops, readings = _rows(chart) if chart.estimates else _columns(chart)
    return {
        "file": re.sub(r"[^\w.+-]+", "-", chart.file or chart.title.lower()),
        "along": "up" if chart.estimates else "across",
        "stops": [[_rounded(place), heading] for place, heading in stops],
        "series": [
            {"name": name, "look": classes(chart.looks[name]), "values": values}
            for name, values in readings.items()
        ],
        "csv": to_csv(chart),
    }


def to_csv(chart: Chart) -> str:
    """The layers of the first panel, with the names of the columns first."""
    across, up = chart.across.title, chart.panels[0].up.title
    rows: list[Sequence[object]] = []
    columns: Sequence[str] = ()
    for layer in chart.panels[0].layers:
        match layer:
            case Curve():
                columns = ("method", across, up, "low", "high")
                points = zip(layer.x, layer.value, layer.low, layer.high, strict=True)
                rows += [(layer.name, *map(_finite, point)) for point in points]
            case Stairs():
                columns = ("series", "from", "to", up)
                rows += [
                    (layer.name, low, high, _finite(height))
                    for (low, high), height in zip(bins(layer), layer.heights, strict=True)
                ]
            case EstimateRow():
                columns = ("method", across, "low", "high", "published")
                numbers = map(_finite, (layer.value, layer.low, layer.high))
                rows.append((layer.name, *numbers, layer.published))
    return csv_text([columns, *rows])


def _columns(chart: Chart) -> tuple[Stops, dict[str, list[Reading | None]]]:
    """The stops along the horizontal axis, and what every layer has there."""
    title, written = chart.across.title, chart.across.written
    points = {layer.name: _points(chart, layer) for layer in chart.panels[0].layers}
    places = {x: words for of in points.values() for x, (words, _) in of.items() if x is not None}
    places = places or {mark.target: written(mark.target) for mark in chart.marks}
    stops = []
    for place, words in sorted(places.items()):
        named = [mark.label for mark in chart.marks if same_target(mark.target, place)]
        stops.append((place, " · ".join([f"{title} {words}", *named])))
    readings = {
        name: [of.get(place, of.get(None, ("", None)))[1] for place, _ in stops]
        for name, of in points.items()
    }
    return stops, readings


def _points(chart: Chart, layer: Layer) -> dict[float | None, tuple[str, Reading | None]]:
    """The places of a layer, each in words and with its reading; None stands for every place."""
    panel, written = chart.panels[0], chart.across.written
    match layer:
        case Curve():
            readings = [
                _reading(panel.up.written, value, low, high, _on_the_right(panel, value))
                for value, low, high in zip(
                    layer.value.tolist(), layer.low.tolist(), layer.high.tolist(), strict=True
                )
            ]
            if layer.is_flat:
                return {None: ("", readings[0])}
            return {x: (written(x), each) for x, each in zip(layer.x.tolist(), readings, strict=True)}
        case Stairs():
            return {
                (low + high) / 2: (
                    f"{written(low)} to {written(high)}",
                    [_rounded(height), panel.up.written(height)],
                )
                for (low, high), height in zip(bins(layer), layer.heights, strict=True)
            }
        case EstimateRow():
            return {}


def _rows(chart: Chart) -> tuple[Stops, dict[str, list[Reading | None]]]:
    """The rows of a chart of intervals, and what every method has there."""
    title, written = chart.across.title, chart.across.written
    stops = [(i + 0.5, f"{title}, {e.name}" if e.of else title) for i, e in enumerate(chart.estimates)]
    readings: dict[str, list[Reading | None]] = {method: [None] * len(stops) for method in chart.looks}
    for row, each in enumerate(chart.estimates):
        published = [] if each.published is None else [f"published {written(each.published)}"]
        readings[each.method][row] = _reading(written, each.value, each.low, each.high, published)
    return stops, readings


def _reading(
    written: Callable[[float], str], value: float, low: float, high: float, more: Sequence[str]
) -> Reading | None:
    if not math.isfinite(value):
        return None
    interval = f"{written(low)} to {written(high)}" if math.isfinite(low + high) else ""
    return [_rounded(value), written(value), interval, *more]


def _on_the_right(panel: Panel, value: float) -> list[str]:
    """A value in the unit of the right axis, where there is one."""
    if panel.right is None:
        return []
    (low, high), (other_low, other_high) = panel.up.ends, panel.right.ends
    return [panel.right.written(other_low + (value - low) / (high - low) * (other_high - other_low))]


def _finite(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
