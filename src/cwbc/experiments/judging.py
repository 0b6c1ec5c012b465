"""How claims are decided: by rules on numbers that can come out either way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from cwbc.experiments.evidence import Measured
from cwbc.experiments.item import Case, Claim
from cwbc.wording import percent, score

RELIABLE = 0.8  # of its best score, kept at twice the expert return
COLLAPSED = 0.5  # of its best score: who keeps less has crashed
COMPARABLE = 0.95  # of another's score, to be called as good

Verdicts = Mapping[str, tuple[bool, str]]  # by dataset: whether it holds there, and the numbers


def on_datasets(text: str, rule: str, verdicts: Verdicts, share: float = 1.0) -> Claim:
    """A claim about several datasets that holds where at least a share of them supports it."""
    if not verdicts:
        return untold(text, "none of its datasets was measured with all that it compares")
    cases = [Case(dataset, bool(holds), numbers) for dataset, (holds, numbers) in verdicts.items()]
    holding = sum(case.holds for case in cases)
    needed = math.ceil(share * len(cases) - 1e-9)
    reason = f"{rule}. Holds on {holding} of {len(cases)}, needs {needed}."
    return Claim(text, holding >= needed, reason, cases)


def decided(text: str, rule: str, holds: bool, numbers: str) -> Claim:
    """A claim about numbers as a whole."""
    return Claim(text, bool(holds), f"{rule}. {numbers}")


def untold(text: str, why: str) -> Claim:
    """A claim that this run cannot decide."""
    return Claim(text, None, f"Cannot be told: {why}.")


def kept(measured: Measured) -> str:
    """A retention in words."""
    return f"{percent(measured.retention)} of {score(measured.top)}"


def average(numbers: Iterable[float]) -> float:
    """The mean of some numbers."""
    return float(np.mean(list(numbers)))


def listed(scores: Mapping[str, float]) -> str:
    """Scores with their names."""
    return ", ".join(f"{label} {score(found)}" for label, found in scores.items())


def best_on_average(text: str, best: str, scores: Mapping[str, Mapping[str, float]]) -> Claim:
    """A claim that one method has the highest mean of those that were measured on the same datasets."""
    if not scores:
        return untold(text, "no dataset has all that it compares")
    columns = {label: [of[label] for of in scores.values()] for label in next(iter(scores.values()))}
    means = {label: average(column) for label, column in columns.items()}
    highest = max(means, key=means.__getitem__)
    return decided(text, "Its average at 1x expert is the highest", highest == best, listed(means))


def gain(ours: float, theirs: float) -> float | None:
    """How much higher a score is, as a share; None where that means nothing."""
    return (ours - theirs) / theirs if theirs > 0 else None


def gained(
    text: str, scores: Iterable[tuple[float, float]], published: float, names: tuple[str, str]
) -> Claim:
    """A claim that one method improves on another by some share on average: at least half of it must show."""
    pairs = list(scores)
    if not pairs:
        return untold(text, f"{names[0]} and {names[1]} were not measured together")
    ours, theirs = (average(column) for column in zip(*pairs, strict=True))
    found = gain(ours, theirs)
    numbers = f"{names[0]} {score(ours)}, {names[1]} {score(theirs)} on average over {len(pairs)} dataset(s)"
    if found is None:
        return untold(text, f"{names[1]} scores {score(theirs)}, of which no share can be taken ({numbers})")
    rule = f"Average gain of at least {percent(published / 2)}, half of the paper's"
    return decided(text, rule, found >= published / 2, f"{numbers}: {percent(found)}")


def comparable(ours: float, theirs: float, share: float = COMPARABLE) -> bool:
    """Whether a score reaches a share of another; below zero there are no shares, so it must reach it all."""
    return ours >= (share * theirs if theirs > 0 else theirs)
