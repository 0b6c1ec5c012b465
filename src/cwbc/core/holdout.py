"""Held-out episodes: whole episodes, spread over the range of returns, that training never reads."""

from __future__ import annotations

import dataclasses
import threading
import weakref

import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import InputError

FEWEST = 10  # episodes, of fewer of which none can be spared


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """The episodes of a dataset that are trained on, and those that are not."""

    training: Trajectories
    held_out: Trajectories | None


# One copy for all methods on a dataset: those that train side by side share its arrays.
_splits: weakref.WeakKeyDictionary[Trajectories, dict[float, Split]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()  # one thread per device trains


def split(data: Trajectories, fraction: float) -> Split:
    """Hold out a fraction of the episodes; the same ones for the same data."""
    if not fraction:
        return Split(data, None)
    if data.episodes < FEWEST:
        few = f"{data.name} has {data.episodes} episodes, and to hold some out takes {FEWEST}"
        raise InputError(f"{few}; holdout=0 (--holdout 0) trains on all of them")
    with _lock:
        known = _splits.setdefault(data, {})
        if fraction not in known:
            is_held_out = held_out(data, fraction)
            known[fraction] = Split(_with(data, ~is_held_out), _with(data, is_held_out))
        return known[fraction]


def held_out(data: Trajectories, fraction: float) -> NDArray[np.bool_]:
    """Which episodes are held out: evenly spaced ones of all but the best, sorted by return. [episode]"""
    others = np.argsort(data.returns, kind="stable")[:-1]
    count = max(1, round(fraction * data.episodes))
    places = ((np.arange(count) + 0.5) * len(others) / count).astype(int)
    chosen = np.zeros(data.episodes, bool)
    chosen[others[places]] = True
    return chosen


def some_of(data: Trajectories, most: int) -> Trajectories:
    """The dataset with so many episodes at most, spread evenly over the range of returns."""
    if data.episodes <= most:
        return data
    chosen = np.zeros(data.episodes, bool)
    places = np.linspace(0, data.episodes - 1, most).round().astype(int)
    chosen[np.argsort(data.returns, kind="stable")[places]] = True
    return _with(data, chosen)


def _with(data: Trajectories, chosen: NDArray[np.bool_]) -> Trajectories:
    """The dataset with some of its episodes; H and the number of actions are facts of the task, and stay."""
    starts, lengths = data.starts[chosen], data.lengths[chosen]
    ends = np.cumsum(lengths)
    rows = np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
    shared = data.has_images  # which take most of the memory, or more than there is
    return dataclasses.replace(
        data,
        observations=data.observations if shared else data.observations[rows],
        first_images=data.observation_starts[chosen] if shared else None,
        actions=data.actions[rows],
        rewards=data.rewards[rows],
        starts=ends - lengths,
        lengths=lengths,
        terminated=data.terminated[chosen],
        time_limit=data.horizon,
        action_count=data.action_size if data.discrete else None,
    )
