"""The picture of reliability in characters, so that a terminal tells the story before any file is opened."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from cwbc.reporting.figures import COLOURS, padded, shortened
from cwbc.results import MethodSummary
from cwbc.tasks import Landmark, Task, landmarks

WIDEST, NARROWEST, ROWS = 72, 40, 12
ACHIEVED, ASKED, EQUAL = "achieved return", "target return", "⠠⠐⠈ achieved = target"
MARKERS, FAINT = "●■▲◆○□△◇", "dim"
STYLES = [colour.replace("#000000", "default") for colour in COLOURS]  # black would be unseen on black
BRAILLE, DOTS = 0x2800, ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # the empty cell; [across][down]
UPPER = 0x1B  # the dots of a braille cell's upper half
# One character for one, so that nothing moves where an encoding has no others.
PLAIN = str.maketrans("●■▲◆○□△◇│┤└─┬┊−–×…", "o#x+*@%&|++-+|--x~") | {
    BRAILLE + dots: "'" if not dots & ~UPPER else ":" if dots & UPPER else "." for dots in range(1, 256)
}

_Place = tuple[int, int]  # across and down from the upper left, in dots: a character has 2 x 4


@dataclasses.dataclass(frozen=True)
class ReliabilityChart:
    """Achieved vs. target return, for rich to print; nothing where there is no room or no return."""

    methods: Mapping[str, MethodSummary]
    task: Task
    best: float  # the dataset's

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, WIDEST)
        points = [point for method in self.methods.values() for point in method["curve"]]
        returns = [point["return"] for point in points if point["return"] is not None]
        if width < NARROWEST or not returns:
            return
        # With the yardsticks, or else noise would look like a collapse.
        achieved = _limits([*returns, self.task.random_score, self.best], 0.03)
        marks = [mark.target for mark in landmarks(self.task, self.best)]
        given = [point["target"] for point in points if point["target"] is not None]
        asked = _limits([*(given or [self.task.near_return, *marks]), self.best], 0.01)
        cells = self._drawn(width, asked, achieved).cells
        for row in range(-1, 2 + max(row for _, row in cells)):  # with an empty line on either side
            line = Text.assemble(*(cells.get((column, row), " ") for column in range(width)))
            if options.ascii_only or options.legacy_windows:
                line.plain = line.plain.translate(PLAIN).encode("ascii", "replace").decode()
            line.truncate(width)  # a name may have characters that are two columns wide
            line.rstrip()
            yield line

    def _drawn(self, width: int, asked: tuple[float, float], achieved: tuple[float, float]) -> _Canvas:
        names = [shortened(name, width // 4 - 2) for name in self.methods]
        down = _Axis(8, 4 * max(ROWS, len(names)), *reversed(achieved))
        left = 1 + max(map(len, down.ticks(4)))
        right = width - 1 - max(len(ASKED), 2 + max(map(len, names)))
        canvas = _Canvas(_Axis(2 * left, 2 * (right - left), *asked), down)
        canvas.frame()
        canvas.landmarks(landmarks(self.task, self.best))
        curves = [
            _Curve(name, MARKERS[i % len(MARKERS)], STYLES[i % len(STYLES)], canvas.places(method))
            for i, (name, method) in enumerate(zip(names, self.methods.values(), strict=True))
        ]
        canvas.curves(curves)
        canvas.names(curves)
        canvas.diagonal()
        return canvas


class _Axis(NamedTuple):
    start: int
    dots: int
    first: float  # the value at the first dot
    last: float

    def dot(self, value: float) -> int:
        return self.start + round((value - self.first) / (self.last - self.first) * (self.dots - 1))

    def ticks(self, most: int) -> dict[str, int]:
        low, high = sorted((self.first, self.last))
        values = [float(v) + 0.0 for v in MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high)]
        return {f"{v:,.10g}".replace("-", "−"): self.dot(v) for v in values if low <= v <= high}


class _Curve(NamedTuple):
    name: str
    marker: str
    style: str
    places: list[_Place | None]  # [target]

    @property
    def end(self) -> _Place | None:
        return next((place for place in reversed(self.places) if place), None)


class _Canvas:
    """A character and its style in every cell; what is drawn later lies on top."""

    def __init__(self, across: _Axis, down: _Axis) -> None:
        self.cells: dict[tuple[int, int], tuple[str, str]] = {}  # by column and row
        self.across, self.down = across, down
        self.left, self.right = across.start // 2, (across.start + across.dots) // 2
        self.top, self.floor = down.start // 4, (down.start + down.dots) // 4

    def write(self, column: int, row: int, text: str, style: str = FAINT) -> None:
        self.cells |= {(column + i, row): (character, style) for i, character in enumerate(text)}

    def label(self, column: int, row: int, text: str, *shares: float) -> bool:
        """Write with one of these shares of the text left of the column, if there is room; was there?"""
        for share in shares:
            first = max(0, min(column - int(share * len(text)), self.right - len(text)))
            if not any((at, row) in self.cells for at in range(first - 1, first + len(text) + 1)):
                self.write(first, row, text)
                return True
        return False

    def line(self, places: Sequence[_Place | None], style: str, every: int = 1) -> None:
        """Join neighbours; a missing one leaves a gap, and lines that meet share a cell."""
        for start, end in itertools.pairwise([*places, None]):
            if start is None:
                continue
            (x, y), (to_x, to_y) = start, end or start
            steps = max(abs(to_x - x), abs(to_y - y), 1)
            for step in range(0, steps + 1, every):
                across, down = x + round((to_x - x) * step / steps), y + round((to_y - y) * step / steps)
                below, _ = self.cells.get((across // 2, down // 4), (" ", ""))
                dots = max(BRAILLE, ord(below)) | DOTS[across % 2][down % 4]
                self.cells[across // 2, down // 4] = chr(dots), style

    def frame(self) -> None:
        self.write(0, 0, ACHIEVED)
        for row in range(self.top, self.floor):
            self.write(self.left - 1, row, "│")
        for text, dot in self.down.ticks(4).items():
            self.write(self.left - 1 - len(text), dot // 4, f"{text}┤")
        self.write(self.left - 1, self.floor, "└" + "─" * (self.right - self.left))
        self.write(self.right + 1, self.floor + 1, ASKED)
        for text, dot in self.across.ticks(max(2, (self.right - self.left) // 9)).items():
            if self.label(dot // 2, self.floor + 1, text, 0.5):
                self.write(dot // 2, self.floor, "┬")

    def landmarks(self, marks: Sequence[Landmark]) -> None:
        for mark in marks:
            column = self.across.dot(mark.target) // 2
            if self.left <= column < self.right and self.label(column, self.top - 1, mark.label, 0.5, 0, 1):
                for row in range(self.top, self.floor):
                    self.write(column, row, "┊")

    def places(self, method: MethodSummary) -> list[_Place | None]:
        """The points of a method's curve; one that takes no target has a level line from edge to edge."""
        edges = (self.across.start, self.across.start + self.across.dots - 1)
        points = [
            (across, point["return"])
            for point in method["curve"]
            for across in (edges if point["target"] is None else (self.across.dot(point["target"]),))
        ]
        return [None if value is None else (across, self.down.dot(value)) for across, value in points]

    def curves(self, curves: Sequence[_Curve]) -> None:
        for curve in curves:
            self.line(curve.places, curve.style)
        for index, curve in enumerate(curves):
            # Where points are dense, some of each, and not the same: curves may run together.
            dense = 8 * len(curve.places) // (self.right - self.left)
            apart = max(dense, len(curves)) if dense else 1
            for place in [*curve.places[index * apart // len(curves) : -apart // 2 : apart], curve.end]:
                if place:
                    self.write(place[0] // 2, place[1] // 4, curve.marker, curve.style)

    def names(self, curves: Sequence[_Curve]) -> None:
        """Name each curve where it ends, or as near as the others leave room."""
        ends = [(curve.end[1] if curve.end else 4 * self.floor, curve) for curve in curves]
        row = -1
        for rank, (end, curve) in enumerate(sorted(ends, key=lambda pair: pair[0])):
            row = min(max(row + 1, end // 4), self.floor - len(curves) + rank)
            self.write(self.right + 1, row, f"{curve.marker if curve.end else '–'} {curve.name}", curve.style)

    def diagonal(self) -> None:
        """Show where achieved is the target, unless too little of it would be seen to make a line."""
        low, high = max(self.across.first, self.down.last), min(self.across.last, self.down.first)
        beneath = _Canvas(self.across, self.down)
        if low < high:
            ends = [(self.across.dot(value), self.down.dot(value)) for value in (low, high)]
            beneath.line(ends, FAINT, every=3)
        seen = {at: cell for at, cell in beneath.cells.items() if at not in self.cells}
        if 3 * len(seen) > len(beneath.cells):
            self.cells |= seen
            self.write(max(len(ACHIEVED) + 2, self.right - len(EQUAL)), 0, EQUAL)


def _limits(values: Sequence[float], margin: float) -> tuple[float, float]:
    array = np.array(values)
    # Values that differ by rounding only would make an axis of no length.
    distinct = np.ptp(array) > 1e-6 * np.abs(array).max()
    return padded(array if distinct else array[:1], margin)
