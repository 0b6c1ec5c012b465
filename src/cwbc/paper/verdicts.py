"""The claims of the paper, and how far the seeds decide them: rules are applied to resamples as well."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import numpy as np

from cwbc.results.evidence import Evidence
from cwbc.system.formatting import PERCENT, percent

RESAMPLES = 2000
DECIDED = 0.95  # of the resamples must agree with the observed scores for a verdict
VERDICTS = (
    "A claim is supported where its rule holds for the observed scores and in at least "
    f"{percent(DECIDED)} of {RESAMPLES:,} resamples of the seeds, contradicted where it fails in both, and "
    "otherwise inconclusive; the same goes for each dataset."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """Something that a rule decides for the observed scores and for every resample of the seeds."""

    holds: bool | None  # by its rule; None where that leaves it open
    holds_in: float | None = None  # the fraction of resamples in which it holds; None where there are none
    fails_in: float | None = None  # and in which it fails; the rest leave it open

    @property
    def verdict(self) -> Literal["supported", "contradicted", "inconclusive"]:
        """Supported or contradicted where the observed scores and nearly all resamples agree."""
        if self.holds is True and (self.holds_in or 0.0) >= DECIDED:
            return "supported"
        if self.holds is False and (self.fails_in or 0.0) >= DECIDED:
            return "contradicted"
        return "inconclusive"


@dataclasses.dataclass(frozen=True)
class Case(Judged):
    """A claim on one dataset."""

    dataset: str
    numbers: str

    @property
    def shown(self) -> str:
        """The numbers, and the fraction of resamples in which it holds where these do not decide."""
        is_open = self.holds_in is not None and self.verdict == "inconclusive"
        return f"{self.numbers}; holds in {_exact(self.holds_in or 0.0)}" if is_open else self.numbers


@dataclasses.dataclass(frozen=True)
class Claim(Judged):
    """A sentence of the paper that our run can contradict."""

    text: str  # what the paper says
    reason: str  # the rule that decides it, and the numbers; or why nothing does
    cases: Sequence[Case] = ()  # where it is judged on single datasets


def judged(claims: Callable[[Evidence], Sequence[Claim]], evidence: Evidence) -> list[Claim]:
    """The claims, and their cases, with the fractions of resamples in which they hold and fail.

    Claims that the data alone decides are not resampled. With a single seed there are no resamples.
    """
    generator = np.random.default_rng(0)  # fixed: the same scores get the same verdicts
    resampled = [claims(evidence.resampled(generator)) for _ in range(RESAMPLES if evidence.seeds > 1 else 0)]
    of_data = claims(dataclasses.replace(evidence, evaluated={}))
    found = []
    for claim, by_data, *again in zip(claims(evidence), of_data, *resampled, strict=True):
        is_certain = by_data.holds is not None or bool(by_data.cases)
        again = [claim] if is_certain else again
        cases = [
            _counted(case, [one.holds for each in again for one in each.cases if one.dataset == case.dataset])
            for case in claim.cases
        ]
        counted = _counted(dataclasses.replace(claim, cases=cases), [each.holds for each in again])
        words = "" if is_certain else _resampled_in_words(counted)
        found.append(dataclasses.replace(counted, reason=claim.reason + words))
    return found


_Judged = TypeVar("_Judged", bound=Judged)


def _counted(each: _Judged, outcomes: Sequence[bool | None]) -> _Judged:
    if not outcomes:
        return each
    holds_in, fails_in = (sum(one is wanted for one in outcomes) / len(outcomes) for wanted in (True, False))
    return dataclasses.replace(each, holds_in=holds_in, fails_in=fails_in)


def _resampled_in_words(claim: Claim) -> str:
    if claim.holds_in is None or claim.fails_in is None:
        return " One seed cannot decide it." if claim.holds is not None else ""
    if claim.holds_in + claim.fails_in == 0:
        return ""  # missing results, not the seeds, leave it open
    fails = f" and fails in {_exact(claim.fails_in)}" if claim.holds_in + claim.fails_in < 1 - 1e-9 else ""
    return f" Holds in {_exact(claim.holds_in)}{fails} of the resamples."


def _exact(fraction: float) -> str:
    """A fraction of the resamples in percent, with its decimals: 94.95 is less than 95."""
    return f"{100 * fraction:.2f}".rstrip("0").rstrip(".") + PERCENT
