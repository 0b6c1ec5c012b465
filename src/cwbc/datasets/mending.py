"""Columns of numbers with a few words among them: the words are told, and all else can still be checked."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.datasets.columns import TIMES, Roles
from cwbc.datasets.source import Column, Kind, Table
from cwbc.findings import PLACES_KEPT, Finding, Place

_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}\b.*", re.DOTALL)
_ISO = "dates and times are read as 2024-05-31 or 2024-05-31T23:59:00"
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")


def mended(table: Table, found: list[Finding]) -> tuple[Table, list[Finding]]:
    """A table whose columns of text that are mostly numbers are numbers, and findings that tell the rest."""
    told: list[Finding] = []
    numbers: dict[str, Column] = {}
    for finding in found:
        column = table.columns.get(finding.column or "")
        if column is None or column.kind != "text":
            told.append(finding)
            continue
        finding, mostly = _looked_at(table, column, finding)
        told.append(finding)
        if mostly is not None:
            numbers[column.name] = mostly
    return (_Mended(table, numbers) if numbers else table), told


def dates_in_words(table: Table, roles: Roles) -> list[Finding]:
    """The remark that a time would order the steps, were it written so that it can be read."""
    if roles.step is not None:
        return []
    found = []
    for name in roles.ignored:
        if name.strip().lower() not in TIMES or table.columns[name].kind != "text":
            continue
        values = next(iter(table.read([name])))[0].tolist()
        if values and _DATE.fullmatch(first := str(values[0]).strip()[:40]):
            place = Place(table.first_row, table.unit, value=repr(first))
            what = f"{name} is not used: it holds dates in a form that is not read"
            found.append(
                Finding("warning", what, f"{_ISO}, and then they order the steps", name, table.rows, (place,))
            )
    return found


class _Mended:
    """A table with 0 for what is no number: it has been told already, and nan would be told again."""

    def __init__(self, table: Table, numbers: dict[str, Column]) -> None:
        self.source, self.rows = table.source, table.rows
        self.unit, self.first_row = table.unit, table.first_row
        self.columns = table.columns | numbers
        self._table, self._numbers = table, numbers

    def read(self, names: Sequence[str], dtype: type | None = None) -> Iterator[list[NDArray[Any]]]:
        """These columns, some rows at a time; not as `dtype`, which words cannot be."""
        for arrays in self._table.read(names):
            yield [
                np.array([_number(value) or 0.0 for value in array.tolist()])
                if name in self._numbers
                else array
                for name, array in zip(names, arrays, strict=True)
            ]


def _looked_at(table: Table, column: Column, finding: Finding) -> tuple[Finding, Column | None]:
    """A finding with the words that are no numbers; where most are numbers, the column as one of these."""
    words: list[tuple[int, str]] = []
    count = row = 0
    whole = True
    for (values,) in table.read([column.name]):
        for value in values.tolist():
            if _number(value) is None:
                count += 1
                if len(words) < PLACES_KEPT:
                    words.append((row, str(value)[:40]))
            elif value is not None:
                whole = whole and str(value).strip().lstrip("+-").isdigit()
            row += 1
    if not words:
        return finding, None
    mostly = count < row / 2
    remedy = "expected a number in every row" if mostly else finding.remedy
    if _DECIMAL_COMMA.fullmatch(words[0][1].strip()):
        remedy = f"decimals have a point: {words[0][1].strip().replace(',', '.')}"
    elif _DATE.fullmatch(words[0][1].strip()):
        remedy = _ISO
    shown = words if mostly else words[:1]  # where nearly all are words, the first tells as much
    places = tuple(Place(at + table.first_row, table.unit, value=repr(word)) for at, word in shown)
    told = dataclasses.replace(finding, remedy=remedy, count=count if mostly else 1, places=places)
    kind: Kind = "whole" if whole else "real"
    return told, Column(column.name, kind, None, "text") if mostly else None


def _number(value: Any) -> float | None:
    """The number that is written here, nan where nothing is; None where it is something else."""
    if value is None:
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
