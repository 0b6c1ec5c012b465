"""Cells that differ only in their target returns or episodes share one training.

A new cell copies the parameters of a cell that was trained in the same way, and is only evaluated.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from cwbc.grids.preparation import Prepared, trained_as
from cwbc.runs import run_directory
from cwbc.system.errors import InputError
from cwbc.system.files import write_atomically
from cwbc.system.tensor_files import CHECKPOINT


class TrainedCells:
    """The trained cells of a directory, by the fingerprint of their training."""

    def __init__(self) -> None:
        self._known: dict[Path, str | None] = {}  # by directory; None: no parameters to reuse
        self._lock = threading.Lock()  # one thread per device calls `reuse`

    def reuse(self, cell: Prepared, before_writing: Callable[[], None]) -> None:
        """Copy the parameters of a cell with the same training into a cell without parameters.

        The configuration, which records the hardware and versions of the training, and the metrics are copied
        as well.
        """
        if run_directory.holds_work(cell.directory):
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
    """The fingerprint of a run's training; None where the directory is no run of this version."""
    try:
        return trained_as(run_directory.read_config(directory))
    except (OSError, InputError, KeyError, TypeError, AttributeError):
        return None


def _parameters(directory: Path, steps: int) -> dict[str, bytes]:
    """The files of a finished training, in the order to write them; empty where it is not finished."""
    try:
        if run_directory.steps_done(directory) < steps:
            return {}
        # A configuration alone is a start that training resumes from, should this be interrupted.
        names = (run_directory.CONFIG, run_directory.METRICS, CHECKPOINT)
        return {name: (directory / name).read_bytes() for name in names if (directory / name).exists()}
    except (OSError, InputError):  # gone or damaged
        return {}
