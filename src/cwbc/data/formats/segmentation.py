"""Which rows of a table are which episode, and in which order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.data.formats.columns import Roles, StepColumn, StepTable
from cwbc.data.issues import DataError, Issue, Origin, Severity

_TRUTHS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "1": 1.0, "0": 0.0}
_ENDS = ("terminated", "truncated", "done")
_Flags = dict[str, NDArray[np.bool_]]  # [row] by role


def segment(table: StepTable, roles: Roles) -> tuple[Origin, dict[str, Any], list[Issue]]:
    """The origin of a table's episodes, their arrays in Trajectories, and issues."""
    flags = {name: _flags(table, column) for name in _ENDS if (column := getattr(roles, name)) is not None}
    steps = None if roles.step is None else _steps(table, roles.step)
    order: NDArray[np.int64] | None = None
    labels: Sequence[Any] | None = None
    if roles.episode is None:
        last = _last_rows(table, roles, flags)
        lengths = np.diff(last, prepend=-1)
        starts = last - lengths + 1
        steps = None if steps is None else steps[: last[-1] + 1]
    else:
        codes, labels = _coded(table, roles.episode)
        order = _sorted(codes, steps)
        if order is not None:
            codes, steps = codes[order], None if steps is None else steps[order]
        starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
        lengths = np.diff(starts, append=len(codes))
        labels = codes[starts].tolist() if labels is None else labels
        last = starts + lengths - 1
    origin = dataclasses.replace(
        table.origin,
        rows=order,
        episodes=labels,
        in_order=roles.step is not None,
        step_name=None if roles.step is None else roles.step.name,
        ignored=roles.ignored,
        reward_name=roles.reward.name,
        only_done=set(flags) == {"done"},
    )
    # Without its own column, an end that is not a truncation is a termination.
    terminated = flags.get("terminated", flags.get("done", np.zeros(table.rows, bool)))
    if "terminated" not in flags and "truncated" in flags:
        terminated = terminated & ~flags["truncated"]
    terminated = terminated[last if order is None else order[last]]
    issues = [*_step_issues(origin, starts, roles, steps), *_end_issues(origin, starts, last, roles, flags)]
    return origin, {"starts": starts, "lengths": lengths, "terminated": terminated}, issues


def _last_rows(table: StepTable, roles: Roles, flags: _Flags) -> NDArray[np.intp]:
    """The flagged rows of a table in which episodes follow each other."""
    names = [getattr(roles, name).name for name in flags]
    last = np.flatnonzero(np.logical_or.reduce(list(flags.values()))) if flags else np.array([], np.intp)
    if not flags:
        what = "no column separates the episodes"
        remedy = "give the column that names the episode of each row (--episode) or marks its end (--done)"
    elif flags.keys() in ({"terminated"}, {"truncated"}):
        other = "--truncated" if "terminated" in flags else "--terminated"
        what = f"{names[0]} alone does not mark the end of every episode"
        remedy = (
            f"give the column with the other ends ({other}) or with the episodes (--episode); "
            f"if {names[0]} marks every end, give --done {names[0]}"
        )
    elif not len(last):
        are = "are" if len(names) > 1 else "is"
        what = f"no episode end: {' and '.join(names)} {are} false in all {table.rows:,} rows"
        remedy = "mark each episode's last step"
    else:
        return last
    column = names[0] if len(names) == 1 else None
    raise DataError(table.origin.source, [Issue("error", what, remedy, column)])


def _flags(table: StepTable, column: StepColumn) -> NDArray[np.bool_]:
    written = values = table.values(column)
    if column.kind == "text":
        values = np.array([_TRUTHS.get(str(value).strip().lower(), np.nan) for value in written.tolist()])
    if values.dtype != np.bool_ and (wrong := np.flatnonzero((values != 0) & (values != 1))).size:
        what, remedy = "is neither true nor false", "expected true or false, or 1 or 0"
        raise table.invalid(column, wrong, what, remedy, written[wrong])
    return values.astype(bool, copy=False)


def _steps(table: StepTable, column: StepColumn) -> NDArray[Any]:
    steps = table.values(column)
    time = steps.dtype.kind in "mM"
    if (missing := np.flatnonzero(np.isnat(steps) if time else ~np.isfinite(steps))).size:
        raise table.invalid(column, missing, "has no value", "every step has a number")
    if time:
        return steps.view(np.int64)
    # Differences may be negative, and the largest unsigned integers do not fit into signed ones.
    return steps.astype(np.int64 if steps.max() < 2**63 else np.float64) if steps.dtype.kind in "u" else steps


