"""The policy to deploy, from the evaluated curves: a method, its target return, its expected return, caveats.

The rule is written down in docs/differences.md; a change here is a change there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cwbc.results.intervals import LEAST
from cwbc.results.sentences import overlap
from cwbc.results.sweeps import CurvePoint, Measure, MethodSummary, same_target
from cwbc.system.formatting import PERCENT, amount, listed, retention_percent, score

if TYPE_CHECKING:
    from cwbc.data.dataset_summary import DatasetSummary

CLOSE = 5.0  # points of score that a target within the data, or a more reliable method, may cost
ALIKE = 0.1  # OOD retentions that differ by less do not decide
FLAT = 0.2  # of the range of targets: a policy with a smaller range of returns does not follow them
MISSED = 10.0  # points of score: the calibration error of a policy that does not follow its target
COLLAPSED = 0.8  # of the recommended score: less at a higher target is worth a caveat


@dataclasses.dataclass(frozen=True)
class Recommendation:
    """A method and a target return to deploy, with caveats."""

    method: str
    point: CurvePoint  # of the method's curve
    deploy: bool  # False: even this is worse than the data
    caveats: tuple[str, ...]

    def sentence(self) -> str:
        """Method, target, expected return and its interval."""
        target = self.point["target"]
        given = ", which takes no target" if target is None else f" with target return {amount(target)}"
        achieved = _achieved(self.point)
        if not self.deploy:
            return f"No policy to deploy. The best one, {self.method}{given}, achieves {achieved}."
        return f"Use {self.method}{given}: expected return {achieved}."

    def to_json(self) -> dict[str, Any]:
        """For summary.json."""
        return {"method": self.method, **self.point, "deploy": self.deploy, "caveats": list(self.caveats)}


def recommend(methods: Mapping[str, MethodSummary], dataset: DatasetSummary) -> Recommendation | None:
    """The method and target to deploy; None where no return was evaluated."""
    found = {name: _point(method, dataset.best) for name, method in methods.items()}
    points = {name: point for name, point in found.items() if point is not None}
    if not points:
        return None
    first = max(points, key=lambda name: _score(points[name]))
    name = _most_reliable(first, points, methods)
    chosen = points[name]
    return Recommendation(
        name,
        chosen,
        not _is_clearly_below(chosen, dataset),
        (
            *_of_the_data(chosen, dataset),
            *_of_units(methods[name], dataset),
            *_of_few_seeds(methods[name]),
            *_of_rivals(name, points, methods),
            *_of_the_target(chosen, methods[name], dataset),
            *(["Its training ended with warnings."] if methods[name]["training_warnings"] else []),
        ),
    )


def _point(method: MethodSummary, best: float) -> CurvePoint | None:
    """The point to act at: the best one up to the dataset's best return, unless higher targets do better."""
    known = [point for point in method["curve"] if point["normalized"] is not None]
    if not known:
        return None
    top = max(known, key=_score)
    low = top["normalized_low"]
    enough = min(_score(top) - CLOSE, _score(top) if low is None else low)
    good = [point for point in known if _score(point) >= enough]
    if within := [point for point in good if not _is_beyond(point, best)]:
        return max(within, key=_score)
    return min(good, key=lambda point: point["target"] or 0.0)


def _most_reliable(first: str, points: Mapping[str, CurvePoint], methods: Mapping[str, MethodSummary]) -> str:
    """The method with the max OOD retention among those that score about as high as the first one."""
    if not methods[first]["takes_target"]:
        return first
    close = [
        name
        for name in sorted(points, key=lambda name: -_score(points[name]))
        if methods[name]["takes_target"] and _is_close(points[name], points[first])
    ]
    highest = max(_retention(methods[name]) for name in close)
    return next(name for name in close if _retention(methods[name]) > highest - ALIKE)


def _is_close(point: CurvePoint, first: CurvePoint) -> bool:
    within = _score(first) - _score(point) <= CLOSE
    is_known = point["normalized_low"] is not None and first["normalized_low"] is not None
    return within and (not is_known or overlap(_measure(point), _measure(first)))


def _is_clearly_below(point: CurvePoint, dataset: DatasetSummary) -> bool:
    """Whether a policy is worse than the data on average, beyond seed noise."""
    if point["normalized_high"] is not None:
        return point["normalized_high"] < _mean_score(dataset)
    return _score(point) < _mean_score(dataset) - CLOSE


def _of_the_data(point: CurvePoint, dataset: DatasetSummary) -> list[str]:
    if _score(point) >= _mean_score(dataset):
        return []
    return [f"The dataset's mean return is higher: {amount(dataset.mean_return)}."]


