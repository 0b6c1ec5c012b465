"""Methods over all datasets at once, with how much the seeds allow to say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cwbc.experiments.evidence import Evidence
from cwbc.intervals import Array
from cwbc.reporting.charts import Axis, line_chart
from cwbc.reporting.panels import Curve
from cwbc.reporting.tables import Cell, Column, Row, Table
from cwbc.statistics import (
    bootstrap,
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
)
from cwbc.wording import percent, score

if TYPE_CHECKING:
    from cwbc.reporting.interactive import Chart

_POINTS = 101  # of a profile


@dataclasses.dataclass(frozen=True)
class Overall:
    """Scores of several methods on the datasets that all of them were measured on."""

    datasets: Sequence[str]
    at_expert: Mapping[str, Array]  # [seed, dataset], by method
    at_twice_expert: Mapping[str, Array]  # [seed, dataset], by method
    retention: Mapping[str, float]  # the mean over datasets, by method
    names: Sequence[str]  # of all methods of the page

    @classmethod
    def of(cls, evidence: Evidence, labels: Sequence[str]) -> Overall:
        """Those of the methods that were measured at all."""
        known = [label for label in labels if label in evidence.labels]
        found = evidence.having(*known) if known else {}
        near, far, retention = {}, {}, {}
        for i, label in enumerate(known if found else ()):
            each = [measured[i] for measured in found.values()]
            near[label] = np.stack([m.of_seeds(m.task.expert_return) for m in each], axis=1)
            far[label] = np.stack([m.of_seeds(m.task.far_return) for m in each], axis=1)
            retention[label] = float(np.mean([m.retention for m in each]))
        return cls(list(found), near, far, retention, evidence.labels)

    def table(self, against: Mapping[str, str]) -> Table:
        """What each reaches, with intervals over seeds, and how often a run of it beats one of another.

        Args:
            against: which method each is compared with; those that are compared with none are not named.
        """
        columns = [
            Column("mean", better="higher"),
            Column("IQM", "interquartile mean", better="higher"),
            Column("IQM at 2×", "expert", better="higher"),
            Column("P(better)", "one run than another", percent),
            Column("P(better) at 2×", "expert", percent),
            Column("retention", "mean over datasets", percent, bar=True),
        ]
        rows = []
        for label, retention in self.retention.items():
            mean = float(self.at_expert[label].mean())
            both = (self.at_expert, self.at_twice_expert)
            centres = [_estimated(interquartile_mean, scores[label]) for scores in both]
            other = against.get(label, "")
            better = [
                _estimated(probability_of_improvement, scores[label], scores[other], note=f"than {other}")
                if other in scores
                else Cell()
                for scores in both
            ]
            rows.append(Row(label, [Cell(mean), *centres, *better, Cell(retention)]))
        count = len(self.datasets)
        title = f"All datasets together ({count})" if count > 1 else "All runs together"
        return Table("method", columns, rows, title=title)

    def profiles(self) -> list[Chart]:
        """The share of runs that score above each threshold; nothing where nothing was measured."""
        if not self.datasets:
            return []
        thresholds = np.linspace(0.0, max(float(scores.max()) for scores in self.at_expert.values()), _POINTS)

        def above(scores: Array) -> Array:
            return performance_profile(scores, thresholds)

        seeds = min(map(len, self.at_expert.values()))
        return [
            line_chart(
                "Performance profiles at 1× expert",
                [
                    Curve(label, thresholds, *bootstrap(above, scores, generator=_generator()))
                    for label, scores in self.at_expert.items()
                ],
                Axis("normalized score", limits=(0.0, 1.01 * float(thresholds[-1])), written=score),
                Axis("share of runs above it", limits=(0.0, 1.02), written=lambda share: f"{share:.2f}"),
                self.names,
                f"{seeds} seed(s) on each of {len(self.datasets)} dataset(s). Higher and further right "
                "is better; bands are 95 % bootstrap intervals over seeds.",
            )
        ]


def _estimated(statistic: Callable[..., Array], *methods: Array, note: str = "") -> Cell:
    value, low, high = map(float, bootstrap(statistic, *methods, generator=_generator()))
    return Cell(value, low, high, note=note)


def _generator() -> np.random.Generator:
    """The same for all: the same scores have the same interval wherever they are shown."""
    return np.random.default_rng(0)
