"""Statistics of many trainings on many tasks, from one array of scores [seed, task] for each method.

They also take axes in front of these two, so that all resamples of a bootstrap are one call:

    bootstrap(probability_of_improvement, ours, theirs, generator=generator)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cwbc.results.intervals import Array, Ends, student_t
from cwbc.system.errors import InputError, require


def checked(scores: ArrayLike) -> Array:
    """Scores [..., seed, task] as an array, if they are that: as many seeds for every task, all numbers."""
    try:
        array = np.asarray(scores, np.float64)
    except ValueError as error:
        raise InputError(f"scores [seed, task] need as many seeds for every task ({error})") from None
    if array.ndim < 2 or array.size == 0:
        raise InputError(f"scores must be [seed, task], at least one of each; got the shape {array.shape}")
    if len(bad := np.argwhere(~np.isfinite(array))):
        *_, seed, task = bad[0]
        raise InputError(f"scores must be finite; got {array[tuple(bad[0])]} at seed {seed}, task {task}")
    return array


def interquartile_mean(scores: ArrayLike) -> Array:
    """The mean of the middle half of all runs, whatever their task: [..., seed, task] to [...].

    Where a quarter of the runs is not a whole number, the runs at its edge count with a fraction. SciPy's
    trim_mean counts them fully: of five runs it averages three, where the middle half is two and a half.
    """
    array = checked(scores)
    runs = array.shape[-2] * array.shape[-1]
    ordered = np.sort(array.reshape(*array.shape[:-2], runs), axis=-1)
    places = np.arange(runs)  # run i takes up the stretch from i to i + 1 of all runs
    within = np.minimum(places + 1, 0.75 * runs) - np.maximum(places, 0.25 * runs)
    return np.asarray(ordered @ (np.maximum(within, 0.0) / (0.5 * runs)))


def probability_of_improvement(ours: ArrayLike, theirs: ArrayLike) -> Array:
    """P(X > Y) for a run of ours and one of theirs on the same task, averaged over tasks; a tie is a half."""
    x, y = checked(ours), checked(theirs)
    if x.shape[-1] != y.shape[-1]:
        raise InputError(f"both need scores on the same tasks; got {x.shape[-1]} and {y.shape[-1]} of them")
    wins = [  # one seed at a time: all pairs of all resamples would be large
        ((run > y) + 0.5 * (run == y)).mean(axis=(-2, -1)) for run in np.split(x, x.shape[-2], axis=-2)
    ]
    return np.asarray(np.mean(wins, axis=0))


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> Array:
    """The fraction of runs that score above each threshold tau: [..., seed, task] to [..., threshold]."""
    array, levels = checked(scores), np.asarray(thresholds, np.float64)
    return np.stack([(array > level).mean(axis=(-2, -1)) for level in levels], axis=-1)


def difference(ours: Sequence[Array], theirs: Sequence[Array]) -> tuple[float, float, float]:
    """The difference of two methods' mean scores over tasks, and its 95 % interval.

    This is Welch's interval: a difference is significant if it excludes zero. NaN ends where a task has one
    seed; tasks may have different numbers of seeds.
    """
    value = float(np.mean([each.mean() for each in ours]) - np.mean([each.mean() for each in theirs]))
    cells = [*ours, *theirs]
    if min(map(len, cells)) < 2:
        return value, math.nan, math.nan
    variances = np.array([each.var(ddof=1) / len(each) for each in cells])
    degrees = np.array([len(each) - 1 for each in cells])
    total = variances.sum()
    if total == 0:
        return value, value, value
    effective = int(total**2 / (variances**2 / degrees).sum())  # Satterthwaite's; less is more careful
    reach = student_t(max(effective, 1)) * math.sqrt(total) / len(ours)
    return value, value - reach, value + reach


def bootstrap(
    statistic: Callable[..., Array],
    *methods: ArrayLike,
    generator: np.random.Generator,
    resamples: int = 2000,
    coverage: float = 0.95,
) -> Ends:
    """A statistic of one or more methods' scores with its stratified bootstrap percentile interval.

    The seeds of every task are resampled with replacement, independently of other tasks. With very few seeds
    the interval is too narrow; for one method on one task, `intervals` has a better one.
    """
    require(resamples >= 1, "resamples", resamples, "at least 1")
    require(0 < coverage < 1, "coverage", coverage, "between 0 and 1")
    arrays = [checked(scores) for scores in methods]
    if any(array.ndim != 2 for array in arrays):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InputError(f"scores must be [seed, task] for every method; got the shapes {shapes}")
    value = np.asarray(statistic(*arrays))
    if min(map(len, arrays)) < 2:
        return value, np.full_like(value, np.nan), np.full_like(value, np.nan)
    chosen = [generator.integers(len(array), size=(resamples, *array.shape)) for array in arrays]
    several = zip(arrays, chosen, strict=True)  # [resample, seed, task]
    values = statistic(*(np.take_along_axis(array[None], rows, axis=1) for array, rows in several))
    low, high = np.quantile(values, [(1 - coverage) / 2, (1 + coverage) / 2], axis=0)
    return value, np.asarray(low), np.asarray(high)