def _of_units(method: MethodSummary, dataset: DatasetSummary) -> list[str]:
    """The caveat that the environment may differ from that of the logs: no achieved return is within them."""
    achieved = [point["return"] for point in method["curve"] if point["return"] is not None]
    if min(achieved) > dataset.best + 0.1 * (dataset.best - dataset.lowest):
        where = "above the dataset's best"
    elif max(achieved) < dataset.lowest:
        where = "below the dataset's min"
    else:
        return []
    return [
        f"Every achieved return is {where}: are rewards, observations and actions in the units of the logs?"
    ]


def _of_few_seeds(method: MethodSummary) -> list[str]:
    if method["seeds"] >= LEAST:
        return []
    return [f"{'One seed' if method['seeds'] == 1 else 'Two seeds'}: too few seeds for an interval."]


def _of_rivals(
    name: str, points: Mapping[str, CurvePoint], methods: Mapping[str, MethodSummary]
) -> list[str]:
    """The caveats that other methods may be as good, and why they were not chosen."""
    mine = points[name]
    others = [other for other in points if other != name]
    overlapping = [other for other in others if overlap(_measure(points[other]), _measure(mine))]
    caveats = []
    if overlapping:
        those = "that" if len(overlapping) == 1 else "those"
        named = listed([f"{other} ({_achieved(points[other], brief=True)})" for other in overlapping])
        caveats.append(f"Inconclusive: its 95{PERCENT} interval overlaps with {those} of {named}.")
    higher = [other for other in others if _score(points[other]) > _score(mine)]
    if higher:
        named = listed([f"{other} {_retention_in_words(methods[other])}" for other in higher])
        why = f"OOD retention is {_retention_in_words(methods[name])}, that of {named}"
        caveats.append(f"Preferred for its reliability at nearly the same return: {why}.")
    return caveats


def _of_the_target(point: CurvePoint, method: MethodSummary, dataset: DatasetSummary) -> list[str]:
    """The caveats about the target return."""
    if point["target"] is None:
        return []
    caveats = []
    if _is_beyond(point, dataset.best):
        caveats.append(
            f"The target is out-of-distribution: the dataset's best return is {amount(dataset.best)}."
        )
    curve = [each for each in method["curve"] if each["normalized"] is not None]
    within = [each for each in curve if not _is_beyond(each, dataset.best)]
    caveats += _of_a_flat_curve(within, method, dataset)
    worst = min((each for each in curve if _is_beyond(each, point["target"])), key=_score, default=point)
    if _score(worst) < min(COLLAPSED * _score(point), _score(point) - CLOSE):
        achieved = _achieved(worst, brief=True)
        caveats.append(
            f"Do not raise the target: at {amount(worst['target'] or 0.0)} it achieves {achieved}."
        )
    return caveats


def _of_a_flat_curve(within: list[CurvePoint], method: MethodSummary, dataset: DatasetSummary) -> list[str]:
    error = method["calibration_error"]
    if len(within) < 2 or error is None or error["value"] is None:
        return []
    targets = [each["target"] or 0.0 for each in within]
    low, high = min(within, key=_score), max(within, key=_score)
    span = float(np.ptp(dataset.task.normalize(np.array(targets))))
    if span > MISSED and _score(high) - _score(low) < FLAT * span:
        ends = f"{_achieved(low, brief=True)} to {_achieved(high, brief=True)}"
        given = f"targets from {amount(min(targets))} to {amount(max(targets))}"
        return [f"Flat curve: the policy does not follow its target (it achieves {ends} for {given})."]
    if error["value"] > MISSED:
        return [
            "The policy does not follow its target closely: up to the dataset's best return, the achieved "
            f"return differs from it by {score(error['value'])} points of score on average."
        ]
    return []


def _achieved(point: CurvePoint, brief: bool = False) -> str:
    value, low, high = point["return"], point["return_low"], point["return_high"]
    words = amount(value) if value is not None else "–"
    if brief:
        return words
    interval = (
        "" if low is None or high is None else f", 95{PERCENT} interval {amount(low)} to {amount(high)}"
    )
    return f"{words}{interval} (score {score(_score(point))})"


def _is_beyond(point: CurvePoint, target: float) -> bool:
    own = point["target"]
    return own is not None and own > target and not same_target(own, target)


def _score(point: CurvePoint) -> float:
    value = point["normalized"]
    assert value is not None  # those without were left out
    return value


def _measure(point: CurvePoint) -> Measure:
    return {
        "value": point["normalized"],
        "low": point["normalized_low"],
        "high": point["normalized_high"],
    }


def _retention(method: MethodSummary) -> float:
    found = method["ood_retention"]
    return -1.0 if found is None or found["value"] is None else found["value"]


def _retention_in_words(method: MethodSummary) -> str:
    found = _retention(method)
    return "not defined" if found == -1.0 else retention_percent(found)


def _mean_score(dataset: DatasetSummary) -> float:
    return float(dataset.task.normalize(np.asarray(dataset.mean_return)))
