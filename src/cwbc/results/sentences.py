"""The results of evaluations in sentences, for the terminal and for every report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping

from cwbc.results.evaluated import Methods
from cwbc.results.intervals import Estimate, meaning
from cwbc.system.formatting import PERCENT, amount, counted, retention_percent, score

_MOST_NAMED = 4  # methods in a sentence; of more, the first and the last


def finding(methods: Methods) -> str:
    """The results in a sentence or two, at the farthest named target that every method was evaluated at."""
    following = {name: method for name, method in methods.items() if method.sweep.takes_target}
    sentences = [_finding(following)] if following else []
    sentences += [
        f"{name} has no target and scores {score(method.top)}."
        for name, method in methods.items()
        if name not in following and math.isfinite(method.top)
    ]
    return " ".join(sentences) or "No score could be evaluated."


def _finding(methods: Methods) -> str:
    marks = next(iter(methods.values())).landmarks
    for mark in reversed(marks):
        values = _known(found := _metric(methods, mark.key))
        if len(values) < len(methods):
            continue
        if mark is not marks[-1]:
            return f"At {mark.phrase}, {scored(values)}{_overlap_in_words(found, values)}."
        found = _metric(methods, "ood_retention")
        words = retention_in_words({name: each.value for name, each in found.items()}, values)
        return f"At {mark.phrase}, {words}{_overlap_in_words(found, values)}."
    values = _known(_metric(methods, "best_point"))
    return f"At its best target, {scored(values)}." if values else "No score could be evaluated."


def _metric(methods: Methods, key: str) -> dict[str, Estimate]:
    return {name: method.metrics[key] for name, method in methods.items()}


def _known(found: Mapping[str, Estimate]) -> dict[str, float]:
    return {name: each.value for name, each in found.items() if each.is_known}


def _overlap_in_words(found: Mapping[str, Estimate], scores: Mapping[str, float]) -> str:
    """Which intervals overlap, so that their methods do not clearly differ; nothing where none do."""
    order = [name for name in sorted(scores, key=lambda name: -scores[name]) if found[name].is_known]
    every = itertools.combinations(order, 2)
    pairs = [(one, other) for one, other in every if found[one].overlaps(found[other])]
    if not pairs:
        return ""
    if len(scores) == 2:
        return f"; their 95{PERCENT} intervals overlap"
    if len(pairs) == math.comb(len(scores), 2):
        return f"; all their 95{PERCENT} intervals overlap"
    if len(order) > _MOST_NAMED:
        return f"; {len(pairs)} pairs of their 95{PERCENT} intervals overlap"
    named = [f"{one} and {other}" for one, other in pairs]
    return f"; the 95{PERCENT} intervals of {', of '.join(named)} overlap"


def estimated_in_words(methods: Methods) -> list[str]:
    """The remark that returns are estimates; nothing where they were simulated."""
    if not next(iter(methods.values())).dataset.is_estimated:
        return []
    return [
        "Returns are estimated offline, with a model of the logged data: no simulator or real system "
        "confirmed them."
    ]


def intervals_in_words(methods: Methods) -> str:
    """The kind of the intervals of scores."""
    is_widened = any(method.model_errors is not None for method in methods.values())
    return meaning({len(method.scores) for method in methods.values()}, is_widened)


def same_targets(methods: Methods) -> bool:
    """Whether all that take a target were evaluated at the same ones, so that all numbers are comparable."""
    sweeps = [method.sweep for method in methods.values() if method.sweep.takes_target]
    return len({tuple(sweep.targets.tolist()) for sweep in sweeps}) <= 1


def differing_in_words(methods: Methods) -> list[str]:
    """The remark that methods were evaluated at different targets; nothing where they were not."""
    if same_targets(methods):
        return []
    return [
        "The methods were evaluated at different targets: metrics over all targets (best point, "
        "OOD retention, monotonicity, calibration error) are not comparable."
    ]


def calibration_in_words(methods: Methods) -> list[str]:
    """The calibration errors of methods; some retain a score by not following their target."""
    known = _known(_metric(methods, "calibration_error"))
    if len(known) < 2 or not same_targets(methods):
        return []
    order, _ = _named({name: -error for name, error in known.items()})
    errors = "; ".join(f"{name} {score(known[name])}" for name in order)
    return [f"Calibration error in points of score, up to the dataset's best return: {errors}."]


def retention_in_words(fractions: Mapping[str, float], scores: Mapping[str, float]) -> str:
    """The OOD retention of methods, NaN where it is not defined, with their scores then."""
    order, note = _named(scores)
    if not note:  # all methods are named, in the order of their retention
        shown = {name: -math.inf if math.isnan(each) else each for name, each in fractions.items()}
        order.sort(key=shown.__getitem__, reverse=True)
    undefined = [name for name in order if math.isnan(fractions[name])]
    known = [f"{retention_percent(fractions[name])} for {name}" for name in order if name not in undefined]
    parts = ["OOD retention is " + ", ".join(known)] if known else []
    if undefined:
        unknown = "; ".join(f"{name} scores {score(scores[name])}" for name in undefined)
        parts.append(f"{unknown} (no OOD retention: the best score is not clearly above 0)")
    return "; ".join(parts) + note


def evaluated_in_words(seeds: Collection[int], episodes: Collection[int], spread: str) -> str:
    """The numbers of seeds and episodes in words; `spread` explains the numbers beside the means."""
    often = " or ".join(map(str, sorted(episodes)))
    each = f"{often} episode{'s' * (often != '1')} per target return"
    if set(seeds) == {1}:
        return f"One seed with {each}: too few seeds for an interval."
    return f"Means over {' or '.join(map(str, sorted(seeds)))} seeds with {each}; {spread}."


def broken_in_words(methods: Methods) -> list[str]:
    """The remark that simulations broke down, how many and where; nothing where none did."""
    places, count = [], 0
    for name, sweep in ((name, method.sweep) for name, method in methods.items()):
        if not (broken := sweep.broken).any():
            continue
        targets = [amount(target) for target in sweep.targets[broken > 0].tolist()]
        rest = f" and {len(targets) - 3} more" if len(targets) > 3 else ""
        at = f" at target {', '.join(targets[:3])}{rest}" if sweep.takes_target else ""
        places.append(f"{name}{at}")
        count += int(broken.sum())
    if not places:
        return []
    where = f"{counted(count, 'episode')} ({'; '.join(places)})"
    return [f"Simulations broke down in {where}: metrics that depend on them are unknown."]


def scored(scores: Mapping[str, float]) -> str:
    """The scores of methods in words, the highest first."""
    order, note = _named(scores)
    return "; ".join(f"{name} scores {score(scores[name])}" for name in order) + note


def _named(scores: Mapping[str, float]) -> tuple[list[str], str]:
    order = sorted(scores, key=lambda name: -scores[name])
    if len(order) <= _MOST_NAMED:
        return order, ""
    return [order[0], order[-1]], f" (the max and the min score of {len(order)} methods)"
