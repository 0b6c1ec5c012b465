"""From a table with one row per step, in any order, to Trajectories."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.data.checks import Recording
from cwbc.data.formats.columns import BY_NAME, TIMES, ColumnOptions, Roles, StepColumn, StepTable, assign
from cwbc.data.formats.segmentation import segment
from cwbc.data.issues import DataError, Issue
from cwbc.data.store import contained
from cwbc.system.progress import Progress

_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}\b.*", re.DOTALL)
_ISO = "dates and times are read as 2024-05-31 or 2024-05-31T23:59:00"
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")


def assemble(
    table: StepTable, name: str, options: ColumnOptions = BY_NAME, progress: Progress | None = None
) -> Recording:
    """The episodes of a table; a trailing one without an end is excluded and counted."""
    if not table.rows:
        raise DataError(table.origin.source, [Issue("error", "there are no rows", "give one row per step")])
    roles, issues = assign(table.columns, options)
    if roles is None:
        table, issues = _with_numbers(table, issues)
        roles, _ = assign(table.columns, options)
        # Words as steps leave the rows without an order, so there would be no episodes to check.
        if roles is None or any(issue.column == roles.step.name for issue in issues if roles.step):
            raise DataError(table.origin.source, issues)
    try:
        origin, episodes, found = segment(table, roles)
        finished = int(episodes["lengths"].sum())
        rows = slice(finished) if origin.rows is None else origin.rows
        data = Trajectories(
            contained(name),
            **_arrays(table, roles, rows, progress),
            **episodes,
            unfinished_steps=table.rows - finished,
            observation_names=_names(roles.observations),
            action_names=_names(roles.actions),
        )
    except DataError as error:
        raise DataError(table.origin.source, [*issues, *error.issues]) from error
    issues += [*found, *_unread_dates(table, roles)]
    if unfinished := data.unfinished_steps:
        what = f"the last {unfinished:,} steps are an episode without an end"
        issues.append(Issue("warning", what, "they are excluded", count=unfinished))
    return Recording(data, origin, tuple(issues))


def _arrays(
    table: StepTable, roles: Roles, rows: slice | NDArray[np.int64], progress: Progress | None
) -> dict[str, Any]:
    """The observations, actions and rewards of a table, in the order of its episodes."""
    total = table.rows * sum(c.width or 1 for c in (*roles.observations, *roles.actions, roles.reward))
    done = 0

    def report(values: int) -> None:
        nonlocal done
        done += values
        if progress is not None:
            progress(done, total)

    def matrix(columns: tuple[StepColumn, ...], dtype: type | None) -> NDArray[Any]:
        return table.fetch([column.name for column in columns], dtype, report)[rows]

    actions = matrix(roles.actions, None if roles.discrete else np.float32)
    images = roles.observations[0].kind == "image"
    observations = matrix(roles.observations, np.uint8 if images else np.float32)
    return {
        "observations": observations[..., None] if observations.ndim == 3 else observations,  # one channel
        "actions": _discrete(table, roles.actions[0], actions[:, 0], rows) if roles.discrete else actions,
        "rewards": matrix((roles.reward,), np.float32)[:, 0],
    }


def _discrete(
    table: StepTable, column: StepColumn, actions: NDArray[Any], rows: slice | NDArray[np.int64]
) -> NDArray[np.int32]:
    """Discrete actions, which come as floats where some rows have none."""
    for wrong, what, remedy, shown in (
        (~np.isfinite(actions), "has no value", "every step has an action", False),
        (actions % 1 != 0, "is not an integer", "--action-kind continuous reads any number", True),
    ):
        if wrong.any():
            values = actions[wrong] if shown else None
            raise table.invalid(column, np.arange(table.rows)[rows][wrong], what, remedy, values)
    # An overflow must not turn an invalid action into a valid one.
    return actions.astype(np.int64, copy=False).clip(-1, 2**31 - 1).astype(np.int32)


def _names(columns: tuple[StepColumn, ...]) -> tuple[str, ...]:
    """One name per dimension; none for a single column of lists or images."""
    if len(columns) == 1 and columns[0].width is not None:
        return ()
    places = [(c.name, [""] if c.width is None else [f"[{i}]" for i in range(c.width)]) for c in columns]
    return tuple(name + place for name, each in places for place in each)


def _with_numbers(table: StepTable, issues: list[Issue]) -> tuple[StepTable, list[Issue]]:
    """The table with its mostly numeric text columns as numbers, and the issues with the words in them."""
    located = list(issues)
    columns: dict[str, StepColumn] = {}
    numbers: dict[str, NDArray[np.float64]] = {}
    for index, issue in enumerate(issues):
        column = table.columns.get(issue.column or "")
        if column is None or column.kind != "text":
            continue
        texts = table.values(column).tolist()
        parsed = [_number(text) for text in texts]
        if wrong := [row for row, number in enumerate(parsed) if number is None]:
            mostly = len(wrong) < len(texts) / 2
            located[index] = _with_words(table, issue, texts, wrong, mostly)
            if mostly:
                whole = all(n.is_integer() for n in parsed if n is not None and not math.isnan(n))
                columns[column.name] = StepColumn(column.name, "integer" if whole else "float", None, "text")
                # 0 for a word, which is an issue already: nan would be another.
                numbers[column.name] = np.array([[number or 0.0] for number in parsed])

    def fetch(names: Sequence[str], dtype: type | None, report: Callable[[int], None]) -> NDArray[Any]:
        if not numbers.keys() & set(names):
            return table.fetch(names, dtype, report)
        parts = [numbers[n] if n in numbers else table.fetch([n], None, report) for n in names]
        return np.concatenate(parts, axis=1).astype(dtype or np.float64)

    return dataclasses.replace(table, columns=table.columns | columns, fetch=fetch), located


def _with_words(table: StepTable, issue: Issue, texts: list[Any], wrong: list[int], mostly: bool) -> Issue:
    """The issue with the words that are no numbers; where nearly all values are, the first one suffices."""
    shown = wrong if mostly else wrong[:1]
    first = str(texts[wrong[0]])[:40].strip()
    remedy = "expected a number in every row" if mostly else issue.remedy
    if _DECIMAL_COMMA.fullmatch(first):
        remedy = f"decimals have a point: {first.replace(',', '.')}"
    elif _DATE.fullmatch(first):
        remedy = _ISO
    words = (repr(str(texts[row])[:40]) for row in shown)
    return table.origin.issue("error", issue.what, remedy, None, shown, issue.column, words)


def _unread_dates(table: StepTable, roles: Roles) -> Iterator[Issue]:
    """A warning for each unused time column whose dates have a form that is not read."""
    for name in roles.ignored if roles.step is None else ():
        text = name.strip().lower() in TIMES and table.columns[name].kind == "text"
        first = str(table.values(table.columns[name])[0]).strip()[:40] if text else ""
        if _DATE.fullmatch(first):
            what = f"{name} is not used: it holds dates in a form that is not read"
            remedy = f"{_ISO}, and then they order the steps"
            issue = table.origin.issue("warning", what, remedy, None, [0], name, [repr(first)])
            yield dataclasses.replace(issue, count=table.rows)


def _number(value: Any) -> float | None:
    """The number that a text contains, nan for a missing one; None where it is something else."""
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return None
