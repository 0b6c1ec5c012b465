"""How far the seeds decide a claim: its rule, applied again to what other seeds might have shown."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from cwbc.evidence.item import DECIDED, Case, Claim
from cwbc.evidence.measured import Evidence
from cwbc.wording import PERCENT, percent

RESAMPLES = 2000
RULE = (
    "A claim is supported where its rule holds for the observed scores and in at least "
    f"{percent(DECIDED)} of {RESAMPLES:,} resamples of the seeds, contradicted where it fails in both, and "
    "otherwise inconclusive; the same goes for each dataset."
)


def judged(claims: Callable[[Evidence], Sequence[Claim]], evidence: Evidence) -> list[Claim]:
    """The claims, and their cases, with the fractions of resamples in which they hold and fail.

    What the data alone decides is left to no chance. What one seed showed may all be chance: no resamples.
    """
    of_data = claims(dataclasses.replace(evidence, measured={}))
    generator = np.random.default_rng(0)  # the same for all: the same scores get the same verdicts
    drawn = [claims(evidence.resampled(generator)) for _ in range(RESAMPLES if evidence.seeds > 1 else 0)]
    found = []
    for number, claim in enumerate(claims(evidence)):
        if of_data[number].cases or of_data[number].holds is not None:
            found.append(_counted(claim, [claim]))
            continue
        again = _counted(claim, [each[number] for each in drawn])
        found.append(dataclasses.replace(again, reason=f"{again.reason}{_in_words(again)}"))
    return found


def _counted(claim: Claim, resamples: Sequence[Claim]) -> Claim:
    by_dataset: dict[str, list[bool | None]] = collections.defaultdict(list)
    for each in resamples:
        for case in each.cases:
            by_dataset[case.dataset].append(case.holds)
    return dataclasses.replace(
        claim,
        holds_in=_fraction([each.holds for each in resamples], True),
        fails_in=_fraction([each.holds for each in resamples], False),
        cases=[_case(case, by_dataset[case.dataset]) for case in claim.cases],
    )


def _case(case: Case, holds: Sequence[bool | None]) -> Case:
    return dataclasses.replace(case, holds_in=_fraction(holds, True), fails_in=_fraction(holds, False))


def _fraction(outcomes: Sequence[bool | None], wanted: bool) -> float | None:
    return sum(each is wanted for each in outcomes) / len(outcomes) if outcomes else None


def _in_words(claim: Claim) -> str:
    if claim.holds is None and not claim.cases:
        return ""  # nothing was tested
    if claim.holds_in is None or claim.fails_in is None:
        return " One seed cannot decide it."
    fails = f" and fails in {exact(claim.fails_in)}" if claim.holds_in + claim.fails_in < 1 else ""
    return f" Holds in {exact(claim.holds_in)}{fails} of the resamples."


def exact(fraction: float) -> str:
    """A fraction of the resamples in percent, not rounded: 94.95 is less than 95."""
    return f"{100 * fraction:.2f}".rstrip("0").rstrip(".") + PERCENT
