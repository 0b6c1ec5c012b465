from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from cwbc.reporting.figures import COLOURS
from cwbc.reporting.terminal import MARKERS, NARROWEST, ROWS, WIDEST, ReliabilityChart
from cwbc.results import Sweep, summarize
from cwbc.tasks import TASKS, Task, task_for

CHEETAH, BEST = TASKS["halfcheetah"], 4900.0
TARGETS = CHEETAH.targets(BEST)


def collapse(asked: float) -> float:
    return asked if asked <= BEST else max(-250.0, BEST - 3 * (asked - BEST))


def hold(asked: float) -> float:
    return min(asked, 4700.0)


def missing(asked: float) -> float:
    return np.nan


def sweep(method: str, achieved: Callable[[float], float], targets: Sequence[float] = TARGETS) -> Sweep:
    returns = np.array([achieved(target) for target in targets]).reshape(1, -1, 1)
    return Sweep(method, np.arange(1), np.array(targets), returns, np.ones(returns.shape, np.int64))


def chart(*sweeps: Sweep, task: Task = CHEETAH, best: float = BEST) -> ReliabilityChart:
    return ReliabilityChart({each.method: summarize(each, task, best) for each in sweeps}, task, best)


class AsciiFile(io.StringIO):
    encoding = "ascii"


def printed(drawn: ReliabilityChart, width: int = 80, file: io.StringIO | None = None) -> list[str]:
    file = file or io.StringIO()
    Console(file=file, width=width).print(drawn)
    return file.getvalue().splitlines()


def plot(lines: list[str]) -> list[str]:
    """The rows from the upright axis to where the names begin."""
    return [line[line.index(edge) + 1 : len(lines[-3])] for line in lines for edge in "│┤" if edge in line]


def names(lines: list[str]) -> list[str]:
    """What stands beside the plot, from the top down, with its marker."""
    start = lines[-2].index("target return")
    return [line[start:] for line in lines[3:-3] if line[start:]]


def marked(lines: list[str], marker: str) -> list[int]:
    """The rows of a curve's markers, from left to right."""
    rows = enumerate(plot(lines))
    places = sorted((at, row) for row, line in rows for at, shown in enumerate(line) if shown == marker)
    return [row for _, row in places]


STORY = chart(sweep("rvs", collapse), sweep("rvs+cwbc", hold))
SIX = ["bc", "rvs", "rvs+w", "rvs+c", "rvs+cwbc", "dt"]
LONG = [f"a method of a long name [bold] with the number {i}" for i in range(6)]
MAZE, NEGATIVE = task_for("Maze-v0", 0.0, 1.0), task_for(None, -1500.0, -120.0)
CASES = {
    "two": STORY,
    "six": chart(*(sweep(name, collapse if "c" in name else hold) for name in SIX)),
    "long names": chart(*(sweep(name, hold) for name in LONG)),
    "more than rows": chart(*(sweep(f"rvs{i}", hold) for i in range(ROWS + 3))),
    "wide characters": chart(sweep("報酬" * 9, hold)),
    "one target": chart(sweep("rvs", hold, [4000.0]), sweep("rvs+cwbc", hold, [4000.0])),
    "only the best": chart(sweep("rvs", hold, [BEST])),
    "the best but for rounding": chart(sweep("rvs", hold, [BEST + 1e-7])),
    "some missing": chart(sweep("rvs", lambda asked: np.nan if 3000 < asked < 9000 else asked)),
    "one missing": chart(sweep("rvs", missing), sweep("rvs+cwbc", hold)),
    "equal": chart(sweep("rvs", lambda _: 5.0, [5.0]), task=task_for(None, 5.0, 5.0), best=5.0),
    "tiny": chart(sweep("rvs", lambda asked: asked / 2, MAZE.targets(1.0)), task=MAZE, best=1.0),
    "negative": chart(sweep("rvs", lambda _: -700.0, NEGATIVE.targets(-120.0)), task=NEGATIVE, best=-120.0),
    "huge": chart(sweep("rvs", lambda _: 3e11, [-1e12, 5e12]), task=task_for(None, -1e12, 1e12), best=1e12),
    "one without a target": chart(sweep("bc", lambda _: 2000.0, [np.nan]), sweep("rvs", collapse)),
    "none with a target": chart(sweep("bc", lambda _: 2000.0, [np.nan])),
    "near landmarks": chart(sweep("rvs", hold), best=11_900.0),
}


@pytest.mark.parametrize("drawn", CASES.values(), ids=CASES)
def test_every_width_is_enough(drawn: ReliabilityChart) -> None:
    for width in (*range(NARROWEST, WIDEST + 1, 4), 80, 200):
        lines = printed(drawn, width)
        assert max(map(cell_len, lines)) <= min(width, WIDEST)
        assert len(plot(lines)) == max(ROWS, len(drawn.methods))
        assert len(names(lines)) == len(drawn.methods)
        assert "dataset's best" in lines[2]


@pytest.mark.parametrize("drawn", CASES.values(), ids=CASES)
def test_ascii_shows_the_same_in_other_characters(drawn: ReliabilityChart) -> None:
    lines, plain = printed(drawn), printed(drawn, file=AsciiFile())
    assert "".join(plain).isascii()
    end = len(lines[-3])  # the names beyond may have other widths
    empty = [[shown == " " for line in each for shown in line[:end].ljust(end)] for each in (lines, plain)]
    assert empty[0] == empty[1]


