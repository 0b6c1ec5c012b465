"""One display of long work: tasks with speed and time left, live on a terminal, as plain lines elsewhere."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.filesize import decimal
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

PLAIN_INTERVAL = 5.0  # seconds between plain lines, at the least
_MOST_ROWS = 12  # of tasks that are shown by name

Update = Callable[[int], None]  # called with how much is done
Progress = Callable[[int, int | None], None]  # called with how much is done, and the total where it is known


@dataclasses.dataclass(frozen=True)
class TaskProgress:
    """How far a task is."""

    title: str  # its speed counts from when it is first shown; empty for the whole of several tasks
    done: int = 0
    total: int | None = None  # None where it is not known
    unit: str = "steps"  # "bytes" are shown as kB, MB and so on
    failed: int = 0  # of those done

    @property
    def count(self) -> str:
        """How much is done, such as "1,200/5,000 steps"; empty where nothing is known."""
        if self.total is None and not self.done:
            return ""
        of_total = "" if self.total is None else f"/{self.quantity(self.total)}"
        unit = "" if self.unit == "bytes" else f" {self.unit}"
        failed = f", {self.failed:,} failed" if self.failed else ""
        return self.quantity(self.done - self.failed) + of_total + unit + failed

    def quantity(self, number: float) -> str:
        """A number of units, which has a unit of its own if these are bytes."""
        return decimal(int(number)) if self.unit == "bytes" else f"{number:,.0f}"

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.title, self.count)))


@contextlib.contextmanager
def progress(console: Console, title: str, total: int, unit: str, done: int = 0) -> Iterator[Update]:
    """Show a task of `total` units, `done` of them before; yields a function that takes how many are done."""
    with display(console) as shown:
        shown.show([TaskProgress(f"{title} (compiling)", done, total, unit)])
        yield lambda completed: shown.show([TaskProgress(title, completed, total, unit)])
        if console.is_terminal:
            shown.show([TaskProgress(title, total, total, unit)])


@contextlib.contextmanager
def gauge(console: Console, title: str, unit: str) -> Iterator[Progress]:
    """Show a task whose total is known only once it has begun, or never."""
    with display(console, transient=unit != "bytes") as shown:
        shown.show([TaskProgress(title, unit=unit)])
        yield lambda done, total: shown.show([TaskProgress(title, done, total, unit)])


@contextlib.contextmanager
def display(console: Console, transient: bool = False) -> Iterator[Display]:
    """A display of tasks, until they are done; a transient one leaves no last line if it is the only."""
    shown = Display(console)
    if console.is_terminal:
        with Live(shown, console=console, transient=transient, refresh_per_second=4):
            yield shown
    else:
        yield shown
        shown.finish(transient)


class Display:
    """The tasks that are under way: a live table on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tasks: list[TaskProgress] = []  # the whole first, where there is one
        self._remarks: list[str] = []
        # When each task was first shown and when it last advanced, with how much was done then.
        self._paces: dict[str, tuple[float, int, float, int]] = {}
        self._began = self._printed_at = time.monotonic()
        self._done_before: int | None = None
        self._printed = ""

    def show(
        self, tasks: Sequence[TaskProgress], overall: TaskProgress | None = None, remark: str = ""
    ) -> None:
        """Replace what is shown; the speed of the whole (`overall`) counts from when a task is under way."""
        now, paces, self._paces = time.monotonic(), self._paces, {}
        self._tasks = [*([overall] if overall else []), *tasks[:_MOST_ROWS]]
        for task in self._tasks:
            if tasks or task.title in paces:
                began, before, last, done = paces.get(task.title, (now, task.done) * 2)
                last = last if task.done == done else now
                self._paces[task.title] = (began, before, last, task.done)
        more = f"and {len(tasks) - _MOST_ROWS} more" if len(tasks) > _MOST_ROWS else ""
        self._remarks = [*filter(None, (more, remark))]
        first = self._tasks[0]
        if self._done_before is None:
            self._done_before = first.done
        is_due = now - self._printed_at >= PLAIN_INTERVAL
        if is_due and first.done != first.total and not self._console.is_terminal:
            self._print("; ".join([*(str(task) + self._pace(task) for task in self._tasks), *self._remarks]))

    def finish(self, transient: bool) -> None:
        """Print the last line."""
        if self._done_before is None or (transient and not self._printed):
            return
        last = self._tasks[0]
        if last.title:
            new = dataclasses.replace(last, done=last.done - self._done_before, total=None)
            self._print(f"{new} in {time.monotonic() - self._began:,.1f} s")
        else:
            self._print(str(last))

    def _pace(self, task: TaskProgress) -> str:
        """Speed and time left, such as ", 10/s, 75 s left"; empty until they are known."""
        began, before, last, done = self._paces.get(task.title, (0, 0, 0, 0))
        if done <= before or last <= began:
            return ""
        each = (last - began) / (done - before)
        text = f", {task.quantity(1 / each)}/s" if each <= 1 else ""
        # It counts down between updates; one that is late does not bring the end nearer.
        rest = (task.total or 0) - done
        left = max(each * rest - (time.monotonic() - last), each * (rest - 1))
        return text + (f", {_duration(left)} left" if left >= 1 else "")

    def _print(self, text: str) -> None:
        if text != self._printed:
            self._printed, self._printed_at = text, time.monotonic()
            self._console.print(text, highlight=False, soft_wrap=True, markup=False)

    def __rich__(self) -> RenderableType:
        table = Table.grid(padding=(0, 1))
        for task in self._tasks:
            bar = ProgressBar(task.total, task.done, width=16, pulse=task.total is None)
            table.add_row(_text(task.title), bar, _text(task.count + self._pace(task)))
        return Group(table, *map(_text, self._remarks))


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 60 * 60 else f"{seconds / 3600:.1f} h"


def _text(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")
