"""Text columns that are mostly numbers: the words in them are errors, and all else can still be checked."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.data.formats.columns import TIMES, Roles
from cwbc.data.formats.step_table import Kind, StepColumn, StepTable
from cwbc.data.issues import LOCATIONS_STORED, Issue, Location

_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}\b.*", re.DOTALL)
_ISO = "dates and times are read as 2024-05-31 or 2024-05-31T23:59:00"
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")


def with_numbers(table: StepTable, issues: list[Issue]) -> tuple[StepTable, list[Issue]]:
    """The table with its mostly numeric text columns as numbers, and the issues with the words in them."""
    located: list[Issue] = []
    numbers: dict[str, StepColumn] = {}
    for issue in issues:
        column = table.columns.get(issue.column or "")
        if column is not None and column.kind == "text":
            issue, numeric = _located(table, column, issue)
            if numeric is not None:
                numbers[column.name] = numeric
        located.append(issue)
    return (_numeric(table, numbers) if numbers else table), located


def unread_dates(table: StepTable, roles: Roles) -> list[Issue]:
    """A warning for each unused time column whose dates have a form that is not read."""
    if roles.step is not None:
        return []
    issues = []
    for name in roles.ignored:
        if name.strip().lower() not in TIMES or table.columns[name].kind != "text":
            continue
        if _DATE.fullmatch(first := str(table.values(table.columns[name])[0]).strip()[:40]):
            location = Location(table.first_row, table.unit, value=repr(first))
            what = f"{name} is not used: it holds dates in a form that is not read"
            remedy = f"{_ISO}, and then they order the steps"
            issues.append(Issue("warning", what, remedy, name, table.rows, (location,)))
    return issues


def _numeric(table: StepTable, numbers: dict[str, StepColumn]) -> StepTable:
    """The table with 0 for each word in a numeric column: it is an issue already, nan would be another."""

    def fetch(names: Sequence[str], dtype: type | None, report: Callable[[int], None]) -> NDArray[Any]:
        if not numbers.keys() & set(names):
            return table.fetch(names, dtype, report)
        parts = []
        for name in names:
            part = table.fetch([name], None, report)
            if name in numbers:
                part = np.array([[_number(value) or 0.0] for value in part[:, 0].tolist()])
            parts.append(part)
        return np.concatenate(parts, axis=1).astype(dtype or np.float64)

    return dataclasses.replace(table, columns=table.columns | numbers, fetch=fetch)


def _located(table: StepTable, column: StepColumn, issue: Issue) -> tuple[Issue, StepColumn | None]:
    """The issue with the words that are no numbers; and the column as numbers, if most values are."""
    values = table.values(column).tolist()
    wrong = [(row, str(value)[:40]) for row, value in enumerate(values) if _number(value) is None]
    words, count = wrong[:LOCATIONS_STORED], len(wrong)
    digits = (
        str(value).strip().lstrip("+-")
        for value in values
        if value is not None and _number(value) is not None
    )
    integers = all(map(str.isdigit, digits))
    if not words:
        return issue, None
    mostly = count < len(values) / 2
    first = words[0][1].strip()
    remedy = "expected a number in every row" if mostly else issue.remedy
    if _DECIMAL_COMMA.fullmatch(first):
        remedy = f"decimals have a point: {first.replace(',', '.')}"
    elif _DATE.fullmatch(first):
        remedy = _ISO
    shown = words if mostly else words[:1]  # where nearly all values are words, the first one suffices
    locations = tuple(Location(at + table.first_row, table.unit, value=repr(word)) for at, word in shown)
    count = count if mostly else 1
    issue = dataclasses.replace(issue, remedy=remedy, count=count, locations=locations)
    kind: Kind = "integer" if integers else "float"
    return issue, StepColumn(column.name, kind, None, "text") if mostly else None


def _number(value: Any) -> float | None:
    """The number that a text contains, nan for a missing one; None where it is something else."""
    if value is None:
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
