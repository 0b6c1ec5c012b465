"""A dataset as it was read, and the checks of its values: errors make it unusable, warnings are reported."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories, blocks
from cwbc.data.issues import LOCATIONS_STORED, DataError, Issue, Origin, Severity

MOST_ACTIONS = 1 << 16  # discrete ones; more are another kind of integer, such as a customer's number
_MANY_ACTIONS = 30  # discrete actions beyond which integers are rather a quantity
_MANY_ENDS, _NEARLY_ALL = 10, 0.95  # terminations at one step that are no coincidence
NOTHING_TO_LEARN = "conditioning on the return has nothing to learn"
_ROUNDING = 1e-5  # an action of 1 may be stored as 1.000001


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """Episodes with their origin and the issues of reading them; their values are not checked yet."""

    data: Trajectories
    origin: Origin
    issues: tuple[Issue, ...] = ()
    stored: bool = False  # read from the store, which checked it when it was added

    def errors(self) -> list[Issue]:
        """All errors, of reading and of the values."""
        return [*self._issues("error"), *_errors(self)]

    def warnings(self) -> list[Issue]:
        """All warnings, of reading and of the values."""
        return [*self._issues("warning"), *_warnings(self)]

    def trusted(self) -> Trajectories:
        """The data, if it has no errors."""
        if errors := self.errors():
            raise DataError(self.origin.source, errors)
        return self.data

    def issue(
        self,
        severity: Severity,
        what: str,
        remedy: str,
        steps: NDArray[np.integer[Any]],
        column: str | None = None,
        value: Callable[[int], object] | None = None,
        count: int | None = None,
    ) -> Issue:
        """An issue that occurs at these steps."""
        return self.origin.issue(severity, what, remedy, self.data.starts, steps, column, value, count)

    def _issues(self, severity: Severity) -> list[Issue]:
        return [issue for issue in self.issues if issue.severity == severity]


def has_images(data: Trajectories) -> bool:
    """Whether observations are images, uint8 [step, height, width, channel]."""
    return data.observations.ndim > 2


def observation_names(data: Trajectories) -> tuple[str, ...]:
    """The name of each observation dimension; one for images."""
    if has_images(data):
        return data.observation_names or ("observations",)
    return data.observation_names or tuple(f"observations[{i}]" for i in range(data.observations.shape[1]))


def action_names(data: Trajectories) -> tuple[str, ...]:
    """The name of each action dimension."""
    if data.discrete:
        return data.action_names or ("actions",)
    return data.action_names or tuple(f"actions[{i}]" for i in range(data.actions.shape[1]))


def _errors(recording: Recording) -> Iterator[Issue]:
    data = recording.data
    for names, array in (
        (observation_names(data), data.observations),
        (action_names(data), data.actions),
        ((recording.origin.reward_name,), data.rewards),
    ):
        if array.dtype.kind == "f":
            yield from _not_finite(recording, names, array.reshape(data.steps, -1))
    if data.discrete:
        yield from _discrete_range(recording)


def _warnings(recording: Recording) -> Iterator[Issue]:
    data, reward = recording.data, recording.origin.reward_name
    yield from equal_returns(data)
    if not data.discrete:
        yield from _out_of_bounds(recording)
        yield from _integer_actions(data)
    elif data.action_count is None and data.action_size > _MANY_ACTIONS:
        name, what = action_names(data)[0], f"is read as one of {data.action_size:,} discrete actions"
        yield Issue("warning", f"{name} {what}", "--action-kind continuous reads it as a number", name)
    if (short := np.flatnonzero(data.lengths == 1)).size:
        what = f"{len(short):,} of {data.episodes:,} episodes have one step"
        remedy = "an episode of one step is rarely meant: are the ends of episodes marked correctly?"
        yield recording.issue("warning", what, remedy, data.starts[short])
    if recording.origin.only_done:
        yield from _unknown_limit(data)
    if data.rewards.min() == data.rewards.max():
        what, remedy = (
            f"{reward} is {data.rewards[0]:g} in every row",
            "a return is then only the episode's length",
        )
        yield Issue("warning", what, remedy, reward, data.steps)
    yield from _constant_images(data) if has_images(data) else _constant_observations(data)
    if not recording.origin.in_order and not has_images(data):
        yield from _repeated_rows(recording)


def equal_returns(data: Trajectories) -> Iterator[Issue]:
    """A warning where all returns are the same."""
    if are_equal(data.lowest, data.best):
        about = "" if data.lowest == data.best else "about "
        what = f"all {data.episodes:,} episodes return {about}{data.best:.4g}"
        what = f"the only episode returns {data.best:.4g}" if data.episodes == 1 else what
        yield Issue("warning", what, f"{NOTHING_TO_LEARN}; plain bc is the right choice")


def are_equal(lowest: float, best: float) -> bool:
    """Whether the returns differ by rounding at most."""
    return lowest == best or best - lowest < 1e-6 * max(abs(lowest), abs(best))  # not where one is infinite


def terminated_at_longest(data: Trajectories) -> int:
    """How many terminated episodes are as long as the longest of all."""
    return int((data.lengths[data.terminated] == data.lengths.max()).sum())


def looks_like_limit(terminated: int, at_longest: int, longest: int) -> bool:
    """Whether nearly all terminations are at the same step, which few environments do."""
    return terminated >= _MANY_ENDS and at_longest >= _NEARLY_ALL * terminated and longest > 1


def _not_finite(recording: Recording, names: tuple[str, ...], array: NDArray[Any]) -> Iterator[Issue]:
    bad: list[NDArray[np.int64]] = []
    for first, block in blocks(array):
        # A sum is finite only if every value is: a quick test that needs no mask of the data.
        with np.errstate(invalid="ignore"):  # inf - inf
            total = block.sum(dtype=np.float64)
        if not np.isfinite(total):
            bad.append(np.argwhere(~np.isfinite(block)) + np.array([first, 0]))
    where = np.concatenate(bad) if bad else np.empty((0, 2), np.int64)
    for column in np.unique(where[:, 1]):
        steps, name = where[where[:, 1] == column, 0], names[column]
        values = array[:, column]
        what, remedy = f"{name} is not finite", "every value must be a finite number"
        yield recording.issue("error", what, remedy, steps, name, values.__getitem__)


def _discrete_range(recording: Recording) -> Iterator[Issue]:
    data, name = recording.data, action_names(recording.data)[0]
    count = data.action_count or MOST_ACTIONS
    if count > MOST_ACTIONS:
        yield Issue(
            "error", f"there are {count:,} discrete actions", f"at most {MOST_ACTIONS:,} are supported"
        )
    known = f"the {count:,} actions" if data.action_count else "actions, at most 65,536 of them,"
    for wrong, remedy in (
        (data.actions < 0, "discrete actions are numbered from 0; --action-kind continuous reads any number"),
        (data.actions >= count, f"{known} are numbered from 0 to {count - 1:,}"),
    ):
        if (steps := np.flatnonzero(wrong)).size:
            what = f"{name} is outside the discrete range"
            yield recording.issue("error", what, remedy, steps, name, data.actions.__getitem__)


def _out_of_bounds(recording: Recording) -> Iterator[Issue]:
    data, names = recording.data, action_names(recording.data)
    low, high = np.full((2, len(names)), [[-1.0], [1.0]])
    whose, remedy = "", "the policy stays in the range of the data; many tools expect [-1, 1]"
    if data.action_bounds is not None:
        low, high = np.asarray(data.action_bounds)
        whose, remedy = "the environment's ", "is it another environment, or another unit of the actions?"
    reach = np.where(np.isfinite([low, high]), np.abs([low, high]), 0).max(axis=0)
    slack = _ROUNDING * np.maximum(reach, 1)
    counts = np.zeros(len(names), np.int64)
    found: list[list[int]] = [[] for _ in names]
    for first, block in blocks(data.actions):
        mask = (block < low - slack) | (block > high + slack)
        for column in np.flatnonzero(mask.any(axis=0)).tolist():
            steps = np.flatnonzero(mask[:, column])
            counts[column] += len(steps)
            found[column] += (steps[: LOCATIONS_STORED - len(found[column])] + first).tolist()
    for column in np.flatnonzero(counts).tolist():

        def value(step: int, column: int = column) -> str:
            return f"{data.actions[step, column]:g}"

        what = f"{names[column]} is outside {whose}[{low[column]:g}, {high[column]:g}]"
        shown, count = np.array(found[column]), int(counts[column])
        yield recording.issue("warning", what, remedy, shown, names[column], value, count)


def _integer_actions(data: Trajectories) -> Iterator[Issue]:
    """One continuous action that is always an integer is likely a discrete one of the wrong type."""
    likely = data.actions.shape[1] == 1 and data.actions.min() >= 0 and data.actions.max() > 0
    if likely and all((block % 1 == 0).all() for _, block in blocks(data.actions)):
        name = action_names(data)[0]
        what = f"{name} is an integer in every row, though its type is a float"
        yield Issue("warning", what, "--action-kind discrete reads it as a discrete action", name, data.steps)


def _unknown_limit(data: Trajectories) -> Iterator[Issue]:
    """Terminations at the same step, where truncations are not marked."""
    count, same, longest = int(data.terminated.sum()), terminated_at_longest(data), int(data.lengths.max())
    if data.time_limit is None and looks_like_limit(count, same, longest):
        what = f"{same:,} of {data.episodes:,} episodes end after exactly {longest:,} steps"
        remedy = f"if that is a time limit, import with --time-limit {longest}: then they count as truncated"
        yield Issue("warning", what, remedy)


def _constant_observations(data: Trajectories) -> Iterator[Issue]:
    first = data.observations[0]
    changes = np.zeros(len(first), bool)
    for _, block in blocks(data.observations):
        changes |= (block != first).any(axis=0)
        if changes.all():
            return
    for column in np.flatnonzero(~changes):
        name = observation_names(data)[column]
        narrow = ", at the precision of float32" if abs(first[column]) >= 2**24 else ""
        what = f"{name} is {first[column]:g} in every row{narrow}"
        yield Issue("warning", what, "a constant observation has no information", name, data.steps)


def _constant_images(data: Trajectories) -> Iterator[Issue]:
    """Images that are all the same, or whose channels seem to be first."""
    name, (height, width, channels) = observation_names(data)[0], data.observations.shape[1:]
    if all((block == data.observations[0]).all() for _, block in blocks(data.observations)):
        yield Issue(
            "warning", f"{name} is the same image in every row", "it has no information", name, data.steps
        )
    if channels > max(height, 4):
        what = f"{name} has images of height {height}, width {width} and {channels} channels"
        yield Issue("warning", what, "are the channels first? They must be last", name)


def _repeated_rows(recording: Recording) -> Iterator[Issue]:
    """Rows that are equal to an earlier one of their episode, value by value."""
    data = recording.data
    hashes = _row_hashes(data)
    episodes = np.repeat(np.arange(data.episodes), data.lengths)
    order = np.lexsort((hashes, episodes))
    same = (np.diff(hashes[order]) == 0) & (np.diff(episodes[order]) == 0)
    steps = np.sort(order[1:][same])
    # Integer states do repeat (a grid, a counter); sensor readings do not.
    steps = steps[(data.observations[steps] % 1 != 0).any(axis=1)]
    if steps.size:
        what = f"{len(steps):,} rows repeat an earlier row of their episode, value for value"
        remedy = "were they logged twice? A column with the number of each step would show it"
        yield recording.issue("warning", what, remedy, steps)


@np.errstate(over="ignore")  # modulo 2^64 is intended
def _row_hashes(data: Trajectories) -> NDArray[np.uint64]:
    hashes = np.zeros(data.steps, np.uint64)
    generator = np.random.default_rng(0)
    for array in (data.observations, data.actions, data.rewards):
        columns = array.reshape(data.steps, -1)
        factors = generator.integers(1, 2**63, columns.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
        for first, block in blocks(columns):
            bits = np.ascontiguousarray(block).view(np.uint32).astype(np.uint64)
            hashes[first : first + len(block)] += (bits + np.uint64(1)) @ factors
    return hashes ^ (hashes >> np.uint64(29))
