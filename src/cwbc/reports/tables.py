"""Tables as values: the same one becomes HTML for a page, Markdown for a paper's sources, and CSV."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from cwbc.reports.looks import Looks
from cwbc.system.formatting import PERCENT, score

MISSING = "–"
_MANY = 5  # columns, beyond which they stand closer together


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
    """A number or words, with its interval or spread, and with what others published in its place."""

    value: float | str | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None  # after a plus-minus
    note: str = ""
    published: float | None = None
    published_spread: float | None = None

    @property
    def number(self) -> float | None:
        """The value, if it is a finite number."""
        return self.value if isinstance(self.value, float | int) and math.isfinite(self.value) else None

    @property
    def difference(self) -> float | None:
        """How far the value lies above what was published."""
        return None if self.number is None or self.published is None else self.number - self.published


@dataclasses.dataclass(frozen=True)
class TableRow:
    """A row under its name; `series` is the method that it is hidden with."""

    name: str
    cells: Sequence[TableCell]
    series: str | None = None
    tags: tuple[str, ...] = ()
    written: Callable[[float], str] | None = None  # where its numbers are not of the columns' kind
    group: str = ""  # what it belongs to

    @property
    def title(self) -> str:
        """All of its name."""
        return f"{self.group}, {self.name}" if self.group else self.name


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
        names = [" ".join([row.title, *(f"({tag})" for tag in row.tags)]) for row in self.rows]
        columns = [[self.heading, *names]]
        for i, column in enumerate(self.columns):
            name = " ".join([column.name, *(f"({note})" for note in self.notes(i))])
            columns.append([name, *(_marked_down(self.shown(i, row)) for row in self.rows)])
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
            for name in ("low", "high", "spread", "published", "published_spread", "difference", "note"):
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
        return f"{self.groups}, {self.head}" if self.groups else self.head

    @property
    def is_dense(self) -> bool:
        """Whether its columns have to stand closer together."""
        return len(self.columns) > _MANY or bool(self.groups)

    @property
    def best_in_words(self) -> str:
        """What is emphasized; nothing where nothing is."""
        places = itertools.product(range(len(self.columns)), self.rows)
        if not any(self.shown(index, row).is_best for index, row in places):
            return ""
        published = any(cell.published is not None for row in self.rows for cell in row.cells)
        return f"the best of its {self.best_of}{', published numbers apart' * published}"

    def grouped(self) -> Iterator[tuple[str, list[TableRow]]]:
        """The rows of each group."""
        for group, rows in itertools.groupby(self.rows, lambda row: row.group):
            yield group, list(rows)

    def notes(self, index: int) -> list[str]:
        """What stands below the name of a column."""
        published = any(row.cells[index].published is not None for row in self.rows)
        notes = (self.columns[index].note, "published, difference" if published else "")
        return [note for note in notes if note]

    def shown(self, index: int, row: TableRow) -> ShownCell:
        """The cell of a row in this column."""
        column, cell = self._column(index, row), row.cells[index]
        if isinstance(cell.value, str):
            return ShownCell(cell.value, (cell.note,) if cell.note else ())
        difference, kind = _difference(column, cell.difference)
        number, highest = cell.number, self._highest
        return ShownCell(
            _number(column, number, cell.spread),
            tuple(note for note in (_interval(column, cell), cell.note) if note),
            number is not None and column.written(number) == self._best(index, row),
            "" if cell.published is None else _number(column, cell.published, cell.published_spread),
            difference,
            kind,
            _percent(number / highest) if self.heat and highest > 0 and number is not None else "",
            _percent(number) if column.bar and number is not None else "",
        )

    @functools.cached_property
    def _highest(self) -> float:
        return max((cell.number or 0.0 for row in self.rows for cell in row.cells), default=0.0)

    def _best(self, index: int, row: TableRow) -> str | None:
        """The best number as it is written, among those that a number is compared with; None without one."""
        column = self._column(index, row)
        if column.better is None:
            return None
        if self.best_of == "row":
            among = [cell for other, cell in zip(self.columns, row.cells, strict=True) if other.better]
        else:
            among = [other.cells[index] for other in self.rows]
        numbers = [cell.number for cell in among if cell.number is not None]
        if len({column.written(number) for number in numbers}) < 2:
            return None
        return column.written(max(numbers) if column.better == "higher" else min(numbers))

    def _column(self, index: int, row: TableRow) -> TableColumn:
        """The column as it is in a row."""
        column = self.columns[index]
        return column if row.written is None else dataclasses.replace(column, written=row.written)


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _interval(column: TableColumn, cell: TableCell) -> str:
    if cell.low is None or cell.high is None or not math.isfinite(cell.low + cell.high):
        return ""
    low, high = column.written(cell.low), column.written(cell.high)
    return f"{low.removesuffix(PERCENT)} to {high}"


def _number(column: TableColumn, value: float | None, spread: float | None) -> str:
    if value is None:
        return MISSING
    return column.written(value) + (
        "" if spread is None or not math.isfinite(spread) else f" ± {column.written(spread)}"
    )


def _difference(column: TableColumn, value: float | None) -> tuple[str, str]:
    """A difference with its sign, and whether it is good or bad."""
    if value is None:
        return "", ""
    text = column.written(abs(value))
    if text == column.written(0.0):
        return text, ""
    sign = "+" if value > 0 else "−"
    if column.better is None:
        return sign + text, ""
    return sign + text, "good" if (value > 0) == (column.better == "higher") else "bad"


def _marked_down(shown: ShownCell) -> str:
    text = f"**{shown.text}**" if shown.is_best else shown.text
    published = ", ".join(words for words in (shown.published, shown.difference) if words)
    return " ".join([text, *(f"({note})" for note in (*shown.notes, published) if note)])


def _plain(value: float | str | None) -> float | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _percent(fraction: float) -> str:
    return f"{100 * min(max(fraction, 0.0), 1.0):.0f}%"
