"""How long work shows itself: a bar with speed and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

PLAIN_INTERVAL = 5.0  # seconds between plain lines, at the least

Update = Callable[[int], None]


@contextlib.contextmanager
def progress(console: Console, title: str, total: int, unit: str, done: int = 0) -> Iterator[Update]:
    """Show work of `total` units, `done` of them before; yields a function to tell how many are done now."""
    if console.is_terminal:
        with _bar(console, unit) as bar:
            task = bar.add_task(f"{title} (compiling)", total=total, completed=done)
            yield lambda completed: bar.update(task, completed=completed, description=title)
            bar.update(task, completed=total, description=title)
        return
    lines = _Lines(console, title, total, unit, done)
    yield lines.update
    lines.finish()


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} {self._unit}/s" if task.speed else "", style="progress.data.speed")


def _bar(console: Console, unit: str) -> Progress:
    one_line = Column(no_wrap=True)
    columns = (
        TextColumn("{task.description}", table_column=one_line),
        BarColumn(bar_width=16),
        MofNCompleteColumn(table_column=one_line),
        _Rate(unit),
        TimeRemainingColumn(table_column=one_line),
    )
    return Progress(*columns, console=console)


class _Lines:
    def __init__(self, console: Console, title: str, total: int, unit: str, done: int) -> None:
        self._console, self._title, self._total, self._unit = console, title, total, unit
        self._done = self._first_done = done
        self._began = self._shown = time.monotonic()

    def update(self, completed: int) -> None:
        self._done = completed
        now = time.monotonic()
        if now - self._shown >= PLAIN_INTERVAL and completed < self._total:
            self._shown = now
            rate = (completed - self._first_done) / (now - self._began)
            left = (self._total - completed) / rate if rate else float("inf")
            self._print(f"{completed:,}/{self._total:,} {self._unit}, {rate:,.0f}/s, {left:,.0f} s left")

    def finish(self) -> None:
        seconds = time.monotonic() - self._began
        self._print(f"{self._done:,} {self._unit} in {seconds:,.1f} s")

    def _print(self, text: str) -> None:
        self._console.print(f"{self._title}: {text}", highlight=False, soft_wrap=True)
