"""Parameters that another cell has already: what is only asked for otherwise is not trained again."""

from __future__ import annotations

import contextlib
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

    def lend(self, cell: Prepared, before_writing: Callable[[], None]) -> None:
        """Give a cell that has nothing yet the parameters of one that was trained in just the same way.

        They come with their metrics and their configuration, which says where and by what they were trained.
        """
        if runs.holds_work(cell.directory):
            return
        for directory in self._alike(cell):
            # One that is gone or damaged is none: another will do, or training.
            with contextlib.suppress(OSError, InputError):
                if runs.steps_done(directory) == cell.cell.training.steps:
                    cell.directory.mkdir(exist_ok=True)
                    for name in (runs.METRICS, runs.CONFIG, CHECKPOINT):  # the last one makes it a run
                        content = (directory / name).read_bytes()
                        write_atomically(cell.directory / name, content, before_writing)
                    return

    def _alike(self, cell: Prepared) -> list[Path]:
        for directory in cell.root.iterdir():
            if directory not in self._known and (directory / CHECKPOINT).exists():
                try:
                    self._known[directory] = trained_as(runs.read_config(directory))
                except (InputError, KeyError, TypeError):
                    self._known[directory] = None
        return [directory for directory, known in self._known.items() if known == cell.trained_as]
