"""A drawing becomes a block of a page: with a legend to click, values to hover over, and files to save."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Literal

from cwbc.reporting import svg
from cwbc.reporting.looks import classes, marker
from cwbc.reporting.panels import Panel, Size

WIDE, NARROW = Size(760, 400), Size(360, 330)

Value = tuple[float, *tuple[str, ...]]  # where the dot goes, and in words: the value, its interval, more
Looks = Mapping[str, int | None]  # by name; None is the dataset's


@dataclasses.dataclass(frozen=True)
class Hovering:
    """What a chart tells at each of its stops, the places along one of its sides."""

    stops: Sequence[tuple[float, str]]  # [stop]
    values: Mapping[str, Sequence[Value | None]]  # [stop], by name
    along: Literal["across", "up"] = "across"


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart with all that its block needs; `draw` is asked for every size."""

    title: str
    draw: Callable[[Size], str]
    hovering: Hovering
    looks: Looks  # of every name in the legend
    rows: Iterable[Sequence[object]]  # of its CSV, the names of the columns first
    keys: Mapping[str, str] = dataclasses.field(default_factory=dict)  # drawings of what else is to be seen
    caption: str = ""
    file: str = ""  # what its CSV and PNG are called; by default after the title
    quiet: bool = False  # without legend and caption, where one legend serves many charts

    def to_html(self) -> str:
        """The block: title, drawings for wide and narrow places, legend, caption."""
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        tools = "".join(
            f'<button type="button" data-get="{kind}" title="Save as {kind.upper()}">{kind.upper()}</button>'
            for kind in ("csv", "png")
        )
        return (
            f'<figure class="chart{" quiet" * self.quiet}"><div class="head"><h3>{escape(self.title)}</h3>'
            f'<span class="tools">{tools}</span></div>\n'
            f'<div class="drawings">{self.draw(WIDE)}\n{self.draw(NARROW)}</div>\n'
            f"{legend(self.looks, self.keys)}{caption}\n"
            f'<script type="application/json">{self._data()}</script></figure>'
        )

    def _data(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.rows)
        data = {
            "file": re.sub(r"[^\w.+-]+", "-", self.file or self.title.lower()),
            "along": self.hovering.along,
            "stops": [[_rounded(place), words] for place, words in self.hovering.stops],
            "series": [
                {"name": name, "look": classes(self.looks[name]), "values": [_packed(v) for v in values]}
                for name, values in self.hovering.values.items()
            ],
            "csv": text.getvalue(),
        }
        # Nothing within may end the element around it.
        return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def drawing(title: str, size: Size, panel: Panel, *content: str) -> str:
    """The picture itself; `panel` is where hovering happens."""
    scales = {
        name: [round(v, 6) for v in (scale.start, scale.end, scale.low, scale.high)] + [scale.logarithmic]
        for name, scale in (("across", panel.across), ("up", panel.up))
    }
    return svg.element(
        "svg",
        *content,
        class_="narrow" if size.narrow else "wide",
        viewBox=f"0 0 {size.width} {size.height}",
        role="img",
        tabindex=0,
        aria_label=f"{title}; arrow keys read the values",
        data_scales=json.dumps(scales),
    )


def legend(looks: Looks, keys: Mapping[str, str] | None = None) -> str:
    """Buttons that show and hide what has these names, in every chart and table of the page."""
    items = [
        f'<li><button type="button" aria-pressed="true" data-toggle="{escape(name)}" '
        f'title="Click to hide or show; double-click to show nothing else">'
        f"{swatch(look)}<span>{escape(name)}</span></button></li>"
        for name, look in looks.items()
    ]
    items += [
        f'<li class="key"><svg class="swatch" viewBox="0 0 26 12" aria-hidden="true">{drawn}</svg>'
        f"<span>{escape(words)}</span></li>"
        for words, drawn in (keys or {}).items()
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'


def swatch(look: int | None) -> str:
    """A piece of a line as it looks in the charts."""
    if look is None:
        drawn = svg.element("rect", x=5, y=1, width=16, height=10, class_="bars")
    else:
        drawn = svg.line(1, 6, 25, 6, "line") + svg.path("marks", marker(look, 13, 6))
    return (
        f'<svg class="swatch {classes(look)}" viewBox="0 0 26 12" aria-hidden="true">'
        f'<g class="series">{drawn}</g></svg>'
    )


def _packed(value: Value | None) -> list[float | str] | None:
    if value is None or not math.isfinite(value[0]):
        return None
    place, *words = value
    return [_rounded(place), *words]


def _rounded(place: float) -> float:
    return float(f"{place:.6g}")
