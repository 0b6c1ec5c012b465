"""The progress of a grid, as a value and on the terminal."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

from rich.console import Console

from cwbc.system.progress import PLAIN_INTERVAL, TaskProgress, display


@dataclasses.dataclass(frozen=True)
class GridProgress:
    """The progress of a grid."""

    total: int
    finished: int = 0
    failed: int = 0
    running: tuple[TaskProgress, ...] = ()
    remark: str = ""  # about the grid as a whole, such as "waiting for another process"

    @property
    def overall(self) -> TaskProgress:
        return TaskProgress("", self.finished + self.failed, self.total, "cells finished", self.failed)


Show = Callable[[GridProgress], None]


@contextlib.contextmanager
def shown(console: Console, interval: float = PLAIN_INTERVAL) -> Iterator[Show]:
    """Show a grid while it runs; yields a function that takes its progress."""
    with display(console, interval=interval) as tasks:
        yield lambda grid: tasks.show(grid.running, grid.overall, grid.remark)
