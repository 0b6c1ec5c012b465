"""Statistics of methods over all datasets at once, with bootstrap intervals over seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cwbc.reports.charts import Axis, Chart, Curve, line_chart
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.results.evidence import Evidence, Mark
from cwbc.results.intervals import Array
from cwbc.results.statistics import (
    bootstrap,
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
)
from cwbc.system.formatting import counted, percent, retention_percent, score

_POINTS = 101  # of a profile


@dataclasses.dataclass(frozen=True)
class Overall:
    """Scores of several methods on the datasets that all of them were evaluated on.

    A method that was not evaluated at a target on all of these, or with fewer seeds, has no scores there.
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
        """The scores of those methods that were evaluated at all."""
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

    def table(self, against: Mapping[str, str]) -> ReportTable:
        """The scores of each with intervals over seeds, and how often a run of it beats one of another.

        Args:
            against: which method each is compared with; those that are compared with none are not named.
        """
        beyond, note = ("at 2×", "expert") if self.has_experts else ("beyond", self.far.label)
        where = f"at {self.near.label}"
        columns = [
            TableColumn("mean", where, better="higher"),
            TableColumn("IQM", f"interquartile mean, {where}", better="higher"),
            TableColumn(f"IQM {beyond}", note, better="higher"),
            TableColumn("P(better)", f"of two runs, {where}", percent),
            TableColumn(f"P(better) {beyond}", note, percent),
            TableColumn("OOD retention", "mean over datasets", retention_percent, better="higher", bar=True),
        ]
        rows = []
        for label, retention in self.retention.items():
            mean = TableCell(float(self.at_expert[label].mean())) if label in self.at_expert else TableCell()
            both = (self.at_expert, self.at_twice_expert)
            centres = [_estimated(interquartile_mean, scores, label) for scores in both]
            other = against.get(label)
            better = [
                _estimated(probability_of_improvement, scores, label, other, note=f"than {other}")
                if other is not None
                else TableCell()
                for scores in both
            ]
            rows.append(TableRow(label, [mean, *centres, *better, TableCell(retention)]))
        count = len(self.datasets)
        title = f"All datasets together ({count})" if count > 1 else "All runs together"
        return ReportTable("method", columns, rows, title=title)

    def is_clearly_above(self, label: str, other: str) -> bool:
        """Whether a run of one beats one of the other at 1x expert more often than not, by the interval."""
        low = _estimated(probability_of_improvement, self.at_expert, label, other).low
        return low is not None and low > 0.5

    def profiles(self) -> list[Chart]:
        """The fraction of runs that score above each threshold; none where nothing was evaluated."""
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
                Axis("fraction of runs above it", limits=(0.0, 1.02), written="{:.2f}".format),
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
) -> TableCell:
    if any(label not in scores for label in labels):
        return TableCell()
    methods = [scores[label] for label in labels]
    value, low, high = map(float, bootstrap(statistic, *methods, generator=_generator()))
    return TableCell(value, low, high, note=note)


def _generator() -> np.random.Generator:
    """The same for all: the same scores have the same interval wherever they are shown."""
    return np.random.default_rng(0)
