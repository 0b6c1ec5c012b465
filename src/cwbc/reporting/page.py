"""A page as one HTML file that needs nothing else: to be mailed, archived, printed and read on a phone."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from cwbc.reporting.looks import themes

_FEW_SECTIONS = 3  # of a page that needs no contents
_HALF_MOON = (
    '<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M8 0a8 8 0 1 0 0 16a8 8 0 1 0 0-16z'
    'M8 1.6a6.4 6.4 0 1 1 0 12.8z" fill-rule="evenodd"/></svg>'
)


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a page: blocks of HTML under a heading."""

    heading: str
    blocks: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Page:
    """A page as a value."""

    title: str  # of the window
    kicker: str  # what kind of page about what
    headline: str  # the finding
    lead: str  # what one must know to read the numbers
    sections: Sequence[Section]
    caveats: Sequence[str] = ()  # of the headline
    warnings: Sequence[str] = ()  # shown before these
    finding: str = ""  # where the headline is what follows from it

    def to_html(self) -> str:
        """The document, with style and script inside."""
        style, script = _assets()
        sections = "\n".join(
            f'<section id="{_anchor(section.heading)}"><h2>{escape(section.heading)}</h2>\n'
            f"{_joined(section.blocks)}</section>"
            for section in self.sections
        )
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(self.title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<header>
<p class="kicker"><span>{escape(self.kicker)}</span>
<button type="button" id="theme" title="Light or dark" aria-label="Light or dark">{_HALF_MOON}</button></p>
<h1>{escape(self.headline)}</h1>
{_bullets("warnings", self.warnings)}{_bullets("caveats", self.caveats)}{self._finding()}
<p class="lead">{_unbroken(self.lead)}</p>
{self._contents()}</header>
{sections}
</main>
<div id="tip" role="status" hidden></div>
<script>{script}</script>
</body>
</html>
"""

    def _finding(self) -> str:
        return paragraph(self.finding) if self.finding else ""

    def _contents(self) -> str:
        """Ways to the parts of a page that has many of them."""
        if len(self.sections) <= _FEW_SECTIONS:
            return ""
        headings = [section.heading for section in self.sections]
        ways = (f'<a href="#{_anchor(heading)}">{escape(heading)}</a>' for heading in headings)
        return f'<nav class="contents" aria-label="Contents">{" ".join(ways)}</nav>\n'


def _bullets(kind: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{_unbroken(line)}</li>" for line in lines)
    return f'<ul class="{kind}">{items}</ul>\n' if lines else ""


def facts(facts: Mapping[str, str]) -> str:
    """A block of names and what they stand for."""
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{_unbroken(value)}</dd>" for name, value in facts.items() if value
    )
    return f'<dl class="facts">{rows}</dl>'


def folded(summary: str, *blocks: str) -> str:
    """Blocks that are shown once asked for."""
    return f"<details><summary>{escape(summary)}</summary>{_joined(blocks)}</details>"


def paragraph(words: str) -> str:
    """A block of plain words."""
    return f'<p class="words">{escape(words)}</p>'


def links(files: Mapping[str, str]) -> str:
    """A block of files beside the page, and what each is."""
    rows = "".join(
        f'<dt><a href="{escape(name)}">{escape(name)}</a></dt><dd>{escape(what)}</dd>'
        for name, what in files.items()
    )
    return f'<dl class="facts">{rows}</dl>'


def grid(*blocks: str) -> str:
    """Blocks side by side, as many as there is room for."""
    return f'<div class="grid">{_joined(blocks)}</div>'


def _unbroken(words: str) -> str:
    """Words in which options of commands are not broken at their hyphens."""
    return re.sub(r"(--[\w-]+)", r'<span class="option">\1</span>', escape(words))


def _joined(blocks: Sequence[str]) -> str:
    return "\n".join(blocks)


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


@cache
def _assets() -> tuple[str, str]:
    here = files("cwbc.reporting")
    style, script = (here.joinpath(name).read_text("utf-8") for name in ("style.css", "script.js"))
    return f"{themes()}\n{style}", script


def _policy(script: str) -> str:
    """Nothing is fetched, and no script runs but ours."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
