"""Which rows of a table make up which episode, and in which order."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cwbc.datasets.columns import Roles
from cwbc.datasets.source import Column, Table, check_count, refuse
from cwbc.findings import PLACES_KEPT, Finding, Origin, Rejected

_TRUTHS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "1": 1.0, "0": 0.0}


@dataclasses.dataclass(frozen=True, eq=False)
class Episodes:
    """Rows in the order of their episodes."""

    origin: Origin
    starts: NDArray[np.int64]  # [episode]
    lengths: NDArray[np.int64]  # [episode]
    terminated: NDArray[np.bool_]  # [episode]
    findings: tuple[Finding, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class _Marks:
    """The flags of a table that say where episodes end; None where it has no such column."""

    terminated: NDArray[np.bool_] | None  # [row]
    truncated: NDArray[np.bool_] | None  # [row]
    done: NDArray[np.bool_] | None  # [row]

    @property
    def ended(self) -> NDArray[np.bool_] | None:
        """Ended by the environment; of what is only known to be done, what was not cut off."""
        if self.terminated is not None or self.done is None:
            return self.terminated
        return self.done if self.truncated is None else self.done & ~self.truncated


def segment(table: Table, roles: Roles) -> Episodes:
    """The episodes of a table: by a column that names them, or by marks on their last steps."""
    marks = _Marks(*(_flags(table, column) for column in (roles.terminated, roles.truncated, roles.done)))
    steps = None if roles.step is None else _steps(table, roles.step)
    if roles.episode is None:
        last = _last_rows(table, roles, marks)
        lengths = np.diff(last, prepend=-1)
        episodes = _finished(table, roles, marks, last - lengths + 1, lengths, None, None)
        return _examined(episodes, roles, marks, None if steps is None else steps[: last[-1] + 1])
    codes, labels = _coded(table, roles.episode)
    order = _sorted(codes, steps)
    if order is not None:
        codes, steps = codes[order], None if steps is None else steps[order]
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    lengths = np.diff(starts, append=len(codes))
    names = codes[starts].tolist() if labels is None else labels
    episodes = _finished(table, roles, marks, starts, lengths, order, names)
    return _examined(episodes, roles, marks, steps)


def _examined(episodes: Episodes, roles: Roles, marks: _Marks, steps: NDArray[Any] | None) -> Episodes:
    """The same episodes with what is odd about them."""
    found = [
        *_odd_steps(episodes, roles, steps),
        *_early_ends(episodes, roles, marks),
        *_apart(episodes, roles),
    ]
    return dataclasses.replace(episodes, findings=tuple(found))


def _finished(
    table: Table,
    roles: Roles,
    marks: _Marks,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    order: NDArray[np.int64] | None,
    labels: Sequence[Any] | None,
) -> Episodes:
    last = starts + lengths - 1
    ended = marks.ended
    origin = Origin(
        source=table.source,
        rows=order,
        unit=table.unit,
        first_row=table.first_row,
        episodes=labels,
        in_order=roles.step is not None,
        step_name=None if roles.step is None else roles.step.name,
        ignored=roles.ignored,
        reward_name=roles.reward.name,
        only_done=roles.done is not None and roles.terminated is None and roles.truncated is None,
    )
    terminated = np.zeros(len(last), bool) if ended is None else ended[last if order is None else order[last]]
    return Episodes(origin, starts, lengths, terminated)


def _last_rows(table: Table, roles: Roles, marks: _Marks) -> NDArray[np.intp]:
    """The marked rows of a table in which episodes follow each other."""
    columns = [c for c in (roles.terminated, roles.truncated, roles.done) if c is not None]
    if marks.done is None and (marks.terminated is None or marks.truncated is None):
        raise Rejected(table.source, [_unmarked(roles)])
    flags = [f for f in (marks.terminated, marks.truncated, marks.done) if f is not None]
    last = np.flatnonzero(np.logical_or.reduce(flags))
    if not len(last):
        names = " and ".join(column.name for column in columns)
        what = (
            f"no episode end: {names} {'are' if len(columns) > 1 else 'is'} false in all {table.rows:,} rows"
        )
        raise Rejected(table.source, [Finding("error", what, "mark each episode's last step")])
    return last


def _unmarked(roles: Roles) -> Finding:
    one = roles.terminated or roles.truncated
    if one is None:
        remedy = "say which column names the episode of each row (--episode), or marks its last step (--done)"
        return Finding("error", "nothing tells the episodes apart", remedy)
    other = "--truncated" if one is roles.terminated else "--terminated"
    return Finding(
        "error",
        f"{one.name} alone does not tell where every episode ends",
        f"name the column with the other ends ({other}) or with the episodes (--episode); if {one.name} "
        f"marks every end, say --done {one.name}",
        one.name,
    )


def _column(table: Table, column: Column) -> NDArray[Any]:
    values: NDArray[Any] | None = None
    first = 0
    for (array,) in table.read([column.name]):
        if len(array) == table.rows:
            return array.reshape(-1)
        if values is None:
            values = np.empty(table.rows, array.dtype)
        elif not np.can_cast(array.dtype, values.dtype):  # whole numbers up to here, then some are missing
            values = values.astype(np.promote_types(array.dtype, values.dtype))
        values[first : first + len(array)] = array.reshape(-1)
        first += len(array)
    check_count(table, first)
    assert values is not None
    return _compact(values)


def _compact(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in half the memory, where they fit."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize <= 4:
        return values
    small = np.iinfo(np.int32)
    return values.astype(np.int32) if small.min <= values.min() and values.max() <= small.max else values


def _flags(table: Table, column: Column | None) -> NDArray[np.bool_] | None:
    if column is None:
        return None
    told = values = _column(table, column)
    if column.kind == "text":
        values = np.array([_TRUTHS.get(str(value).strip().lower(), np.nan) for value in told.tolist()])
    if values.dtype != np.bool_ and (wrong := np.flatnonzero((values != 0) & (values != 1))).size:
        what, remedy = "is neither true nor false", "expected true or false, or 1 or 0"
        raise refuse(table, column, wrong, what, remedy, told[wrong[:10]])
    return values.astype(bool, copy=False)


def _steps(table: Table, column: Column) -> NDArray[Any]:
    steps = _column(table, column)
    missing = np.isnat(steps) if steps.dtype.kind in "mM" else ~np.isfinite(steps)
    if missing.any():
        raise refuse(table, column, np.flatnonzero(missing), "has no value", "every step has a number")
    if steps.dtype.kind in "mM":
        return steps.view(np.int64)
    # Differences may be negative, and the largest of the unsigned have no place among the signed.
    return steps.astype(np.int64 if steps.max() < 2**63 else np.float64) if steps.dtype.kind in "u" else steps


def _coded(table: Table, column: Column) -> tuple[NDArray[Any], list[Any] | None]:
    """Episodes as numbers that sort as their names do, and the names where they are others."""
    values = _column(table, column)
    codes, labels = _numbered(values)
    if (nameless := np.flatnonzero(codes < 0)).size:
        raise refuse(table, column, nameless, "has no value", "every row belongs to an episode")
    if values.dtype.kind == "f" and (odd := np.flatnonzero(values % 1 != 0)).size:
        remedy = "expected a whole number or a name per row"
        raise refuse(table, column, odd, "is not a whole number", remedy, values[odd[:10]])
    return codes, labels


def _numbered(values: NDArray[Any]) -> tuple[NDArray[Any], list[Any] | None]:
    """The same, with -1 where there is none."""
    if values.dtype.kind in "iu" and values.min() >= 0 and values.max() < 2**63:
        return values, None
    if values.dtype.kind == "O" or values.dtype.kind in "US":
        numbers: dict[Any, int] = {}
        coded = (numbers.setdefault(value, len(numbers)) for value in values.tolist())
        codes = np.fromiter(coded, np.int64, len(values))
        labels = sorted(label for label in numbers if label is not None)
        ranks = np.full(len(numbers), -1)
        ranks[[numbers[label] for label in labels]] = np.arange(len(labels))
        return ranks[codes], labels
    known = np.isfinite(values)
    names, ranks = np.unique(values[known], return_inverse=True)
    codes = np.full(len(values), -1)
    codes[known] = ranks
    return codes, [int(name) for name in names]


def _sorted(codes: NDArray[Any], steps: NDArray[Any] | None) -> NDArray[np.int64] | None:
    """The rows by episode and step, or None when they stand so already; equal ones as they stand."""
    same = codes[1:] == codes[:-1]
    rising = same if steps is None else same & (steps[1:] >= steps[:-1])
    if (rising | (codes[1:] > codes[:-1])).all():
        return None
    return np.argsort(codes, kind="stable") if steps is None else np.lexsort((steps, codes))


def _odd_steps(episodes: Episodes, roles: Roles, steps: NDArray[Any] | None) -> list[Finding]:
    """Numbers of steps that come twice, are left out, or do not begin at the beginning."""
    if steps is None or roles.step is None:
        return []
    name, starts, origin = roles.step.name, episodes.starts, episodes.origin
    found: list[Finding] = []

    def tell(
        severity: Literal["error", "warning"], at: NDArray[np.intp], values: list[str], what: str, remedy: str
    ) -> None:
        if at.size:
            places = tuple(origin.places(starts, at, values))
            found.append(Finding(severity, f"{name} {what}", remedy, name, len(at), places))

    strides = np.diff(steps, prepend=steps[:1])
    strides[starts] = 1
    repeats = np.flatnonzero(strides == 0)
    first = [next(origin.places(starts, np.array([s - 1]))) for s in repeats[:PLACES_KEPT]]
    twice = [f"{steps[s]} (as at {p.unit} {p.row})" for s, p in zip(repeats, first, strict=False)]
    remedy = (
        "each step stands in one row: drop duplicated rows, or give a finer column (--step) if they are none"
    )
    tell("error", repeats, twice, "repeats", remedy)
    if roles.step.kind == "time" or (steps.dtype.kind == "f" and (steps % 1 != 0).any()):
        return found  # a time orders the steps, but its gaps tell nothing
    back = np.flatnonzero(strides < 0)
    turns = [f"{steps[s]} after {steps[s - 1]}" for s in back[:PLACES_KEPT]]
    remedy = "the rows are out of order: a column that names the episode of each would put them right"
    tell("error", back, turns, "goes back", remedy)
    gaps = np.flatnonzero(strides > 1)
    jumps = [f"{steps[s]} after {steps[s - 1]}" for s in gaps[:PLACES_KEPT]]
    tell("warning", gaps, jumps, "has gaps", "what missing steps earned is missing from the returns")
    late = starts[(steps[starts] != 0) & (steps[starts] != 1)]
    begins = [f"{steps[s]}" for s in late[:PLACES_KEPT]]
    tell("warning", late, begins, "begins neither at 0 nor at 1", "are the first steps missing?")
    return found


def _early_ends(episodes: Episodes, roles: Roles, marks: _Marks) -> list[Finding]:
    """Ends in the middle of an episode."""
    columns = (roles.terminated, roles.truncated, roles.done)
    order, starts = episodes.origin.rows, episodes.starts
    found = []
    for column, flags in zip(columns, (marks.terminated, marks.truncated, marks.done), strict=True):
        if column is None or flags is None:
            continue
        early = flags.copy() if order is None else flags[order]
        early[starts + episodes.lengths - 1] = False
        if (steps := np.flatnonzero(early)).size:
            places = tuple(episodes.origin.places(starts, steps))
            what = f"{column.name} is true before the last step of an episode"
            remedy = "are several episodes under one name?"
            found.append(Finding("warning", what, remedy, column.name, len(steps), places))
    return found


def _apart(episodes: Episodes, roles: Roles) -> list[Finding]:
    """Rows of one episode that stand apart, where nothing but the order of the table orders them."""
    rows, starts = episodes.origin.rows, episodes.starts
    if rows is None or roles.step is not None or roles.episode is None:
        return []
    jumps = np.flatnonzero(np.diff(rows, prepend=rows[:1] - 1) != 1)
    steps = np.setdiff1d(jumps, starts)
    if not steps.size:
        return []
    what = f"{roles.episode.name} goes on after rows of others"
    remedy = "they are taken as they stand: does --step COLUMN order them, or is a name used twice?"
    places = tuple(episodes.origin.places(starts, steps))
    return [Finding("warning", what, remedy, roles.episode.name, len(steps), places)]
