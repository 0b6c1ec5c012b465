"""Figure 3: a transformer that cannot ignore the return, since it shares a token with the observation."""

from __future__ import annotations

import numpy as np

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import COLLAPSED, kept, on_datasets
from cwbc.evidence.measured import Evidence, Measured
from cwbc.evidence.naming import WALKERS
from cwbc.wording import percent

STRONG = 0.7


def claims(evidence: Evidence) -> list[Claim]:
    """Whether the architecture makes the difference."""
    concatenated = {dataset: each for dataset, (each,) in evidence.having("dt-concat").items()}
    scoring = {dataset: each for dataset, (each,) in evidence.keeping("dt-concat").items()}
    both = evidence.keeping("dt-concat", "dt")
    correlations = {dataset: correlation(each) for dataset, each in concatenated.items()}
    return [
        on_datasets(
            "The performance of DT-Concat is strongly correlated with the conditioning return.",
            f"Pearson's correlation of asked and achieved up to the data's best is at least {STRONG}",
            evidence.datasets,
            {dataset: (found >= STRONG, f"{found:.2f}") for dataset, found in correlations.items()},
        ),
        on_datasets(
            "The performance of DT-Concat degrades quickly when the target is out of distribution.",
            f"The score at 2x expert is below {percent(COLLAPSED)} of the best point of the curve",
            evidence.datasets,
            {dataset: (each.retention < COLLAPSED, kept(each)) for dataset, each in scoring.items()},
        ),
        on_datasets(
            "The reliability of DT comes from attention that can ignore return tokens.",
            "DT keeps a larger share of its best score at 2x expert than DT-Concat",
            evidence.datasets,
            {
                dataset: (dt.retention > concat.retention, f"{kept(dt)} against {kept(concat)}")
                for dataset, (concat, dt) in both.items()
            },
        ),
    ]


def findings(evidence: Evidence) -> Findings:
    """The curves, and whether the architecture makes the difference."""
    return Findings(
        claims(evidence), {"dt-concat": showing.landmark_table(evidence)}, showing.curves(evidence)
    )


def correlation(measured: Measured) -> float:
    """Pearson's, of the asked and the achieved returns up to the dataset's best; 0 for a level curve."""
    within = len(measured.curve) - len(measured.beyond)  # the targets ascend
    asked, achieved = measured.sweep.targets[:within], measured.curve[:within]
    if within < 2 or np.ptp(achieved) == 0:
        return 0.0
    return float(np.corrcoef(asked, achieved)[0, 1])


ITEM = Item(
    "dt-concat",
    "Figure 3",
    "DT against DT-Concat, whose observation and return share a token, on walker2d",
    WALKERS,
    WALKERS[:1],
    ("dt", "dt-concat"),
    claims,
    findings,
)
