"""How a grid shows itself."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cwbc.grids.engine import GridProgress, shown
from cwbc.system.progress import TaskProgress

RUNNING = (TaskProgress("training a rvs", 1200, 5000), TaskProgress("evaluating b bc"))
BUSY = GridProgress(5, 2, 1, RUNNING, "waiting")


def test_plain_lines_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    for interval, lines in ((0.0, 3), (1000.0, 1)):
        monkeypatch.setattr("cwbc.system.progress.PLAIN_INTERVAL", interval)
        stream = io.StringIO()
        with shown(Console(file=stream)) as show:
            for grid in (GridProgress(5), BUSY, BUSY, BUSY):  # what has not changed is not printed again
                show(grid)
        printed = stream.getvalue().splitlines()
        assert len(printed) == lines
        assert printed[-1] == "2/5 cells finished, 1 failed"
        if lines > 1:
            assert printed[0] == "0/5 cells finished"
            running = "training a rvs: 1,200/5,000 steps; evaluating b bc; waiting"
            assert printed[1] == f"2/5 cells finished, 1 failed; {running}"


def test_a_terminal_shows_what_each_is_doing() -> None:
    stream = io.StringIO()
    many = tuple(TaskProgress(f"training cell {n}", n, 20) for n in range(20))
    with shown(Console(file=stream, force_terminal=True, width=80)) as show:
        show(GridProgress(30, 3, 0, many))
    text = stream.getvalue()
    assert "3/30 cells finished" in text
    assert "training cell 11" in text
    assert "11/20 steps" in text
    assert "training cell 12" not in text
    assert "and 8 more" in text


def test_the_time_left_goes_by_what_was_finished_since_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("cwbc.system.progress.time.monotonic", lambda: now)
    monkeypatch.setattr("cwbc.system.progress.PLAIN_INTERVAL", 0.0)
    stream = io.StringIO()
    with shown(Console(file=stream)) as show:
        for seconds, grid in (
            (0, GridProgress(9, remark="reading")),
            (50, GridProgress(9, 3, 0, RUNNING)),  # three were there before
            (100, GridProgress(9, 4, 0, RUNNING)),
            (60, GridProgress(9, 4, 0, RUNNING[:1])),  # the next one is on its way
            (600, GridProgress(9, 4, 0, RUNNING)),  # and takes its time
            (40, GridProgress(9, 4, 1, RUNNING)),
            (120_000, GridProgress(9, 6, 1, RUNNING)),
            (1, GridProgress(9, 7, 1, RUNNING)),
            (90_000, GridProgress(9, 7, 1, RUNNING[:1])),  # the last one takes longer than all others
            (1, GridProgress(9, 8, 1)),
        ):
            now += seconds
            show(grid)
    heads = [line.split(";")[0] for line in stream.getvalue().splitlines()]
    assert heads == [
        "0/9 cells finished",
        "3/9 cells finished",
        "4/9 cells finished, 8 min left",  # 100 s each, 5 to go
        "4/9 cells finished, 7 min left",
        "4/9 cells finished, 7 min left",
        "4/9 cells finished, 1 failed, 27 min left",
        "6/9 cells finished, 1 failed, 16.8 h left",
        "7/9 cells finished, 1 failed, 6.7 h left",
        "7/9 cells finished, 1 failed",
        "8/9 cells finished, 1 failed",
    ]
