"""Figure 8: lambda, which keeps what is drawn close to the data's own distribution."""

from __future__ import annotations

import numpy as np

from cwbc.evidence import showing
from cwbc.evidence.distributions import Distribution
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import COMPARABLE, SIMILAR, STEP, comparable, on_datasets, rises, similar
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import WALKERS
from cwbc.grids.cells import Variant
from cwbc.weighting import ByReturn
from cwbc.wording import percent, score

VALUES = (0, 0.01, 0.1, 1, 10)  # the paper's list is in its picture alone
LABELS = tuple(f"lambda = {value}" for value in VALUES)


def claims(evidence: Evidence) -> list[Claim]:
    """How much lambda is said to matter."""
    return [_closer_to_the_data(evidence), _still_higher(evidence), _similar(evidence), _no_worse(evidence)]


def findings(evidence: Evidence) -> Findings:
    """The transformed distributions, the curves, and how much lambda matters."""
    distributions = [_distribution(evidence, dataset) for dataset in evidence.data]
    table = showing.expert_table(evidence, evidence.labels)
    return Findings(claims(evidence), {"lambda": table}, showing.curves(evidence), distributions)


def _distribution(evidence: Evidence, dataset: str) -> Distribution:
    data = evidence.data[dataset]
    drawn = {f"lambda = {value}": ByReturn(smoothing=value).probabilities(data) for value in VALUES}
    title = f"{dataset}: returns drawn with lambda"
    return Distribution.of(dataset, title, data.returns, drawn)


def _closer_to_the_data(evidence: Evidence) -> Claim:
    verdicts = {}
    for each in (_distribution(evidence, dataset) for dataset in evidence.data):
        found = [float(np.corrcoef(each.held, shares)[0, 1]) for shares in each.drawn.values()]
        verdicts[each.dataset] = (rises(found), ", ".join(f"{value:.2f}" for value in found))
    return on_datasets(
        "As lambda increases, the distributions are more correlated with the original one.",
        "The correlation with the data's own shares of bins never falls with lambda, by more than "
        f"{STEP:g} from one value to the next",
        evidence.datasets,
        verdicts,
    )


def _still_higher(evidence: Evidence) -> Claim:
    verdicts = {}
    for dataset, data in evidence.data.items():
        means = [float(ByReturn(smoothing=value).probabilities(data) @ data.returns) for value in VALUES]
        mean = float(data.returns.mean())
        lowest = f"{min(means):,.0f} at the least against {mean:,.0f}"
        verdicts[dataset] = (min(means) > mean, lowest)
    return on_datasets(
        "Whatever lambda, the high-return region still weighs more than in the original distribution.",
        "The mean return of what is drawn is above the data's for every lambda",
        evidence.datasets,
        verdicts,
    )


def _similar(evidence: Evidence) -> Claim:
    verdicts = {}
    for dataset, methods in evidence.having(*LABELS).items():
        scores = [each.at_expert for each in methods]
        verdicts[dataset] = (similar(scores), ", ".join(map(score, scores)))
    rule = f"At 1x expert the highest and the lowest score are no more than {SIMILAR:g} points apart"
    return on_datasets("All values of lambda produce similar results.", rule, evidence.datasets, verdicts)


def _no_worse(evidence: Evidence) -> Claim:
    verdicts = {}
    for dataset, (baseline, *methods) in evidence.having("rvs+c", *LABELS).items():
        lowest = min(each.at_expert for each in methods)
        numbers = f"{score(lowest)} at the least against {score(baseline.at_expert)}"
        verdicts[dataset] = (comparable(lowest, baseline.at_expert), numbers)
    return on_datasets(
        "All values of lambda are better than or comparable to training without weighting, RvS+C.",
        f"At 1x expert each reaches {percent(COMPARABLE)} of RvS+C",
        evidence.datasets,
        verdicts,
    )


ITEM = Item(
    "lambda",
    "Figure 8",
    "CWBC with lambda = 0, 0.01, 0.1, 1, 10, and RvS+C on walker2d",
    WALKERS,
    WALKERS[:1],
    ("rvs+c", *(Variant(f"lambda = {value}", "rvs+cwbc", {"smoothing": float(value)}) for value in VALUES)),
    claims,
    findings,
    needs_data=True,
)
