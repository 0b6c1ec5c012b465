"""One method evaluated on one dataset: what every table, sentence, chart, verdict and limit reads."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cwbc.core.tasks import Landmark, Task, landmarks
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.estimates import Estimates
from cwbc.results.intervals import (
    NORMAL,
    Array,
    Estimate,
    finite,
    interval,
    student_t,
    success_interval,
    wider,
    within,
)
from cwbc.results.sweeps import Sweep, is_beyond
from cwbc.system.formatting import amount

FOLLOWING = ("ood_retention", "calibration_error", "monotonicity")  # the metrics of following a target
LEAST_BEST = 5.0  # points of score: fractions of a lower best point are not defined
FAR = 20.0  # points of score below all other seeds, and twice as far as these are apart
OFTEN = 0.25  # of the targets: a seed that is far below the others at fewer is noise


def best_point(scores: Array) -> int:
    """The index of the target with the max mean score over seeds [seed, target]; NaN is never the max."""
    achieved = scores.mean(axis=0)
    return int(np.argmax(np.where(np.isfinite(achieved), achieved, -np.inf)))


def has_fractions(scores: Array) -> bool:
    """Whether fractions of the best point are defined; of one near 0, -4.5 / 4 would be shown as -113 %."""
    return bool(scores[:, best_point(scores)].mean() >= LEAST_BEST)


def retention(scores: Array, far: int) -> Estimate:
    """OOD retention: the score at the far target / the best point; NaN where that is not defined."""
    if not has_fractions(scores):
        return Estimate()

    def ratio(some: Array) -> Array:
        # The best point is found again for every set of seeds, so its choice counts in the interval.
        achieved = some.mean(axis=0)
        return _fraction(achieved[far], achieved[best_point(some)])

    value, low, high = interval(scores, ratio)
    # The far target is on the curve, so retention is at most 1; the interval does not extend below 0.
    return Estimate.of((value, np.maximum(low, np.minimum(value, 0.0)), np.minimum(high, 1.0)))


def _fraction(number: np.float64, whole: np.float64) -> Array:
    """NaN of 0: where one seed alone succeeds, the others achieve nothing at all without it."""
    return np.asarray(number / whole if whole else math.nan)


def calibration_error(scores: Array, targets: Array) -> Estimate:
    """The mean over targets of |achieved − target|, where achieved is the mean of the scores over seeds."""
    if len(targets) < 2:  # a policy that ignores its target may match a single one by chance
        return Estimate()
    ends = interval(scores, lambda some: np.abs(some.mean(axis=0) - targets).mean())
    return Estimate.of(np.maximum(ends, 0.0))


def monotonicity(scores: Array) -> Estimate:
    """1 − the largest loss in score from a higher target / the best point: 1 where there is no loss."""
    if scores.shape[1] < 2 or not np.isfinite(scores).all() or not has_fractions(scores):
        return Estimate()

    # Not the upward fraction of all ups and downs, nor a rank correlation: the noise of a flat curve adds up
    # in the former with every target, and counts as much as a collapse in the latter.
    def without_loss(scores: Array) -> Array:
        achieved = scores.mean(axis=0)
        best, loss = achieved.max(), (np.maximum.accumulate(achieved) - achieved).max()
        return _fraction(best - loss, best)

    # Scores may be negative, so that the loss may exceed the best point.
    return Estimate.of(np.clip(interval(scores, without_loss), 0.0, 1.0))


class CurvePoint(NamedTuple):
    """What a method achieves at a target return; NaN is that of a method that takes none."""

    target: float
    achieved: Estimate
    score: Estimate

    def to_json(self) -> dict[str, float | None]:
        """For summary.json."""
        names = [f"{name}{end}" for name in ("return", "normalized") for end in ("", "_low", "_high")]
        numbers = map(finite, (*self.achieved, *self.score))
        return {"target": finite(self.target), **dict(zip(names, numbers, strict=True))}


@dataclasses.dataclass(frozen=True)
class EvaluatedMethod:
    """A method on a dataset, with all numbers that follow from its returns."""

    sweep: Sweep
    dataset: DatasetSummary
    scores: Array  # [seed, target], the mean over episodes; NaN where a simulation broke down
    training_warnings: Sequence[str] = ()
    errors: Mapping[str, float] = dataclasses.field(default_factory=dict)  # of prediction at the end, by name
    estimates: Estimates | None = None  # of an offline evaluation

    @classmethod
    def of(
        cls,
        sweep: Sweep,
        dataset: DatasetSummary,
        warnings: Sequence[str] = (),
        errors: Mapping[str, float] | None = None,
        estimates: Estimates | None = None,
    ) -> EvaluatedMethod:
        """The method of a sweep, with the warnings of its training and those about seeds that differ."""
        scores = dataset.task.normalize(sweep.means)
        scores = np.where(np.isfinite(scores), scores, np.nan)
        all_warnings = [*warnings, *_seed_warnings(sweep, scores)]
        return cls(sweep, dataset, scores, all_warnings, errors or {}, estimates)

    @functools.cached_property
    def task(self) -> Task:
        return self.dataset.task

    @functools.cached_property
    def landmarks(self) -> tuple[Landmark, ...]:
        """The named targets, the farthest last."""
        return landmarks(self.task, self.dataset.best)

    @functools.cached_property
    def curve(self) -> Array:
        """The mean scores over seeds. [target]"""
        return np.asarray(self.scores.mean(axis=0))

    @functools.cached_property
    def is_whole(self) -> bool:
        """Whether no simulation broke down."""
        return bool(np.isfinite(self.curve).all())

    @functools.cached_property
    def top(self) -> float:
        """The best point of the curve."""
        return float(self.curve[best_point(self.scores)])

    @functools.cached_property
    def retention(self) -> float:
        """OOD retention: the score at 2x expert / the best point; NaN where that is not known or defined."""
        far = self.sweep.index_of(self.task.far_return) if self.sweep.takes_target else None
        return math.nan if far is None or self.top < LEAST_BEST else float(self.curve[far] / self.top)

    @functools.cached_property
    def at_expert(self) -> float:
        return self.at(self.task.expert_return)

    @property
    def at_best(self) -> float:
        """The score at the dataset's best return."""
        return self.at(self.dataset.best)

    @property
    def is_ood(self) -> NDArray[np.bool_]:
        """Whether targets exceed the dataset's best return. [target]"""
        return np.array([is_beyond(target, self.dataset.best) for target in self.sweep.targets.tolist()])

    @property
    def beyond(self) -> Array:
        """The scores at OOD targets. [target]"""
        return self.curve[self.is_ood]

    def at(self, target: float) -> float:
        """The mean score at a target return; NaN where it was not evaluated or broke down."""
        index = self.sweep.index_of(target)
        return math.nan if index is None else float(self.curve[index])

    def of_seeds(self, target: float) -> Array:
        """The scores at a target return; none where it was not evaluated. [seed]"""
        index = self.sweep.index_of(target)
        return np.empty(0) if index is None else self.scores[:, index]

    @functools.cached_property
    def points(self) -> list[CurvePoint]:
        """The curve with its intervals, over seeds and of the model's error where there is one."""
        return self._points(self.model_errors)

    @functools.cached_property
    def seed_points(self) -> list[CurvePoint]:
        """The curve with its intervals over seeds alone: a model's error is that of all methods alike."""
        return self._points(None)

    @functools.cached_property
    def model_errors(self) -> Array | None:
        """Half of the 95 % intervals of errors of the model that returns are estimated with. [target]"""
        if self.estimates is None or (replays := self.estimates.replays) is None:
            return None
        achieved = self.sweep.means.mean(axis=0)
        places = np.where(np.isnan(self.sweep.targets), achieved, self.sweep.targets)
        return np.array([replays.near(place).error for place in places.tolist()])

    def _points(self, errors: Array | None) -> list[CurvePoint]:
        successes = self.dataset.counts_successes
        means, scores = self.sweep.means, interval(self.scores)
        returns = success_interval(means, self.sweep.episodes) if successes else interval(means)
        if errors is not None:
            unit = np.ptp(self.task.normalize(np.array([0.0, 1.0])))
            returns, scores = wider(returns, errors), wider(scores, unit * errors)
        if successes:
            returns = within(returns, 0.0, 1.0)
            scores = 100 * returns[0], 100 * returns[1], 100 * returns[2]
        numbers = zip(*returns, *scores, strict=True)
        targets = zip(self.sweep.targets.tolist(), numbers, strict=True)
        return [CurvePoint(target, Estimate.of(of[:3]), Estimate.of(of[3:])) for target, of in targets]

    def point_at(self, target: float) -> CurvePoint | None:
        """The point at a target return; None where it was not evaluated."""
        index = self.sweep.index_of(target)
        return None if index is None else self.points[index]

    @functools.cached_property
    def named_points(self) -> dict[str, CurvePoint | None]:
        """The points at the named targets and the best one, as in summary.json; None: not evaluated."""
        named = {mark.key: self.point_at(mark.target) for mark in self.landmarks}
        return named | {"best_point": self.points[best_point(self.scores)]}

    @functools.cached_property
    def metrics(self) -> dict[str, Estimate]:
        """The metrics by their names in summary.json; NaN where one is not known or not defined."""
        found = {key: point.score if point else Estimate() for key, point in self.named_points.items()}
        if not self.sweep.takes_target:
            return found | dict.fromkeys(FOLLOWING, Estimate())
        far, within = self.sweep.index_of(self.task.far_return), ~self.is_ood
        targets = self.task.normalize(self.sweep.targets[within])
        following = {
            "ood_retention": Estimate() if far is None else retention(self.scores, far),
            "calibration_error": calibration_error(self.scores[:, within], targets),
            "monotonicity": monotonicity(self.scores),
        }
        if self.dataset.clipped_rewards:  # achieved returns are in another unit
            following["calibration_error"] = Estimate()
        if self.dataset.counts_successes:  # seeds may agree, as no others do
            following = {name: each.unless_equal() for name, each in following.items()}
        return found | following

    def to_json(self) -> dict[str, Any]:
        """For summary.json: what is not known is None."""
        found: dict[str, Any] = {
            key: point and {"target": finite(point.target), **point.score.to_json()}
            for key, point in self.named_points.items()
        }
        found |= {key: each.to_json() if (each := self.metrics[key]).is_known else None for key in FOLLOWING}
        errors = {name: finite(error) for name, error in self.errors.items()}
        if known := found["ood_retention"]:
            found["ood_retention"] = {"target": found[self.landmarks[-1].key]["target"], **known}
        return {
            "seeds": len(self.sweep.seeds),
            "episodes": self.sweep.episodes,
            "takes_target": self.sweep.takes_target,
            **found,
            "training_warnings": list(self.training_warnings),
            **({"prediction_error": errors} if errors else {}),
            "curve": [point.to_json() for point in self.points],
            **self._offline_json(),
        }

    def _offline_json(self) -> dict[str, Any]:
        if self.estimates is None:
            return {}
        errors = {} if self.model_errors is None else {"model_error": self.model_errors.tolist()}
        return {"offline": {**self.estimates.to_json(), **errors}}


