"""The trained behaviours that come with the package: three robots, each from untrained to expert."""

from __future__ import annotations

import functools
from pathlib import Path

from cwbc.behaviours.series import Series, read

_FOLDER = Path(__file__).parent / "snapshots"


@functools.cache
def series(task: str) -> Series:
    """The snapshots of one robot."""
    return read(_FOLDER / task)
