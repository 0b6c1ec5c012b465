"""Figure 7: kappa, by the percentile z that sets it: how sharply high returns are preferred."""

from __future__ import annotations

import numpy as np

from cwbc.evidence import showing
from cwbc.evidence.bounds import BINS
from cwbc.evidence.distributions import Distribution
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import SIMILAR, STEP, WELL, listed, on_datasets, rises, similar, well
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import WALKERS, quality
from cwbc.grids.cells import Variant
from cwbc.weighting import ByReturn
from cwbc.wording import amount, percent

PERCENTILES = (99, 90, 50, 0)  # z; kappa grows as it falls, but for ties at the top
LABELS = tuple(f"z = {z}" for z in PERCENTILES)
SMALL = LABELS[:3]


def claims(evidence: Evidence) -> list[Claim]:
    """How much kappa is said to matter."""
    return [
        _more_uniform(evidence),
        _robust(evidence),
        _small_perform_well(evidence),
        _large_hurts(evidence),
    ]


def findings(evidence: Evidence) -> Findings:
    """The transformed distributions, the curves, and how much kappa matters."""
    distributions = [_distribution(evidence, dataset) for dataset in evidence.data]
    table = showing.expert_table(evidence, evidence.labels)
    return Findings(claims(evidence), {"kappa": table}, showing.curves(evidence), distributions)


def _distribution(evidence: Evidence, dataset: str) -> Distribution:
    data = evidence.data[dataset]
    weightings = {z: ByReturn(temperature_percentile=z) for z in PERCENTILES}
    kappas = {z: each.resolved_temperature(data.returns) for z, each in weightings.items()}
    drawn = {
        f"z = {z}, kappa {amount(kappas[z])}": weightings[z].probabilities(data)
        for z in sorted(kappas, key=kappas.__getitem__)
    }
    title = f"{dataset}: returns drawn with kappa by z"
    return Distribution.of(dataset, title, data.returns, drawn)


def _more_uniform(evidence: Evidence) -> Claim:
    verdicts = {}
    for each in (_distribution(evidence, dataset) for dataset in evidence.data):
        nearness = [1 - float(np.abs(shares - 1 / BINS).sum() / 2) for shares in each.drawn.values()]
        # The low share follows from the formula; whether bins come closer to each other is up to the data.
        low = [float(shares[: BINS // 2].sum()) for shares in each.drawn.values()]
        numbers = "; ".join(
            f"{name} {', '.join(f'{value:.2f}' for value in found)}"
            for name, found in (("distance", [1 - value for value in nearness]), ("low returns", low))
        )
        verdicts[each.dataset] = (rises(nearness) and rises(low), numbers)
    return on_datasets(
        "Small kappa concentrates on high returns; as it grows, the density for low returns increases and "
        "the distribution becomes more and more uniform.",
        "From one kappa to the next larger one, the share of the lower half of the returns never falls, and "
        "the distance (total variation) from the uniform distribution over bins never grows, by more than "
        f"{STEP:g}",
        evidence.datasets,
        verdicts,
    )


def _robust(evidence: Evidence) -> Claim:
    verdicts = {}
    for dataset, of in evidence.at_expert(*LABELS).items():
        counted = SMALL if quality(dataset) == "medium-expert" else LABELS
        verdicts[dataset] = (similar([of[label] for label in counted]), listed(of))
    return on_datasets(
        "The performance of CWBC is considerably robust to a wide range of values of kappa.",
        f"At 1x expert the highest and the lowest score are no more than {SIMILAR:g} points apart "
        "(without z = 0 on medium-expert, which the paper itself excepts)",
        evidence.datasets,
        verdicts,
    )


def _small_perform_well(evidence: Evidence) -> Claim:
    verdicts = {
        dataset: (well([of[label] for label in SMALL], max(of.values())), listed(of))
        for dataset, of in evidence.at_expert(*LABELS).items()
    }
    return on_datasets(
        "Relatively small kappa (z = 99, 90, 50) performs well on all three datasets.",
        f"Each scores at least {percent(WELL)} of the best value of kappa at 1x expert",
        evidence.datasets,
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
        evidence.of_quality("medium-expert"),
        verdicts,
    )


ITEM = Item(
    "kappa",
    "Figure 7",
    "CWBC with kappa = best - z-th percentile, z = 99, 90, 50, 0, and RvS+C on walker2d",
    WALKERS,
    (WALKERS[0], WALKERS[2]),
    ("rvs+c", *(Variant(f"z = {z}", "rvs+cwbc", {"temperature_percentile": float(z)}) for z in PERCENTILES)),
    claims,
    findings,
    needs_data=True,
)
