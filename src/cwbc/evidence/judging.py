"""How claims are decided: by rules on numbers that can come out either way.

A rule is applied to what was measured, and again to every resample of the seeds (`resampling.judged`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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

# By dataset: whether it holds there, None where that is open, and the numbers.
Verdicts = Mapping[str, tuple[bool | None, str]]


def at_least(share: float, datasets: Collection[str]) -> int:
    """How many of some datasets make up a share of them."""
    return math.ceil(share * len(datasets) - 1e-9)  # 7 / 25 * 25 is above 7


def on_datasets(
    text: str, rule: str, covers: Collection[str], verdicts: Verdicts, needed: int | None = None
) -> Claim:
    """A claim about several datasets that holds where enough of them support it.

    Args:
        covers: the datasets that it is about. Those that are open, or were not measured, leave it open where
            they could turn it.
        needed: how many are enough; by default all.
    """
    if not verdicts:
        return untold(text, "none of its datasets was measured with all that it compares")
    cases, count = _cases(verdicts), len({*covers, *verdicts})
    holding = sum(case.holds is True for case in cases)
    failing = sum(case.holds is False for case in cases)
    missing = count - len(cases)
    needed = count if needed is None else needed
    rest = f", {missing} not measured" if missing else ""
    reason = f"Rule: {rule}. Holds on {holding} of {count}{rest}, needs {needed}."
    if missing and holding < needed <= count - failing:
        were = "was" if len(cases) == 1 else "were"
        only = f"Only {len(cases)} of its {count} datasets {were} measured with all that it compares"
        reason = f"{only}, and the others decide. {reason}"
    holds = True if holding >= needed else False if count - failing < needed else None
    return Claim(text, reason, cases, holds=holds)


def on_average_too(
    claim: Claim, pairs: Collection[tuple[float, float]], written: Callable[[float], str]
) -> Claim:
    """A claim about several datasets where the first of two numbers has to be higher on average as well."""
    if not pairs:
        return claim
    ours, theirs = (average(column) for column in zip(*pairs, strict=True))
    reason = f"{claim.reason} On average {written(ours)} against {written(theirs)}."
    return dataclasses.replace(claim, holds=claim.holds and ours > theirs, reason=reason)


def on_average(
    text: str,
    rule: str,
    covers: Collection[str],
    pairs: Mapping[str, tuple[float, float]],
    holds: Callable[[float, float], bool],
    written: Callable[[float, float], str] | None = None,
) -> Claim:
    """A claim about two numbers of every dataset that their averages decide; any missing one leaves it open.

    How it is on single datasets stands beside it.
    """
    if not pairs:
        return untold(text, "none of its datasets was measured with all that it compares")
    written = written or against
    verdicts = {dataset: (holds(*pair), written(*pair)) for dataset, pair in pairs.items()}
    ours, theirs = (average(column) for column in zip(*pairs.values(), strict=True))
    numbers = f"{written(ours, theirs)} on average over {counted(len(pairs), 'dataset')}"
    claim = _counted(decided(text, rule, holds(ours, theirs), numbers), verdicts)
    return unless_turned(claim, [dataset for dataset in covers if dataset not in pairs])


def _counted(claim: Claim, verdicts: Verdicts) -> Claim:
    """With what single datasets say, which does not decide it."""
    cases = _cases(verdicts)
    holding = sum(case.holds is True for case in cases)
    reason = f"{claim.reason} Taken singly, holds on {holding} of {len(cases)}."
    return dataclasses.replace(claim, reason=reason, cases=cases)


def _cases(verdicts: Verdicts) -> list[Case]:
    return [
        Case(dataset, numbers, holds=None if holds is None else bool(holds))  # NumPy's are no JSON
        for dataset, (holds, numbers) in verdicts.items()
    ]


def unless_turned(claim: Claim, missing: Collection[str], holds: bool | None = None) -> Claim:
    """A claim across datasets; where it came out so, which missing ones could turn, it is left open.

    Without `holds` they could turn either, as those of an average can.
    """
    if not missing or claim.holds is None or holds not in (None, claim.holds):
        return claim
    reason = f"Not measured: {', '.join(missing)}, which could turn it. {claim.reason}"
    return dataclasses.replace(claim, holds=None, reason=reason)


def decided(text: str, rule: str, holds: bool | None, numbers: str) -> Claim:
    """A claim about numbers as a whole."""
    return Claim(text, f"Rule: {rule}. Found: {numbers}.", holds=None if holds is None else bool(holds))


def untold(text: str, why: str) -> Claim:
    """A claim that this run cannot decide."""
    return Claim(text, f"{why[0].upper()}{why[1:]}.", holds=None)


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
    means = {label: average(of[label] for of in scores.values()) for label in next(iter(scores.values()))}
    numbers = f"{listed(means)} over {counted(len(scores), 'dataset')}"
    claim = decided(text, f"Its average at 1x expert is the highest {among}", highest(means) == best, numbers)
    return _counted(claim, {dataset: (highest(of) == best, listed(of)) for dataset, of in scores.items()})


def highest(scores: Mapping[str, float]) -> str:
    """What has the highest score."""
    return max(scores, key=scores.__getitem__)


def gained(
    text: str, covers: Collection[str], pairs: Mapping[str, tuple[float, float]], published: float
) -> Claim:
    """A claim that one method improves on another by some share on average: at least half of it must show."""
    rule = f"The gain in the average is at least half of the paper's {percent(published)}"

    def enough(ours: float, theirs: float) -> bool:
        return ours > theirs and ours - theirs >= published / 2 * abs(theirs)  # scores may be below zero

    def written(ours: float, theirs: float) -> str:
        return against(ours, theirs) + (f", {percent((ours - theirs) / theirs)}" if theirs > 0 else "")

    return on_average(text, rule, covers, pairs, enough, written)


def against(ours: float, theirs: float) -> str:
    """Two scores beside each other."""
    return f"{score(ours)} against {score(theirs)}"


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
