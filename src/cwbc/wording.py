"""The words and number formats that the figure, the page and the terminal share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from cwbc.results import Measure, MethodSummary, Sweep
from cwbc.tasks import landmarks

if TYPE_CHECKING:
    from cwbc.dataset_summary import DatasetSummary

PERCENT = "\u00a0%"  # the space does not break, so no line starts with a percent sign
_MOST_NAMED = 4  # methods in a sentence; of more, the first and the last


def amount(value: float) -> str:
    """A return: whole numbers with thousands separators where it is large, four digits where it is small."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"
    return text.replace("-", "−")


def score(value: float) -> str:
    """A normalized score, with one decimal."""
    return f"{round(value, 1) + 0.0:.1f}".replace("-", "−")  # + 0.0: no "−0.0"


def percent(value: float) -> str:
    """A fraction in whole percents."""
    return f"{round(100 * value)}{PERCENT}".replace("-", "−")


def retention_percent(value: float) -> str:
    """OOD retention in whole percents: of a score below 0, nothing of the best one is retained."""
    return percent(max(value, 0.0))


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
    """What was found in a sentence or two, about the farthest named target that every method was given."""
    following = {name: method for name, method in methods.items() if method["takes_target"]}
    told = [_finding(following, dataset)] if following else []
    told += [
        f"{name} takes no target and scores {score(value)}."
        for name, method in methods.items()
        if name not in following and (value := method["best_point"]["value"]) is not None
    ]
    return " ".join(told) or "No score could be evaluated."


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
    """Which intervals overlap, so that their methods are not told apart; nothing where none do."""
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
    told = [f"{one} and {other}" for one, other in pairs]
    return f"; the 95{PERCENT} intervals of {', of '.join(told)} overlap"


def asked_alike(methods: Mapping[str, MethodSummary]) -> bool:
    """Whether all that take a target were given the same, and what depends on all of these is comparable."""
    given = [method["curve"] for method in methods.values() if method["takes_target"]]
    return len({tuple(point["target"] for point in curve) for curve in given}) <= 1


def differing_in_words(methods: Mapping[str, MethodSummary]) -> list[str]:
    """The remark that methods were given different targets; nothing where they were not."""
    if asked_alike(methods):
        return []
    return [
        "The methods were evaluated at different targets: what depends on all of them (best point, "
        "OOD retention, monotonicity, calibration error) is not comparable."
    ]


def calibration_in_words(methods: Mapping[str, MethodSummary]) -> list[str]:
    """The calibration errors of methods; some retain a score by not following their target."""
    known = _values({name: method["calibration_error"] for name, method in methods.items()})
    if len(known) < 2 or not asked_alike(methods):
        return []
    order = sorted(known, key=known.__getitem__)
    named = order if len(order) <= _MOST_NAMED else [order[0], order[-1]]
    told = "; ".join(f"{name} {score(known[name])}" for name in named)
    return [f"Calibration error in points of score, up to the dataset's best return: {told}."]


def retention_in_words(fractions: Mapping[str, float | None], values: Mapping[str, float]) -> str:
    """The OOD retention of methods, None where it is not defined, with their scores then."""
    order, note = _told(values)
    if not note:  # all are named, in the order of what is said of them
        shown = {name: -math.inf if each is None else each for name, each in fractions.items()}
        order.sort(key=shown.__getitem__, reverse=True)
    known = [
        f"{retention_percent(each)} for {name}" for name in order if (each := fractions[name]) is not None
    ]
    unknown = [f"{name} scores {score(values[name])}" for name in order if fractions[name] is None]
    told = ["OOD retention is " + ", ".join(known)] if known else []
    if unknown:
        told.append(f"{'; '.join(unknown)} (no OOD retention: the best score is not clearly above 0)")
    return "; ".join(told) + note


def span(counts: Iterable[int]) -> str:
    """The lowest and the highest of some numbers, or the one that all are."""
    ends = sorted(set(counts))
    return " to ".join(f"{end:,}" for end in dict.fromkeys((ends[0], ends[-1])))


def measured_in_words(seeds: Collection[int], episodes: Collection[int], spread: str) -> str:
    """How much was evaluated; `spread` is what the numbers beside the means are, where there are any."""
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
    return [f"Simulations broke down in {episodes} ({where}): what depends on them is not known."]


def listed(names: Sequence[str]) -> str:
    """Names in words: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def counted(number: int, what: str) -> str:
    """How many there are of something: "1 seed", "2 seeds"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def scored(values: Mapping[str, float]) -> str:
    """The scores of methods in words, the highest first."""
    order, note = _told(values)
    return "; ".join(f"{name} scores {score(values[name])}" for name in order) + note


def _told(values: Mapping[str, float]) -> tuple[list[str], str]:
    order = sorted(values, key=lambda name: -values[name])
    if len(order) <= _MOST_NAMED:
        return order, ""
    return [order[0], order[-1]], f" (the highest and the lowest score of {len(order)} methods)"
