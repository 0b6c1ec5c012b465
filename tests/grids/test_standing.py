"""How a grid shows itself."""

from __future__ import annotations

import io

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
