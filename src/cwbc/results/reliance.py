"""Whether an estimated return may be relied on, without a simulator to confirm it.

The rule is written down in docs/offline.md, with how often it was right; a change here is a change there.
"""

from __future__ import annotations

import dataclasses
import math

from cwbc.results.evaluated import CurvePoint, EvaluatedMethod
from cwbc.system.formatting import amount, percent

APART = 0.2  # of the dataset's range of returns: estimates that differ by more disagree
LOST = 0.5  # of held-out returns above the dataset's min: a model that misses more does not reproduce them
SUPPORTED = 0.7  # of the steps: if fewer are like logged ones, of which 95 % are, the model leaves the data


@dataclasses.dataclass(frozen=True)
class Reliance:
    """What speaks against an estimate, and what else is known of it."""

    doubts: tuple[str, ...]  # sentences; with one, the estimate is not to be relied on
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, point: CurvePoint, method: EvaluatedMethod) -> Reliance:
        """What the second estimate, the support and the replays of held-out episodes say."""
        estimates, (target, (value, _, _), _) = method.estimates, point
        if not method.dataset.is_estimated:
            return cls((), ())
        if estimates is None or (known := estimates.at(target)) is None:
            return cls(("Nothing is known of the model's error: its second estimate is missing.",), ())
        dataset, doubts, remarks = method.dataset, list[str](), list[str]()
        room = APART * (dataset.best - dataset.lowest)
        if abs(known.fitted - value) > room:
            doubts.append(f"The two estimates disagree: fitted Q evaluation says {amount(known.fitted)}.")
        else:
            remarks.append(f"Fitted Q evaluation, a second estimate, says {amount(known.fitted)}.")
        if known.support < SUPPORTED:
            left = f"Only {percent(known.support)} of its steps are like logged ones"
            doubts.append(f"{left}: in the model, it leaves the data.")
        if estimates.replays is None:
            remarks.append("No held-out episodes were replayed in the model, so its error is unknown.")
            return cls(tuple(doubts), tuple(remarks))
        logged, replayed, _ = estimates.replays.near(value if math.isnan(target) else target)
        words = f"Held-out episodes with a mean return of {amount(logged)} have one of {amount(replayed)}"
        if abs(replayed - logged) > max(LOST * (logged - dataset.lowest), room):
            doubts.append(f"{words} in the model: it does not reproduce them.")
        else:
            remarks.append(f"{words} in the model.")
        return cls(tuple(doubts), tuple(remarks))
