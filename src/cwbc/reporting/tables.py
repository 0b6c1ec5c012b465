"""Tables as values: the same one becomes HTML for a page, Markdown for a paper's sources, and CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Literal, NamedTuple

from cwbc.reporting.interactive import Looks, swatch
from cwbc.wording import score

MISSING = "–"
_MANY = 5  # columns, beyond which they stand closer together


@dataclasses.dataclass(frozen=True)
class Column:
    """What a column's cells have in common; with `better`, the best of its numbers is emphasized."""

    name: str
    note: str = ""
    written: Callable[[float], str] = score
    better: Literal["higher", "lower"] | None = None
    bar: bool = False  # fractions that are shown as bars, too
    series: str | None = None  # the method that it is hidden with


@dataclasses.dataclass(frozen=True)
class Cell:
    """A number or words, with what tells how sure it is and what others published in its place."""

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
class Row:
    """A row under its name; `series` is the method that it is hidden with."""

    name: str
    cells: Sequence[Cell]
    series: str | None = None
    tags: tuple[str, ...] = ()
    written: Callable[[float], str] | None = None  # where its numbers are not of the columns' kind
    group: str = ""  # what it belongs to

    @property
    def title(self) -> str:
        """All of its name."""
        return f"{self.group}, {self.name}" if self.group else self.name


