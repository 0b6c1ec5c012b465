"""Printing to stdout and stderr, without the control characters that names in a file may have."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# All control characters but line breaks and tabs: rich itself leaves escape sequences in.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The text without control characters."""
    return _CONTROL.sub("", text)


class PlainConsole(Console):
    """A console that prints no control characters but those of its own styles."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


def output(text: str) -> None:
    """Print a result, to stdout."""
    PlainConsole().print(text, highlight=False, soft_wrap=True, markup=False)


def say(text: str, console: Console | None = None) -> None:
    """Print a remark to stderr, above the progress display of a console of it."""
    console = console or PlainConsole(stderr=True)
    # A terminal wraps lines between words.
    console.print(printable(text), highlight=False, soft_wrap=not console.is_terminal, markup=False)
