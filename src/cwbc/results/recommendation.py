"""The policy to deploy, from the evaluated curves: a method, its target return, its expected return, caveats.

The rule is written down in docs/differences.md; a change here is a change there.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.evaluated import CurvePoint, EvaluatedMethod, Methods
from cwbc.results.intervals import LEAST
from cwbc.results.reliance import Reliance
from cwbc.results.sweeps import is_beyond, same_target
from cwbc.system.formatting import PERCENT, amount, listed, percent, retention_percent, score

CLOSE = 5.0  # points of score that a target within the data, or a more reliable method, may cost
ALIKE = 0.1  # OOD retentions that differ by less do not decide
FLAT = 0.2  # of the range of targets: a policy with a smaller range of returns does not follow them
MISSED = 10.0  # points of score: the calibration error of a policy that does not follow its target
COLLAPSED = 0.8  # of the recommended score: less at a higher target is worth a caveat

Points = Mapping[str, CurvePoint]  # by method: the one to act at
_score: Callable[[CurvePoint], float] = operator.attrgetter("score.value")


@dataclasses.dataclass(frozen=True)
class Recommendation:
    """A method and a target return to deploy, with caveats."""

    method: str
    point: CurvePoint  # of the method's curve
    deploy: bool  # False: even this is worse than the data
    caveats: tuple[str, ...]
    reliable: bool | None = None  # whether returns that are estimated may be relied on; None: simulated ones
    supported: tuple[float, float] | None = None  # targets that data or evaluation support; None: no target
    is_rate: bool = False  # whether returns are 0 or 1, and their means success rates

    def sentence(self) -> str:
        """Method, target, expected return and its interval."""
        target, (value, low, high), scored = self.point
        given = ", without a target" if math.isnan(target) else f" with target return {amount(target)}"
        written = percent if self.is_rate else amount
        known = math.isfinite(low + high)
        interval = f", 95{PERCENT} interval {written(low)} to {written(high)}" if known else ""
        achieved = f"{written(value)}{interval}"
        achieved += "" if self.is_rate else f" (score {score(scored.value)})"
        doubt = "These estimates are not to be relied on. " if self.reliable is False else ""
        if not self.deploy:
            rate = "a success rate of " if self.is_rate else ""
            return (
                f"{doubt}No policy to deploy. The best one, {self.method}{given}, achieves {rate}{achieved}."
            )
        kind = "expected" if self.reliable is None else "estimated"
        what = f"{self.method}{given}: {kind} {'success rate' if self.is_rate else 'return'} {achieved}."
        return f"{doubt}By them, the best is {what}" if doubt else f"Use {what}"

    def to_json(self) -> dict[str, Any]:
        """For summary.json."""
        return {
            "method": self.method,
            **self.point.to_json(),
            "supported_targets": self.supported and list(self.supported),
            "deploy": self.deploy,
            **({} if self.reliable is None else {"reliable": self.reliable}),
            "caveats": list(self.caveats),
        }


def recommend(methods: Methods) -> Recommendation | None:
    """The method and target to deploy; None where no return was evaluated."""
    # By the intervals over seeds: what a model is wrong about, it is wrong about for all methods.
    known = {name: [each for each in of.seed_points if each.score.is_known] for name, of in methods.items()}
    points = {name: _point(curve, methods[name].dataset) for name, curve in known.items() if curve}
    if not points:
        return None
    name = _most_reliable(points, methods)
    point, method, curve = points[name], methods[name], known[name]
    dataset, seeds = method.dataset, len(method.scores)
    mean, reliance = float(method.task.normalize(np.asarray(dataset.mean_return))), Reliance.of(point, method)
    caveats = list(reliance.doubts)
    if _score(point) < mean:
        caveats.append(f"The dataset's mean return is higher: {amount(dataset.mean_return)}.")
    caveats += _of_units(curve, dataset)
    caveats += reliance.remarks
    if seeds < LEAST:
        caveats.append(f"{'One seed' if seeds == 1 else 'Two seeds'}: too few seeds for an interval.")
    caveats += _of_rivals(name, points, methods)
    caveats += _of_the_target(point, curve, method) if method.sweep.takes_target else []
    if method.training_warnings:
        caveats.append("Its training ended with warnings.")
    # Worse than the data on average, beyond seed noise.
    high = point.score.high if math.isfinite(point.score.high) else _score(point) + CLOSE
    return Recommendation(
        name,
        method.points[method.seed_points.index(point)],
        high >= mean,
        tuple(caveats),
        not reliance.doubts if dataset.is_estimated else None,
        _supported(point, curve, method) if method.sweep.takes_target else None,
        dataset.counts_successes,
    )


def _point(curve: Sequence[CurvePoint], dataset: DatasetSummary) -> CurvePoint:
    """The point to act at: the best one up to the dataset's best return, unless higher targets do better.

    Where a return is a success or a failure, the target is success, unless that is clearly worse.
    """
    best = dataset.best
    top = max(curve, key=_score).score
    enough = min(top.value - CLOSE, top.low if math.isfinite(top.low) else top.value)
    good = [point for point in curve if _score(point) >= enough]
    if within := [point for point in good if not is_beyond(point.target, best)]:
        successes = [point for point in within if same_target(point.target, best)]
        return successes[0] if dataset.counts_successes and successes else max(within, key=_score)
    return min(good, key=lambda point: point.target)


def _supported(
    point: CurvePoint, curve: Sequence[CurvePoint], method: EvaluatedMethod
) -> tuple[float, float]:
    """The targets within the data's returns, and those beyond at which simulated scores hold."""
    dataset, least = method.dataset, COLLAPSED * _score(point)
    highest = max(dataset.best, point.target)
    if not dataset.is_estimated:
        for each in curve:
            if is_beyond(each.target, highest):
                if _score(each) < least:
                    break
                highest = each.target
    return min(dataset.lowest, point.target), highest


