"""Where reports are put: never among the files of others, and tried before anything is written."""

from __future__ import annotations

import json
import os
from pathlib import Path

from cwbc.errors import InputError
from cwbc.files import is_aside
from cwbc.grids.prepared import LEASES
from cwbc.runs import SUMMARY


def check(out: Path, item: str | None, other: str) -> None:
    """Refuse to put a report among files that are not those of an earlier one.

    Args:
        item: of the paper, that it has to be about as well; None for one's own grids.
        other: what to give instead, such as another --out.
    """
    others = [path for path in out.glob("*") if path.is_file() and not is_aside(path)]
    if (out / LEASES).exists():
        raise InputError(f"{out} holds cells; give another {other}")
    if not others:
        return
    try:
        summary = json.loads((out / SUMMARY).read_text())
        there = None if summary.keys() >= {"title", "files"} else str(summary["item"]["name"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{out} holds other files, such as {others[0].name}; give another {other}") from None
    if there != item:
        raise InputError(f"{out} holds the report of {there or 'a grid'}; give another {other}")


def prepare(place: Path, other: str) -> None:
    """Find out now, not after hours, whether a directory can be written to."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        can_write = os.access(place, os.W_OK)
    except OSError as error:
        raise InputError(f"{place} cannot be a directory ({error.strerror}); give another {other}") from error
    if not can_write:
        raise InputError(f"{place} cannot be written to; give another {other}")