def test_what_collapses_falls_and_what_holds_does_not() -> None:
    lines = printed(STORY)
    assert names(lines) == [f"{MARKERS[1]} rvs+cwbc", f"{MARKERS[0]} rvs"]
    falling, holding = (marked(lines, marker) for marker in MARKERS[:2])
    assert falling[0] > min(falling) + 5  # it rises first
    assert falling[-1] == ROWS - 1
    assert holding[-1] == min(holding) == 0


def test_a_method_that_takes_no_target_is_level() -> None:
    rows = [row for row in plot(printed(CASES["none with a target"])) if MARKERS[0] in row]
    assert [row.strip()[0] + row.strip()[-1] for row in rows] == [2 * MARKERS[0]]  # from edge to edge
    assert len(rows[0].strip()) == len(rows[0])


def test_lines_join_the_points() -> None:
    """From the lower left to the upper right: through every column and row, always to the right and up."""
    task = task_for(None, 0.0, 100.0)
    lines = plot(printed(chart(sweep("rvs", lambda asked: asked, [0.0, 100.0]), task=task, best=100.0)))
    drawn = [[at for at, shown in enumerate(line) if shown not in " ┊"] for line in lines]
    assert all(drawn)
    upwards = list(itertools.chain(*reversed(drawn)))
    assert upwards == sorted(upwards)
    assert set(upwards) == set(range(upwards[-1] + 1))


def test_a_row_has_four_heights() -> None:
    heights = [
        4000.0 - quarter * (BEST - CHEETAH.random_score) * 1.06 / (4 * ROWS - 1) for quarter in range(4)
    ]
    texts = ["".join(plot(printed(chart(sweep("rvs", lambda _, h=height: h))))) for height in heights]  # type: ignore[misc]
    shown = ["".join(set(text) & set("⠉⠒⠤⣀")) for text in texts]
    assert "".join(shown) in "⠉⠒⠤⣀" * 2


def test_a_missing_return_is_a_gap() -> None:
    def seen(achieved: Callable[[float], float]) -> int:
        return sum(
            shown not in " ┊" for line in plot(printed(chart(sweep("rvs", achieved)))) for shown in line
        )

    assert seen(lambda asked: np.nan if 9000 < asked < 18000 else -250.0) < 0.7 * seen(lambda asked: -250.0)


def test_a_method_without_returns_is_named_without_a_marker() -> None:
    lines = printed(CASES["one missing"])
    assert "– rvs" in names(lines)
    assert MARKERS[0] not in "".join(lines)


@pytest.mark.parametrize("width", [NARROWEST, WIDEST])
@pytest.mark.parametrize("case", ["six", "long names"])
def test_curves_that_run_together_can_be_told_apart(case: str, width: int) -> None:
    lines = printed(CASES[case], width)
    assert sorted(name[0] for name in names(lines)) == sorted(MARKERS[:6])
    assert len({name[1:] for name in names(lines)}) == 6
    assert width < WIDEST or all(marked(lines, marker) for marker in MARKERS[:6])


def test_ticks_stand_at_their_values() -> None:
    lines = printed(chart(sweep("rvs", lambda _: 2000.0)))
    (row,) = [line for line in lines if line.startswith("2,000┤")]
    assert row.endswith(f"{MARKERS[0]} rvs")
    labels, axis = lines[-2:-4:-1]
    assert labels.split()[:-2] == ["5,000", "10,000", "15,000", "20,000"]
    ticks = [at for at, shown in enumerate(axis) if shown == "┬"]
    assert all(abs(step - (ticks[-1] - ticks[0]) / 3) <= 1 for step in np.diff(ticks))
    best = min(line.index("┊") for line in lines if "┊" in line)
    assert ticks[0] - 1 <= best <= ticks[0]  # 4,900 beside 5,000
    assert all(labels[at] != " " for at in ticks)


def test_landmarks_are_those_of_the_task() -> None:
    assert re.split("  +", printed(STORY)[2].strip()) == ["dataset's best", "1× expert", "2× expert"]
    assert re.split("  +", printed(CASES["tiny"])[2].strip()) == ["dataset's best", "best + range"]


def test_the_diagonal_is_named_only_where_it_is_seen() -> None:
    assert "achieved = target" not in printed(STORY)[1]  # both curves lie on it
    assert printed(CASES["negative"])[1].endswith("achieved = target")


def test_colours_are_the_figures_and_for_terminals_only() -> None:
    file = io.StringIO()
    Console(file=file, width=80, force_terminal=True, color_system="truecolor").print(STORY)
    for marker, colour in zip(MARKERS, COLOURS[:2], strict=False):
        red, green, blue = bytes.fromhex(colour[1:])
        assert f"\x1b[38;2;{red};{green};{blue}m{marker}" in file.getvalue()
    assert "\x1b" not in "".join(printed(STORY))


def test_without_room_or_returns_there_is_no_chart() -> None:
    assert printed(STORY, NARROWEST - 1) == []
    assert printed(chart(sweep("rvs", missing))) == []
    assert printed(chart()) == []
