"""Claims as values: a sentence of the paper, and a rule on numbers that can come out either way.

A `Rule` finds the results that its claim is about; `each`, `average` and `across` decide it. Where
missing datasets could change the outcome, the claim is left open.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import fmean
from typing import Any

from cwbc.paper.item import Case, Claim
from cwbc.paper.naming import quality
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.evidence import Evidence
from cwbc.system.formatting import counted, percent, score

RELIABLE = 0.8  # OOD retention, at least
COLLAPSED = 0.5  # OOD retention, below
COMPARABLE = 0.95  # of another method's score, to be comparable
WELL = 0.9  # of the best score, to perform well
SIMILAR = 10.0  # points between the max and the min score
STEP = 0.02  # tolerance against the claimed direction, from one value to the next

Found = tuple[bool | None, str]  # whether a claim holds, None where that is open; the numbers
Results = Mapping[str, Any]  # by dataset: the curves by method, or the trajectories
Curves = Mapping[str, EvaluatedMethod]  # by method
Value = Callable[[EvaluatedMethod], float]
Decide = Callable[[Claim, Results, Evidence], Claim]
at_expert, at_best, retention = map(operator.attrgetter, ("at_expert", "at_best", "retention"))


@dataclasses.dataclass(frozen=True)
class Rule:
    """A claim with the rule that decides it.

    Args:
        words: the rule, as reports print it.
        methods: those that it compares; without any, the trajectories decide.
        decide: the rule.
        among: the datasets that the claim is about.
        where: curves for which it is false count as missing.
    """

    text: str
    words: str
    methods: Sequence[str]
    decide: Decide
    among: Callable[[str], bool] = lambda dataset: True
    where: Callable[[EvaluatedMethod], bool] = lambda curve: True

    def __call__(self, evidence: Evidence) -> Claim:
        found: Results = evidence.data
        if self.methods:
            curves = evidence.having(*self.methods).items()
            complete = {dataset: of for dataset, of in curves if all(map(self.where, of))}
            found = {name: dict(zip(self.methods, of, strict=True)) for name, of in complete.items()}
        claim = Claim(self.text, f"Rule: {self.words}.", holds=None)
        results = {dataset: of for dataset, of in found.items() if self.among(dataset)}
        if not results:
            return inconclusive(claim, "no dataset has all results that it compares")
        covered = [dataset for dataset in evidence.datasets if self.among(dataset)]
        return self.decide(claim, results, dataclasses.replace(evidence, datasets=covered))


def of_quality(*kinds: str) -> Callable[[str], bool]:
    """Whether a dataset is of one of these kinds, such as medium-replay."""
    return lambda dataset: quality(dataset) in kinds


def has_retention(curve: EvaluatedMethod) -> bool:
    """Whether the OOD retention is defined: it is not where no score is clearly above 0."""
    return math.isfinite(curve.retention)


def retains(text: str, method: str, **about: Any) -> Rule:
    """A claim that a method is reliable on out-of-distribution targets."""
    words = f"OOD retention (score at 2x expert / best point of the curve) is at least {percent(RELIABLE)}"
    return Rule(text, words, [method], each(is_reliable), where=has_retention, **about)


def collapses(text: str, method: str, fraction: float = 1.0, **about: Any) -> Rule:
    """A claim that a method collapses on out-of-distribution targets."""
    words = f"OOD retention (score at 2x expert / best point of the curve) is below {percent(COLLAPSED)}"
    return Rule(text, words, [method], each(is_collapsed, fraction), where=has_retention, **about)


def is_reliable(curves: Curves) -> Found:
    """Whether the first method is reliable on out-of-distribution targets."""
    curve, *_ = curves.values()
    return curve.retention >= RELIABLE, " against ".join(map(retention_in_words, curves.values()))


def is_collapsed(curves: Curves) -> Found:
    """Whether the one method collapses on out-of-distribution targets."""
    (curve,) = curves.values()
    return curve.retention < COLLAPSED, retention_in_words(curve)


def each(case: Callable[[Any], Found], fraction: float = 1.0, ahead: Comparison | None = None) -> Decide:
    """A claim that holds where enough datasets support it.

    Args:
        case: decides for one dataset, from its curves by method or from its trajectories.
        fraction: of the datasets, on which it has to hold; 0 takes a single one.
        ahead: numbers whose averages have to fulfil their rule as well.
    """

    def decide(claim: Claim, results: Results, evidence: Evidence) -> Claim:
        found = {dataset: case(of) for dataset, of in results.items()}
        claim = on_datasets(claim, found, evidence.datasets, fraction)
        if ahead is None:
            return claim
        holds, numbers = ahead.judged(ahead.averages(results))
        reason = f"{claim.reason} On average {numbers}."
        return dataclasses.replace(claim, holds=claim.holds and holds, reason=reason)

    return decide


def average(rule: Comparison) -> Decide:
    """A claim that averages over all datasets decide; the datasets one by one are shown beside it."""

    def decide(claim: Claim, results: Results, evidence: Evidence) -> Claim:
        holds, numbers = rule.judged(rule.averages(results))
        claim = decided(claim, holds, f"{numbers} on average over {counted(len(results), 'dataset')}")
        cases = _cases({dataset: rule(of) for dataset, of in results.items()})
        holding = sum(case.holds is True for case in cases)
        reason = f"{claim.reason} By dataset, holds on {holding} of {len(cases)}."
        claim = dataclasses.replace(claim, reason=reason, cases=cases)
        return unless_turned(claim, evidence.missing(results))

    return decide


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A rule on one number of each method, which decides for single datasets and for averages."""

    holds: Callable[[Mapping[str, float]], bool]
    written: Callable[[Mapping[str, float]], str]
    value: Value

    def __call__(self, curves: Curves) -> Found:
        return self.judged({method: self.value(curve) for method, curve in curves.items()})

    def averages(self, results: Results) -> dict[str, float]:
        """The mean over datasets, by method."""
        methods = next(iter(results.values()))
        return {name: fmean(self.value(curves[name]) for curves in results.values()) for name in methods}

    def judged(self, numbers: Mapping[str, float]) -> Found:
        """Whether the rule holds for these numbers."""
        return self.holds(numbers), self.written(numbers)


