"""A page as one HTML file that needs nothing else: to be mailed, archived, printed and read on a phone."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cwbc.reports.chart_data import page_data
from cwbc.reports.charts import Chart
from cwbc.reports.looks import classes, shortened, themes
from cwbc.reports.svg import NARROW, WIDE, drawing, marker, pixel
from cwbc.reports.tables import ReportTable
from cwbc.system.formatting import amount


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """Plain words."""

    words: str


@dataclasses.dataclass(frozen=True)
class Facts:
    """Names and their values; a name without a value is left out."""

    values: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Links:
    """Files beside the page, and what each is."""

    files: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Folded:
    """Blocks that are shown when their summary is clicked."""

    summary: str
    blocks: Sequence[Block]


class ShownCase(NamedTuple):
    """A dataset's verdict on a claim."""

    verdict: str  # "supported", "contradicted" or anything else
    dataset: str
    numbers: str


class ShownClaim(NamedTuple):
    """A claim with its verdict."""

    verdict: str
    text: str
    reason: str
    cases: Sequence[ShownCase] = ()


@dataclasses.dataclass(frozen=True)
class Claims:
    """Claims with their verdicts."""

    claims: Sequence[ShownClaim]


Block = Paragraph | Facts | Links | Folded | Claims | Chart | ReportTable


_MACROS = {
    Paragraph: "paragraph",
    Facts: "facts",
    Links: "links",
    Folded: "folded",
    Claims: "claims",
    Chart: "chart",
    ReportTable: "table",
}


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a page: blocks under a heading."""

    heading: str
    blocks: Sequence[Block]


@dataclasses.dataclass(frozen=True)
class Page:
    """A page as a value."""

    title: str  # of the window
    kicker: str  # the kind of page and its subject
    headline: str
    lead: str  # what one must know to read the numbers
    sections: Sequence[Section]
    caveats: Sequence[str] = ()  # of the headline
    warnings: Sequence[str] = ()  # shown before these
    finding: str = ""  # where the headline is what follows from it

    def to_html(self) -> str:
        """The document, with style and script inside."""
        style, script = _assets()
        template = _environment().get_template("page.html")
        return template.render(page=self, style=style, script=script, policy=_policy(script))


def html(block: Block) -> Markup:
    """A block as markup, by the template of its kind."""
    macros = _environment().get_template("blocks.html").module
    return Markup(getattr(macros, _MACROS[type(block)])(block))


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
    environment.filters |= {"html": html, "data": _data, "json": json.dumps}
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
