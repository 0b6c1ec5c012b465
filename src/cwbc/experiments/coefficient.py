"""Figure 10: alpha, the weight of the conservative loss."""

from __future__ import annotations

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import (
    COLLAPSED,
    COMPARABLE,
    WELL,
    at_least,
    comparable,
    kept,
    on_datasets,
    well,
)
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import WALKERS
from cwbc.grids.cells import Variant
from cwbc.wording import percent, score

VALUES = (0, 0.01, 0.1, 1, 10)  # the paper's list between 0 and 10 is in its picture alone
LABELS = tuple(f"alpha = {value}" for value in VALUES)
MODERATE = LABELS[1:-1]
MOST = 2 / 3  # of the datasets


def claims(evidence: Evidence) -> list[Claim]:
    """How much conservatism is enough."""
    found = {
        dataset: dict(zip(LABELS, methods, strict=True))
        for dataset, methods in evidence.having(*LABELS).items()
    }
    return [
        on_datasets(
            "Without regularization (alpha = 0) performance crashes.",
            f"It keeps less than {percent(COLLAPSED)} of its best score at 2x expert on two thirds of them",
            evidence.datasets,
            {
                dataset: (of["alpha = 0"].retention < COLLAPSED, kept(of["alpha = 0"]))
                for dataset, of in found.items()
                if of["alpha = 0"].top > 0
            },
            at_least(MOST, evidence.datasets),
        ),
        on_datasets(
            "Overly aggressive regularization (alpha = 10) hurts performance, too.",
            f"alpha = 10 scores below {percent(COMPARABLE)} of alpha = 1 at 1x expert on two thirds of them",
            evidence.datasets,
            {
                dataset: (
                    not comparable(of["alpha = 10"].at_expert, of["alpha = 1"].at_expert),
                    f"{score(of['alpha = 10'].at_expert)} against {score(of['alpha = 1'].at_expert)}",
                )
                for dataset, of in found.items()
            },
            at_least(MOST, evidence.datasets),
        ),
        on_datasets(
            "CWBC is robust to the other, non-extreme values of alpha.",
            f"At 1x expert, {', '.join(MODERATE)} each score at least {percent(WELL)} of the best of them",
            evidence.datasets,
            {
                dataset: (well(scores, max(scores)), ", ".join(map(score, scores)))
                for dataset, of in found.items()
                if (scores := [of[label].at_expert for label in MODERATE])
            },
        ),
    ]


def findings(evidence: Evidence) -> Findings:
    """The curves, and how much conservatism is enough."""
    table = showing.expert_table(evidence, evidence.labels)
    return Findings(claims(evidence), {"alpha": table}, showing.curves(evidence))


ITEM = Item(
    "alpha",
    "Figure 10",
    "CWBC with the conservative loss weighted by alpha = 0, 0.01, 0.1, 1, 10 on walker2d",
    WALKERS,
    WALKERS[:1],
    tuple(Variant(f"alpha = {value}", "rvs+cwbc", {"coefficient": float(value)}) for value in VALUES),
    claims,
    findings,
)