def _coded(table: StepTable, column: StepColumn) -> tuple[NDArray[Any], list[Any] | None]:
    """Episodes as integers that sort as their names do, and the names where these are not the integers."""
    values = table.values(column)
    names: list[Any]
    if values.dtype.kind in "iu" and values.min() >= 0 and values.max() < 2**63:
        return values, None
    if values.dtype.kind in "OUS":
        texts = values.tolist()
        names = sorted(set(texts) - {None})
        numbers = {name: number for number, name in enumerate(names)}
        codes = np.fromiter((numbers.get(text, -1) for text in texts), np.int64, len(texts))
    else:
        known = np.isfinite(values)
        unique, ranks = np.unique(values[known], return_inverse=True)
        codes = np.full(len(values), -1)
        codes[known], names = ranks, [int(name) for name in unique]
    if (nameless := np.flatnonzero(codes < 0)).size:
        raise table.invalid(column, nameless, "has no value", "every row belongs to an episode")
    if values.dtype.kind == "f" and (odd := np.flatnonzero(values % 1 != 0)).size:
        remedy = "expected an integer or a name per row"
        raise table.invalid(column, odd, "is not an integer", remedy, values[odd])
    return codes, names


def _sorted(codes: NDArray[Any], steps: NDArray[Any] | None) -> NDArray[np.int64] | None:
    """The rows by episode and step (stable), or None when they are sorted already."""
    same = codes[1:] == codes[:-1]
    rising = same if steps is None else same & (steps[1:] >= steps[:-1])
    if (rising | (codes[1:] > codes[:-1])).all():
        return None
    return np.argsort(codes, kind="stable") if steps is None else np.lexsort((steps, codes))


def _step_issues(
    origin: Origin, starts: NDArray[np.int64], roles: Roles, steps: NDArray[Any] | None
) -> Iterator[Issue]:
    """Step numbers that repeat, go back, have gaps, or do not start at 0 or 1."""
    if steps is None or roles.step is None:
        return
    strides = np.diff(steps, prepend=steps[:1])
    strides[starts] = 1

    def repeated(step: int) -> str:
        return f"{steps[step]} (as at {origin.unit} {origin.row(step - 1)})"

    def after(step: int) -> str:
        return f"{steps[step]} after {steps[step - 1]}"

    late = starts[(steps[starts] != 0) & (steps[starts] != 1)]
    rules: list[tuple[Severity, NDArray[np.intp], Callable[[int], str], str, str]] = [
        ("error", np.flatnonzero(strides == 0), repeated, "repeats",
         "each step is in one row: remove duplicated rows, or give a finer column (--step) if they are none"),
        ("error", np.flatnonzero(strides < 0), after, "goes back",
         "the rows are out of order: a column that names the episode of each would order them"),
        ("warning", np.flatnonzero(strides > 1), after, "has gaps",
         "the rewards of missing steps are missing from the returns"),
        ("warning", late, lambda step: str(steps[step]), "starts neither at 0 nor at 1",
         "are the first steps missing?"),
    ]  # fmt: skip
    if roles.step.kind == "time" or (steps.dtype.kind == "f" and (steps % 1 != 0).any()):
        del rules[1:]  # a time orders the steps, but its gaps mean nothing
    name = roles.step.name
    for severity, at, value, what, remedy in rules:
        if at.size:
            yield origin.issue(severity, f"{name} {what}", remedy, starts, at, name, map(value, at))


def _end_issues(
    origin: Origin, starts: NDArray[np.int64], last: NDArray[np.intp], roles: Roles, flags: _Flags
) -> Iterator[Issue]:
    """Ends in the middle of an episode, and rows of one episode that are apart though no step orders them."""
    rows = origin.rows
    for role, values in flags.items():
        early = values.copy() if rows is None else values[rows]
        early[last] = False
        if (steps := np.flatnonzero(early)).size:
            name = getattr(roles, role).name
            what = f"{name} is true before the last step of an episode"
            yield origin.issue("warning", what, "do several episodes have one name?", starts, steps, name)
    if rows is None or roles.step is not None or roles.episode is None:
        return
    apart = np.setdiff1d(np.flatnonzero(np.diff(rows, prepend=rows[:1] - 1) != 1), starts)
    if apart.size:
        name = roles.episode.name
        remedy = "they are read in this order: does --step COLUMN order them, or is a name used twice?"
        what = f"{name} continues after rows of others"
        yield origin.issue("warning", what, remedy, starts, apart, name)
