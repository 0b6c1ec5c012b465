"""Figure 2: reliability of RvS and DT on the walker2d datasets, above their returns."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import (
    COLLAPSED,
    RELIABLE,
    Verdicts,
    decided,
    kept,
    on_datasets,
    unless_turned,
    untold,
)
from cwbc.evidence.measured import Evidence, Measured
from cwbc.evidence.naming import WALKERS, quality
from cwbc.wording import amount, percent

KEEPS = f"The score at 2x expert is at least {percent(RELIABLE)} of the best point of the curve"
SLACK = 0.05  # of retention, between medium and medium-expert, which the paper calls reliable both


def claims(evidence: Evidence) -> list[Claim]:
    """What the paper says about data and architecture."""
    rvs = {dataset: each for dataset, (each,) in evidence.having("rvs").items()}
    dt = {dataset: each for dataset, (each,) in evidence.having("dt").items()}
    scoring = {dataset: each for dataset, (each,) in evidence.keeping("rvs").items()}
    better = {dataset: each for dataset, each in rvs.items() if quality(dataset) != "medium-replay"}
    replay = {dataset: each for dataset, each in rvs.items() if quality(dataset) == "medium-replay"}
    return [
        on_datasets(
            "On medium and medium-expert, RvS is reliable when conditioned on out-of-distribution returns.",
            KEEPS,
            evidence.of_quality("medium", "medium-expert"),
            reliable(better),
        ),
        on_datasets(
            "On medium-replay, the performance of RvS drops quickly after a certain point.",
            f"The score at 2x expert is below {percent(COLLAPSED)} of the best point of the curve",
            evidence.of_quality("medium-replay"),
            drops(replay),
        ),
        on_datasets(
            "Unlike RvS, DT performs reliably in all three datasets.", KEEPS, evidence.datasets, reliable(dt)
        ),
        unless_turned(_by_quality(scoring), evidence.missing(scoring), True),
        unless_turned(_low_returns({**rvs, **dt}), evidence.missing({**rvs, **dt}), True),
    ]


def findings(evidence: Evidence) -> Findings:
    """The curves, and what the paper says about data and architecture."""
    return Findings(
        claims(evidence), {"reliability": showing.landmark_table(evidence)}, showing.curves(evidence)
    )


def reliable(found: Mapping[str, Measured]) -> Verdicts:
    """Where a method keeps its score; nothing where it has none above 0."""
    return {
        name: (each.retention >= RELIABLE, kept(each))
        for name, each in found.items()
        if math.isfinite(each.retention)
    }


def drops(found: Mapping[str, Measured]) -> Verdicts:
    """Where a method loses it; nothing where it had none above 0."""
    return {
        name: (each.retention < COLLAPSED, kept(each))
        for name, each in found.items()
        if math.isfinite(each.retention)
    }


def _by_quality(rvs: dict[str, Measured]) -> Claim:
    text = "Reliability decreases with the quality of the data, from medium-expert to medium-replay."
    found = {quality(dataset): each.retention for dataset, each in rvs.items()}
    replay = found.pop("medium-replay", None)
    if replay is None or not found:
        return untold(text, "it takes medium-replay and others")
    ordered = found.get("medium", 0.0) <= found.get("medium-expert", math.inf) + SLACK
    numbers = "; ".join(f"{dataset}: {kept(each)}" for dataset, each in rvs.items())
    rule = (
        "RvS keeps a smaller share of its best score on medium-replay than on the others, and on medium no "
        f"more than on medium-expert plus {100 * SLACK:g} percentage points"
    )
    return decided(text, rule, replay < min(found.values()) and ordered, numbers)


def _low_returns(found: dict[str, Measured]) -> Claim:
    text = "The medium-replay dataset has the lowest quality: most of its trajectories have low returns."
    means = {dataset: each.dataset.mean_return for dataset, each in found.items()}
    low = {dataset: low_share(each) for dataset, each in found.items() if quality(dataset) == "medium-replay"}
    if not low or len(means) < 2:
        return untold(text, "it takes medium-replay and others")
    (name, share), *_ = low.items()
    numbers = f"{percent(share)} of {name}; mean returns " + ", ".join(
        f"{dataset} {amount(mean)}" for dataset, mean in means.items()
    )
    rule = "Its mean return is the lowest, and most episodes lie in the lower half of the range of returns"
    return decided(text, rule, means[name] == min(means.values()) and share > 0.5, numbers)


def low_share(measured: Measured) -> float:
    """The share of the dataset's episodes whose returns lie in the lower half of their range."""
    counts = np.array(measured.dataset.histogram_counts)
    edges = np.array(measured.dataset.histogram_edges)
    middles = (edges[1:] + edges[:-1]) / 2
    return float(counts[middles < (edges[0] + edges[-1]) / 2].sum() / counts.sum())


ITEM = Item(
    "reliability",
    "Figure 2",
    "achieved against asked return of RvS and DT on walker2d, above the data's returns",
    WALKERS,
    WALKERS,
    ("rvs", "dt"),
    claims,
    findings,
)
