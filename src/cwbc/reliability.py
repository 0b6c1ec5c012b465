"""How well a policy keeps to what it is asked for, in three numbers, each with its interval over seeds."""

from __future__ import annotations

import numpy as np

from cwbc.intervals import Array, interval

Ends = tuple[Array, Array, Array]  # a value and the ends of its interval; NaN where there is none


def best_point(scores: Array) -> int:
    """The target with the highest mean over seeds of scores [seed, target]; no number is lower than any."""
    achieved = scores.mean(axis=0)
    return int(np.argmax(np.where(np.isfinite(achieved), achieved, -np.inf)))


def retained(scores: Array, far: int) -> Array:
    """The score at the far target as a share of the best one; NaN where nothing scores above zero."""
    achieved = scores.mean(axis=0)
    highest = achieved[best_point(scores)]
    return np.asarray(achieved[far] / highest if highest > 0 else np.nan)


def retention(scores: Array, far: int) -> Ends:
    """What is retained, with its interval."""
    # The best point is found anew for every set of seeds, so its choice counts in the interval.
    value, low, high = interval(scores, lambda some: retained(some, far))
    # The far end is on the curve, so no retention can exceed one: neither may its interval.
    return value, low, np.minimum(high, 1.0)


def calibration_error(scores: Array, asked: Array) -> Ends:
    """The mean over targets of |achieved − asked|, where achieved is the mean over seeds.

    Args:
        scores: [seed, target] what was achieved; only targets that the data can teach should be among them.
        asked: [target] the asked returns on the same scale.
    """

    def distance(scores: Array) -> Array:
        # One point is no curve: a policy that does the same whatever it is told may hit it.
        return np.asarray(np.abs(scores.mean(axis=0) - asked).mean() if len(asked) > 1 else np.nan)

    value, low, high = interval(scores, distance)
    return value, np.maximum(low, 0.0), high


def monotonicity(scores: Array) -> Ends:
    """1 − the most that asking for more ever loses, as a share of the best score: 1 where it never loses."""

    # Not the upward share of all ups and downs, nor a rank correlation: the noise of a level curve adds up
    # in the former with every target asked, and counts as much as a collapse in the latter.
    def kept(scores: Array) -> Array:
        achieved = scores.mean(axis=0)
        highest = achieved.max()
        if not highest > 0 or len(achieved) < 2:  # not: NaN is no better
            return np.asarray(np.nan)
        lost = (np.maximum.accumulate(achieved) - achieved).max()
        return np.asarray((highest - lost) / highest)

    value, low, high = interval(scores, kept)
    # Scores may fall below zero, and more than everything cannot be lost.
    return np.clip(value, 0.0, 1.0), np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
