"""The results of evaluations in sentences, for the terminal and for every report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from cwbc.core.tasks import landmarks
from cwbc.results.sweeps import Measure, MethodSummary, Sweep
from cwbc.system.formatting import PERCENT, amount, counted, retention_percent, score

if TYPE_CHECKING:
    from cwbc.data.dataset_summary import DatasetSummary

_MOST_NAMED = 4  # methods in a sentence; of more, the first and the last


def value_and_interval(point: Measure | None, fraction: bool = False) -> tuple[str, str]:
    """A number in two texts: its value, and its interval or nothing; a dash where it is absent."""
    if point is None or point["value"] is None:
        return "–", ""
    shown = retention_percent if fraction else score
    if point["low"] is None or point["high"] is None:
        return shown(point["value"]), ""
    return shown(point["value"]), f"{shown(point['low']).removesuffix(PERCENT)} to {shown(point['high'])}"


def overlap(one: Measure | None, other: Measure | None) -> bool:
    """Whether both have an interval, and these overlap."""
    if one is None or other is None:
        return False
    (low, high), (other_low, other_high) = (one["low"], one["high"]), (other["low"], other["high"])
    if low is None or high is None or other_low is None or other_high is None:
        return False
    return low <= other_high and other_low <= high


def finding(methods: Mapping[str, MethodSummary], dataset: DatasetSummary) -> str:
    """The results in a sentence or two, at the farthest named target that every method was evaluated at."""
    following = {name: method for name, method in methods.items() if method["takes_target"]}
    sentences = [_finding(following, dataset)] if following else []
    sentences += [
        f"{name} takes no target and scores {score(value)}."
        for name, method in methods.items()
        if name not in following and (value := method["best_point"]["value"]) is not None
    ]
    return " ".join(sentences) or "No score could be evaluated."


def _finding(methods: Mapping[str, MethodSummary], dataset: DatasetSummary) -> str:
    marks = landmarks(dataset.task, dataset.best)
    for mark in reversed(marks):
        points = {name: method.get(mark.key) for name, method in methods.items()}
        values = _values(points)
        if len(values) < len(methods):
            continue
        where = f"At {mark.phrase}"
        if mark is not marks[-1]:
            return f"{where}, {scored(values)}{overlap_in_words(points, values)}."
        found = {name: method["ood_retention"] for name, method in methods.items()}
        fractions = {name: None if point is None else point["value"] for name, point in found.items()}
        return f"{where}, {retention_in_words(fractions, values)}{overlap_in_words(found, values)}."
    values = _values({name: method["best_point"] for name, method in methods.items()})
    return f"At its best target, {scored(values)}." if values else "No score could be evaluated."


def _values(points: Mapping[str, Measure | None]) -> dict[str, float]:
    """The values of those that have one."""
    return {name: p["value"] for name, p in points.items() if p is not None and p["value"] is not None}


def overlap_in_words(measures: Mapping[str, Measure | None], values: Mapping[str, float]) -> str:
    """Which intervals overlap, so that their methods do not clearly differ; nothing where none do."""
    order = [name for name in sorted(values, key=lambda name: -values[name]) if measures[name] is not None]
    pairs = [pair for pair in itertools.combinations(order, 2) if overlap(*(measures[each] for each in pair))]
    if not pairs:
        return ""
    if len(values) == 2:
        return f"; their 95{PERCENT} intervals overlap"
    if len(pairs) == math.comb(len(values), 2):
        return f"; all their 95{PERCENT} intervals overlap"
    if len(order) > _MOST_NAMED:
        return f"; {len(pairs)} pairs of their 95{PERCENT} intervals overlap"
    named = [f"{one} and {other}" for one, other in pairs]
    return f"; the 95{PERCENT} intervals of {', of '.join(named)} overlap"


def same_targets(methods: Mapping[str, MethodSummary]) -> bool:
    """Whether all that take a target were evaluated at the same ones, so that all numbers are comparable."""
    curves = [method["curve"] for method in methods.values() if method["takes_target"]]
    return len({tuple(point["target"] for point in curve) for curve in curves}) <= 1


def differing_in_words(methods: Mapping[str, MethodSummary]) -> list[str]:
    """The remark that methods were evaluated at different targets; nothing where they were not."""
    if same_targets(methods):
        return []
    return [
        "The methods were evaluated at different targets: metrics over all targets (best point, "
        "OOD retention, monotonicity, calibration error) are not comparable."
    ]


def calibration_in_words(methods: Mapping[str, MethodSummary]) -> list[str]:
    """The calibration errors of methods; some retain a score by not following their target."""
    known = _values({name: method["calibration_error"] for name, method in methods.items()})
    if len(known) < 2 or not same_targets(methods):
        return []
    order = sorted(known, key=known.__getitem__)
    named = order if len(order) <= _MOST_NAMED else [order[0], order[-1]]
    errors = "; ".join(f"{name} {score(known[name])}" for name in named)
    return [f"Calibration error in points of score, up to the dataset's best return: {errors}."]


def retention_in_words(fractions: Mapping[str, float | None], values: Mapping[str, float]) -> str:
    """The OOD retention of methods, None where it is not defined, with their scores then."""
    order, note = _named(values)
    if not note:  # all methods are named, in the order of their retention
        shown = {name: -math.inf if each is None else each for name, each in fractions.items()}
        order.sort(key=shown.__getitem__, reverse=True)
    known = [
        f"{retention_percent(each)} for {name}" for name in order if (each := fractions[name]) is not None
    ]
    unknown = [f"{name} scores {score(values[name])}" for name in order if fractions[name] is None]
    parts = ["OOD retention is " + ", ".join(known)] if known else []
    if unknown:
        parts.append(f"{'; '.join(unknown)} (no OOD retention: the best score is not clearly above 0)")
    return "; ".join(parts) + note


def evaluated_in_words(seeds: Collection[int], episodes: Collection[int], spread: str) -> str:
    """The numbers of seeds and episodes in words; `spread` explains the numbers beside the means."""
    often = " or ".join(map(str, sorted(episodes)))
    each = f"{often} episode{'s' * (often != '1')} per target return"
    if set(seeds) == {1}:
        return f"One seed with {each}: too few seeds for an interval."
    return f"Means over {' or '.join(map(str, sorted(seeds)))} seeds with {each}; {spread}."


def broken_in_words(sweeps: Mapping[str, Sweep]) -> list[str]:
    """The remark that simulations broke down, how many and where; nothing where none did."""
    found = {name: sweep for name, sweep in sweeps.items() if sweep.broken.any()}
    if not found:
        return []
    places = []
    for name, sweep in found.items():
        targets = [amount(target) for target in sweep.targets[sweep.broken > 0].tolist()]
        rest = f" and {len(targets) - 3} more" if len(targets) > 3 else ""
        at = f" at target {', '.join(targets[:3])}{rest}" if sweep.takes_target else ""
        places.append(f"{name}{at}")
    episodes = counted(sum(int(sweep.broken.sum()) for sweep in found.values()), "episode")
    where = "; ".join(places)
    return [f"Simulations broke down in {episodes} ({where}): metrics that depend on them are unknown."]


def scored(values: Mapping[str, float]) -> str:
    """The scores of methods in words, the highest first."""
    order, note = _named(values)
    return "; ".join(f"{name} scores {score(values[name])}" for name in order) + note


def _named(values: Mapping[str, float]) -> tuple[list[str], str]:
    order = sorted(values, key=lambda name: -values[name])
    if len(order) <= _MOST_NAMED:
        return order, ""
    return [order[0], order[-1]], f" (the max and the min score of {len(order)} methods)"
