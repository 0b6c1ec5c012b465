"""What a weighting makes of a dataset's returns: histograms before and after, as chart and as picture."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from cwbc.evidence.bounds import BINS, return_bins
from cwbc.intervals import Array

if TYPE_CHECKING:
    from cwbc.reporting.interactive import Chart


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
        """The block of a page."""
        from cwbc.reporting.charts import Axis, histogram_chart

        looks = {name: number for number, name in enumerate(self.drawn)}
        drawn = {name: shares.tolist() for name, shares in self.drawn.items()}
        return histogram_chart(
            self.title, self.edges.tolist(), self.held.tolist(), drawn, Axis("return of the episode"), looks
        )

    def figure(self) -> bytes:
        """The same as a PNG."""
        from cwbc.reporting.figures import COLOURS, INK, clean, legend
        from cwbc.reporting.png import blank, to_png

        figure = blank((9.0, 5.2))
        axes = figure.subplots()
        clean(axes)
        shown = [axes.stairs(100 * self.held, self.edges, fill=True, color="#9AA5B1", label="the dataset")]
        for number, (name, shares) in enumerate(self.drawn.items()):
            colour = COLOURS[number % len(COLOURS)]
            shown.append(axes.stairs(100 * shares, self.edges, color=colour, linewidth=1.9, label=name))
        axes.set_xlabel("return of the episode", color=INK)
        axes.set_ylabel("share, %", color=INK)
        axes.set_title(self.title, loc="left", fontsize=14, fontweight="bold", color=INK)
        legend(figure, shown, "what is drawn")
        return to_png(figure)
