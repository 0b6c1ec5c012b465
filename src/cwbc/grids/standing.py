"""How far a grid is, as a value, and how it shows: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cwbc.progress import PLAIN_INTERVAL

_SHOWN = 12  # running cells that are named


@dataclasses.dataclass(frozen=True)
class Running:
    """A cell that is being worked on."""

    name: str  # "cwbc/hopper/medium-v0 rvs+cwbc"
    doing: str  # "training", "evaluating"
    done: int = 0
    total: int = 0  # 0 where nobody knows

    def __str__(self) -> str:
        return f"{self.doing} {self.done:,}/{self.total:,}" if self.total else self.doing


@dataclasses.dataclass(frozen=True)
class Standing:
    """How far a grid is."""

    total: int
    finished: int = 0
    failed: int = 0
    running: tuple[Running, ...] = ()
    remark: str = ""  # what is done about the grid as a whole

    @property
    def settled(self) -> int:
        return self.finished + self.failed

    @property
    def headline(self) -> str:
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.finished:,}/{self.total:,} cells finished{failed}"


Show = Callable[[Standing], None]


@contextlib.contextmanager
def shown(console: Console, interval: float = PLAIN_INTERVAL) -> Iterator[Show]:
    """Show a grid while it runs; yields a function to tell how far it is, as often as one likes.

    Args:
        interval: seconds between plain lines, at the least, where there is no terminal.
    """
    pace = _Pace()
    if console.is_terminal:
        with Live(console=console, transient=True, refresh_per_second=4) as live:
            yield lambda standing: live.update(_display(standing, pace.left(standing)))
        return
    lines = _Lines(console, interval, pace)
    yield lines.show
    lines.finish()


class _Pace:
    """How long a grid will take, by the cells that came to their end since the first one was begun."""

    def __init__(self) -> None:
        self._begun: tuple[float, int] | None = None  # when, and how many were settled before
        self._last = (0.0, 0)  # when one was settled, and how many were then

    def left(self, standing: Standing) -> str:
        """ ", about 5 min left"; nothing where that cannot be told."""
        now = time.monotonic()
        if self._begun is None:
            self._begun = (now, standing.settled) if standing.running else None
            return ""
        if standing.settled != self._last[1]:
            self._last = (now, standing.settled)
        (began, before), (last, settled) = self._begun, self._last
        done, rest = settled - before, standing.total - settled
        if not done or not rest:
            return ""
        each = (last - began) / done
        # What runs is on its way, but one that takes longer than others does not bring the end nearer.
        left = max(each * rest - (now - last), each * (rest - 1))
        return f", about {_duration(left)} left" if left >= 1 else ""


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 60 * 60 else f"{seconds / 3600:.1f} h"


def _display(standing: Standing, left: str) -> RenderableType:
    head = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=standing.total, completed=standing.settled, width=24)
    head.add_row(bar, _text(standing.headline + left))
    table = Table.grid(padding=(0, 2))
    for each in standing.running[:_SHOWN]:
        table.add_row(_text(f"  {each.name}"), _text(str(each)))
    more = len(standing.running) - _SHOWN
    rest = [_text(f"  and {more} more")] if more > 0 else []
    remark = [_text(f"  {standing.remark}")] if standing.remark else []
    return Group(head, table, *rest, *remark)


def _text(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


class _Lines:
    def __init__(self, console: Console, interval: float, pace: _Pace) -> None:
        self._console, self._interval, self._pace = console, interval, pace
        self._last = time.monotonic()
        self._standing: Standing | None = None
        self._told: Standing | None = None
        self._said = ""

    def show(self, standing: Standing) -> None:
        self._standing, left = standing, self._pace.left(standing)
        if time.monotonic() - self._last >= self._interval and standing != self._told:
            self._last, self._told = time.monotonic(), standing
            running = "; ".join(f"{each.name}: {each}" for each in standing.running[:_SHOWN])
            parts = [standing.headline + left, running, standing.remark]
            self._print("; ".join(part for part in parts if part))

    def finish(self) -> None:
        if self._standing is not None and self._standing.headline != self._said:
            self._print(self._standing.headline)

    def _print(self, text: str) -> None:
        self._said = text
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)
