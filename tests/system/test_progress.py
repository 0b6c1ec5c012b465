"""What long work shows, on a terminal and elsewhere."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from cwbc.system import progress as module
from cwbc.system.console import PlainConsole
from cwbc.system.progress import TaskProgress, display, gauge, progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("cwbc.system.progress.time.monotonic", lambda: now[0])
    return now


def test_plain_lines_are_rare_and_show_speed_and_time_left(clock: list[float]) -> None:
    text = io.StringIO()
    with progress(Console(file=text), "training rvs", 1000, "steps", done=200) as update:
        for completed in range(210, 1001, 10):  # ten steps a second, after 200 that were done before
            clock[0] += 1.0
            update(completed)
    lines = text.getvalue().splitlines()
    assert lines[0] == "training rvs: 250/1,000 steps, 10/s, 75 s left"
    assert lines[1] == "training rvs: 300/1,000 steps, 10/s, 70 s left"
    assert lines[-1] == "training rvs: 800 steps in 80.0 s"
    assert len(lines) == 80 / module.PLAIN_INTERVAL


def test_compiling_is_no_part_of_the_speed(clock: list[float]) -> None:
    text = io.StringIO()
    with progress(Console(file=text), "training dt", 1000, "steps") as update:
        for seconds, completed in ((30.0, 10), (5.0, 60), (5.0, 110)):
            clock[0] += seconds
            update(completed)
    assert text.getvalue().splitlines() == [
        "training dt: 10/1,000 steps",
        "training dt: 60/1,000 steps, 10/s, 94 s left",
        "training dt: 110/1,000 steps, 10/s, 89 s left",
        "training dt: 110 steps in 40.0 s",
    ]


def test_a_failure_is_not_printed_as_done(clock: list[float]) -> None:
    text = io.StringIO()
    with pytest.raises(KeyboardInterrupt), progress(Console(file=text), "training", 10, "steps"):
        raise KeyboardInterrupt
    assert text.getvalue() == ""


def test_a_terminal_gets_a_bar_with_the_title_and_the_count() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=100)
    with progress(console, "training rvs", 20, "steps") as update:
        update(20)
    assert "training rvs" in text.getvalue()
    assert "20/20" in text.getvalue()


def test_a_total_may_be_known_late_or_never(clock: list[float]) -> None:
    text = io.StringIO()
    with gauge(Console(file=text), "hopper-medium", "bytes") as update:
        for done, total in ((0, None), (2_000_000, None), (4_000_000, 10_000_000)):
            clock[0] += 5.0
            update(done, total)
    assert text.getvalue().splitlines() == [
        "hopper-medium",
        "hopper-medium: 2.0 MB, 200.0 kB/s",
        "hopper-medium: 4.0 MB/10.0 MB, 266.7 kB/s, 22 s left",
        "hopper-medium: 4.0 MB in 15.0 s",
    ]


def test_what_takes_no_time_needs_no_line(clock: list[float]) -> None:
    text = io.StringIO()
    with gauge(Console(file=text), "reading data", "values") as update:
        update(5, 10)
    assert text.getvalue() == ""


def test_several_tasks_have_rows_of_their_own_below_the_whole(clock: list[float]) -> None:
    text = io.StringIO()
    console = PlainConsole(file=text, force_terminal=True, width=100)
    with display(console) as shown:
        for done in (0, 20):
            tasks = [TaskProgress(f"training \x1b[2J{name}", 2 * done, 100) for name in ("a", "b")]
            shown.show(tasks, TaskProgress("", 1, 4, "cells"), "waiting")
            clock[0] += 10.0
    rows = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue()).splitlines()[-4:]
    assert [re.split(" *[━╺╸]+ ", row.strip())[-1] for row in rows] == [
        "1/4 cells",
        "40/100 steps, 4/s, 15 s left",
        "40/100 steps, 4/s, 15 s left",
        "waiting",
    ]
    assert [row.split("━")[0].strip() for row in rows[1:3]] == ["training [2Ja", "training [2Jb"]
