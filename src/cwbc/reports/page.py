"""A page as one HTML file that needs nothing else: to be mailed, archived, printed and read on a phone."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cwbc.reports.chart import Chart, Curve, EstimateRow, Layer, Stairs
from cwbc.reports.looks import classes, shortened, themes
from cwbc.reports.svg import NARROW, WIDE, drawing, marker, pixel
from cwbc.reports.tables import csv_text
from cwbc.results.sweeps import same_target
from cwbc.system.formatting import amount

Reading = list[float | str]  # where the dot goes, and in words: the value, its interval, more
Stops = list[tuple[float, str]]  # places along an axis, and their headings
Sections = Mapping[str, Sequence[Markup]]  # blocks by the heading that they stand under


def block(kind: str, *content: object) -> Markup:
    """Content as markup, by the macro of its kind in blocks.html: a chart, a table, facts, links, ..."""
    return Markup(getattr(_environment().get_template("blocks.html").module, kind)(*content))


def page_html(
    title: str,  # of the window
    kicker: str,  # the kind of page and its subject
    headline: str,
    lead: str,  # what one must know to read the numbers
    sections: Sections,
    caveats: Sequence[str] = (),  # of the headline
    warnings: Sequence[str] = (),  # shown before these
    finding: str = "",  # where the headline is what follows from it
) -> str:
    """The document, with style and script inside."""
    given = dict(locals())
    style, script = _assets()
    template = _environment().get_template("page.html")
    return template.render(**given, style=style, script=script, policy=_policy(script))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("cwbc.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"unbroken": _unbroken, "anchor": _anchor, "amount": amount}
    environment.filters |= {"shortened": shortened, "px": pixel, "look": classes}
    environment.filters |= {"data": _data, "json": json.dumps}
    environment.globals |= {"drawing": drawing, "marker": marker, "page_data": page_data}
    environment.globals |= {"WIDE": WIDE, "NARROW": NARROW}
    return environment


def _unbroken(words: str) -> Markup:
    """Words in which options of commands are not broken at their hyphens."""
    return Markup(re.sub(r"(--[\w-]+)", r'<span class="option">\1</span>', str(escape(words))))


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _data(values: object) -> Markup:
    """JSON in which nothing ends the element around it."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


@cache
def _assets() -> tuple[Markup, Markup]:
    here = files("cwbc.reports")
    style, script = (here.joinpath(name).read_text("utf-8") for name in ("style.css", "script.js"))
    return Markup(f"{themes()}\n{style}"), Markup(script)


def _policy(script: str) -> str:
    """Nothing is fetched, and no script runs but ours."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


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
                rows += [(layer.name, low, high, _finite(height)) for low, high, height in layer.bins]
            case EstimateRow():
                columns = ("method", across, "low", "high", "published")
                numbers = (layer.value, layer.low, layer.high, layer.published)
                rows.append((layer.title, *map(_finite, numbers)))
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
    if isinstance(layer, Stairs):
        return {
            (low + high) / 2: (
                f"{written(low)} to {written(high)}",
                [_rounded(height), panel.up.written(height)],
            )
            for low, high, height in layer.bins
        }
    assert isinstance(layer, Curve)  # estimates stand in rows
    found: dict[float | None, tuple[str, Reading | None]] = {}
    columns = (each.tolist() for each in (layer.x, layer.value, layer.low, layer.high))
    for x, *ends in zip(*columns, strict=True):
        reading = _reading(panel.up.written, *ends)
        if reading and panel.right:  # the same value in the unit of the right axis
            (low, high), (other_low, other_high) = panel.up.limits, panel.right.limits
            fraction = (ends[0] - low) / (high - low)
            reading.append(panel.right.written(other_low + fraction * (other_high - other_low)))
        found[None if layer.is_flat else x] = (written(x), reading)
    return found


def _rows(chart: Chart) -> tuple[Stops, dict[str, list[Reading | None]]]:
    """The rows of a chart of intervals, and what every method has there."""
    title, written = chart.across.title, chart.across.written
    stops = [(i + 0.5, f"{title}, {e.label}" if e.label else title) for i, e in enumerate(chart.estimates)]
    readings: dict[str, list[Reading | None]] = {name: [None] * len(stops) for name in chart.looks}
    for row, each in enumerate(chart.estimates):
        reading = readings[each.name][row] = _reading(written, each.value, each.low, each.high)
        if reading and math.isfinite(each.published):
            reading.append(f"published {written(each.published)}")
    return stops, readings


def _reading(written: Callable[[float], str], value: float, low: float, high: float) -> Reading | None:
    if not math.isfinite(value):
        return None
    interval = f"{written(low)} to {written(high)}" if math.isfinite(low + high) else ""
    return [_rounded(value), written(value), interval]


def _finite(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
