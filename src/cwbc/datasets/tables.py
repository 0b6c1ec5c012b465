"""From a table with one row per step, in whatever order, to episodes laid end to end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.datasets.columns import BY_NAME, ColumnOptions, Roles, assign
from cwbc.datasets.mending import dates_in_words, mended
from cwbc.datasets.naming import contained
from cwbc.datasets.segmentation import Episodes, segment
from cwbc.datasets.source import Column, Progress, Table, check_count, refuse
from cwbc.findings import Finding, Rejected
from cwbc.recordings import Recording
from cwbc.trajectories import Trajectories


def assemble(
    table: Table,
    name: str,
    options: ColumnOptions = BY_NAME,
    progress: Progress | None = None,
) -> Recording:
    """The episodes of a table; a trailing one without an end is kept out and counted."""
    if not table.rows:
        raise Rejected(table.source, [Finding("error", "there are no rows", "give one row per step")])
    roles, found = assign(table.columns, options)
    if roles is None:
        table, found = mended(table, found)
        roles, _ = assign(table.columns, options)
        # A step in words has no place in the order, so there would be no episodes to check.
        if roles is None or any(finding.column == roles.step.name for finding in found if roles.step):
            raise Rejected(table.source, found)
    try:
        recording = _assembled(table, name, roles, progress)
    except Rejected as error:
        raise Rejected(table.source, [*found, *error.findings]) from error
    return dataclasses.replace(recording, findings=(*found, *recording.findings))


def _assembled(table: Table, name: str, roles: Roles, progress: Progress | None) -> Recording:
    episodes = segment(table, roles)
    data = _laid_out(table, name, roles, episodes, progress)
    findings = [*episodes.findings, *dates_in_words(table, roles)]
    if data.unfinished_steps:
        what = f"the last {data.unfinished_steps:,} steps are an episode without an end"
        findings.append(Finding("warning", what, "they are kept out", count=data.unfinished_steps))
    return Recording(data, episodes.origin, tuple(findings))


def _laid_out(
    table: Table, name: str, roles: Roles, episodes: Episodes, progress: Progress | None
) -> Trajectories:
    """The values of a table in the order of its episodes."""
    kept = int(episodes.lengths.sum())
    wanted = (roles.observations, roles.actions, (roles.reward,))
    total = table.rows * sum(_width(columns) for columns in wanted)
    done = 0

    def add(values: int) -> None:
        nonlocal done
        done += values
        if progress is not None:
            progress(done, total)

    def matrix(columns: tuple[Column, ...], dtype: type) -> NDArray[Any]:
        return _matrix(table, columns, dtype, episodes.origin.rows, add)[:kept]

    actions = matrix(roles.actions, np.int32 if roles.discrete else np.float32)
    return Trajectories(
        name=contained(name),
        observations=matrix(roles.observations, np.float32),
        actions=actions[:, 0] if roles.discrete else actions,
        rewards=matrix((roles.reward,), np.float32)[:, 0],
        starts=episodes.starts,
        lengths=episodes.lengths,
        terminated=episodes.terminated,
        unfinished_steps=table.rows - kept,
        observation_names=_names(roles.observations),
        action_names=_names(roles.actions),
    )


def _matrix(
    table: Table,
    columns: tuple[Column, ...],
    dtype: type,
    order: NDArray[np.int64] | None,
    add: Callable[[int], None],
) -> NDArray[Any]:
    """Columns side by side, in the order of the episodes. [step, dimension]"""
    rows, width = table.rows, _width(columns)
    position = None
    if order is not None:
        position = np.empty(rows, np.int64)
        position[order] = np.arange(rows)
    whole: NDArray[Any] | None = None
    first = 0
    for arrays in table.read([c.name for c in columns], None if dtype is np.int32 else dtype):
        count = len(arrays[0])
        parts = [_narrow(table, c, a, dtype, first) for c, a in zip(columns, arrays, strict=True)]
        if count == rows and len(parts) == 1 and position is None:
            return parts[0]  # a column that is the matrix already: no copy
        if whole is None:
            whole = np.empty((rows, width), dtype)
        here = slice(first, first + count)
        whole[here if position is None else position[here]] = np.concatenate(parts, axis=1)
        first += count
        add(count * width)
    check_count(table, first)
    assert whole is not None
    return whole


def _width(columns: tuple[Column, ...]) -> int:
    return sum(column.width or 1 for column in columns)


def _narrow(table: Table, column: Column, array: NDArray[Any], dtype: type, first: int) -> NDArray[Any]:
    array = array.reshape(len(array), -1)
    if dtype is np.int32:
        # Whole numbers come as real ones where some rows have none.
        if array.dtype.kind == "f" and (missing := np.flatnonzero(~np.isfinite(array))).size:
            raise refuse(table, column, missing + first, "has no value", "every step has an action")
        if array.dtype.kind == "f" and (odd := np.flatnonzero(array % 1)).size:
            remedy = "--action-kind continuous takes the actions as real ones"
            raise refuse(
                table, column, odd + first, "is no whole number", remedy, array.reshape(-1)[odd[:10]]
            )
        # What does not fit must not come out as something that does.
        array = array.astype(np.int64, copy=False).clip(-1, 2**31 - 1)
    # What float32 cannot hold becomes inf, which the checks refuse by its place.
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype, copy=False)


def _names(columns: tuple[Column, ...]) -> tuple[str, ...]:
    """One name per dimension; none for a single list column, which has only its own."""
    if len(columns) == 1 and columns[0].width is not None:
        return ()
    names: list[str] = []
    for column in columns:
        names += (
            [column.name] if column.width is None else [f"{column.name}[{i}]" for i in range(column.width)]
        )
    return tuple(names)
