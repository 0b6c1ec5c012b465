"""Figure 4: what trajectory weighting makes of a dataset's returns; nothing is trained."""

from __future__ import annotations

from typing import NamedTuple

from cwbc.evidence.bounds import effective_episodes, uniform
from cwbc.evidence.distributions import Distribution
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import at_least, on_datasets
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import WALKERS
from cwbc.evidence.published import DATASETS
from cwbc.intervals import Array
from cwbc.reporting.tables import Cell, Column, Row, Table
from cwbc.trajectories import Trajectories
from cwbc.weighting import ByReturn, TopFraction
from cwbc.wording import amount, percent

GENERALLY = 0.5  # of the datasets


class Numbers(NamedTuple):
    """A dataset before and after weighting: the columns of the table."""

    episodes: float
    mean: float
    mean_drawn: float
    high: float  # the fraction of the episodes in the upper half of the range of returns
    high_drawn: float
    effective: float  # the number of episodes that weighting makes use of
    effective_filtered: float

    @classmethod
    def of(cls, data: Trajectories) -> Numbers:
        """Those of a dataset."""
        returns, drawn = data.returns, ByReturn().probabilities(data)
        return cls(
            float(len(returns)),
            float(returns.mean()),
            float(drawn @ returns),
            high_share(returns, uniform(returns)),
            high_share(returns, drawn),
            effective_episodes(drawn),
            effective_episodes(TopFraction().probabilities(data)),
        )


def claims(evidence: Evidence) -> list[Claim]:
    """Whether the distribution is, and moved, where it should."""
    found = {dataset: Numbers.of(data) for dataset, data in evidence.data.items()}
    return [
        on_datasets(
            "Offline datasets are generally suboptimal, and even in the range of observed returns the "
            "distribution is highly non-uniform and concentrated over trajectories with low returns.",
            "More than half of the episodes lie in the lower half of the range of returns, on half of the "
            "datasets at least",
            evidence.datasets,
            {dataset: (1 - of.high > 0.5, percent(1 - of.high)) for dataset, of in found.items()},
            at_least(GENERALLY, evidence.datasets),
        ),
        on_datasets(
            "The transformed distribution should concentrate on high-return trajectories.",
            "More than half of what is drawn lies in the upper half of the range of returns",
            evidence.datasets,
            {
                dataset: (of.high_drawn > 0.5, f"{percent(of.high_drawn)}, of the data {percent(of.high)}")
                for dataset, of in found.items()
            },
        ),
        on_datasets(
            "Filtering loses most of the data; weighting makes use of more of it.",
            "Weighting draws from more episodes in effect (1 / sum of squared probabilities) than filtering",
            evidence.datasets,
            {
                dataset: (
                    of.effective > of.effective_filtered,
                    f"{amount(of.effective)} against {amount(of.effective_filtered)} "
                    f"of {amount(of.episodes)}",
                )
                for dataset, of in found.items()
            },
        ),
    ]


def findings(evidence: Evidence) -> Findings:
    """The distribution before and after, and whether it moved where it should."""
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
        [Row(dataset, [*map(Cell, Numbers.of(data))]) for dataset, data in evidence.data.items()],
    )
    distributions = [
        Distribution.of(dataset, dataset, data.returns, {"weighted": ByReturn().probabilities(data)})
        for dataset, data in evidence.data.items()
    ]
    return Findings(claims(evidence), {"transformed": table}, (), distributions)


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
    claims,
    findings,
    needs_data=True,
)
