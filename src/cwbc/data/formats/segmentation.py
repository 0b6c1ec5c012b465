"""Which rows of a table are which episode, and in which order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.data.formats.columns import Roles
from cwbc.data.formats.step_table import StepColumn, StepTable
from cwbc.data.issues import DataError, Issue, Origin, Severity

_TRUTHS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "1": 1.0, "0": 0.0}
_ENDS = ("terminated", "truncated", "done")


@dataclasses.dataclass(frozen=True, eq=False)
class EpisodeRows:
    """Rows in the order of their episodes."""

    origin: Origin
    starts: NDArray[np.int64]  # [episode]
    lengths: NDArray[np.int64]  # [episode]
    terminated: NDArray[np.bool_]  # [episode]
    issues: tuple[Issue, ...] = ()


def segment(table: StepTable, roles: Roles) -> EpisodeRows:
    """The episodes of a table: by a column that names them, or by flags on their last steps."""
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
        only_done=set(flags) == {"done"},
    )
    terminated = _terminated(flags, table.rows)[last if order is None else order[last]]
    episodes = EpisodeRows(origin, starts, lengths, terminated)
    issues = (
        *_step_issues(episodes, roles, steps),
        *_early_ends(episodes, roles, flags),
        *_apart(episodes, roles),
    )
    return dataclasses.replace(episodes, issues=issues)


def _terminated(flags: dict[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
    """The rows at which the environment terminated an episode: of those done, the ones not truncated."""
    if "terminated" in flags or "done" not in flags:
        return flags.get("terminated", np.zeros(rows, bool))
    return flags["done"] & ~flags["truncated"] if "truncated" in flags else flags["done"]


def _last_rows(table: StepTable, roles: Roles, flags: dict[str, NDArray[np.bool_]]) -> NDArray[np.intp]:
    """The flagged rows of a table in which episodes follow each other."""
    if "done" not in flags and len(flags) < 2:
        raise DataError(table.source, [_unmarked(roles)])
    last = np.flatnonzero(np.logical_or.reduce(list(flags.values())))
    if not len(last):
        names = [getattr(roles, name).name for name in flags]
        are = "are" if len(names) > 1 else "is"
        what = f"no episode end: {' and '.join(names)} {are} false in all {table.rows:,} rows"
        raise DataError(table.source, [Issue("error", what, "mark each episode's last step")])
    return last


def _unmarked(roles: Roles) -> Issue:
    one = roles.terminated or roles.truncated
    if one is None:
        remedy = "give the column that names the episode of each row (--episode) or marks its end (--done)"
        return Issue("error", "no column separates the episodes", remedy)
    other = "--truncated" if one is roles.terminated else "--terminated"
    remedy = f"give the column with the other ends ({other}) or with the episodes (--episode)"
    return Issue(
        "error",
        f"{one.name} alone does not mark the end of every episode",
        f"{remedy}; if {one.name} marks every end, give --done {one.name}",
        one.name,
    )


def _flags(table: StepTable, column: StepColumn) -> NDArray[np.bool_]:
    written = values = table.values(column)
    if column.kind == "text":
        values = np.array([_TRUTHS.get(str(value).strip().lower(), np.nan) for value in written.tolist()])
    if values.dtype != np.bool_ and (wrong := np.flatnonzero((values != 0) & (values != 1))).size:
        what, remedy = "is neither true nor false", "expected true or false, or 1 or 0"
        raise table.invalid(column, wrong, what, remedy, written[wrong[:10]])
    return values.astype(bool, copy=False)


def _steps(table: StepTable, column: StepColumn) -> NDArray[Any]:
    steps = table.values(column)
    missing = np.isnat(steps) if steps.dtype.kind in "mM" else ~np.isfinite(steps)
    if missing.any():
        raise table.invalid(column, np.flatnonzero(missing), "has no value", "every step has a number")
    if steps.dtype.kind in "mM":
        return steps.view(np.int64)
    # Differences may be negative, and the largest unsigned integers do not fit into signed ones.
    return steps.astype(np.int64 if steps.max() < 2**63 else np.float64) if steps.dtype.kind in "u" else steps


def _coded(table: StepTable, column: StepColumn) -> tuple[NDArray[Any], list[Any] | None]:
    """Episodes as integers that sort as their names do, and the names where these are not the integers."""
    values = table.values(column)
    codes, labels = _numbered(values)
    if (nameless := np.flatnonzero(codes < 0)).size:
        raise table.invalid(column, nameless, "has no value", "every row belongs to an episode")
    if values.dtype.kind == "f" and (odd := np.flatnonzero(values % 1 != 0)).size:
        remedy = "expected an integer or a name per row"
        raise table.invalid(column, odd, "is not an integer", remedy, values[odd[:10]])
    return codes, labels


def _numbered(values: NDArray[Any]) -> tuple[NDArray[Any], list[Any] | None]:
    """The same, with -1 for a missing name."""
    if values.dtype.kind in "iu" and values.min() >= 0 and values.max() < 2**63:
        return values, None
    if values.dtype.kind in "OUS":
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
    """The rows by episode and step (stable), or None when they are sorted already."""
    same = codes[1:] == codes[:-1]
    rising = same if steps is None else same & (steps[1:] >= steps[:-1])
    if (rising | (codes[1:] > codes[:-1])).all():
        return None
    return np.argsort(codes, kind="stable") if steps is None else np.lexsort((steps, codes))


def _step_issues(episodes: EpisodeRows, roles: Roles, steps: NDArray[Any] | None) -> Iterator[Issue]:
    """Step numbers that repeat, go back, have gaps, or do not start at 0 or 1."""
    if steps is None or roles.step is None:
        return
    column, starts, origin = roles.step, episodes.starts, episodes.origin
    strides = np.diff(steps, prepend=steps[:1])
    strides[starts] = 1

    def repeated(step: int) -> str:
        row = origin.first_row + int(step - 1 if origin.rows is None else origin.rows[step - 1])
        return f"{steps[step]} (as at {origin.unit} {row})"

    def after(step: int) -> str:
        return f"{steps[step]} after {steps[step - 1]}"

    rules: list[tuple[Severity, NDArray[np.bool_], Callable[[int], str], str, str]] = [
        ("error", strides == 0, repeated, "repeats",
         "each step is in one row: remove duplicated rows, or give a finer column (--step) if they are none"),
        ("error", strides < 0, after, "goes back",
         "the rows are out of order: a column that names the episode of each would order them"),
        ("warning", strides > 1, after, "has gaps",
         "the rewards of missing steps are missing from the returns"),
    ]  # fmt: skip
    if column.kind == "time" or (steps.dtype.kind == "f" and (steps % 1 != 0).any()):
        del rules[1:]  # a time orders the steps, but its gaps mean nothing
    else:
        late = np.zeros(len(steps), bool)
        late[starts] = (steps[starts] != 0) & (steps[starts] != 1)
        what, remedy = "starts neither at 0 nor at 1", "are the first steps missing?"
        rules.append(("warning", late, lambda step: str(steps[step]), what, remedy))
    for severity, wrong, value, what, remedy in rules:
        if (at := np.flatnonzero(wrong)).size:
            yield origin.issue(severity, f"{column.name} {what}", remedy, starts, at, column.name, value)


def _early_ends(episodes: EpisodeRows, roles: Roles, flags: dict[str, NDArray[np.bool_]]) -> Iterator[Issue]:
    """Ends in the middle of an episode."""
    origin, starts = episodes.origin, episodes.starts
    for role, values in flags.items():
        early = values.copy() if origin.rows is None else values[origin.rows]
        early[starts + episodes.lengths - 1] = False
        if (steps := np.flatnonzero(early)).size:
            name = getattr(roles, role).name
            what = f"{name} is true before the last step of an episode"
            yield origin.issue("warning", what, "do several episodes have one name?", starts, steps, name)


def _apart(episodes: EpisodeRows, roles: Roles) -> Iterator[Issue]:
    """Rows of one episode that are not adjacent, where only the order of the table orders them."""
    rows, starts = episodes.origin.rows, episodes.starts
    if rows is None or roles.step is not None or roles.episode is None:
        return
    steps = np.setdiff1d(np.flatnonzero(np.diff(rows, prepend=rows[:1] - 1) != 1), starts)
    if steps.size:
        name = roles.episode.name
        remedy = "they are read in this order: does --step COLUMN order them, or is a name used twice?"
        what = f"{name} continues after rows of others"
        yield episodes.origin.issue("warning", what, remedy, starts, steps, name)