def pair(
    holds: Callable[[float, float], bool], value: Value = at_expert, written: Callable[[float], str] = score
) -> Comparison:
    """A rule on a number of two methods."""
    return Comparison(
        lambda of: holds(*of.values()), lambda of: " against ".join(map(written, of.values())), value
    )


def scores(holds: Callable[[Mapping[str, float]], bool]) -> Comparison:
    """A rule on the scores of several methods at 1x expert."""
    return Comparison(holds, listed, at_expert)


def best(method: str) -> Comparison:
    """The rule that a method has the highest score at 1x expert."""
    return scores(lambda of: highest(of) == method)


def gains(text: str, methods: Sequence[str], published: float, **about: Any) -> Rule:
    """A claim that one method improves on another by a fraction on average: at least half of it must show."""

    def holds(scores: Mapping[str, float]) -> bool:
        ours, theirs = scores.values()
        return ours > theirs and ours - theirs >= published / 2 * abs(theirs)  # scores may be below zero

    def written(scores: Mapping[str, float]) -> str:
        ours, theirs = scores.values()
        return against(ours, theirs) + (f", {percent((ours - theirs) / theirs)}" if theirs > 0 else "")

    words = f"The gain in the average is at least half of the paper's {percent(published)}"
    return Rule(text, words, methods, average(Comparison(holds, written, at_expert)), **about)


