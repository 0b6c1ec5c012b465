"""From a table with one row per step, in any order, to Trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.data.checks import Recording
from cwbc.data.formats.columns import BY_NAME, ColumnOptions, Roles, assign
from cwbc.data.formats.segmentation import EpisodeRows, segment
from cwbc.data.formats.step_table import StepColumn, StepTable
from cwbc.data.formats.text_columns import unread_dates, with_numbers
from cwbc.data.issues import DataError, Issue
from cwbc.data.naming import contained

if TYPE_CHECKING:
    from cwbc.system.progress import Progress


def assemble(
    table: StepTable,
    name: str,
    options: ColumnOptions = BY_NAME,
    progress: Progress | None = None,
) -> Recording:
    """The episodes of a table; a trailing one without an end is excluded and counted."""
    if not table.rows:
        raise DataError(table.source, [Issue("error", "there are no rows", "give one row per step")])
    roles, issues = assign(table.columns, options)
    if roles is None:
        table, issues = with_numbers(table, issues)
        roles, _ = assign(table.columns, options)
        # Words as steps leave the rows without an order, so there would be no episodes to check.
        if roles is None or any(issue.column == roles.step.name for issue in issues if roles.step):
            raise DataError(table.source, issues)
    try:
        episodes = segment(table, roles)
        data = _trajectories(table, name, roles, episodes, progress)
    except DataError as error:
        raise DataError(table.source, [*issues, *error.issues]) from error
    issues += [*episodes.issues, *unread_dates(table, roles)]
    if data.unfinished_steps:
        what = f"the last {data.unfinished_steps:,} steps are an episode without an end"
        issues.append(Issue("warning", what, "they are excluded", count=data.unfinished_steps))
    return Recording(data, episodes.origin, tuple(issues))


def _trajectories(
    table: StepTable, name: str, roles: Roles, episodes: EpisodeRows, progress: Progress | None
) -> Trajectories:
    """The values of a table in the order of its episodes."""
    finished, order = int(episodes.lengths.sum()), episodes.origin.rows
    total = table.rows * sum(c.width or 1 for c in (*roles.observations, *roles.actions, roles.reward))
    done = 0

    def report(values: int) -> None:
        nonlocal done
        done += values
        if progress is not None:
            progress(done, total)

    def matrix(columns: tuple[StepColumn, ...], dtype: type | None) -> NDArray[Any]:
        array = table.fetch([column.name for column in columns], dtype, report)
        return array[:finished] if order is None else array[order]

    actions = matrix(roles.actions, None if roles.discrete else np.float32)
    observations = matrix(
        roles.observations, np.uint8 if roles.observations[0].kind == "image" else np.float32
    )
    return Trajectories(
        name=contained(name),
        observations=observations[..., None] if observations.ndim == 3 else observations,  # one channel
        actions=_discrete(table, roles.actions[0], actions[:, 0], order) if roles.discrete else actions,
        rewards=matrix((roles.reward,), np.float32)[:, 0],
        starts=episodes.starts,
        lengths=episodes.lengths,
        terminated=episodes.terminated,
        unfinished_steps=table.rows - finished,
        observation_names=_names(roles.observations),
        action_names=_names(roles.actions),
    )


def _discrete(
    table: StepTable, column: StepColumn, actions: NDArray[Any], order: NDArray[np.int64] | None
) -> NDArray[np.int32]:
    """Discrete actions, which come as floats where some rows have none."""
    missing, fractions = np.flatnonzero(~np.isfinite(actions)), np.flatnonzero(actions % 1 != 0)
    if missing.size:
        rows = missing if order is None else order[missing]
        raise table.invalid(column, rows, "has no value", "every step has an action")
    if fractions.size:
        rows, remedy = (
            fractions if order is None else order[fractions],
            "--action-kind continuous reads any number",
        )
        raise table.invalid(column, rows, "is not an integer", remedy, actions[fractions[:10]])
    # An overflow must not turn an invalid action into a valid one.
    return actions.astype(np.int64, copy=False).clip(-1, 2**31 - 1).astype(np.int32)


def _names(columns: tuple[StepColumn, ...]) -> tuple[str, ...]:
    """One name per dimension; none for a single column of lists or images."""
    if len(columns) == 1 and columns[0].width is not None:
        return ()
    return tuple(
        column.name if index is None else f"{column.name}[{index}]"
        for column in columns
        for index in ([None] if column.width is None else range(column.width))
    )
