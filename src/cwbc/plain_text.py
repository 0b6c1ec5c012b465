"""Lines for people and programs, in which whatever a file may hold does no harm."""

from __future__ import annotations

from rich.console import Console
from rich.control import strip_control_codes


def output(text: str) -> None:
    """Print what was asked for."""
    Console().print(strip_control_codes(text), highlight=False, soft_wrap=True, markup=False)


def say(text: str) -> None:
    """Print a remark, on the stream that programs do not read."""
    console = Console(stderr=True)
    text = strip_control_codes(text)  # names in a file may be anything
    console.print(text, highlight=False, soft_wrap=not console.is_terminal, markup=False)
