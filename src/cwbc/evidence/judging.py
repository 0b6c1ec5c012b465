"""How claims are decided: by rules on numbers that can come out either way."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from cwbc.evidence.item import Case, Claim
from cwbc.evidence.measured import Measured
from cwbc.wording import counted, percent, score

RELIABLE = 0.8  # of its best score, kept at twice the expert return
COLLAPSED = 0.5  # of its best score: who keeps less has crashed
COMPARABLE = 0.95  # of another's score, to be called as good
WELL = 0.9  # of the best one's score, to be called good as well
SIMILAR = 10.0  # points between the highest and the lowest score
STEP = 0.02  # against the claimed direction, that a step from one value to the next may go

Verdicts = Mapping[str, tuple[bool, str]]  # by dataset: whether it holds there, and the numbers


def at_least(share: float, datasets: Collection[str]) -> int:
    """How many of some datasets make up a share of them."""
    return math.ceil(share * len(datasets) - 1e-9)  # 7 / 25 * 25 is above 7


def on_datasets(
    text: str, rule: str, covers: Collection[str], verdicts: Verdicts, needed: int | None = None
) -> Claim:
    """A claim about several datasets that holds where enough of them support it.

    Args:
        covers: the datasets that it is about. Those without a verdict leave it open where they could turn it.
        needed: how many are enough; by default all.
    """
    if not verdicts:
        return untold(text, "none of its datasets was measured with all that it compares")
    cases = [Case(dataset, bool(holds), numbers) for dataset, (holds, numbers) in verdicts.items()]
    count = len({*covers, *verdicts})
    holding, missing = sum(case.holds for case in cases), count - len(cases)
    needed = count if needed is None else needed
    rest = f", {missing} not measured" if missing else ""
    reason = f"Rule: {rule}. Holds on {holding} of {count}{rest}, needs {needed}."
    if holding < needed <= holding + missing:
        were = "was" if len(cases) == 1 else "were"
        only = f"Only {len(cases)} of its {count} datasets {were} measured with all that it compares"
        return Claim(text, None, f"{only}, and the others decide. {reason}", cases)
    return Claim(text, holding >= needed, reason, cases)


def on_average_too(claim: Claim, holds: bool, numbers: str) -> Claim:
    """A claim about several datasets that has to hold for their average as well."""
    verdict = claim.verdict and bool(holds)
    return dataclasses.replace(claim, verdict=verdict, reason=f"{claim.reason} On average {numbers}.")


def unless_turned(claim: Claim, missing: Collection[str], verdict: bool | None = None) -> Claim:
    """A claim across datasets; where it has this verdict, which missing ones could turn, it is left open.

    Without `verdict` they could turn either, as those of an average can.
    """
    if not missing or claim.verdict is None or verdict not in (None, claim.verdict):
        return claim
    reason = f"Not measured: {', '.join(missing)}, which could turn it. {claim.reason}"
    return dataclasses.replace(claim, verdict=None, reason=reason)


def decided(text: str, rule: str, holds: bool, numbers: str) -> Claim:
    """A claim about numbers as a whole."""
    return Claim(text, bool(holds), f"Rule: {rule}. Found: {numbers}.")


def untold(text: str, why: str) -> Claim:
    """A claim that this run cannot decide."""
    return Claim(text, None, f"{why[0].upper()}{why[1:]}.")


def kept(measured: Measured) -> str:
    """A retention in words."""
    if math.isnan(measured.retention):
        return f"not defined, best point {score(measured.top)}"
    return f"{percent(measured.retention)} of {score(measured.top)}"


def average(numbers: Iterable[float]) -> float:
    """The mean of some numbers."""
    return float(np.mean(list(numbers)))


def listed(scores: Mapping[str, float]) -> str:
    """Scores with their names."""
    return ", ".join(f"{label} {score(found)}" for label, found in scores.items())


def best_on_average(
    text: str, best: str, scores: Mapping[str, Mapping[str, float]], among: str = "of all"
) -> Claim:
    """A claim that one method has the highest mean of those that were measured on the same datasets."""
    if not scores:
        return untold(text, "no dataset has all that it compares")
    columns = {label: [of[label] for of in scores.values()] for label in next(iter(scores.values()))}
    means = {label: average(column) for label, column in columns.items()}
    highest = max(means, key=means.__getitem__)
    numbers = f"{listed(means)} over {counted(len(scores), 'dataset')}"
    return decided(text, f"Its average at 1x expert is the highest {among}", highest == best, numbers)


def gain(ours: float, theirs: float) -> float | None:
    """How much higher a score is, as a share; None where that means nothing."""
    return (ours - theirs) / theirs if theirs > 0 else None


def gained(
    text: str, scores: Iterable[tuple[float, float]], published: float, names: tuple[str, str]
) -> Claim:
    """A claim that one method improves on another by some share on average: at least half of it must show."""
    pairs = list(scores)
    if not pairs:
        return untold(text, f"no dataset was measured with both {names[0]} and {names[1]}")
    ours, theirs = (average(column) for column in zip(*pairs, strict=True))
    found = gain(ours, theirs)
    datasets = counted(len(pairs), "dataset")
    numbers = f"{names[0]} {score(ours)}, {names[1]} {score(theirs)} on average over {datasets}"
    if found is None:
        return untold(text, f"no share can be taken of a score of {score(theirs)} ({numbers})")
    rule = f"the average gain is at least half of the paper's {percent(published)}"
    return decided(text, rule, found >= published / 2, f"{numbers}: {percent(found)}")


def comparable(ours: float, theirs: float, share: float = COMPARABLE) -> bool:
    """Whether a score reaches a share of another; below zero there are no shares, so it must reach it all."""
    return ours >= (share * theirs if theirs > 0 else theirs)


def well(scores: Collection[float], best: float) -> bool:
    """Whether scores are all good beside the best one."""
    return comparable(min(scores), best, WELL)


def rises(values: Sequence[float]) -> bool:
    """Whether values go up from one to the next, but for what chance may take."""
    return all(later >= earlier - STEP for earlier, later in itertools.pairwise(values))


def similar(scores: Collection[float]) -> bool:
    """Whether scores are close to each other."""
    return max(scores) - min(scores) <= SIMILAR