def _seed_warnings(sweep: Sweep, scores: Array) -> list[str]:
    """Seeds that achieve far less than the others at many targets, which a mean would hide."""
    if len(scores) < 3 or not np.isfinite(scores).all():
        return []
    found = []
    for row, seed in enumerate(sweep.seeds.tolist()):
        others = np.delete(scores, row, axis=0)
        gaps = others.min(axis=0) - scores[row] - np.maximum(2 * np.ptp(others, axis=0), FAR)  # [target]
        if (gaps > 0).mean() >= OFTEN:
            worst = int(np.argmax(gaps))
            at = f" at target {amount(sweep.targets[worst])}" if sweep.takes_target else ""
            returns = sweep.means[:, worst]
            low, median = amount(returns[row]), amount(float(np.median(returns)))
            where = f"seed {seed} is far below the others{at}"
            found.append(f"{where}: it achieves {low}, the median seed {median}.")
    return found


Methods = Mapping[str, EvaluatedMethod]  # by name, on one dataset


def evaluated(
    sweeps: Sequence[Sweep],
    dataset: DatasetSummary,
    warnings: Mapping[str, Sequence[str]] | None = None,
    errors: Mapping[str, Mapping[str, float]] | None = None,
    estimates: Mapping[str, Estimates | None] | None = None,
) -> dict[str, EvaluatedMethod]:
    """Methods by name; what is known of their training, and of an offline evaluation, is by name, too."""
    warned, known, estimated = warnings or {}, errors or {}, estimates or {}
    return {
        name: EvaluatedMethod.of(sweep, dataset, warned.get(name, ()), known.get(name), estimated.get(name))
        for name, sweep in ((sweep.method, sweep) for sweep in sweeps)
    }


def resampled(scores: Array, generator: np.random.Generator) -> Array:
    """As many seeds, sampled with replacement from scores [seed, target], each with its whole curve.

    Means of such seeds vary too little: by the root of (n - 1) / n, and as if a few seeds gave their spread
    for certain. So all are moved away from their mean, until 95 % of the means lie within Student's
    interval. There must be two seeds at least.
    """
    seeds, mean = len(scores), scores.mean(axis=0)
    stretch = math.sqrt(seeds / (seeds - 1)) * student_t(seeds - 1) / NORMAL
    return np.asarray(mean + stretch * (scores[generator.integers(seeds, size=seeds)] - mean))
