"""The errors that mean the user's input is wrong; the command line prints them without a traceback."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable


class InputError(ValueError):
    """What was wrong, where, and what would be right."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An error for a name that is not among the known ones, with the near ones first."""
    known = sorted(set(known))
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(known)}"
    return InputError(f"unknown {kind} {name!r}; {hint}")


def require(valid: bool, name: str, value: object, wanted: str) -> None:
    """Refuse a setting with a value that makes no sense."""
    if not valid or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"{name} must be {wanted}; got {value}")


class DivergenceError(RuntimeError):
    """Training went where no number is."""
