"""Limits for the metrics of a report, so that continuous integration can fail on them."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from cwbc.core.tasks import Task, landmarks
from cwbc.results.sweeps import MethodSummary
from cwbc.system.errors import InputError, unknown

Metric = Literal[
    "ood_retention",
    "monotonicity",
    "at_dataset_best",
    "at_expert",
    "at_twice_expert",
    "at_best_plus_range",
    "best_point",
    "calibration_error",
]
METRICS: tuple[Metric, ...] = get_args(Metric)
FOLLOWING: tuple[Metric, ...] = ("ood_retention", "monotonicity", "calibration_error")  # of a target
LOWER: tuple[Metric, ...] = ("calibration_error",)  # better when lower; all others are better when higher
_COMMA = re.compile(r",(?![^(]*\))")  # not in brackets, where runs of one method have their settings
FRACTIONS: tuple[Metric, ...] = ("ood_retention", "monotonicity")


@dataclasses.dataclass(frozen=True)
class Gate:
    """A limit for one metric: the least where higher is better, the most where lower is."""

    metric: Metric
    limit: float
    method: str | None = None  # None: every method

    def __str__(self) -> str:
        of_method = f"{self.method}: " if self.method else ""
        return f"{of_method}{self.metric} {self._wanted}"

    @property
    def _wanted(self) -> str:
        return f"at {'most' if self.metric in LOWER else 'least'} {self.limit:g}"

    def is_about(self, name: str, takes_target: bool) -> bool:
        """Whether the limit holds for a method; one that takes no target has nothing to follow."""
        return self.method in (None, name) and (takes_target or self.metric not in FOLLOWING)

    def failure(self, name: str, summary: MethodSummary) -> str | None:
        """The failure of a method in words, or None; a metric that could not be computed fails."""
        lower, point = self.metric in LOWER, summary.get(self.metric)
        if point is None or point["value"] is None:
            return f"{name}: {self.metric} could not be computed; wanted {self._wanted}"
        value = point["value"]
        beyond = value > self.limit if lower else value < self.limit
        if beyond and not math.isclose(value, self.limit):  # a rounding error is no failure
            return f"{name}: {self.metric} is {value:.6g}, {'above' if lower else 'below'} {self.limit:g}"
        return None


def metrics_of(task: Task) -> tuple[Metric, ...]:
    """The metrics of a task: without a published expert there are no scores at its return."""
    named = {mark.key for mark in landmarks(task, 0.0)}
    return tuple(metric for metric in METRICS if not metric.startswith("at_") or metric in named)


def parse(
    fail_under: Iterable[str], fail_over: Iterable[str], metrics: Sequence[Metric] = METRICS
) -> list[Gate]:
    """The gates of two options, each of which may be given several times and hold several limits."""
    given = {"--fail-under": fail_under, "--fail-over": fail_over}
    return [
        _gate(option, text.strip(), metrics)
        for option, several in given.items()
        for texts in several
        for text in _COMMA.split(texts)
    ]


def check_methods(gates: Iterable[Gate], takes_target: Mapping[str, bool]) -> None:
    """Refuse a gate that would never fail: for a method that is not there, or that has no such metric."""
    for gate in gates:
        if gate.method is not None and gate.method not in takes_target:
            raise unknown("method", gate.method, takes_target)
        if not any(gate.is_about(name, takes) for name, takes in takes_target.items()):
            names = gate.method or ", ".join(takes_target)
            raise InputError(f"{gate}: {names} takes no target, so there is no {gate.metric} to limit")


def failures(gates: Iterable[Gate], methods: Mapping[str, MethodSummary]) -> list[str]:
    """A line for every method and metric that is beyond its limit."""
    found = [
        gate.failure(name, summary)
        for gate in gates
        for name, summary in methods.items()
        if gate.is_about(name, summary["takes_target"])
    ]
    return [line for line in found if line is not None]


def _gate(option: str, text: str, metrics: Sequence[Metric]) -> Gate:
    what, _, number = text.rpartition("=")
    method, _, name = what.rpartition(":")
    example = "ood_retention=0.9" if option == "--fail-under" else "calibration_error=5"
    if not name:
        raise InputError(f"{option} takes METRIC=NUMBER, such as {example}; got {text!r}")
    metric = next((metric for metric in metrics if metric == name), None)
    if metric is None and name in METRICS:
        known = ", ".join(metrics)
        raise InputError(f"{option}: there is no {name} on this task; known: {known}")
    if metric is None:
        raise unknown(f"metric for {option}", name, metrics)
    better, its_option = ("lower", "--fail-over") if metric in LOWER else ("higher", "--fail-under")
    if option != its_option:
        raise InputError(f"{metric} is better when {better}; give {its_option} {text}")
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):  # nothing is below NaN, so such a gate would always be open
        raise InputError(f"{option} {metric} takes a number, such as {example}; got {number!r}")
    if metric in FRACTIONS and limit > 1:
        raise InputError(f"{option} {metric} takes a fraction, at most 1, such as {example}; got {number}")
    return Gate(metric, limit, method or None)
