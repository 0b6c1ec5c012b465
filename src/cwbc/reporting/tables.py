"""Tables as values: the same one becomes HTML for a page, Markdown for a paper's sources, and CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Literal, NamedTuple

from cwbc.reporting.interactive import Looks, swatch
from cwbc.wording import score

MISSING = "–"


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


class _Shown(NamedTuple):
    """A cell in words."""

    text: str
    notes: tuple[str, ...] = ()
    kind: str = ""  # "best", or for a difference "good" or "bad"
    number: float | None = None


class _Part(NamedTuple):
    """A column as it is written; one with published numbers has three."""

    column: Column
    name: str
    cells: list[_Shown]  # [row]


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells under columns."""

    head: str  # above the names of the rows
    columns: Sequence[Column]
    rows: Sequence[Row]
    looks: Looks = dataclasses.field(default_factory=dict)  # by series: how its row or column is marked
    heat: bool = False  # the higher a number of the table, the stronger its ground
    best_of: Literal["column", "row"] = "column"  # where a number has to be the best to be emphasized

    def to_html(self) -> str:
        """The table in a box that scrolls by itself, so that the page around it never does."""
        parts = [self._parts(i) for i in range(len(self.columns))]
        deep = any(len(part) > 1 for part in parts)
        names = [f'<th scope="col"{_span("row", 2 if deep else 1)}>{escape(self.head)}</th>']
        names += [self._heading(group, deep) for group in parts]
        below = [
            f'<th scope="col"{_hidden_with(part.column.series)}>{part.name}</th>'
            for group in parts
            if len(group) > 1
            for part in group
        ]
        head = f"<tr>{''.join(names)}</tr>" + (f"<tr>{''.join(below)}</tr>" if deep else "")
        highest = max((shown.number or 0.0 for group in parts for shown in group[0].cells), default=0.0)
        body = "\n".join(
            f"<tr{_hidden_with(row.series)}>{self._name(row)}"
            f"{''.join(self._cell(part, part.cells[i], highest) for group in parts for part in group)}</tr>"
            for i, row in enumerate(self.rows)
        )
        return (
            '<div class="table"><div class="box" tabindex="0" role="region" '
            f'aria-label="by {escape(self.head)}">'
            f"<table><thead>{head}</thead>\n<tbody>{body}</tbody></table></div>"
            '<p class="hint">scroll the table sideways for more →</p></div>'
        )

    def to_markdown(self) -> str:
        """The table in GitHub's Markdown, its columns aligned in the source as well."""
        names = [" ".join([row.name, *(f"({tag})" for tag in row.tags)]) for row in self.rows]
        columns = [[self.head, *names]]
        for i in range(len(self.columns)):
            for part in self._parts(i):
                note = f" ({part.column.note})" if part.column.note else ""
                name = ", ".join(word for word in (part.column.name + note, part.name) if word)
                columns.append([name, *map(_marked_down, part.cells)])
        for number, column in enumerate(columns):
            column[:] = [text.replace("|", "\\|").replace("\n", " ") for text in column]
            width = max(3, *map(len, column))
            column[:] = [text.rjust(width) if number else text.ljust(width) for text in column]
            column.insert(1, "-" * (width - 1) + (":" if number else "-"))
        return "".join(f"| {' | '.join(line)} |\n" for line in zip(*columns, strict=True))

    def to_csv(self) -> str:
        """The numbers themselves, each kind in a column of its own."""
        columns: list[list[object]] = [[self.head, *(row.name for row in self.rows)]]
        for i, column in enumerate(self.columns):
            cells = [row.cells[i] for row in self.rows]
            columns.append([column.name, *(_plain(cell.value) for cell in cells)])
            for name in ("low", "high", "spread", "published", "published_spread", "difference", "note"):
                found = [_plain(getattr(cell, name)) for cell in cells]
                if any(value not in (None, "") for value in found):
                    columns.append([f"{column.name} {name.replace('_', ' ')}", *found])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
        return text.getvalue()

    def _parts(self, index: int) -> list[_Part]:
        column, cells = self.columns[index], [row.cells[index] for row in self.rows]
        ours = [_ours(column, row.cells[index], self._best(index, row)) for row in self.rows]
        if all(cell.published is None for cell in cells):
            return [_Part(column, "", ours)]
        published = [_number(column, cell.published, cell.published_spread) for cell in cells]
        differences = [_difference(column, cell.difference) for cell in cells]
        return [
            _Part(column, "ours", ours),
            _Part(column, "published", published),
            _Part(column, "difference", differences),
        ]

    def _best(self, index: int, row: Row) -> str | None:
        """The best number as it is written, so that ties share the honour; nothing where all are alike."""
        column = self.columns[index]
        among = [other.cells[index] for other in self.rows]
        if self.best_of == "row":
            among = [cell for other, cell in zip(self.columns, row.cells, strict=True) if other.better]
        numbers = [cell.number for cell in among if cell.number is not None]
        if column.better is None or len({column.written(number) for number in numbers}) < 2:
            return None
        return column.written(max(numbers) if column.better == "higher" else min(numbers))

    def _heading(self, parts: list[_Part], deep: bool) -> str:
        column = parts[0].column
        note = f"<small>{escape(column.note)}</small>" if column.note else ""
        span = _span("col", len(parts)) + _span("row", 2 if deep and len(parts) == 1 else 1)
        name = f'{self._mark(column.series)}<span class="name">{escape(column.name)}</span>'
        return f'<th scope="col"{span}{_hidden_with(column.series)}>{name}{note}</th>'

    def _name(self, row: Row) -> str:
        name = f'{self._mark(row.series)}<span class="name">{escape(row.name)}</span>'
        tags = "".join(f'<span class="tag">{escape(tag)}</span>' for tag in row.tags)
        return f'<th scope="row">{name}{tags}</th>'

    def _mark(self, series: str | None) -> str:
        return swatch(self.looks[series]) if series is not None and series in self.looks else ""

    def _cell(self, part: _Part, shown: _Shown, highest: float) -> str:
        heated = self.heat and highest > 0 and shown.number is not None
        share = f' style="--share:{_percent((shown.number or 0) / highest)}"' if heated else ""
        names = " ".join(name for name in (shown.kind, "heat" if heated else "") if name)
        notes = "".join(f"<small>{escape(note)}</small>" for note in shown.notes)
        bar = ""
        if part.column.bar and shown.number is not None:
            bar = f'<span class="bar"><span style="width:{_percent(shown.number)}"></span></span>'
        named = f' class="{names}"' if names else ""
        return f"<td{named}{share}{_hidden_with(part.column.series)}>{escape(shown.text)}{notes}{bar}</td>"


