"""Limits for the metrics of a report, so that continuous integration can fail on them."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from cwbc.core.tasks import Task, landmarks
from cwbc.results.evaluated import FOLLOWING, Methods
from cwbc.system.errors import InputError, unknown

LOWER = ("calibration_error",)  # better when lower; all others are better when higher
FRACTIONS = ("ood_retention", "monotonicity")
POINTS = ("at_dataset_best", "at_expert", "at_twice_expert", "at_best_plus_range", "best_point")
METRICS = (*FRACTIONS, *POINTS, *LOWER)
_COMMA = re.compile(r",(?![^(]*\))")  # not in brackets, where runs of one method have their settings


@dataclasses.dataclass(frozen=True)
class Gate:
    """A limit for one metric: the least where higher is better, the most where lower is."""

    metric: str
    limit: float
    method: str | None = None  # None: every method

    def __str__(self) -> str:
        return f"{f'{self.method}: ' if self.method else ''}{self.metric} {self._wanted}"

    @property
    def _wanted(self) -> str:
        return f"at {'most' if self.metric in LOWER else 'least'} {self.limit:g}"

    def is_about(self, name: str, takes_target: bool) -> bool:
        """Whether the limit holds for a method; one that takes no target has nothing to follow."""
        return self.method in (None, name) and (takes_target or self.metric not in FOLLOWING)

    def failure(self, value: float) -> str | None:
        """The failure of a value in words, or None; a metric that could not be computed fails."""
        if math.isnan(value):
            return f"{self.metric} could not be computed; wanted {self._wanted}"
        lower = self.metric in LOWER
        beyond = value > self.limit if lower else value < self.limit
        if beyond and not math.isclose(value, self.limit):  # a rounding error is no failure
            return f"{self.metric} is {value:.6g}, {'above' if lower else 'below'} {self.limit:g}"
        return None


def metrics_of(task: Task) -> tuple[str, ...]:
    """The metrics of a task: without a published expert there are no scores at its return."""
    named = {mark.key for mark in landmarks(task, 0.0)}
    return tuple(metric for metric in METRICS if not metric.startswith("at_") or metric in named)


def parse(
    fail_under: Iterable[str], fail_over: Iterable[str], metrics: Sequence[str] = METRICS
) -> list[Gate]:
    """The gates of two options, each of which may be given several times and hold several limits."""
    given = [("--fail-under", text) for text in fail_under] + [("--fail-over", text) for text in fail_over]
    return [_gate(option, text.strip(), metrics) for option, texts in given for text in _COMMA.split(texts)]


def check_methods(gates: Iterable[Gate], takes_target: Mapping[str, bool]) -> None:
    """Refuse a gate that would never fail: for a method that is not there, or that has no such metric."""
    for gate in gates:
        if gate.method is not None and gate.method not in takes_target:
            raise unknown("method", gate.method, takes_target)
        if not any(gate.is_about(name, takes) for name, takes in takes_target.items()):
            names = gate.method or ", ".join(takes_target)
            raise InputError(f"{gate}: {names} has no target, so there is no {gate.metric} to limit")


def failures(gates: Iterable[Gate], methods: Methods) -> list[str]:
    """A line for every method and metric that is beyond its limit."""
    return [
        f"{name}: {failure}"
        for gate in gates
        for name, method in methods.items()
        if gate.is_about(name, method.sweep.takes_target)
        and (failure := gate.failure(method.metrics[gate.metric].value))
    ]


def _gate(option: str, text: str, metrics: Sequence[str]) -> Gate:
    what, _, number = text.rpartition("=")
    method, _, metric = what.rpartition(":")
    example = "ood_retention=0.9" if option == "--fail-under" else "calibration_error=5"
    if not metric:
        raise InputError(f"{option} takes METRIC=NUMBER, such as {example}; got {text!r}")
    if metric not in metrics and metric in METRICS:
        raise InputError(f"{option}: there is no {metric} on this task; known: {', '.join(metrics)}")
    if metric not in metrics:
        raise unknown(f"metric for {option}", metric, metrics)
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
