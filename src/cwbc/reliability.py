"""How well a policy follows its target return, in three numbers, each with its interval over seeds."""

from __future__ import annotations

import numpy as np

from cwbc.intervals import Array, interval

LEAST_BEST = 5.0  # points of score, below which nothing is a fraction of the best point

Ends = tuple[Array, Array, Array]  # a value and the ends of its interval; NaN where there is none
_NONE: Ends = (np.asarray(np.nan), np.asarray(np.nan), np.asarray(np.nan))


def best_point(scores: Array) -> int:
    """The target with the highest mean over seeds of scores [seed, target]; no number is lower than any."""
    achieved = scores.mean(axis=0)
    return int(np.argmax(np.where(np.isfinite(achieved), achieved, -np.inf)))


def has_fractions(scores: Array) -> bool:
    """Whether the best point is clearly above 0, so that other scores are fractions of it.

    A ratio to what may as well be 0 is no number: -4.5 / 4 would be shown as -113 %.
    """
    return bool(scores[:, best_point(scores)].mean() >= LEAST_BEST)


def retained(scores: Array, far: int) -> Array:
    """OOD retention: the score at the far target / the best point; NaN where that is not defined."""
    return _ratio(scores, far) if has_fractions(scores) else np.asarray(np.nan)


def _ratio(scores: Array, far: int) -> Array:
    achieved = scores.mean(axis=0)
    return np.asarray(achieved[far] / achieved[best_point(scores)])


def retention(scores: Array, far: int) -> Ends:
    """OOD retention with its interval."""
    if not has_fractions(scores):
        return _NONE
    # The best point is found again for every set of seeds, so its choice counts in the interval.
    value, low, high = interval(scores, lambda some: _ratio(some, far))
    # The far end is on the curve, so no retention exceeds one; and less than nothing is not retained.
    return value, np.maximum(low, np.minimum(value, 0.0)), np.minimum(high, 1.0)


def calibration_error(scores: Array, asked: Array) -> Ends:
    """The mean over targets of |achieved − target|, where achieved is the mean over seeds.

    Args:
        scores: [seed, target] what was achieved; only targets that the data can teach should be among them.
        asked: [target] the target returns on the same scale.
    """

    def distance(scores: Array) -> Array:
        # One point is no curve: a policy that does the same whatever it is told may hit it.
        return np.asarray(np.abs(scores.mean(axis=0) - asked).mean() if len(asked) > 1 else np.nan)

    value, low, high = interval(scores, distance)
    return value, np.maximum(low, 0.0), high


def monotonicity(scores: Array) -> Ends:
    """1 − the largest loss in score from raising the target / the best point: 1 where there is no loss."""
    if scores.shape[1] < 2 or not np.isfinite(scores).all() or not has_fractions(scores):
        return _NONE

    # Not the upward fraction of all ups and downs, nor a rank correlation: the noise of a flat curve adds up
    # in the former with every target, and counts as much as a collapse in the latter.
    def without_loss(scores: Array) -> Array:
        achieved = scores.mean(axis=0)
        highest, lost = achieved.max(), (np.maximum.accumulate(achieved) - achieved).max()
        return np.asarray((highest - lost) / highest)

    value, low, high = interval(scores, without_loss)
    # Scores may fall below zero, and more than everything cannot be lost.
    return np.clip(value, 0.0, 1.0), np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
