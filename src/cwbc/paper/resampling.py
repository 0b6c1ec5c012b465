"""How far the seeds decide a claim: its rule is applied to resamples of the seeds as well."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from cwbc.paper.item import DECIDED, Claim, Judged
from cwbc.results.evidence import Evidence
from cwbc.system.formatting import PERCENT, percent

_Judged = TypeVar("_Judged", bound=Judged)

RESAMPLES = 2000
RULE = (
    "A claim is supported where its rule holds for the observed scores and in at least "
    f"{percent(DECIDED)} of {RESAMPLES:,} resamples of the seeds, contradicted where it fails in both, and "
    "otherwise inconclusive; the same goes for each dataset."
)


def judged(claims: Callable[[Evidence], Sequence[Claim]], evidence: Evidence) -> list[Claim]:
    """The claims, and their cases, with the fractions of resamples in which they hold and fail.

    Claims that the data alone decides are not resampled. With a single seed there are no resamples.
    """
    of_data = claims(dataclasses.replace(evidence, evaluated={}))
    generator = np.random.default_rng(0)  # fixed: the same scores get the same verdicts
    resampled = [claims(evidence.resampled(generator)) for _ in range(RESAMPLES if evidence.seeds > 1 else 0)]
    found = []
    for number, claim in enumerate(claims(evidence)):
        is_certain = bool(of_data[number].cases) or of_data[number].holds is not None
        again = [claim] if is_certain else [each[number] for each in resampled]
        cases = [
            _counted(case, [one.holds for each in again for one in each.cases if one.dataset == case.dataset])
            for case in claim.cases
        ]
        counted = _counted(dataclasses.replace(claim, cases=cases), [each.holds for each in again])
        words = "" if is_certain else _in_words(counted)
        found.append(dataclasses.replace(counted, reason=claim.reason + words))
    return found


def _counted(each: _Judged, outcomes: Sequence[bool | None]) -> _Judged:
    if not outcomes:
        return each
    holds_in, fails_in = (sum(one is wanted for one in outcomes) / len(outcomes) for wanted in (True, False))
    return dataclasses.replace(each, holds_in=holds_in, fails_in=fails_in)


def _in_words(claim: Claim) -> str:
    if claim.holds_in is None or claim.fails_in is None:
        return " One seed cannot decide it." if claim.holds is not None else ""
    if claim.holds_in + claim.fails_in == 0:
        return ""  # missing results, not the seeds, leave it open
    fails = f" and fails in {exact(claim.fails_in)}" if claim.holds_in + claim.fails_in < 1 - 1e-9 else ""
    return f" Holds in {exact(claim.holds_in)}{fails} of the resamples."


def exact(fraction: float) -> str:
    """A fraction of the resamples in percent, with its decimals: 94.95 is less than 95."""
    return f"{100 * fraction:.2f}".rstrip("0").rstrip(".") + PERCENT
