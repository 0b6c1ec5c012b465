"""Statistics of many trainings on many tasks, from one array of scores [seed, task] for each method.

They also take axes in front of these two, so that all resamples of a bootstrap are one call:

    bootstrap(probability_of_improvement, ours, theirs, generator=generator)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from cwbc.results.intervals import Array, Ends, student_t

COVERAGE = 0.95  # of bootstrap intervals


def interquartile_mean(scores: Array) -> Array:
    """The mean of the middle half of all runs, whatever their task: [..., seed, task] to [...].

    Where a quarter of the runs is not a whole number, the runs at its edge count with a fraction. SciPy's
    trim_mean counts them fully: of five runs it averages three, where the middle half is two and a half.
    """
    ordered = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    runs = ordered.shape[-1]
    places = np.arange(runs)  # run i takes up the stretch from i to i + 1 of all runs
    within = np.minimum(places + 1, 0.75 * runs) - np.maximum(places, 0.25 * runs)
    return np.asarray(ordered @ (np.maximum(within, 0.0) / (0.5 * runs)))


def probability_of_improvement(ours: Array, theirs: Array) -> Array:
    """P(X > Y) for a run of ours and one of theirs on the same task, averaged over tasks; a tie is a half."""
    wins = [  # one seed at a time: all pairs of all resamples would be large
        ((run > theirs) + 0.5 * (run == theirs)).mean(axis=(-2, -1))
        for run in np.split(ours, ours.shape[-2], axis=-2)
    ]
    return np.asarray(np.mean(wins, axis=0))


def performance_profile(scores: Array, thresholds: Array) -> Array:
    """The fraction of runs that score above each threshold tau: [..., seed, task] to [..., threshold]."""
    return np.stack([(scores > level).mean(axis=(-2, -1)) for level in thresholds], axis=-1)


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
    *methods: Array,  # [seed, task] of each
    generator: np.random.Generator,
    resamples: int = 2000,
) -> Ends:
    """A statistic of one or more methods' scores with its 95 % stratified bootstrap percentile interval.

    The seeds of every task are resampled with replacement, independently of other tasks. With very few seeds
    the interval is too narrow; for one method on one task, `intervals` has a better one.
    """
    value = np.asarray(statistic(*methods))
    if min(map(len, methods)) < 2:
        return value, np.full_like(value, np.nan), np.full_like(value, np.nan)
    chosen = [generator.integers(len(scores), size=(resamples, *scores.shape)) for scores in methods]
    several = zip(methods, chosen, strict=True)  # [resample, seed, task]
    values = statistic(*(np.take_along_axis(scores[None], rows, axis=1) for scores, rows in several))
    low, high = np.quantile(values, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2], axis=0)
    return value, np.asarray(low), np.asarray(high)
