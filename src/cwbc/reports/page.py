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
from cwbc.reports.method_styles import COLOURS, COLOURS_ON_DARK, DASHES, classes, shortened
from cwbc.reports.svg import NARROW, WIDE, drawing, marker, pixel
from cwbc.results.sweeps import same_target
from cwbc.system.formatting import amount, csv_text

Reading = list[float | str]  # where the dot goes, and in words: the value, its interval, more
Points = dict[float | None, tuple[str, Reading | None]]  # by place, where None stands for every one
Sections = Mapping[str, Sequence[Markup]]  # blocks by the heading that they stand under


def block(kind: str, *content: object) -> Markup:
    """Content as markup, by the macro of its kind in blocks.html: a chart, a table, facts, links, ..."""
    return Markup(getattr(_environment().get_template("blocks.html").module, kind)(*content))


def page_html(report: object, sections: Sections) -> str:
    """The document, with style and script inside; from the report itself it has what stands at the top."""
    script = files("cwbc.reports").joinpath("script.js").read_text("utf-8")
    digest = _base64(hashlib.sha256(script.encode()).digest())
    template = _environment().get_template("page.html")
    return template.render(report=report, sections=sections, script=Markup(script), digest=digest)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("cwbc.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"unbroken": _unbroken, "anchor": _anchor, "amount": amount, "px": pixel}
    environment.filters |= {
        "base64": _base64,
        "shortened": shortened,
        "look": classes,
        "data": _data,
        "json": json.dumps,
    }
    environment.globals |= {"drawing": drawing, "marker": marker, "page_data": page_data}
    environment.globals |= {"WIDE": WIDE, "NARROW": NARROW, "DASHES": DASHES}
    environment.globals["COLOURS"] = list(zip(COLOURS, COLOURS_ON_DARK, strict=True))
    return environment


def _unbroken(words: str) -> Markup:
    """Words in which options of commands are not broken at their hyphens."""
    return Markup(re.sub(r"(--[\w-]+)", r'<span class="option">\1</span>', str(escape(words))))


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _data(values: object) -> Markup:
    """JSON in which nothing ends the element around it."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def page_data(chart: Chart) -> dict[str, Any]:
    """What the page's script needs to know of a chart."""
    points: dict[str, Points] = {}
    for row, layer in enumerate(chart.panels[0].layers):
        points.setdefault(layer.name, {}).update(_points(chart, layer, row))
    title, written = chart.across.title, chart.across.written
    places = {x: heading for of in points.values() for x, (heading, _) in of.items() if x is not None}
    places = places or {mark.target: f"{title} {written(mark.target)}" for mark in chart.marks}
    stops = []
    for place, heading in sorted(places.items()):
        named = [mark.label for mark in chart.marks if same_target(mark.target, place)]
        stops.append([_rounded(place), " · ".join([heading, *named])])
    return {
        "file": re.sub(r"[^\w.+-]+", "-", chart.file or chart.title.lower()),
        "along": "up" if chart.estimates else "across",
        "stops": stops,
        "series": [
            {
                "name": name,
                "look": classes(chart.looks[name]),
                "values": [of.get(place, of.get(None, ("", None)))[1] for place in sorted(places)],
            }
            for name, of in points.items()
        ],
        "csv": to_csv(chart),
    }


def _points(chart: Chart, layer: Layer, row: int) -> Points:
    """The places of a layer along the axis that is read, each with its heading and its reading."""
    panel, title, written = chart.panels[0], chart.across.title, chart.across.written
    found: Points = {}
    match layer:
        case Stairs():
            for low, high, height in layer.bins:
                reading: Reading = [_rounded(height), panel.up.written(height)]
                found[(low + high) / 2] = f"{title} {written(low)} to {written(high)}", reading
        case Curve():
            for x, *ends in layer.points:
                shown = _reading(panel.up.written, *ends)
                if shown and panel.right:  # the same value in the unit of the right axis
                    (low, high), (other_low, other_high) = panel.up.limits, panel.right.limits
                    fraction = (ends[0] - low) / (high - low)
                    shown.append(panel.right.written(other_low + fraction * (other_high - other_low)))
                found[None if layer.is_flat else x] = f"{title} {written(x)}", shown
        case EstimateRow():
            shown = _reading(written, layer.value, layer.low, layer.high)
            found[row + 0.5] = f"{title}, {layer.label}" if layer.label else title, shown
    return found


def to_csv(chart: Chart) -> str:
    """The layers of the first panel, with the names of the columns first."""
    across, up = chart.across.title, chart.panels[0].up.title
    rows: list[Sequence[object]] = []
    columns: Sequence[str] = ()
    for layer in chart.panels[0].layers:
        match layer:
            case Curve():
                columns = ("method", across, up, "low", "high")
                rows += [(layer.name, *map(_finite, point)) for point in layer.points]
            case Stairs():
                columns = ("series", "from", "to", up)
                rows += [(layer.name, low, high, _finite(height)) for low, high, height in layer.bins]
            case EstimateRow():
                columns = ("method", across, "low", "high")
                rows.append((layer.title, *map(_finite, (layer.value, layer.low, layer.high))))
    return csv_text([columns, *rows])


def _reading(written: Callable[[float], str], value: float, low: float, high: float) -> Reading | None:
    if not math.isfinite(value):
        return None
    interval = f"{written(low)} to {written(high)}" if math.isfinite(low + high) else ""
    return [_rounded(value), written(value), interval]


def _finite(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
