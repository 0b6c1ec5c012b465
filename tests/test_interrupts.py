"""Ctrl-C that comes while a line is being printed."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cwbc import commands
from cwbc.grids import running
from cwbc.plain_text import PlainConsole


class Pressed(io.RawIOBase):
    """A stream in the midst of whose first write somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self.written = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self.written:
            signal.raise_signal(signal.SIGINT)
        self.written += bytes(data)
        return len(bytes(data))


@pytest.fixture
def restored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def of_a_grid(console: PlainConsole) -> bool:
    with running._stoppable(console) as is_stopping:
        console.print("1/2 cells finished")
        return is_stopping()


def of_the_command_line(console: PlainConsole) -> bool:
    with commands.stoppable("cwbc train") as session:
        session.console, session.training = console, True
        session.say("training: 5/200 steps")
        return session.stopping


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("stoppable", [of_a_grid, of_the_command_line])
def test_the_remark_comes_when_a_line_is_being_written(stoppable: Callable[[PlainConsole], bool]) -> None:
    stream = Pressed()
    # As standard error is made: its buffer refuses to be written to from within a write.
    console = PlainConsole(file=io.TextIOWrapper(io.BufferedWriter(stream), line_buffering=True))
    assert stoppable(console)
    first, second = stream.written.decode().splitlines()
    assert first in ("1/2 cells finished", "training: 5/200 steps")
    assert second == "saving; Ctrl-C again stops at once"
