"""Ctrl-C: the first saves and stops, the second stops at once, and both may come while a line is printed."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cwbc.system.console import PlainConsole, say
from cwbc.system.interrupts import stoppable


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


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def test_the_remark_comes_when_a_line_is_being_written() -> None:
    stream = Pressed()
    # As standard error is made: its buffer refuses to be written to from within a write.
    console = PlainConsole(file=io.TextIOWrapper(io.BufferedWriter(stream), line_buffering=True))
    with stoppable(lambda text: say(text, console)) as is_stopping:
        assert not is_stopping()
        console.print("1/2 cells finished")
        assert is_stopping()
    assert stream.written.decode().splitlines() == [
        "1/2 cells finished",
        "saving; Ctrl-C again stops at once",
    ]


def test_a_second_one_stops_at_once() -> None:
    lines: list[str] = []
    with stoppable(lines.append):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert len(lines) == 1


def test_where_nothing_can_be_saved_the_first_one_stops_at_once() -> None:
    class Ended(BaseException):
        pass

    def end() -> None:
        raise Ended

    lines: list[str] = []
    with pytest.raises(Ended), stoppable(lines.append, end, saves=lambda: False):
        signal.raise_signal(signal.SIGINT)
    assert not lines


def test_other_threads_are_left_alone() -> None:
    seen: list[bool] = []

    def work() -> None:
        with stoppable(lambda text: None) as is_stopping:
            seen.append(is_stopping())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]
