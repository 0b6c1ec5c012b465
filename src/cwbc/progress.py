"""How long work shows itself: a bar with speed and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bar
from rich.table import Column
from rich.text import Text

from cwbc.datasets.source import Progress

PLAIN_INTERVAL = 5.0  # seconds between plain lines, at the least

Update = Callable[[int], None]

_ONE_LINE = Column(no_wrap=True)


@contextlib.contextmanager
def progress(console: Console, title: str, total: int, unit: str, done: int = 0) -> Iterator[Update]:
    """Show work of `total` units, `done` of them before; yields a function to tell how many are done now."""
    if console.is_terminal:
        count = MofNCompleteColumn(table_column=_ONE_LINE)
        with _bar(console, count, _Rate(unit)) as bar:
            task = bar.add_task(f"{title} (compiling)", total=total, completed=done)
            yield lambda completed: bar.update(task, completed=completed, description=title)
            bar.update(task, completed=total, description=title)
        return
    lines = _Lines(console, title, total, unit, done)
    yield lines.update
    lines.finish()


@contextlib.contextmanager
def gauge(console: Console, title: str, unit: str) -> Iterator[Progress]:
    """Show work whose size shows only when it has begun; yields a function to tell how much of it is done."""
    if console.is_terminal:
        transfer = unit == "bytes"
        sizes = (DownloadColumn(), TransferSpeedColumn()) if transfer else (_Percent(),)
        with _bar(console, *sizes, transient=not transfer) as bar:
            task = bar.add_task(title, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return
    lines = _Lines(console, title, None, unit, 0)

    def update(done: int, total: int | None) -> None:
        lines.total = total
        lines.update(done)

    yield update
    if lines.shown:  # what takes no time needs no words
        lines.finish()


class _Percent(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.percentage:3.0f} %", style="progress.percentage")


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} {self._unit}/s" if task.speed else "", style="progress.data.speed")


def _bar(console: Console, *columns: ProgressColumn, transient: bool = False) -> Bar:
    return Bar(
        TextColumn("{task.description}", table_column=_ONE_LINE, markup=False),
        BarColumn(bar_width=16),
        *columns,
        TimeRemainingColumn(table_column=_ONE_LINE),
        console=console,
        transient=transient,
    )


class _Lines:
    def __init__(self, console: Console, title: str, total: int | None, unit: str, done: int) -> None:
        self._console, self._title, self.total, self._unit = console, title, total, unit
        self._done = self._first_done = done
        self._began = self._last = time.monotonic()
        self._first_told: tuple[float, int] | None = None  # when, and how much was done; before, it compiles
        self.shown = False

    def update(self, completed: int) -> None:
        self._done = completed
        now = time.monotonic()
        if self._first_told is None:
            self._first_told = now, completed
        if now - self._last >= PLAIN_INTERVAL and completed != self.total:
            self._last, self.shown = now, True
            of_total = "" if self.total is None else f"/{self.total:,}"
            self._print(f"{completed:,}{of_total} {self._unit}{self._pace(now, *self._first_told)}")

    def _pace(self, now: float, since: float, before: int) -> str:
        """How fast it goes, and how long it will; nothing until that can be told."""
        if self._done <= before or now <= since:
            return ""
        rate = (self._done - before) / (now - since)
        left = "" if self.total is None else f", {(self.total - self._done) / rate:,.0f} s left"
        return f", {rate:,.0f}/s{left}"

    def finish(self) -> None:
        seconds = time.monotonic() - self._began
        self._print(f"{self._done - self._first_done:,} {self._unit} in {seconds:,.1f} s")

    def _print(self, text: str) -> None:
        self._console.print(f"{self._title}: {text}", highlight=False, soft_wrap=True, markup=False)
