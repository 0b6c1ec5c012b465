"""Parameters that another cell has already: what is only asked for otherwise is not trained again."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from cwbc import runs
from cwbc.checkpoints import CHECKPOINT
from cwbc.errors import InputError
from cwbc.files import write_atomically
from cwbc.grids.prepared import Prepared, trained_as


class Lender:
    """The cells of a directory, by what they were trained as."""

    def __init__(self) -> None:
        self._known: dict[Path, str | None] = {}  # by directory; None: nothing that could be lent
        self._lock = threading.Lock()  # devices share it

    def lend(self, cell: Prepared, before_writing: Callable[[], None]) -> None:
        """Give a cell that has nothing yet the parameters of one that was trained in just the same way.

        They come with their configuration, which says where and by what they were trained, and their metrics.
        """
        if runs.holds_work(cell.directory):
            return
        for directory in self._alike(cell):
            if files := _parameters(directory, cell.cell.training.steps):
                cell.directory.mkdir(exist_ok=True)
                for name, content in files.items():
                    write_atomically(cell.directory / name, content, before_writing)
                return

    def _alike(self, cell: Prepared) -> list[Path]:
        with self._lock:
            for directory in cell.root.iterdir():
                if directory not in self._known and os.path.exists(directory / CHECKPOINT):
                    self._known[directory] = _trained_as(directory)
            return [directory for directory, known in self._known.items() if known == cell.trained_as]


def _trained_as(directory: Path) -> str | None:
    """None for what is somebody else's, or of another version: that is no reason not to train."""
    try:
        return trained_as(runs.read_config(directory))
    except (OSError, InputError, KeyError, TypeError, AttributeError):
        return None


def _parameters(directory: Path, steps: int) -> dict[str, bytes]:
    """The files of a run that is trained to its end, in the order to write them; none where it is not."""
    try:
        if runs.steps_done(directory) < steps:
            return {}
        # A configuration alone is a beginning that training goes on from, should this be cut short.
        names = (runs.CONFIG, runs.METRICS, CHECKPOINT)
        return {name: (directory / name).read_bytes() for name in names if (directory / name).exists()}
    except (OSError, InputError):  # gone or damaged
        return {}