def across(case: Callable[[Mapping[str, Curves]], Found | None], needs: str, turned: bool) -> Decide:
    """A claim that compares datasets with each other.

    Args:
        case: decides from the curves by dataset and method; None where these are not what it `needs`.
        turned: the outcome that missing datasets could change.
    """

    def decide(claim: Claim, results: Results, evidence: Evidence) -> Claim:
        if (found := case(results)) is None:
            return inconclusive(claim, f"it needs {needs}")
        return unless_turned(decided(claim, *found), evidence.missing(results), turned)

    return decide


def on_datasets(
    claim: Claim, found: Mapping[str, Found], covers: Collection[str], fraction: float = 1.0
) -> Claim:
    """The claim as datasets decide it; open and missing ones leave it open where they could change it."""
    cases, count = _cases(found), len({*covers, *found})
    needed = max(1, math.ceil(fraction * count - 1e-9))  # 7 / 25 * 25 is above 7
    holding, failing = (sum(case.holds is wanted for case in cases) for wanted in (True, False))
    missing = count - len(cases)
    rest = f", {missing} missing" if missing else ""
    reason = f"{claim.reason} Holds on {holding} of {count}{rest}, needs {needed}."
    if missing and holding < needed <= count - failing:
        reason = f"Results for only {len(cases)} of its {count} datasets; the others decide. {reason}"
    holds = True if holding >= needed else False if count - failing < needed else None
    return dataclasses.replace(claim, reason=reason, cases=cases, holds=holds)


def decided(claim: Claim, holds: bool | None, numbers: str) -> Claim:
    """The claim as numbers decide it as a whole."""
    return dataclasses.replace(claim, holds=_plain(holds), reason=f"{claim.reason} Found: {numbers}.")


def inconclusive(claim: Claim, why: str) -> Claim:
    """The claim if this run cannot decide it."""
    return dataclasses.replace(claim, reason=f"{why[0].upper()}{why[1:]}.")


def unless_turned(claim: Claim, missing: Collection[str], turned: bool | None = None) -> Claim:
    """The claim, left open if its outcome is one that missing datasets could change; None: any outcome."""
    if not missing or claim.holds is None or turned not in (None, claim.holds):
        return claim
    reason = f"Missing: {', '.join(missing)}, which could change the outcome. {claim.reason}"
    return dataclasses.replace(claim, holds=None, reason=reason)


def _cases(found: Mapping[str, Found]) -> list[Case]:
    return [Case(dataset, numbers, holds=_plain(holds)) for dataset, (holds, numbers) in found.items()]


def _plain(holds: bool | None) -> bool | None:
    return None if holds is None else bool(holds)  # NumPy's are no JSON


def comparable(ours: float, theirs: float, fraction: float = COMPARABLE) -> bool:
    """Whether a score reaches a fraction of another; of one below zero it must reach all."""
    return ours >= (fraction * theirs if theirs > 0 else theirs)


def well(scores: Collection[float], best: float) -> bool:
    """Whether all scores are good compared with the best one."""
    return comparable(min(scores), best, WELL)


def similar(scores: Collection[float]) -> bool:
    """Whether scores are close to each other."""
    return max(scores) - min(scores) <= SIMILAR


def rises(values: Sequence[float]) -> bool:
    """Whether values never fall from one to the next by more than the tolerance."""
    return all(later >= earlier - STEP for earlier, later in itertools.pairwise(values))


def highest(scores: Mapping[str, float]) -> str:
    """The label with the highest score."""
    return max(scores, key=scores.__getitem__)


def listed(scores: Mapping[str, float]) -> str:
    """Scores with their labels."""
    return ", ".join(f"{label} {score(found)}" for label, found in scores.items())


def against(ours: float, theirs: float) -> str:
    """Two scores beside each other."""
    return f"{score(ours)} against {score(theirs)}"


def retention_in_words(curve: EvaluatedMethod) -> str:
    """An OOD retention and the best point that it is a fraction of."""
    return f"{percent(curve.retention)} of {score(curve.top)}"
