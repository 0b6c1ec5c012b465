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
    if console.is_terminal:
        with Live(console=console, transient=True, refresh_per_second=4) as live:
            yield lambda standing: live.update(_display(standing))
        return
    lines = _Lines(console, interval)
    yield lines.show
    lines.finish()


def _display(standing: Standing) -> RenderableType:
    settled = standing.finished + standing.failed
    head = Table.grid(padding=(0, 1))
    head.add_row(ProgressBar(total=standing.total, completed=settled, width=24), _text(standing.headline))
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
    def __init__(self, console: Console, interval: float) -> None:
        self._console, self._interval = console, interval
        self._last = time.monotonic()
        self._standing: Standing | None = None
        self._told: Standing | None = None

    def show(self, standing: Standing) -> None:
        self._standing = standing
        if time.monotonic() - self._last >= self._interval and standing != self._told:
            self._last, self._told = time.monotonic(), standing
            running = "; ".join(f"{each.name}: {each}" for each in standing.running[:_SHOWN])
            parts = [standing.headline, running, standing.remark]
            self._print("; ".join(part for part in parts if part))

    def finish(self) -> None:
        if self._standing is not None:
            self._print(self._standing.headline)

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)
