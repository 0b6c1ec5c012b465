"""Figure 7: kappa, by the percentile z that sets it: how sharply high returns are preferred."""

from __future__ import annotations

import itertools

import numpy as np

from cwbc.experiments import showing
from cwbc.experiments.bounds import BINS
from cwbc.experiments.distributions import Distribution
from cwbc.experiments.evidence import Evidence
from cwbc.experiments.item import Claim, Findings, Item
from cwbc.experiments.judging import listed, on_datasets
from cwbc.experiments.naming import WALKERS, quality
from cwbc.grids.cells import Variant
from cwbc.weighting import ByReturn
from cwbc.wording import amount, percent

PERCENTILES = (99, 90, 50, 0)  # z; kappa grows as it falls
LABELS = tuple(f"z = {z}" for z in PERCENTILES)
SMALL = LABELS[:3]
WELL = 0.9  # of the best value's score


def findings(evidence: Evidence) -> Findings:
    """The transformed distributions, the curves, and how much kappa matters."""
    distributions = [_distribution(evidence, dataset) for dataset in evidence.data]
    claims = [_more_uniform(distributions), _small_perform_well(evidence), _large_hurts(evidence)]
    table = showing.expert_table(evidence, evidence.labels)
    return Findings(claims, {"kappa": table}, showing.curves(evidence), distributions)


def _distribution(evidence: Evidence, dataset: str) -> Distribution:
    data = evidence.data[dataset]
    drawn = {}
    for z in PERCENTILES:
        weighting = ByReturn(temperature_percentile=z)
        kappa = weighting.resolved_temperature(data.returns)
        drawn[f"z = {z}, kappa {amount(kappa)}"] = weighting.probabilities(data)
    return Distribution.of(f"{dataset}: returns drawn with kappa by z", data.returns, drawn)


def _more_uniform(distributions: list[Distribution]) -> Claim:
    verdicts = {}
    for each in distributions:
        distances = [float(np.abs(shares - 1 / BINS).sum() / 2) for shares in each.drawn.values()]
        falls = all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(distances))
        verdicts[each.title.split(":")[0]] = (falls, ", ".join(f"{d:.2f}" for d in distances))
    return on_datasets(
        "Small kappa concentrates on high returns; as it grows, the distribution becomes more uniform.",
        "The distance (total variation) from the uniform distribution over bins never grows with kappa",
        verdicts,
    )


def _small_perform_well(evidence: Evidence) -> Claim:
    verdicts = {
        dataset: (min(of[label] for label in SMALL) >= WELL * max(of.values()), listed(of))
        for dataset, of in evidence.at_expert(*LABELS).items()
    }
    return on_datasets(
        "Relatively small kappa (z = 99, 90, 50) performs well on all three datasets.",
        f"Each scores at least {percent(WELL)} of the best value of kappa at 1x expert",
        verdicts,
    )


def _large_hurts(evidence: Evidence) -> Claim:
    verdicts = {
        dataset: (of["z = 0"] < min(of["z = 90"], of["rvs+c"]), listed(of))
        for dataset, of in evidence.at_expert("z = 0", "z = 90", "rvs+c").items()
        if quality(dataset) == "medium-expert"
    }
    return on_datasets(
        "Large kappa (z = 0) hurts on medium-expert, and even underperforms RvS+C.",
        "At 1x expert, z = 0 scores below z = 90 and below RvS+C",
        verdicts,
    )


ITEM = Item(
    "kappa",
    "Figure 7",
    "CWBC with kappa = best - z-th percentile, z = 99, 90, 50, 0, and RvS+C on walker2d",
    WALKERS,
    (WALKERS[0], WALKERS[2]),
    ("rvs+c", *(Variant(f"z = {z}", "rvs+cwbc", {"temperature_percentile": float(z)}) for z in PERCENTILES)),
    findings,
    needs_data=True,
)
