"""Figure 5: what trajectory weighting does to RvS alone, and together with the regularizer."""

from __future__ import annotations

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import (
    COLLAPSED,
    COMPARABLE,
    RELIABLE,
    comparable,
    decided,
    kept,
    on_average_too,
    on_datasets,
    unless_turned,
    untold,
)
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import WALKERS, quality
from cwbc.wording import percent, score


def claims(evidence: Evidence) -> list[Claim]:
    """What each component is said to do."""
    weighted = {dataset: each for dataset, (each,) in evidence.keeping("rvs+w").items()}
    whole = {dataset: each for dataset, (each,) in evidence.keeping("rvs+cwbc").items()}
    return [
        unless_turned(_weighting(evidence), evidence.missing(evidence.having("rvs+w", "rvs")), True),
        on_datasets(
            "Weighting alone is not reliable: performance still degrades after the data's best return.",
            f"RvS+W at 2x expert scores below {percent(COLLAPSED)} of its best point on one dataset at least",
            evidence.datasets,
            {dataset: (each.retention < COLLAPSED, kept(each)) for dataset, each in weighted.items()},
            needed=1,
        ),
        _performs_better(evidence),
        _more_reliable(evidence),
        on_datasets(
            "RvS+CWBC avoids the performance crash.",
            f"Beyond the data's best its score never falls below {percent(COLLAPSED)} of its best point",
            evidence.datasets,
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


def findings(evidence: Evidence) -> Findings:
    """The curves, and what each component is said to do."""
    return Findings(
        claims(evidence), {"components": showing.landmark_table(evidence)}, showing.curves(evidence)
    )


def _weighting(evidence: Evidence) -> Claim:
    text = "Weighting improves RvS when conditioned on high returns, especially on medium-replay."
    both = evidence.having("rvs+w", "rvs")
    gains = {dataset: weighted.at_best - rvs.at_best for dataset, (weighted, rvs) in both.items()}
    replay = [gain for dataset, gain in gains.items() if quality(dataset) == "medium-replay"]
    if not replay or len(gains) < 2:
        return untold(text, "it takes rvs and rvs+w on medium-replay and on others")
    numbers = ", ".join(f"{dataset} {score(gain)}" for dataset, gain in gains.items())
    rule = "Asked for the data's best return, RvS+W gains on medium-replay, and more than on the others"
    return decided(text, rule, 0 < replay[0] == max(gains.values()), f"{numbers} points")


def _performs_better(evidence: Evidence) -> Claim:
    both = evidence.having("rvs+cwbc", "rvs")
    claim = on_datasets(
        "RvS+CWBC performs better than RvS when conditioned on high returns.",
        "Asked for the data's best return, RvS+CWBC scores higher on average, and reaches "
        f"{percent(COMPARABLE)} of RvS on each",
        evidence.datasets,
        {
            dataset: (
                comparable(cwbc.at_best, rvs.at_best),
                f"{score(cwbc.at_best)} against {score(rvs.at_best)}",
            )
            for dataset, (cwbc, rvs) in both.items()
        },
    )
    return on_average_too(claim, [(cwbc.at_best, rvs.at_best) for cwbc, rvs in both.values()], score)


def _more_reliable(evidence: Evidence) -> Claim:
    both = evidence.keeping("rvs+cwbc", "rvs")
    claim = on_datasets(
        "RvS+CWBC is more reliable than RvS on out-of-distribution returns.",
        "At 2x expert RvS+CWBC keeps a larger share of its best score than RvS on average, and "
        f"{percent(RELIABLE)} on each",  # where both are reliable, neither has to be ahead
        evidence.datasets,
        {
            dataset: (cwbc.retention >= RELIABLE, f"{kept(cwbc)} against {kept(rvs)}")
            for dataset, (cwbc, rvs) in both.items()
        },
    )
    return on_average_too(claim, [(cwbc.retention, rvs.retention) for cwbc, rvs in both.values()], percent)


ITEM = Item(
    "components",
    "Figure 5",
    "RvS, RvS+W and RvS+CWBC at every asked return on walker2d",
    WALKERS,
    WALKERS,
    ("rvs", "rvs+w", "rvs+cwbc"),
    claims,
    findings,
)
