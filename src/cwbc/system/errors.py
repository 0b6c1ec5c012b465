"""The errors that mean the user's input is wrong; the command line prints them without a traceback."""

from __future__ import annotations

import difflib
import importlib
import math
from collections.abc import Iterable
from typing import Any

_LARGEST = 3.4e38  # of float32, in which everything is computed


class InputError(ValueError):
    """The user's input is wrong; the message says what, where, and what would be right."""


# Errors that mean a wrong path; a full disk is not the user's mistake.
WRONG_PATH = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError, FileExistsError)


class UnavailableError(InputError):
    """Something is not installed or not registered on this machine."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An error for an unknown name, which suggests similar ones or lists the known ones."""
    known = sorted(set(known))
    near = difflib.get_close_matches(name, known, n=3)
    listed = ", ".join(known[:25]) + (f" and {len(known) - 25} more" if len(known) > 25 else "")
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {listed}"
    return InputError(f"unknown {kind} {name!r}; {hint}")


def require(valid: bool, name: str, value: object, wanted: str) -> None:
    """Raise an error unless a setting is valid and finite."""
    if not valid or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"{name} must be {wanted}; got {value}")
    if isinstance(value, float) and abs(value) > _LARGEST:
        raise InputError(f"{name} must be at most {_LARGEST:g}, the largest that 32 bits hold; got {value}")


class DivergenceError(RuntimeError):
    """Training produced numbers that are not finite."""


class DifferenceError(RuntimeError):
    """An exported policy acts differently than it does here."""


def install(extra: str) -> str:
    """The command that installs the packages of an extra."""
    return f"pip install 'cwbc[{extra}]', or '.[{extra}]' in its repository"


def need_extra(module: str, extra: str, what: str) -> Any:
    """A module that comes with an extra, or an error with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UnavailableError(f"{what} need more packages: {install(extra)} ({error})") from error
