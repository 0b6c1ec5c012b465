"""How a grid shows itself."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cwbc.grids.standing import Running, Standing, shown

BUSY = Standing(5, 2, 1, (Running("a rvs", "training", 1200, 5000), Running("b bc", "evaluating")), "r")


def test_plain_lines_are_few() -> None:
    for interval, lines in ((0.0, 3), (1000.0, 1)):
        stream = io.StringIO()
        with shown(Console(file=stream), interval) as show:
            for standing in (Standing(5), BUSY, BUSY, BUSY):  # what has not changed is not told again
                show(standing)
        told = stream.getvalue().splitlines()
        assert len(told) == lines
        assert told[-1] == "2/5 cells finished, 1 failed"
        if lines > 1:
            assert told[0] == "0/5 cells finished"
            assert told[1] == "2/5 cells finished, 1 failed; a rvs: training 1,200/5,000; b bc: evaluating; r"


def test_a_terminal_shows_what_each_is_doing() -> None:
    stream = io.StringIO()
    many = tuple(Running(f"cell {n}", "training", n, 20) for n in range(20))
    with shown(Console(file=stream, force_terminal=True, width=80)) as show:
        show(Standing(30, 3, 0, many))
    text = stream.getvalue()
    assert "3/30 cells finished" in text
    assert "training 11/20" in text
    assert "training 12/20" not in text
    assert "and 8 more" in text


def test_the_time_left_goes_by_what_was_finished_since_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("cwbc.grids.standing.time.monotonic", lambda: now)
    stream = io.StringIO()
    with shown(Console(file=stream), 0.0) as show:
        for seconds, standing in (
            (0, Standing(9, remark="reading")),
            (50, Standing(9, 3, 0, BUSY.running)),  # three were there before
            (100, Standing(9, 4, 0, BUSY.running)),
            (60, Standing(9, 4, 0, BUSY.running[:1])),  # the next one is on its way
            (600, Standing(9, 4, 0, BUSY.running)),  # and takes its time
            (40, Standing(9, 4, 1, BUSY.running)),
            (120_000, Standing(9, 6, 1, BUSY.running)),
            (1, Standing(9, 7, 1, BUSY.running)),
            (90_000, Standing(9, 7, 1, BUSY.running[:1])),  # the last one takes longer than all others
            (1, Standing(9, 8, 1)),
        ):
            now += seconds
            show(standing)
    heads = [line.split(";")[0] for line in stream.getvalue().splitlines()]
    assert heads == [
        "0/9 cells finished",
        "3/9 cells finished",
        "4/9 cells finished, about 8 min left",  # 100 s each, 5 to go
        "4/9 cells finished, about 7 min left",
        "4/9 cells finished, about 7 min left",
        "4/9 cells finished, 1 failed, about 27 min left",
        "6/9 cells finished, 1 failed, about 16.8 h left",
        "7/9 cells finished, 1 failed, about 6.7 h left",
        "7/9 cells finished, 1 failed",
        "8/9 cells finished, 1 failed",
    ]
