"""Tables as values: the same one becomes HTML for a page, Markdown for a paper's sources, and CSV."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from cwbc.reports.method_styles import Looks
from cwbc.system.formatting import PERCENT, csv_text, score

MISSING = "–"
_NUMBERS = ("low", "high", "spread", "published", "published_spread", "difference")  # beside a cell's value


@dataclasses.dataclass(frozen=True)
class TableColumn:
    """What a column's cells have in common; with `better`, the best of its numbers is emphasized."""

    name: str
    note: str = ""
    written: Callable[[float], str] = score
    better: Literal["higher", "lower"] | None = None
    bar: bool = False  # fractions that are shown as bars, too
    series: str | None = None  # the method that it is hidden with


@dataclasses.dataclass(frozen=True)
class TableCell:
    """A number or words, with its interval or spread, and what others published; NaN is unknown."""

    value: float | str = math.nan
    low: float = math.nan
    high: float = math.nan
    spread: float = math.nan  # after a plus-minus
    note: str = ""
    published: float = math.nan
    published_spread: float = math.nan

    @property
    def number(self) -> float:
        """The value, if it is a number."""
        return math.nan if isinstance(self.value, str) else self.value

    @property
    def difference(self) -> float:
        """How far the value lies above what was published."""
        return self.number - self.published


@dataclasses.dataclass(frozen=True)
class TableRow:
    """A row under its name; `series` is the method that it is hidden with."""

    name: str
    cells: Sequence[TableCell]
    series: str | None = None
    tags: tuple[str, ...] = ()
    written: Callable[[float], str] | None = None  # where its numbers are not of the columns' kind
    group: str = ""  # what it belongs to


class ShownCell(NamedTuple):
    """A cell in words."""

    text: str
    notes: tuple[str, ...] = ()
    is_best: bool = False
    published: str = ""
    difference: str = ""
    kind: str = ""  # of the difference: "good" or "bad"
    heat: str = ""  # how strong its ground is, where that shows
    bar: str = ""  # the length of its bar, where it has one


