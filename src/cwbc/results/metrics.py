"""Metrics of how well a policy follows its target return, each with its interval over seeds."""

from __future__ import annotations

import numpy as np

from cwbc.results.intervals import Array, Ends, interval

LEAST_BEST = 5.0  # points of score: fractions of a lower best point are not defined
_NONE: Ends = (np.asarray(np.nan), np.asarray(np.nan), np.asarray(np.nan))


def best_point(scores: Array) -> int:
    """The index of the target with the max mean score over seeds [seed, target]; NaN is never the max."""
    achieved = scores.mean(axis=0)
    return int(np.argmax(np.where(np.isfinite(achieved), achieved, -np.inf)))


def has_fractions(scores: Array) -> bool:
    """Whether the best point is clearly above 0, so that other scores are fractions of it.

    A ratio to a score near 0 has no meaning: -4.5 / 4 would be shown as -113 %.
    """
    return bool(scores[:, best_point(scores)].mean() >= LEAST_BEST)


def retained(scores: Array, far: int) -> Array:
    """OOD retention: the score at the far target / the best point; NaN where that is not defined."""
    return _ratio(scores, far) if has_fractions(scores) else _NONE[0]


def _ratio(scores: Array, far: int) -> Array:
    achieved = scores.mean(axis=0)
    return np.asarray(achieved[far] / achieved[best_point(scores)])


def retention(scores: Array, far: int) -> Ends:
    """OOD retention with its interval."""
    if not has_fractions(scores):
        return _NONE
    # The best point is found again for every set of seeds, so its choice counts in the interval.
    value, low, high = interval(scores, lambda some: _ratio(some, far))
    # The far target is on the curve, so retention is at most 1; the interval does not extend below 0.
    return value, np.maximum(low, np.minimum(value, 0.0)), np.minimum(high, 1.0)


def calibration_error(scores: Array, targets: Array) -> Ends:
    """The mean over targets of |achieved − target|, where achieved is the mean over seeds.

    Args:
        scores: [seed, target] the achieved scores; only at targets up to the dataset's best return.
        targets: [target] the target returns on the same scale.
    """

    def distance(scores: Array) -> Array:
        # One target is not enough: a policy that ignores its target may match it by chance.
        return np.asarray(np.abs(scores.mean(axis=0) - targets).mean() if len(targets) > 1 else np.nan)

    value, low, high = interval(scores, distance)
    return value, np.maximum(low, 0.0), high


def monotonicity(scores: Array) -> Ends:
    """1 − the largest loss in score from a higher target / the best point: 1 where there is no loss."""
    if scores.shape[1] < 2 or not np.isfinite(scores).all() or not has_fractions(scores):
        return _NONE

    # Not the upward fraction of all ups and downs, nor a rank correlation: the noise of a flat curve adds up
    # in the former with every target, and counts as much as a collapse in the latter.
    def without_loss(scores: Array) -> Array:
        achieved = scores.mean(axis=0)
        best, loss = achieved.max(), (np.maximum.accumulate(achieved) - achieved).max()
        return np.asarray((best - loss) / best)

    value, low, high = interval(scores, without_loss)
    # Scores may be negative, so that the loss may exceed the best point.
    return np.clip(value, 0.0, 1.0), np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
