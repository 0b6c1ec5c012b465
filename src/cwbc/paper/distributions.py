"""The returns of a dataset, and those that a weighting samples from it, as a chart."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from cwbc.paper.bounds import BINS, return_bins
from cwbc.reports.charts import Axis, Chart, histogram_chart
from cwbc.results.intervals import Array


@dataclasses.dataclass(frozen=True)
class Distribution:
    """The shares of a dataset's returns, and of those that are drawn from it."""

    dataset: str
    title: str
    edges: Array  # [bin + 1]
    held: Array  # [bin]
    drawn: Mapping[str, Array]  # [bin], by name

    @classmethod
    def of(cls, dataset: str, title: str, returns: Array, drawn: Mapping[str, Array]) -> Distribution:
        """The distribution of returns [episode] under probabilities [episode]."""
        member = return_bins(returns)
        low, high = float(returns.min()), float(returns.max())
        edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
        held = np.bincount(member, minlength=BINS) / len(returns)
        shares = {name: np.bincount(member, p, BINS).astype(np.float64) for name, p in drawn.items()}
        return cls(dataset, title, edges, held, shares)

    def chart(self) -> Chart:
        """The fractions of every bin."""
        return histogram_chart(
            self.title,
            self.edges.tolist(),
            self.held.tolist(),
            {name: fractions.tolist() for name, fractions in self.drawn.items()},
            Axis("return of the episode"),
            {name: number for number, name in enumerate(self.drawn)},
        )