@dataclasses.dataclass(frozen=True)
class ReportTable:
    """Rows of cells under columns."""

    head: str  # above the names of the rows
    columns: Sequence[TableColumn]
    rows: Sequence[TableRow]
    looks: Looks = dataclasses.field(default_factory=dict)  # by series: how its row or column is marked
    heat: bool = False  # the higher a number of the table, the stronger its ground
    best_of: Literal["column", "row"] = "column"  # where a number has to be the best to be emphasized
    title: str = ""
    groups: str = ""  # what the rows' groups are

    def to_markdown(self) -> str:
        """The table in GitHub's Markdown, its columns aligned in the source as well."""
        names = ((", ".join(filter(None, (row.group, row.name))), row.tags) for row in self.rows)
        columns = [[self.heading, *itertools.starmap(_with_notes, names)]]
        for i, column in enumerate(self.columns):
            texts = [_with_notes(column.name, self.notes(i))]
            for shown in (self.shown(i, row) for row in self.rows):
                published = ", ".join(filter(None, (shown.published, shown.difference)))
                text = f"**{shown.text}**" if shown.is_best else shown.text
                texts.append(_with_notes(text, filter(None, (*shown.notes, published))))
            columns.append(texts)
        for number, texts in enumerate(columns):
            texts[:] = [re.sub(r"([|<])", r"\\\1", text).replace("\n", " ") for text in texts]
            width = max(3, *map(len, texts))
            texts[:] = [text.rjust(width) if number else text.ljust(width) for text in texts]
            texts.insert(1, "-" * (width - 1) + (":" if number else "-"))
        return "".join(f"| {' | '.join(line)} |\n" for line in zip(*columns, strict=True))

    def plain(self) -> list[tuple[object, ...]]:
        """The numbers themselves, each kind in a column of its own; the names of the columns come first."""
        columns: list[list[object]] = [[self.head, *(row.name for row in self.rows)]]
        if self.groups:
            columns.insert(0, [self.groups, *(row.group for row in self.rows)])
        for i, column in enumerate(self.columns):
            cells = [row.cells[i] for row in self.rows]
            columns.append([column.name, *(_plain(cell.value) for cell in cells)])
            for name in (*_NUMBERS, "note"):
                found = [_plain(getattr(cell, name)) for cell in cells]
                if any(value not in (None, "") for value in found):
                    columns.append([f"{column.name} {name.replace('_', ' ')}", *found])
        return list(zip(*columns, strict=True))

    def to_csv(self) -> str:
        """The same as a file."""
        return csv_text(self.plain())

    @property
    def heading(self) -> str:
        """What stands above the names of the rows."""
        return ", ".join(filter(None, (self.groups, self.head)))

    @property
    def best_in_words(self) -> str:
        """What is emphasized; nothing where nothing is."""
        places = itertools.product(range(len(self.columns)), self.rows)
        if not any(self.shown(index, row).is_best for index, row in places):
            return ""
        published = any(math.isfinite(cell.published) for row in self.rows for cell in row.cells)
        return f"the best of its {self.best_of}{', published numbers apart' * published}"

    def grouped(self) -> Iterator[tuple[str, Iterator[TableRow]]]:
        """The rows of each group."""
        return itertools.groupby(self.rows, lambda row: row.group)

    def notes(self, index: int) -> list[str]:
        """What stands below the name of a column."""
        published = any(math.isfinite(row.cells[index].published) for row in self.rows)
        return [note for note in (self.columns[index].note, "published, difference" * published) if note]

    def shown(self, index: int, row: TableRow) -> ShownCell:
        """The cell of a row in this column."""
        column, cell = self.columns[index], row.cells[index]
        write, number = row.written or column.written, cell.number
        if isinstance(cell.value, str):
            return ShownCell(cell.value, (cell.note,) if cell.note else ())
        difference = sign = ""
        if math.isfinite(cell.difference):
            difference = write(abs(cell.difference))
            sign = "" if difference == write(0.0) else "+" if cell.difference > 0 else "−"
        kind = ""
        if sign and column.better:
            kind = "good" if (sign == "+") == (column.better == "higher") else "bad"
        interval = ""
        if math.isfinite(cell.low + cell.high):
            interval = f"{write(cell.low).removesuffix(PERCENT)} to {write(cell.high)}"
        return ShownCell(
            _with_spread(write, number, cell.spread) or MISSING,
            tuple(filter(None, (interval, cell.note))),
            math.isfinite(number) and write(number) == self._best(index, row),
            _with_spread(write, cell.published, cell.published_spread),
            sign + difference,
            kind,
            _percent(number / self._highest) if self.heat and self._highest > 0 else "",
            _percent(number) if column.bar else "",
        )

    @functools.cached_property
    def _highest(self) -> float:
        numbers = (cell.number for row in self.rows for cell in row.cells)
        return max(filter(math.isfinite, numbers), default=0.0)

    def _best(self, index: int, row: TableRow) -> str | None:
        """The best number as it is written, among those that a number is compared with; None without one."""
        better, write = self.columns[index].better, row.written or self.columns[index].written
        if better is None:
            return None
        if self.best_of == "row":
            among = [cell for other, cell in zip(self.columns, row.cells, strict=True) if other.better]
        else:
            among = [other.cells[index] for other in self.rows]
        numbers = [cell.number for cell in among if math.isfinite(cell.number)]
        best = max if better == "higher" else min
        return write(best(numbers)) if len(set(map(write, numbers))) > 1 else None


def _with_spread(write: Callable[[float], str], value: float, spread: float) -> str:
    if not math.isfinite(value):
        return ""
    return write(value) + (f" ± {write(spread)}" if math.isfinite(spread) else "")


def _with_notes(text: str, notes: Iterable[str]) -> str:
    return " ".join([text, *(f"({note})" for note in notes)])


def _plain(value: float | str) -> float | str | None:
    return value if isinstance(value, str) or math.isfinite(value) else None


def _percent(fraction: float) -> str:
    return f"{100 * min(max(fraction, 0.0), 1.0):.0f}%" if math.isfinite(fraction) else ""