def _most_reliable(points: Points, methods: Methods) -> str:
    """The method with the max OOD retention among those that score about as high as the best one."""
    order = sorted(points, key=lambda name: -_score(points[name]))
    first = order[0]
    if not methods[first].sweep.takes_target:
        return first
    retentions = {
        name: -1.0 if math.isnan(methods[name].retention) else methods[name].retention
        for name in order
        if methods[name].sweep.takes_target and _is_close(points[name], points[first])
    }
    return next(name for name, each in retentions.items() if each > max(retentions.values()) - ALIKE)


def _is_close(point: CurvePoint, first: CurvePoint) -> bool:
    is_known = math.isfinite(point.score.low + first.score.low)
    within = _score(first) - _score(point) <= CLOSE
    return within and (not is_known or point.score.overlaps(first.score))


def _of_units(curve: Sequence[CurvePoint], data: DatasetSummary) -> list[str]:
    """The caveat that returns may not compare with those of the logs: no achieved return is within them."""
    if data.clipped_rewards and not data.is_estimated:
        return ["Targets are sums of rewards clipped to [-1, 1], as in the data; achieved returns are not."]
    achieved = [point.achieved.value for point in curve]
    if min(achieved) > data.best + 0.1 * (data.best - data.lowest):
        where = "above the dataset's best"
    elif max(achieved) < data.lowest:
        where = "below the dataset's min"
    else:
        return []
    doubt = "are rewards, observations and actions in the units of the logs?"
    return [f"Every achieved return is {where}: {doubt}"]


def _of_rivals(name: str, points: Points, methods: Methods) -> list[str]:
    """The caveats that other methods may be as good, and why they were not chosen."""
    mine, others = points[name].score, {other: point for other, point in points.items() if other != name}
    caveats = []
    if overlapping := [other for other, point in others.items() if point.score.overlaps(mine)]:
        those = "that" if len(overlapping) == 1 else "those"
        written = percent if methods[name].dataset.counts_successes else amount
        named = listed([f"{other} ({written(points[other].achieved.value)})" for other in overlapping])
        caveats.append(f"Inconclusive: its 95{PERCENT} interval overlaps with {those} of {named}.")
    if higher := [other for other, point in others.items() if _score(point) > mine.value]:
        named = listed([f"{other} {_retention_in_words(methods[other])}" for other in higher])
        why = f"OOD retention is {_retention_in_words(methods[name])}, that of {named}"
        caveats.append(f"Preferred for its reliability at nearly the same return: {why}.")
    return caveats


def _retention_in_words(method: EvaluatedMethod) -> str:
    return "not defined" if math.isnan(method.retention) else retention_percent(method.retention)


def _of_the_target(point: CurvePoint, curve: Sequence[CurvePoint], method: EvaluatedMethod) -> list[str]:
    """The caveats about the target return."""
    caveats, best = [], method.dataset.best
    if is_beyond(point.target, best):
        caveats.append(f"The target is out-of-distribution: the dataset's best return is {amount(best)}.")
    caveats += _of_a_flat_curve([each for each in curve if not is_beyond(each.target, best)], method)
    higher = [each for each in curve if is_beyond(each.target, point.target)]
    worst = min(higher, key=_score, default=point)
    if _score(worst) < min(COLLAPSED * _score(point), _score(point) - CLOSE):
        achieved = amount(worst.achieved.value)
        caveats.append(f"Do not raise the target: at {amount(worst.target)} it achieves {achieved}.")
    return caveats


def _of_a_flat_curve(within: Sequence[CurvePoint], method: EvaluatedMethod) -> list[str]:
    error = method.metrics["calibration_error"].value
    # Nobody wants failures: a policy that succeeds whatever its target is none to warn of.
    if len(within) < 2 or method.dataset.counts_successes:
        return []
    targets = [each.target for each in within]
    low, high = min(within, key=_score), max(within, key=_score)
    span = float(np.ptp(method.task.normalize(np.array(targets))))
    if span > MISSED and _score(high) - _score(low) < FLAT * span:
        ends = f"{amount(low.achieved.value)} to {amount(high.achieved.value)}"
        given = f"targets from {amount(min(targets))} to {amount(max(targets))}"
        return [f"Flat curve: the policy does not follow its target (it achieves {ends} for {given})."]
    if math.isnan(error) or error <= MISSED:
        return []
    off = f"differs from it by {score(error)} points of score on average"
    where = "up to the dataset's best return, the achieved return"
    return [f"The policy does not follow its target closely: {where} {off}."]