class _Shown(NamedTuple):
    """A cell in words."""

    text: str
    notes: tuple[str, ...] = ()
    is_best: bool = False
    number: float | None = None
    published: str = ""
    difference: str = ""
    kind: str = ""  # of the difference: "good" or "bad"


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells under columns."""

    head: str  # above the names of the rows
    columns: Sequence[Column]
    rows: Sequence[Row]
    looks: Looks = dataclasses.field(default_factory=dict)  # by series: how its row or column is marked
    heat: bool = False  # the higher a number of the table, the stronger its ground
    best_of: Literal["column", "row"] = "column"  # where a number has to be the best to be emphasized
    title: str = ""
    groups: str = ""  # what the rows' groups are

    def to_html(self) -> str:
        """The table in a box that scrolls by itself, so that the page around it never does."""
        names = [f'<th scope="col">{escape(self._head)}</th>', *map(self._heading, range(len(self.columns)))]
        numbers = [cell.number or 0.0 for row in self.rows for cell in row.cells]
        bodies = "\n".join(
            self._body(group, list(rows), max(numbers, default=0.0))
            for group, rows in itertools.groupby(self.rows, lambda row: row.group)
        )
        title = f"<h3>{escape(self.title)}</h3>" if self.title else ""
        beside = any(cell.published is not None for row in self.rows for cell in row.cells)
        among = f"its {self.best_of}{', published numbers apart' * beside}"
        bold = f'<p class="bold">bold: the best of {among}</p>' if 'class="best' in bodies else ""
        dense = ' class="dense"' if len(self.columns) > _MANY or self.groups else ""
        return (
            f'<div class="table">{title}<div class="box" tabindex="0" role="region" '
            f'aria-label="by {escape(self._head)}">'
            f"<table{dense}><thead><tr>{''.join(names)}</tr></thead>\n{bodies}</table></div>"
            f'<p class="hint">scroll the table sideways for more →</p>{bold}</div>'
        )

    def to_markdown(self) -> str:
        """The table in GitHub's Markdown, its columns aligned in the source as well."""
        names = [" ".join([row.title, *(f"({tag})" for tag in row.tags)]) for row in self.rows]
        columns = [[self._head, *names]]
        for i, column in enumerate(self.columns):
            name = " ".join([column.name, *(f"({note})" for note in self._notes(i))])
            columns.append([name, *(_marked_down(self._shown(i, row)) for row in self.rows)])
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
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.plain())
        return text.getvalue()

    @property
    def _head(self) -> str:
        return f"{self.groups}, {self.head}" if self.groups else self.head

    def _notes(self, index: int) -> list[str]:
        """What stands below the name of a column."""
        published = any(row.cells[index].published is not None for row in self.rows)
        notes = (self.columns[index].note, "published, difference" if published else "")
        return [note for note in notes if note]

    def _shown(self, index: int, row: Row) -> _Shown:
        column, cell = self._column(index, row), row.cells[index]
        if isinstance(cell.value, str):
            return _Shown(cell.value, (cell.note,) if cell.note else ())
        notes = tuple(note for note in (_interval(column, cell), cell.note) if note)
        difference, kind = _difference(column, cell.difference)
        return _Shown(
            _number(column, cell.number, cell.spread),
            notes,
            cell.number is not None and column.written(cell.number) == self._best(index, row),
            cell.number,
            "" if cell.published is None else _number(column, cell.published, cell.published_spread),
            difference,
            kind,
        )

    def _best(self, index: int, row: Row) -> str | None:
        """The best number as it is written, so that ties share the honour; nothing where all are alike."""
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

    def _column(self, index: int, row: Row) -> Column:
        """The column as it is in a row."""
        column = self.columns[index]
        return column if row.written is None else dataclasses.replace(column, written=row.written)

    def _heading(self, index: int) -> str:
        column = self.columns[index]
        notes = "".join(f"<small>{escape(note)}</small>" for note in self._notes(index))
        name = f'{self._mark(column.series)}<span class="name">{escape(column.name)}</span>'
        return f'<th scope="col"{_hidden_with(column.series)}>{name}{notes}</th>'

    def _body(self, group: str, rows: Sequence[Row], highest: float) -> str:
        across = len(self.columns) + 1
        lines = [f'<tr class="group"><th scope="rowgroup" colspan="{across}">{escape(group)}</th></tr>']
        for row in rows:
            pairs = zip(self.columns, (self._shown(i, row) for i in range(len(self.columns))), strict=True)
            cells = "".join(self._cell(column, shown, highest) for column, shown in pairs)
            lines.append(f"<tr{_hidden_with(row.series)}>{self._name(row)}{cells}</tr>")
        return "<tbody>" + "\n".join(lines if group else lines[1:]) + "</tbody>"

    def _name(self, row: Row) -> str:
        name = f'{self._mark(row.series)}<span class="name">{escape(row.name)}</span>'
        tags = "".join(f'<span class="tag">{escape(tag)}</span>' for tag in row.tags)
        return f'<th scope="row">{name}{tags}</th>'

    def _mark(self, series: str | None) -> str:
        return swatch(self.looks[series]) if series is not None and series in self.looks else ""

    def _cell(self, column: Column, shown: _Shown, highest: float) -> str:
        heated = self.heat and highest > 0 and shown.number is not None
        share = f' style="--share:{_percent((shown.number or 0) / highest)}"' if heated else ""
        names = " ".join(name for name, holds in (("best", shown.is_best), ("heat", heated)) if holds)
        notes = "".join(f"<small>{escape(note)}</small>" for note in shown.notes)
        if shown.published:
            kind = f' class="{shown.kind}"' if shown.kind else ""
            notes += f"<small>{escape(shown.published)} <span{kind}>{escape(shown.difference)}</span></small>"
        bar = ""
        if column.bar and shown.number is not None:
            bar = f'<span class="bar"><span style="width:{_percent(shown.number)}"></span></span>'
        named = f' class="{names}"' if names else ""
        return f"<td{named}{share}{_hidden_with(column.series)}>{escape(shown.text)}{notes}{bar}</td>"


def _interval(column: Column, cell: Cell) -> str:
    if cell.low is None or cell.high is None or not math.isfinite(cell.low + cell.high):
        return ""
    low, high = column.written(cell.low), column.written(cell.high)
    unit = "\u00a0%" if low.endswith("\u00a0%") else ""
    return f"{low.removesuffix(unit)} to {high}"


def _number(column: Column, value: float | None, spread: float | None) -> str:
    if value is None:
        return MISSING
    return column.written(value) + (
        "" if spread is None or not math.isfinite(spread) else f" ± {column.written(spread)}"
    )


def _difference(column: Column, value: float | None) -> tuple[str, str]:
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


def _marked_down(shown: _Shown) -> str:
    text = f"**{shown.text}**" if shown.is_best else shown.text
    published = ", ".join(words for words in (shown.published, shown.difference) if words)
    return " ".join([text, *(f"({note})" for note in (*shown.notes, published) if note)])


def _plain(value: float | str | None) -> float | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.0f}%"


def _hidden_with(series: str | None) -> str:
    return "" if series is None else f' data-series="{escape(series)}"'
