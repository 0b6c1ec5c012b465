"""Lines for people and programs, in which whatever a file may hold does no harm."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# All that a terminal may act upon, but for line breaks and tabs: rich itself leaves escape sequences in.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The text without anything that a terminal would act upon."""
    return _CONTROL.sub("", text)


class PlainConsole(Console):
    """A console on which only its own styles reach the terminal, whatever is printed."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


def output(text: str) -> None:
    """Print what was asked for."""
    _print(PlainConsole(), text, whole=True)


def say(text: str, console: Console | None = None) -> None:
    """Print a remark, on the stream that programs do not read.

    Args:
        console: one of that stream on which a progress bar may be moving, so that it makes way.
    """
    console = console or PlainConsole(stderr=True)
    _print(console, text, whole=not console.is_terminal)  # a terminal wraps lines between words


def _print(console: Console, text: str, whole: bool) -> None:
    console.print(printable(text), highlight=False, soft_wrap=whole, markup=False)