def _ours(column: Column, cell: Cell, best: str | None) -> _Shown:
    if isinstance(cell.value, str):
        return _Shown(cell.value, (cell.note,) if cell.note else ())
    shown = _number(column, cell.number, cell.spread)
    interval = ""
    if cell.low is not None and cell.high is not None and math.isfinite(cell.low + cell.high):
        low, high = column.written(cell.low), column.written(cell.high)
        unit = "\u00a0%" if low.endswith("\u00a0%") else ""
        interval = f"{low.removesuffix(unit)} to {high}"
    notes = tuple(note for note in (interval, cell.note) if note)
    kind = "best" if cell.number is not None and column.written(cell.number) == best else ""
    return shown._replace(notes=notes, kind=kind)


def _number(column: Column, value: float | None, spread: float | None) -> _Shown:
    if value is None:
        return _Shown(MISSING)
    after = "" if spread is None or not math.isfinite(spread) else f" ± {column.written(spread)}"
    return _Shown(column.written(value) + after, number=value)


def _difference(column: Column, value: float | None) -> _Shown:
    if value is None:
        return _Shown(MISSING)
    text = column.written(abs(value))
    if text == column.written(0.0) or column.better is None:
        kind = ""
    else:
        kind = "good" if (value > 0) == (column.better == "higher") else "bad"
    sign = "" if text == column.written(0.0) else "+" if value > 0 else "−"
    return _Shown(sign + text, kind=kind)


def _marked_down(shown: _Shown) -> str:
    text = f"**{shown.text}**" if shown.kind == "best" else shown.text
    return " ".join([text, *(f"({note})" for note in shown.notes)])


def _plain(value: float | str | None) -> float | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.0f}%"


def _span(direction: str, count: int) -> str:
    return f' {direction}span="{count}"' if count > 1 else ""


def _hidden_with(series: str | None) -> str:
    return "" if series is None else f' data-series="{escape(series)}"'
