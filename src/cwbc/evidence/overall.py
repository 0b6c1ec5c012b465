"""Methods over all datasets at once, with how much the seeds allow to say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cwbc.evidence.measured import Evidence, Mark
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
from cwbc.wording import counted, percent, retention_percent, score

if TYPE_CHECKING:
    from cwbc.reporting.interactive import Chart

_POINTS = 101  # of a profile


@dataclasses.dataclass(frozen=True)
class Overall:
    """Scores of several methods on the datasets that all of them were measured on.

    Methods that were not asked for a return on all of these, or not with as many seeds, have no scores at it.
    """

    datasets: Sequence[str]
    at_expert: Mapping[str, Array]  # [seed, dataset], by method
    at_twice_expert: Mapping[str, Array]  # [seed, dataset], by method
    retention: Mapping[str, float]  # the mean over datasets, by method
    names: Sequence[str]  # of all methods of the page
    near: Mark
    far: Mark
    has_experts: bool  # of all tasks, that were published

    @classmethod
    def of(cls, evidence: Evidence, labels: Sequence[str]) -> Overall:
        """Those of the methods that were measured at all."""
        known = [label for label in labels if label in evidence.labels]
        found = evidence.having(*known) if known else {}
        near: dict[str, Array] = {}
        far: dict[str, Array] = {}
        retention = {}
        for i, label in enumerate(known if found else ()):
            each = [measured[i] for measured in found.values()]
            near |= _together(label, [m.of_seeds(m.task.expert_return) for m in each])
            far |= _together(label, [m.of_seeds(m.task.far_return) for m in each])
            retention[label] = float(np.mean([m.retention for m in each]))
        marks = (evidence.near, evidence.far, evidence.has_experts)
        return cls(list(found), near, far, retention, evidence.labels, *marks)

    def table(self, against: Mapping[str, str]) -> Table:
        """What each reaches, with intervals over seeds, and how often a run of it beats one of another.

        Args:
            against: which method each is compared with; those that are compared with none are not named.
        """
        beyond, note = ("at 2×", "expert") if self.has_experts else ("beyond", self.far.label)
        where = f"at {self.near.label}"
        columns = [
            Column("mean", where, better="higher"),
            Column("IQM", f"interquartile mean, {where}", better="higher"),
            Column(f"IQM {beyond}", note, better="higher"),
            Column("P(better)", f"of two runs, {where}", percent),
            Column(f"P(better) {beyond}", note, percent),
            Column("OOD retention", "mean over datasets", retention_percent, better="higher", bar=True),
        ]
        rows = []
        for label, retention in self.retention.items():
            mean = Cell(float(self.at_expert[label].mean())) if label in self.at_expert else Cell()
            both = (self.at_expert, self.at_twice_expert)
            centres = [_estimated(interquartile_mean, scores, label) for scores in both]
            other = against.get(label)
            better = [
                _estimated(probability_of_improvement, scores, label, other, note=f"than {other}")
                if other is not None
                else Cell()
                for scores in both
            ]
            rows.append(Row(label, [mean, *centres, *better, Cell(retention)]))
        count = len(self.datasets)
        title = f"All datasets together ({count})" if count > 1 else "All runs together"
        return Table("method", columns, rows, title=title)

    def is_clearly_above(self, label: str, other: str) -> bool:
        """Whether a run of one beats one of the other at 1x expert more often than not, by the interval."""
        low = _estimated(probability_of_improvement, self.at_expert, label, other).low
        return low is not None and low > 0.5

    def profiles(self) -> list[Chart]:
        """The share of runs that score above each threshold; nothing where nothing was measured."""
        if not self.at_expert:
            return []
        scores = np.concatenate([np.ravel(each) for each in self.at_expert.values()])
        ends = (0.0, float(scores.max()))
        if ends[1] <= 0:  # none is better than a random policy
            ends = (float(scores.min()) - 1.0, 0.0)
        thresholds = np.linspace(*ends, _POINTS)

        def above(scores: Array) -> Array:
            return performance_profile(scores, thresholds)

        seeds = min(map(len, self.at_expert.values()))
        bands = "; bands are 95 % bootstrap intervals over seeds" * (seeds > 1)
        datasets = counted(len(self.datasets), "dataset")
        return [
            line_chart(
                f"Performance profiles at {'1× expert' if self.has_experts else self.near.phrase}",
                [
                    Curve(label, thresholds, *bootstrap(above, scores, generator=_generator()))
                    for label, scores in self.at_expert.items()
                ],
                Axis("normalized score", limits=(ends[0], 1.01 * ends[1]), written=score),
                Axis("share of runs above it", limits=(0.0, 1.02), written=lambda share: f"{share:.2f}"),
                self.names,
                f"{counted(seeds, 'seed')} on each of {datasets}. Higher and further right is better{bands}.",
            )
        ]


def _together(label: str, scores: Sequence[Array]) -> dict[str, Array]:
    """Scores [seed] of datasets as one array [seed, dataset], by label; nothing where some are missing."""
    counts = {len(each) for each in scores}
    return {label: np.stack(scores, axis=1)} if len(counts) == 1 and min(counts) else {}


def _estimated(
    statistic: Callable[..., Array], scores: Mapping[str, Array], *labels: str, note: str = ""
) -> Cell:
    if any(label not in scores for label in labels):
        return Cell()
    methods = [scores[label] for label in labels]
    value, low, high = map(float, bootstrap(statistic, *methods, generator=_generator()))
    return Cell(value, low, high, note=note)


def _generator() -> np.random.Generator:
    """The same for all: the same scores have the same interval wherever they are shown."""
    return np.random.default_rng(0)
