"""What makes logged data wrong or doubtful, and where: errors keep it from being used, warnings are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.findings import PLACES_KEPT, Finding, Origin
from cwbc.trajectories import Trajectories, blocks

MOST_ACTIONS = 1 << 16  # discrete ones; more are another kind of number, such as a customer's
_MANY_CHOICES = 30  # discrete actions beyond which whole numbers are rather a quantity
_MANY_ENDS, _NEARLY_ALL = 10, 0.95  # ends at one step that are no coincidence
NOTHING_TO_LEARN = "conditioning on the return has nothing to learn"
_ROUNDING = 1e-5  # an action of 1 may come back as 1.000001


def errors(data: Trajectories, origin: Origin) -> Iterator[Finding]:
    """What no training could use."""
    for names, array in (
        (observation_names(data), data.observations),
        (action_names(data), data.actions),
        ((origin.reward_name,), data.rewards),
    ):
        if array.dtype.kind == "f":
            yield from _not_finite(data, origin, names, array)
    if data.discrete:
        yield from _discrete_range(data, origin)


def warnings(data: Trajectories, origin: Origin) -> Iterator[Finding]:
    """What can be used, but is seldom meant."""
    yield from equal_returns(data)
    if not data.discrete:
        yield from _beyond_bounds(data, origin)
        yield from _whole_actions(data)
    elif data.action_count is None and data.action_size > _MANY_CHOICES:
        name, what = action_names(data)[0], f"is taken as one of {data.action_size:,} choices"
        yield Finding("warning", f"{name} {what}", "--action-kind continuous takes it as a number", name)
    yield from _one_step(data, origin)
    if origin.only_done:
        yield from _limit_unknown(data)
    if data.rewards.min() == data.rewards.max():
        yield Finding(
            "warning",
            f"{origin.reward_name} is {data.rewards[0]:g} in every row",
            "a return then tells the length of an episode and nothing else",
            origin.reward_name,
            data.steps,
        )
    yield from _never_changing(data)
    if not origin.in_order:
        yield from _repeated_rows(data, origin)


def equal_returns(data: Trajectories) -> Iterator[Finding]:
    """Returns among which there is no better or worse."""
    if are_equal(data.lowest, data.best):
        about = "" if data.lowest == data.best else "about "
        what = f"all {data.episodes:,} episodes return {about}{data.best:.4g}"
        what = f"the only episode returns {data.best:.4g}" if data.episodes == 1 else what
        yield Finding("warning", what, f"{NOTHING_TO_LEARN}; plain bc is the honest choice")


def are_equal(lowest: float, best: float) -> bool:
    """Whether there is no more than rounding between the returns."""
    return lowest == best or best - lowest < 1e-6 * max(abs(lowest), abs(best))  # not where one is infinite


def ends_at_longest(data: Trajectories) -> int:
    """How many episodes ended by the environment are as long as the longest of all."""
    return int((data.lengths[data.terminated] == data.lengths.max()).sum())


def looks_like_limit(ends: int, at_longest: int, longest: int) -> bool:
    """Whether nearly all ends come at the same step: an environment that ends things so is rare."""
    return ends >= _MANY_ENDS and at_longest >= _NEARLY_ALL * ends and longest > 1


def observation_names(data: Trajectories) -> tuple[str, ...]:
    """What each observation dimension is called."""
    return data.observation_names or tuple(f"observations[{i}]" for i in range(data.observations.shape[1]))


def action_names(data: Trajectories) -> tuple[str, ...]:
    """What each action dimension is called."""
    if data.discrete:
        return data.action_names or ("actions",)
    return data.action_names or tuple(f"actions[{i}]" for i in range(data.actions.shape[1]))


def _not_finite(
    data: Trajectories, origin: Origin, names: tuple[str, ...], array: NDArray[Any]
) -> Iterator[Finding]:
    bad: list[NDArray[np.int64]] = []
    for first, block in blocks(array):
        # A sum is finite only if every value is: a quick look that needs no mask of the data.
        with np.errstate(invalid="ignore"):  # inf - inf
            total = block.sum(dtype=np.float64)
        if not np.isfinite(total):
            bad.append(np.argwhere(~np.isfinite(block)) + np.array([first] + [0] * (array.ndim - 1)))
    if not bad:
        return
    where = np.concatenate(bad)
    columns = where[:, 1] if array.ndim == 2 else np.zeros(len(where), np.int64)
    for column in np.unique(columns):
        steps = where[columns == column, 0]
        values = [str(array[s] if array.ndim == 1 else array[s, column]) for s in steps[:PLACES_KEPT]]
        yield Finding(
            "error",
            f"{names[column]} is not finite",
            "every value must be a finite number",
            names[column],
            len(steps),
            tuple(origin.places(data.starts, steps, values)),
        )


def _discrete_range(data: Trajectories, origin: Origin) -> Iterator[Finding]:
    def tell(steps: NDArray[np.intp], wanted: str) -> Finding:
        values = [str(data.actions[s]) for s in steps[:PLACES_KEPT]]
        places = tuple(origin.places(data.starts, steps, values))
        name = action_names(data)[0]
        return Finding("error", f"{name} is outside the discrete range", wanted, name, len(steps), places)

    if data.action_count is not None and data.action_count > MOST_ACTIONS:
        what = f"there are {data.action_count:,} discrete actions to choose from"
        yield Finding("error", what, f"{MOST_ACTIONS:,} are the most that can be learnt")
    if (low := np.flatnonzero(data.actions < 0)).size:
        yield tell(low, "discrete actions are numbered from 0; --action-kind continuous takes them as real")
    count = data.action_count or MOST_ACTIONS
    if (high := np.flatnonzero(data.actions >= count)).size:
        there = f"the {count:,} actions" if data.action_count else "actions, at most 65,536 of them,"
        yield tell(high, f"{there} are numbered from 0 to {count - 1:,}")


def _beyond_bounds(data: Trajectories, origin: Origin) -> Iterator[Finding]:
    if data.action_bounds is None:
        low, high = np.full((2, data.actions.shape[1]), [[-1.0], [1.0]])
        whose = ["[-1, 1]"] * len(low)
        remedy = "the policy keeps to the range of the data; many tools expect [-1, 1]"
    else:
        low, high = np.asarray(data.action_bounds)
        whose = [f"the environment's [{a:g}, {b:g}]" for a, b in zip(low, high, strict=True)]
        remedy = "is it another environment, or are the actions in another unit?"
    reach = np.where(np.isfinite([low, high]), np.abs([low, high]), 0).max(axis=0)
    slack = _ROUNDING * np.maximum(reach, 1)
    yield from _per_column(
        data,
        origin,
        data.actions,
        action_names(data),
        lambda block: (block < low - slack) | (block > high + slack),
        [f"is outside {each}" for each in whose],
        remedy,
    )


def _whole_actions(data: Trajectories) -> Iterator[Finding]:
    """One real action that is always a whole number is likely a choice that lost its type."""
    likely = data.actions.shape[1] == 1 and data.actions.min() >= 0 and data.actions.max() > 0
    if likely and all((block % 1 == 0).all() for _, block in blocks(data.actions)):
        name = action_names(data)[0]
        what = f"{name} is a whole number in every row, though its type is real"
        yield Finding("warning", what, "--action-kind discrete takes it as a choice", name, data.steps)


def _per_column(
    data: Trajectories,
    origin: Origin,
    array: NDArray[Any],
    names: tuple[str, ...],
    wrong: Callable[[NDArray[Any]], NDArray[np.bool_]],
    what: Sequence[str],  # [column]
    remedy: str,
) -> Iterator[Finding]:
    counts = np.zeros(len(names), np.int64)
    kept: list[list[int]] = [[] for _ in names]
    for first, block in blocks(array):
        mask = wrong(block)
        for column in np.flatnonzero(mask.any(axis=0)):
            steps = np.flatnonzero(mask[:, column])
            counts[column] += len(steps)
            kept[column] += (steps[: PLACES_KEPT - len(kept[column])] + first).tolist()
    for column in np.flatnonzero(counts):
        steps = np.array(kept[column])
        values = [f"{array[s, column]:g}" for s in steps]
        places = tuple(origin.places(data.starts, steps, values))
        yield Finding(
            "warning",
            f"{names[column]} {what[int(column)]}",
            remedy,
            names[column],
            int(counts[column]),
            places,
        )


def _one_step(data: Trajectories, origin: Origin) -> Iterator[Finding]:
    if (short := np.flatnonzero(data.lengths == 1)).size:
        yield Finding(
            "warning",
            f"{len(short):,} of {data.episodes:,} episodes have one step",
            "an episode of one step is rarely meant: are the ends of episodes marked where they are?",
            None,
            len(short),
            tuple(origin.places(data.starts, data.starts[short])),
        )


def _limit_unknown(data: Trajectories) -> Iterator[Finding]:
    """Ends that nothing tells from limits, and that all come at the same step."""
    ends, same, longest = int(data.terminated.sum()), ends_at_longest(data), int(data.lengths.max())
    if data.time_limit is None and looks_like_limit(ends, same, longest):
        yield Finding(
            "warning",
            f"{same:,} of {data.episodes:,} episodes end after exactly {longest:,} steps",
            f"if that is a time limit, import with --time-limit {longest}: then they count as cut off",
        )


def _never_changing(data: Trajectories) -> Iterator[Finding]:
    first = data.observations[0]
    changes = np.zeros(len(first), bool)
    for _, block in blocks(data.observations):
        changes |= (block != first).any(axis=0)
        if changes.all():
            return
    for column in np.flatnonzero(~changes):
        name = observation_names(data)[column]
        narrow = ", as far as the 32 bits tell that it is kept in" if abs(first[column]) >= 2**24 else ""
        yield Finding(
            "warning",
            f"{name} is {first[column]:g} in every row{narrow}",
            "an observation that never changes tells a policy nothing",
            name,
            data.steps,
        )


def _repeated_rows(data: Trajectories, origin: Origin) -> Iterator[Finding]:
    """Rows that are equal to an earlier one of their episode, value for value: logged twice?"""
    hashes = _row_hashes(data)
    episodes = np.repeat(np.arange(data.episodes), data.lengths)
    order = np.lexsort((hashes, episodes))
    same = (np.diff(hashes[order]) == 0) & (np.diff(episodes[order]) == 0)
    steps = np.sort(order[1:][same])
    # States that are whole numbers come back in earnest (a grid, a counter): only measured ones do not.
    steps = steps[(data.observations[steps] % 1 != 0).any(axis=1)]
    if steps.size:
        yield Finding(
            "warning",
            f"{len(steps):,} rows repeat an earlier row of their episode, value for value",
            "were they logged twice? A column with the number of each step settles it",
            None,
            len(steps),
            tuple(origin.places(data.starts, steps)),
        )


@np.errstate(over="ignore")  # modulo 2^64 is meant
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
