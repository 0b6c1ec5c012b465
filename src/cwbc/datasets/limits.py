"""How much a file may unfold to: in every format, a few kilobytes can stand for more than a memory holds."""

from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Iterator
from pathlib import Path

from cwbc.errors import InputError, require

VARIABLE = "CWBC_MAX_GIGABYTES"  # the environment variable that sets the limit
_ALWAYS = 1e9  # bytes that any file may unfold to: constant columns take next to nothing in a file
_TIMES = 256  # its own size that a larger one may: plain frames of a game reach 150

_chosen: contextvars.ContextVar[float | None] = contextvars.ContextVar("gigabytes", default=None)


@contextlib.contextmanager
def at_most(gigabytes: float | None) -> Iterator[None]:
    """What is read in this block may unfold to so much; None leaves it to the variable or the file's size."""
    if gigabytes is not None:
        require(gigabytes > 0, "--max-gigabytes", gigabytes, "more than 0")
    token = _chosen.set(gigabytes)
    try:
        yield
    finally:
        _chosen.reset(token)


def limit(stored: int, widened: float = 1.0) -> float:
    """The bytes that a file of `stored` bytes may unfold to, its numbers made `widened` times as wide."""
    gigabytes = _chosen.get()
    if gigabytes is None and (text := os.environ.get(VARIABLE)):
        try:
            gigabytes = float(text)
        except ValueError:
            raise InputError(f"{VARIABLE} must be a number, such as 8; got {text!r}") from None
        require(gigabytes > 0, VARIABLE, gigabytes, "more than 0")
    return max(_ALWAYS, _TIMES * stored * widened) if gigabytes is None else gigabytes * 1e9


def check(source: str | Path, size: int, stored: int, widened: float = 1.0) -> None:
    """Refuse to unfold what is out of proportion to the file that it is in."""
    if size > (most := limit(stored, widened)):
        raise refusal(source, size, stored, most)


def refusal(source: str | Path, size: int, stored: int, most: float) -> InputError:
    """What is said of a file that unfolds to at least `size` bytes, beyond the limit."""
    return InputError(
        f"{source} takes {_told(stored)} and unfolds to {_told(size)} or more, beyond the limit of "
        f"{_told(most)}; if that is meant, allow N gigabytes with --max-gigabytes N (`cwbc data check` and "
        f"`import`), max_gigabytes=N (`cwbc.load`) or {VARIABLE}=N"
    )


def _told(size: float) -> str:
    for unit, step in (("kB", 1e3), ("MB", 1e6)):
        if size < 1000 * step:
            return f"{size / step:.3g} {unit}"
    return f"{size / 1e9:,.4g} GB"
