"""A dataset as it was read, and the checks of its values: errors make it unusable, warnings are reported."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories, blocks
from cwbc.data.issues import DataError, Issue, Origin
from cwbc.system.formatting import amount

MOST_ACTIONS = 1 << 16  # discrete ones; more are another kind of integer, such as a customer's number
_MANY_ACTIONS = 30  # discrete actions beyond which integers are rather a quantity
_MANY_ENDS, _NEARLY_ALL = 10, 0.95  # terminations at one step that are no coincidence
_MOST_CHANNELS, _LEAST_SIDE = 4, 16  # of images: channels that may be first, and sides without doubt
_ROUNDING = 1e-5  # an action of 1 may be stored as 1.000001
# What often stands for a missing value, with either sign: 999, 9999, ..., 1e5, 1e6, ..., limits of types.
_SENTINELS = np.array(
    [*(10**k - 1 for k in range(3, 9)), *(10.0**k for k in range(5, 39)), 2**15 - 1, 2**15, 2**31], np.float32
)


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """Episodes with their origin and the issues of reading them; their values are not checked yet."""

    data: Trajectories
    origin: Origin
    issues: tuple[Issue, ...] = ()
    stored: bool = False  # read from the store, which checked it when it was added

    def errors(self) -> list[Issue]:
        """All errors, of reading and of the values."""
        return [*(issue for issue in self.issues if issue.severity == "error"), *_errors(self)]

    def warnings(self) -> list[Issue]:
        """All warnings, of reading and of the values."""
        return [*(issue for issue in self.issues if issue.severity == "warning"), *_warnings(self)]

    def described(self, **facts: Any) -> Recording:
        """The same recording with other facts about its data."""
        return dataclasses.replace(self, data=self.data.described(**facts))

    def trusted(self) -> Trajectories:
        """The data, if it has no errors."""
        if errors := self.errors():
            raise DataError(self.origin.source, errors)
        return self.data


def dimension_names(data: Trajectories, of: Literal["observation", "action"]) -> tuple[str, ...]:
    """The name of each dimension of observations or actions; images and discrete actions have one."""
    given: tuple[str, ...] = getattr(data, f"{of}_names")
    shape = getattr(data, f"{of}s").shape
    return given or (tuple(f"{of}s[{i}]" for i in range(shape[1])) if len(shape) == 2 else (f"{of}s",))


def equal_returns(lowest: float, best: float, episodes: int) -> Iterator[Issue]:
    """A warning where all returns are the same."""
    if are_equal(lowest, best):
        who = "the only episode returns" if episodes == 1 else f"all {episodes:,} episodes return"
        what = f"{who} {'' if lowest == best else 'about '}{amount(best)}"
        remedy = "conditioning on the return has nothing to learn; plain bc is the right choice"
        yield Issue("warning", what, remedy)


def are_equal(lowest: float, best: float) -> bool:
    """Whether the returns differ by rounding at most."""
    return lowest == best or best - lowest < 1e-6 * max(abs(lowest), abs(best))  # not where one is infinite


@dataclasses.dataclass(frozen=True)
class LengthStatistics:
    """How long the episodes are, and how they ended."""

    min: int
    median: float
    max: int
    terminated: int  # episodes
    truncated: int  # episodes
    terminated_at_longest: int  # terminated episodes that are as long as the longest

    @classmethod
    def of(cls, data: Trajectories) -> LengthStatistics:
        terminated, longest = data.lengths[data.terminated], int(data.lengths.max())
        ends = (len(terminated), data.episodes - len(terminated), int((terminated == longest).sum()))
        return cls(int(data.lengths.min()), float(np.median(data.lengths)), longest, *ends)

    @property
    def look_limited(self) -> bool:
        """Whether nearly all terminations are at the same step, which few environments do."""
        nearly_all = self.terminated_at_longest >= _NEARLY_ALL * self.terminated
        return self.terminated >= _MANY_ENDS and nearly_all and self.max > 1


def _errors(recording: Recording) -> Iterator[Issue]:
    data, origin = recording.data, recording.origin
    for names, array in _float_columns(recording):
        # A sum is finite only if every value is: a quick test that needs no mask of the data.
        with np.errstate(invalid="ignore"):  # inf - inf
            if np.isfinite(array.sum(dtype=np.float64)):
                continue
        where = np.argwhere(~np.isfinite(array))
        for column in np.unique(where[:, 1]):
            steps, name = where[where[:, 1] == column, 0], names[column]
            what, remedy = f"{name} is not finite", "every value must be a finite number"
            yield origin.issue("error", what, remedy, data.starts, steps, name, array[steps, column])
    if data.has_images:
        name, (channels, height, width) = dimension_names(data, "observation")[0], data.observations.shape[1:]
        if channels <= _MOST_CHANNELS and min(height, width) >= _LEAST_SIDE:
            what = f"{name} has images whose channels are first: {channels} x {height} x {width}"
            yield Issue("error", what, f"they must be last, as in numpy.moveaxis({name}, 1, -1)", name)
    if not data.discrete:
        return
    name, count = dimension_names(data, "action")[0], data.action_count or MOST_ACTIONS
    if count > MOST_ACTIONS:
        what, remedy = f"there are {count:,} discrete actions", f"at most {MOST_ACTIONS:,} are supported"
        yield Issue("error", what, remedy)
    known = f"the {count:,} actions" if data.action_count else f"actions, at most {MOST_ACTIONS:,} of them,"
    for wrong, remedy in (
        (data.actions < 0, "discrete actions are numbered from 0; --action-kind continuous reads any number"),
        (data.actions >= count, f"{known} are numbered from 0 to {count - 1:,}"),
    ):
        if (steps := np.flatnonzero(wrong)).size:
            what = f"{name} is outside the discrete range"
            yield origin.issue("error", what, remedy, data.starts, steps, name, data.actions[steps])


def _float_columns(recording: Recording) -> Iterator[tuple[tuple[str, ...], NDArray[Any]]]:
    """The names and values [step, dimension] of observations, actions and rewards that are no integers."""
    data = recording.data
    if not data.has_images:
        yield dimension_names(data, "observation"), data.observations
    if not data.discrete:
        yield dimension_names(data, "action"), data.actions
    yield (recording.origin.reward_name,), data.rewards[:, None]


def _warnings(recording: Recording) -> Iterator[Issue]:
    data, origin = recording.data, recording.origin
    yield from equal_returns(data.lowest, data.best, data.episodes)
    yield from _discrete_actions(data) if data.discrete else _continuous_actions(recording)
    if (short := np.flatnonzero(data.lengths == 1)).size:
        what = f"{len(short):,} of {data.episodes:,} episodes have one step"
        remedy = "an episode of one step is rarely meant: are the ends of episodes marked correctly?"
        yield origin.issue("warning", what, remedy, data.starts, data.starts[short])
    lengths = LengthStatistics.of(data)
    if origin.only_done and data.time_limit is None and lengths.look_limited:
        same, longest = lengths.terminated_at_longest, lengths.max
        what = f"{same:,} of {data.episodes:,} episodes end after exactly {longest:,} steps"
        remedy = f"if that is a time limit, import with --time-limit {longest}: then they count as truncated"
        yield Issue("warning", what, remedy)
    if data.rewards.min() == data.rewards.max():
        reward, remedy = origin.reward_name, "a return is then only the episode's length"
        yield Issue("warning", f"{reward} is {data.rewards[0]:g} in every row", remedy, reward, data.steps)
    yield from _images(data) if data.has_images else _constant_observations(data)
    yield from _sentinels(recording)
    if not origin.in_order and not data.has_images:
        yield from _repeated_rows(recording)


def _discrete_actions(data: Trajectories) -> Iterator[Issue]:
    if data.action_count is not None:
        return
    name, seen = dimension_names(data, "action")[0], np.unique(data.actions)
    if data.action_size > _MANY_ACTIONS:
        what = f"{name} is read as one of {data.action_size:,} discrete actions"
        yield Issue("warning", what, "--action-kind continuous reads it as a number", name)
    if seen[0] == 1 and len(seen) == seen[-1] > 1:
        what = f"{name} has the values 1 to {seen[-1]:,} and never 0"
        remedy = f"numbers start at 0, so {seen[-1] + 1:,} actions are trained: subtract 1 from each"
        yield Issue("warning", what, remedy, name, data.steps)


def _continuous_actions(recording: Recording) -> Iterator[Issue]:
    """Actions out of bounds; and one that is always an integer, which is likely discrete."""
    data, names = recording.data, dimension_names(recording.data, "action")
    low, high = np.full((2, len(names)), [[-1.0], [1.0]])
    whose, remedy = "", "the policy stays in the range of the data; many tools expect [-1, 1]"
    if data.action_bounds is not None:
        low, high = np.asarray(data.action_bounds)
        whose, remedy = "the environment's ", "is it another environment, or another unit of the actions?"
    reach = np.where(np.isfinite([low, high]), np.abs([low, high]), 0).max(axis=0)
    slack = _ROUNDING * np.maximum(reach, 1)
    for name, values, least, most, room in zip(names, data.actions.T, low, high, slack, strict=True):
        if (steps := np.flatnonzero((values < least - room) | (values > most + room))).size:
            what = f"{name} is outside {whose}[{least:g}, {most:g}]"
            texts = (f"{value:g}" for value in values[steps])
            yield recording.origin.issue("warning", what, remedy, data.starts, steps, name, texts)
    likely = len(names) == 1 and data.actions.min() >= 0 and data.actions.max() > 0
    if likely and all((block % 1 == 0).all() for _, block in blocks(data.actions)):
        what = f"{names[0]} is an integer in every row, though its type is a float"
        remedy = "--action-kind discrete reads it as a discrete action"
        yield Issue("warning", what, remedy, names[0], data.steps)


def _constant_observations(data: Trajectories) -> Iterator[Issue]:
    first, names = data.observations[0], dimension_names(data, "observation")
    for column in np.flatnonzero(data.observations.min(axis=0) == data.observations.max(axis=0)):
        name = names[column]
        narrow = ", at the precision of float32" if abs(first[column]) >= 2**24 else ""
        what = f"{name} is {first[column]:g} in every row{narrow}"
        yield Issue("warning", what, "a constant observation has no information", name, data.steps)


def _images(data: Trajectories) -> Iterator[Issue]:
    """Images that are all the same, or whose channels seem to be first."""
    name, (height, width, channels) = dimension_names(data, "observation")[0], data.observations.shape[1:]
    if all((block == data.observations[0]).all() for _, block in blocks(data.observations)):
        what = f"{name} is the same image in every row"
        yield Issue("warning", what, "it has no information", name, data.steps)
    if channels > max(height, _MOST_CHANNELS):
        what = f"{name} has images of height {height}, width {width} and {channels} channels"
        yield Issue("warning", what, "are the channels first? They must be last", name)


def _sentinels(recording: Recording) -> Iterator[Issue]:
    """One repeated value that often stands for a missing one, further from all others than they are apart."""
    for names, array in _float_columns(recording):
        ends = np.stack([array.min(axis=0), array.max(axis=0)])  # [2, dimension]
        for end, column in np.argwhere(np.isin(np.abs(ends), _SENTINELS)):
            name, values, value = names[column], array[:, column], float(ends[end, column])
            steps, others = np.flatnonzero(values == value), values[~np.isin(np.abs(values), _SENTINELS)]
            if len(steps) < 2 or not others.size:
                continue
            low, high = float(others.min()), float(others.max())
            if min(abs(value - low), abs(value - high)) > high - low:
                beyond = f"far outside the others, {low:g} to {high:g}"
                what = f"{name} is {value:g} in {len(steps):,} rows, {beyond}"
                remedy = "if it stands for a missing value, replace it or drop those rows"
                yield recording.origin.issue("warning", what, remedy, recording.data.starts, steps, name)


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
        yield recording.origin.issue("warning", what, remedy, data.starts, steps)


@np.errstate(over="ignore")  # modulo 2^64 is intended
def _row_hashes(data: Trajectories) -> NDArray[np.uint64]:
    hashes = np.zeros(data.steps, np.uint64)
    generator = np.random.default_rng(0)
    for array in (data.observations, data.actions, data.rewards):
        columns = np.ascontiguousarray(array.reshape(data.steps, -1)).view(np.uint32)
        # Odd: rows that differ in one column never have the same hash.
        factors = generator.integers(2**63, size=columns.shape[1], dtype=np.uint64) * 2 + 1
        for first, block in blocks(columns):
            hashes[first : first + len(block)] += block.astype(np.uint64) @ factors
    return hashes
