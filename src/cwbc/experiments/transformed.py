"""Figure 4: what trajectory weighting makes of a dataset's returns; nothing is trained."""

from __future__ import annotations

from cwbc.evidence.bounds import effective_episodes, uniform
from cwbc.evidence.distributions import Distribution
from cwbc.evidence.item import Findings, Item
from cwbc.evidence.judging import at_least, on_datasets
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import WALKERS
from cwbc.evidence.published import DATASETS
from cwbc.intervals import Array
from cwbc.reporting.tables import Cell, Column, Row, Table
from cwbc.weighting import ByReturn, TopFraction
from cwbc.wording import amount, percent

GENERALLY = 0.5  # of the datasets


def findings(evidence: Evidence) -> Findings:
    """The distribution before and after, and whether it moved where it should."""
    returns = {dataset: data.returns for dataset, data in evidence.data.items()}
    weighted = {dataset: ByReturn().probabilities(data) for dataset, data in evidence.data.items()}
    filtered = {dataset: TopFraction().probabilities(data) for dataset, data in evidence.data.items()}
    low = {dataset: 1 - high_share(r, uniform(r)) for dataset, r in returns.items()}
    high = {dataset: high_share(returns[dataset], p) for dataset, p in weighted.items()}
    effective = {
        dataset: (effective_episodes(p), effective_episodes(filtered[dataset]))
        for dataset, p in weighted.items()
    }
    claims = [
        on_datasets(
            "Offline datasets are generally suboptimal, and even in the range of observed returns the "
            "distribution is highly non-uniform and concentrated over trajectories with low returns.",
            "More than half of the episodes lie in the lower half of the range of returns, on half of the "
            "datasets at least",
            evidence.datasets,
            {dataset: (share > 0.5, percent(share)) for dataset, share in low.items()},
            at_least(GENERALLY, evidence.datasets),
        ),
        on_datasets(
            "The transformed distribution should concentrate on high-return trajectories.",
            "More than half of what is drawn lies in the upper half of the range of returns",
            evidence.datasets,
            {
                dataset: (share > 0.5, f"{percent(share)}, of the data {percent(1 - low[dataset])}")
                for dataset, share in high.items()
            },
        ),
        on_datasets(
            "Filtering loses most of the data; weighting makes use of more of it.",
            "Weighting draws from more episodes in effect (1 / sum of squared probabilities) than filtering",
            evidence.datasets,
            {
                dataset: (
                    ours > theirs,
                    f"{amount(ours)} against {amount(theirs)} of {amount(len(returns[dataset]))}",
                )
                for dataset, (ours, theirs) in effective.items()
            },
        ),
    ]
    table = Table(
        "dataset",
        [
            Column("episodes", written=amount),
            Column("mean return", written=amount),
            Column("mean return drawn", written=amount),
            Column("in the upper half", written=percent),
            Column("drawn from it", written=percent),
            Column("effective episodes", written=amount),
            Column("of the top 10 %", written=amount),
        ],
        [
            _row(dataset, r, weighted[dataset], (1 - low[dataset], high[dataset], *effective[dataset]))
            for dataset, r in returns.items()
        ],
    )
    distributions = [
        Distribution.of(dataset, dataset, r, {"weighted": weighted[dataset]})
        for dataset, r in returns.items()
    ]
    return Findings(claims, {"transformed": table}, (), distributions)


def _row(dataset: str, returns: Array, drawn: Array, rest: tuple[float, ...]) -> Row:
    means = float(returns.mean()), float(drawn @ returns)
    return Row(dataset, [Cell(float(number)) for number in (len(returns), *means, *rest)])


def high_share(returns: Array, probabilities: Array) -> float:
    """How much is drawn from the upper half of the range of returns."""
    return float(probabilities[returns >= (returns.min() + returns.max()) / 2].sum())


ITEM = Item(
    "transformed",
    "Figure 4",
    "the returns of the datasets before and after trajectory weighting; trains nothing",
    DATASETS,
    WALKERS,
    (),
    findings,
    needs_data=True,
)
