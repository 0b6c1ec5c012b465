"""Figure 5: what trajectory weighting does to RvS alone, and together with the regularizer."""

from __future__ import annotations

from cwbc.experiments import showing
from cwbc.experiments.evidence import Evidence
from cwbc.experiments.item import Claim, Findings, Item
from cwbc.experiments.judging import COLLAPSED, RELIABLE, kept, on_datasets, untold
from cwbc.experiments.naming import WALKERS, quality
from cwbc.wording import percent, score


def findings(evidence: Evidence) -> Findings:
    """The curves, and what each component is said to do."""
    weighted = {dataset: each for dataset, (each,) in evidence.having("rvs+w").items()}
    whole = {dataset: each for dataset, (each,) in evidence.having("rvs+cwbc").items()}
    both = evidence.having("rvs+cwbc", "rvs")
    claims = [
        _weighting(evidence),
        on_datasets(
            "Weighting alone is not reliable: performance still degrades after the data's best return.",
            f"RvS+W at 2x expert scores below {percent(COLLAPSED)} of its best point on one dataset at least",
            {dataset: (each.retention < COLLAPSED, kept(each)) for dataset, each in weighted.items()},
            1e-6,
        ),
        on_datasets(
            "RvS+CWBC performs better than RvS when conditioned on high returns.",
            "RvS+CWBC scores higher at 1x expert",
            {
                dataset: (
                    cwbc.at_expert > rvs.at_expert,
                    f"{score(cwbc.at_expert)} against {score(rvs.at_expert)}",
                )
                for dataset, (cwbc, rvs) in both.items()
            },
        ),
        on_datasets(
            "RvS+CWBC is more reliable than RvS on out-of-distribution returns.",
            f"It keeps more of its best score at 2x expert than RvS, and at least {percent(RELIABLE)}",
            {
                dataset: (
                    cwbc.retention > rvs.retention and cwbc.retention >= RELIABLE,
                    f"{kept(cwbc)} against {kept(rvs)}",
                )
                for dataset, (cwbc, rvs) in both.items()
            },
        ),
        on_datasets(
            "RvS+CWBC avoids the performance crash.",
            f"Beyond the data's best its score never falls below {percent(COLLAPSED)} of its best point",
            {
                dataset: (
                    bool(each.beyond.min() >= COLLAPSED * each.top),
                    f"lowest {score(float(each.beyond.min()))} of {score(each.top)}",
                )
                for dataset, each in whole.items()
                if len(each.beyond)
            },
        ),
    ]
    return Findings(claims, {"components": showing.landmark_table(evidence)}, showing.curves(evidence))


def _weighting(evidence: Evidence) -> Claim:
    text = "Weighting improves RvS when conditioned on high returns, especially on medium-replay."
    both = evidence.having("rvs+w", "rvs")
    gains = {dataset: weighted.at_best - rvs.at_best for dataset, (weighted, rvs) in both.items()}
    replay = [gain for dataset, gain in gains.items() if quality(dataset) == "medium-replay"]
    if not replay or len(gains) < 2:
        return untold(text, "it takes medium-replay and others")
    numbers = ", ".join(f"{dataset} {score(gain)}" for dataset, gain in gains.items())
    rule = "Asked for the data's best return, RvS+W gains on medium-replay, and more than on the others"
    holds = replay[0] > 0 and replay[0] == max(gains.values())
    return Claim(text, holds, f"{rule}. Points gained: {numbers}")


ITEM = Item(
    "components",
    "Figure 5",
    "RvS, RvS+W and RvS+CWBC at every asked return on walker2d",
    WALKERS,
    WALKERS,
    ("rvs", "rvs+w", "rvs+cwbc"),
    findings,
)
