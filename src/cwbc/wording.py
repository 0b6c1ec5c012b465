"""The words and number formats that the figure, the page and the terminal share."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from cwbc.results import Measure, MethodSummary, Sweep
from cwbc.tasks import Task

if TYPE_CHECKING:
    from cwbc.dataset_summary import DatasetSummary

PERCENT = "\u00a0%"  # the space does not break, so no line starts with a percent sign


@dataclasses.dataclass(frozen=True)
class Landmark:
    """An asked return that has a name."""

    key: Literal["at_dataset_best", "at_expert", "at_twice_expert"]  # in a method's summary
    label: str
    phrase: str  # completes "asked for ..."
    target: float


def landmarks(task: Task, best: float) -> tuple[Landmark, ...]:
    """The named targets of a task; without published references there is no expert to name."""
    data_best = Landmark("at_dataset_best", "dataset's best", "the dataset's best return", best)
    if not task.published:
        phrase = "one whole return range beyond the dataset's best"
        return (data_best, Landmark("at_twice_expert", "one range beyond", phrase, task.far_return))
    return (
        data_best,
        Landmark("at_expert", "1× expert", "the expert return", task.expert_return),
        Landmark("at_twice_expert", "2× expert", "twice the expert return", task.far_return),
    )


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


def value_and_interval(point: Measure | None, fraction: bool = False) -> tuple[str, str]:
    """A number in two texts: its value, and its interval or nothing; a dash where it is absent."""
    if point is None or point["value"] is None:
        return "–", ""
    shown = percent if fraction else score
    if point["low"] is None or point["high"] is None:
        return shown(point["value"]), ""
    return shown(point["value"]), f"{shown(point['low']).removesuffix(PERCENT)} to {shown(point['high'])}"


def headline(methods: Mapping[str, MethodSummary], dataset: DatasetSummary) -> str:
    """The finding in one sentence, about the farthest named target that every method was asked for."""
    for mark in reversed(landmarks(dataset.task, dataset.best)):
        points = {name: method[mark.key] for name, method in methods.items()}
        values = {name: p["value"] for name, p in points.items() if p is not None and p["value"] is not None}
        if len(values) == len(methods):
            retentions = {name: method["ood_retention"] for name, method in methods.items()}
            shares = {name: None if kept is None else kept["value"] for name, kept in retentions.items()}
            if mark.key != "at_twice_expert":
                return f"Asked for {mark.phrase}, {scored(values)}{_doubt(points, values)}."
            return f"Asked for {mark.phrase}, {kept_in_words(shares, values)}{_doubt(retentions, values)}."
    tops = {name: method["best_point"]["value"] for name, method in methods.items()}
    found = {name: top for name, top in tops.items() if top is not None}
    return f"At its best asked return, {scored(found)}." if found else "No score could be measured."


def _doubt(measures: Mapping[str, Measure | None], values: Mapping[str, float]) -> str:
    """What a headline about two methods has to admit where its numbers do not tell them apart."""
    if len(values) != 2:
        return ""
    ends = [measures[name] for name in values]
    lows = [end["low"] for end in ends if end is not None and end["low"] is not None]
    highs = [end["high"] for end in ends if end is not None and end["high"] is not None]
    is_known = len(lows) == len(highs) == 2
    return "; their 95\u00a0% intervals overlap" if is_known and max(lows) <= min(highs) else ""


def asked_alike(methods: Mapping[str, MethodSummary]) -> bool:
    """Whether all were asked for the same returns, and what depends on all of these can be compared."""
    return len({tuple(point["target"] for point in method["curve"]) for method in methods.values()}) == 1


def differing_in_words(methods: Mapping[str, MethodSummary]) -> list[str]:
    """The remark that methods were not asked alike; nothing where they were."""
    if asked_alike(methods):
        return []
    return [
        "The methods were not asked for the same returns: what depends on all of them (best point, "
        "retention, monotonicity, calibration) cannot be compared."
    ]


def obedience_in_words(methods: Mapping[str, MethodSummary]) -> list[str]:
    """How well methods do as they are told, where the data shows how; some keep a score by not listening."""
    errors = {name: method["calibration_error"] for name, method in methods.items()}
    known = {n: e["value"] for n, e in errors.items() if e is not None and e["value"] is not None}
    if len(known) < 2 or not asked_alike(methods):
        return []
    order = sorted(known, key=known.__getitem__)
    first, *others = order if len(order) <= 4 else [order[0], order[-1]]
    told = f"{first} misses what it is asked for by {score(known[first])} points on average"
    return [
        "; ".join([f"Up to the dataset's best, {told}", *(f"{n} by {score(known[n])}" for n in others)]) + "."
    ]


def kept_in_words(shares: Mapping[str, float | None], values: Mapping[str, float]) -> str:
    """What methods keep of their best scores, None where there is no share of it, with their scores now."""
    order, note = _told(values)
    if not note:  # all are named, in the order of what is said of them
        shown = {name: -math.inf if share is None else share for name, share in shares.items()}
        order.sort(key=shown.__getitem__, reverse=True)
    parts, of_what = [], " of its best score"
    for name in order:
        share = shares[name]
        if share is None:
            parts.append(f"{name} scores {score(values[name])}, and no higher than 0 anywhere")
            continue
        parts.append(f"{name} keeps {percent(share) if share >= 0.005 else 'none'}{of_what}")
        of_what = ""  # said once
    return "; ".join(parts) + note


def span(counts: Iterable[int]) -> str:
    """The lowest and the highest of some numbers, or the one that all are."""
    ends = sorted(set(counts))
    return " to ".join(f"{end:,}" for end in dict.fromkeys((ends[0], ends[-1])))


def measured_in_words(seeds: Collection[int], episodes: Collection[int], spread: str) -> str:
    """How much was measured; `spread` is what the numbers beside the means are, where there are any."""
    often = " or ".join(map(str, sorted(episodes)))
    each = f"{often} episode{'s' * (often != '1')} per asked return"
    if set(seeds) == {1}:
        return f"One seed with {each}, so there are no intervals."
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
        places.append(f"{name}, asked for {', '.join(targets[:3])}{rest}")
    episodes = counted(sum(int(sweep.broken.sum()) for sweep in found.values()), "episode")
    where = "; ".join(places)
    return [f"Simulations broke down in {episodes} ({where}): what depends on them is not known."]


def counted(number: int, what: str) -> str:
    """How many there are of something: "1 seed", "2 seeds"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def scored(values: Mapping[str, float]) -> str:
    """The scores of methods in words, the highest first."""
    order, note = _told(values)
    return "; ".join(f"{name} scores {score(values[name])}" for name in order) + note


def _told(values: Mapping[str, float]) -> tuple[list[str], str]:
    order = sorted(values, key=lambda name: -values[name])
    if len(order) <= 4:
        return order, ""
    return [order[0], order[-1]], f" (the highest and the lowest score of {len(order)} methods)"
