"""A page as one HTML file that needs nothing else: to be mailed, archived, printed and read on a phone."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cwbc.reports.chart_data import page_data
from cwbc.reports.looks import classes, shortened, themes
from cwbc.reports.svg import NARROW, WIDE, drawing, marker, pixel
from cwbc.system.formatting import amount

Sections = Mapping[str, Sequence[Markup]]  # blocks by the heading that they stand under


def block(kind: str, *content: object) -> Markup:
    """Content as markup, by the macro of its kind in blocks.html: a chart, a table, facts, links, ..."""
    return Markup(getattr(_environment().get_template("blocks.html").module, kind)(*content))


def page_html(
    title: str,
    kicker: str,
    headline: str,
    lead: str,
    sections: Sections,
    caveats: Sequence[str] = (),
    warnings: Sequence[str] = (),
    finding: str = "",
) -> str:
    """The document, with style and script inside.

    Args:
        title: of the window.
        kicker: the kind of page and its subject.
        lead: what one must know to read the numbers.
        caveats: of the headline.
        warnings: shown before these.
        finding: where the headline is what follows from it.
    """
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
