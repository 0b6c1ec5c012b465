"""The rules that decide claims: each is on numbers that can come out either way.

A test finds the results that a claim is about, and decides it. Where missing datasets could change the
outcome, the claim is left open.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import fmean
from typing import Any

from cwbc.paper.published import REPLAYS
from cwbc.paper.verdicts import Case, Claim
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
Holds = Callable[[Mapping[str, float]], bool]  # of one number of each method
Decide = Callable[[Claim, Results, Evidence], Claim]
Test = Callable[[Claim, Evidence], Claim]
Rule = tuple[str, Test]  # in words, as reports print it, and as a test
at_expert, at_best, retention = map(operator.attrgetter, ("at_expert", "at_best", "retention"))


def on_results(
    decide: Decide,
    methods: Collection[str],
    among: Collection[str] | None = None,
    where: Callable[[EvaluatedMethod], bool] = lambda curve: True,
) -> Test:
    """A test that finds the results which a claim is about; `decide` gets those on one dataset at least.

    Args:
        methods: those that it compares; without any, the trajectories decide.
        among: the datasets that the claim is about; None: all.
        where: curves for which it is false count as missing.
    """

    def test(claim: Claim, evidence: Evidence) -> Claim:
        found: Results = evidence.data
        if methods:
            curves = evidence.having(*methods)
            found = {name: of for name, of in curves.items() if all(map(where, of.values()))}
        results = {name: of for name, of in found.items() if among is None or name in among}
        if not results:
            return dataclasses.replace(claim, reason="No dataset has all results that it compares.")
        covered = [name for name in evidence.datasets if among is None or name in among]
        return decide(claim, results, dataclasses.replace(evidence, datasets=covered))

    return test


def has_retention(curve: EvaluatedMethod) -> bool:
    """Whether the OOD retention is defined: it is not where no score is clearly above 0."""
    return math.isfinite(curve.retention)


_RETENTION = "OOD retention (score at 2x expert / best point of the curve) is"


def retains(method: str, **about: Any) -> Rule:
    """The rule that a method is reliable on out-of-distribution targets."""
    test = on_each(is_reliable, [method], where=has_retention, **about)
    return f"{_RETENTION} at least {percent(RELIABLE)}", test


def collapses(method: str, **about: Any) -> Rule:
    """The rule that a method collapses on out-of-distribution targets."""
    test = on_each(is_collapsed, [method], where=has_retention, **about)
    return f"{_RETENTION} below {percent(COLLAPSED)}", test


def gains(methods: Sequence[str], published: float, value: Value = at_expert, **about: Any) -> Rule:
    """The rule that one method improves on another by half of the published fraction on average."""

    def holds(scores: Mapping[str, float]) -> bool:
        ours, theirs = scores.values()  # which may be below zero
        return ours > theirs and ours - theirs >= published / 2 * abs(theirs)

    def written(scores: Mapping[str, float]) -> str:
        ours, theirs = scores.values()
        gain = f", {percent((ours - theirs) / theirs)}" if theirs > 0 else ""
        return f"{score(ours)} against {score(theirs)}{gain}"

    words = f"The gain in the average is at least half of the paper's {percent(published)}"
    return words, on_results(average(Comparison(holds, written, value)), methods, **about)


def untested(why: str) -> Rule:
    """No rule: the claim is open whatever the results."""
    return "", lambda claim, evidence: dataclasses.replace(claim, reason=why)


def is_reliable(curves: Curves) -> Found:
    """Whether the first method is reliable on out-of-distribution targets."""
    curve, *_ = curves.values()
    return curve.retention >= RELIABLE, " against ".join(map(retention_in_words, curves.values()))


def is_collapsed(curves: Curves) -> Found:
    """Whether the one method collapses on out-of-distribution targets."""
    (curve,) = curves.values()
    return curve.retention < COLLAPSED, retention_in_words(curve)


def highest(scores: Mapping[str, float]) -> str:
    """The label with the highest score."""
    return max(scores, key=scores.__getitem__)


def listed(scores: Mapping[str, float]) -> str:
    """Scores with their labels."""
    return ", ".join(f"{label} {score(found)}" for label, found in scores.items())


def retention_in_words(curve: EvaluatedMethod) -> str:
    """An OOD retention and the best point that it is a fraction of."""
    return f"{percent(curve.retention)} of {score(curve.top)}"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A rule on one number of each method, by default its score at 1x expert, or on averages of these."""

    holds: Holds
    written: Callable[[Mapping[str, float]], str] = listed
    value: Value = at_expert

    def __call__(self, curves: Curves) -> Found:
        return self.on_average({"": curves})

    def on_average(self, results: Results) -> Found:
        """Whether the rule holds for the means over datasets."""
        methods = next(iter(results.values()))
        means = {name: fmean(self.value(curves[name]) for curves in results.values()) for name in methods}
        return self.holds(means), self.written(means)


def pair(
    holds: Callable[[float, float], bool], value: Value = at_expert, written: Callable[[float], str] = score
) -> Comparison:
    """A rule on a number of two methods."""
    return Comparison(
        lambda of: holds(*of.values()), lambda of: " against ".join(map(written, of.values())), value
    )


def on_each(
    case: Callable[[Any], Found],
    methods: Collection[str] = (),
    fraction: float = 1.0,
    ahead: Comparison | None = None,
    **about: Any,
) -> Test:
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
        holds, numbers = ahead.on_average(results)
        reason = f"{claim.reason} On average {numbers}."
        return dataclasses.replace(claim, holds=claim.holds and holds, reason=reason)

    return on_results(decide, methods, **about)


def average(case: Comparison) -> Decide:
    """A claim that averages over all datasets decide; the datasets one by one are shown beside it."""

    def decide(claim: Claim, results: Results, evidence: Evidence) -> Claim:
        holds, numbers = case.on_average(results)
        claim = dataclasses.replace(claim, cases=_cases({name: case(of) for name, of in results.items()}))
        by_dataset = f"holds on {sum(each.holds is True for each in claim.cases)} of {len(results)}"
        numbers = f"{numbers} on average over {counted(len(results), 'dataset')}. By dataset, {by_dataset}"
        return decided(claim, holds, numbers, evidence.missing(results))

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


def decided(
    claim: Claim, holds: bool | None, numbers: str, missing: Collection[str] = (), turned: bool | None = None
) -> Claim:
    """The claim as numbers decide it, left open if missing datasets could turn this outcome (`turned`)."""
    reason = f"{claim.reason} Found: {numbers}."
    if missing and holds is not None and turned in (None, holds):
        reason = f"Missing: {', '.join(missing)}, which could change the outcome. {reason}"
        holds = None
    return dataclasses.replace(claim, holds=holds, reason=reason)


def against_replay(case: Callable[[str, Results], Found], methods: Collection[str], **about: Any) -> Test:
    """A claim that compares medium-replay with other datasets; where it holds, missing ones could turn it."""

    def decide(claim: Claim, results: Results, evidence: Evidence) -> Claim:
        replays = [dataset for dataset in results if dataset in REPLAYS]
        if not replays or len(results) == 1:
            return dataclasses.replace(claim, reason="It needs medium-replay and others.")
        return decided(claim, *case(replays[0], results), evidence.missing(results), turned=True)

    return on_results(decide, methods, **about)


def _cases(found: Mapping[str, Found]) -> list[Case]:
    return [Case(dataset, numbers, holds=holds) for dataset, (holds, numbers) in found.items()]


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
