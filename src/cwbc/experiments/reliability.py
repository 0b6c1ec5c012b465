"""Figure 2: reliability of RvS and DT on the walker2d datasets, above their returns."""

from __future__ import annotations

import numpy as np

from cwbc.experiments import showing
from cwbc.experiments.evidence import Evidence, Measured
from cwbc.experiments.item import Claim, Findings, Item
from cwbc.experiments.judging import COLLAPSED, RELIABLE, decided, kept, on_datasets, untold
from cwbc.experiments.naming import WALKERS, quality
from cwbc.wording import amount, percent


def findings(evidence: Evidence) -> Findings:
    """The curves, and what the paper says about data and architecture."""
    rvs = {dataset: each for dataset, (each,) in evidence.having("rvs").items()}
    dt = {dataset: each for dataset, (each,) in evidence.having("dt").items()}
    better = {dataset: each for dataset, each in rvs.items() if quality(dataset) != "medium-replay"}
    replay = {dataset: each for dataset, each in rvs.items() if quality(dataset) == "medium-replay"}
    reliable = f"The score at 2x expert is at least {percent(RELIABLE)} of the best point of the curve"
    claims = [
        on_datasets(
            "On medium and medium-expert, RvS is reliable when conditioned on out-of-distribution returns.",
            reliable,
            _reliable(better),
        ),
        on_datasets(
            "On medium-replay, the performance of RvS drops quickly after a certain point.",
            f"The score at 2x expert is below {percent(COLLAPSED)} of the best point of the curve",
            {dataset: (each.retention < COLLAPSED, kept(each)) for dataset, each in replay.items()},
        ),
        on_datasets("Unlike RvS, DT performs reliably in all three datasets.", reliable, _reliable(dt)),
        _by_quality(rvs),
        _low_returns({**rvs, **dt}),
    ]
    return Findings(claims, {"reliability": showing.landmark_table(evidence)}, showing.curves(evidence))


def _reliable(found: dict[str, Measured]) -> dict[str, tuple[bool, str]]:
    return {dataset: (each.retention >= RELIABLE, kept(each)) for dataset, each in found.items()}


def _by_quality(rvs: dict[str, Measured]) -> Claim:
    text = "Reliability decreases with the quality of the data, from medium-expert to medium-replay."
    replay = [each.retention for dataset, each in rvs.items() if quality(dataset) == "medium-replay"]
    others = [each.retention for dataset, each in rvs.items() if quality(dataset) != "medium-replay"]
    if not replay or not others:
        return untold(text, "it takes medium-replay and others")
    numbers = "; ".join(f"{dataset}: {kept(each)}" for dataset, each in rvs.items())
    return decided(
        text, "RvS keeps less on medium-replay than on the others", max(replay) < min(others), numbers
    )


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
    findings,
)
