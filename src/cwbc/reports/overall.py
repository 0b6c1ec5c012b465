"""Statistics of methods over all datasets at once, with bootstrap intervals over seeds."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cwbc.core.tasks import Task
from cwbc.reports.chart import Axis, Chart, Curve, line_chart
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.results import statistics
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.evidence import Evidence
from cwbc.results.intervals import Array, Ends
from cwbc.system.formatting import counted, percent, retention_percent, score

_POINTS = 101  # of a profile


@dataclasses.dataclass(frozen=True)
class Overall:
    """Scores of several methods on the datasets that all of them were evaluated on.

    A method that was not evaluated at a target on all of these, or with fewer seeds, has no scores there.
    """

    evidence: Evidence
    datasets: Sequence[str]
    methods: Mapping[str, Sequence[EvaluatedMethod]]  # [dataset], by label

    @classmethod
    def of(cls, evidence: Evidence, labels: Sequence[str]) -> Overall:
        """The scores of those methods that were evaluated at all."""
        known = [label for label in labels if label in evidence.labels]
        found = evidence.having(*known) if known else {}
        methods = {label: [of[label] for of in found.values()] for label in known} if found else {}
        return cls(evidence, list(found), methods)

    def mean(self, number: Callable[[EvaluatedMethod], float]) -> dict[str, float]:
        """The mean of a number over datasets, by method."""
        return {label: float(np.mean([*map(number, each)])) for label, each in self.methods.items()}

    @functools.cached_property
    def at_expert(self) -> dict[str, Array]:
        """The scores [seed, dataset] at 1x expert, by method."""
        return self._scores(lambda task: task.expert_return)

    @functools.cached_property
    def at_twice_expert(self) -> dict[str, Array]:
        """The scores [seed, dataset] at 2x expert, by method."""
        return self._scores(lambda task: task.far_return)

    def _scores(self, target: Callable[[Task], float]) -> dict[str, Array]:
        found = {}
        for name, methods in self.methods.items():
            scores = [each.of_seeds(target(each.task)) for each in methods]
            if len({*map(len, scores)}) == 1 and len(scores[0]):
                found[name] = np.stack(scores, axis=1)
        return found

    def table(self, against: Mapping[str, str]) -> ReportTable:
        """The scores of each with intervals over seeds, and how often a run beats one of the other method."""
        experts = self.evidence.has_experts
        beyond, note = ("at 2×", "expert") if experts else ("beyond", self.evidence.far.label)
        where = f"at {self.evidence.near.label}"
        columns = [
            TableColumn("mean", where, better="higher"),
            TableColumn("IQM", f"interquartile mean, {where}", better="higher"),
            TableColumn(f"IQM {beyond}", note, better="higher"),
            TableColumn("P(better)", f"of two runs, {where}", percent),
            TableColumn(f"P(better) {beyond}", note, percent),
            TableColumn("OOD retention", "mean over datasets", retention_percent, better="higher", bar=True),
        ]
        rows, both = [], (self.at_expert, self.at_twice_expert)
        for label, retention in self.mean(lambda each: each.retention).items():
            pair = (label, against.get(label, ""))  # no method is called so
            cells = [TableCell(float(self.at_expert.get(label, np.array(np.nan)).mean()))]
            cells += [_unless_equal(_estimated(statistics.interquartile_mean, of, label)) for of in both]
            cells += [_estimated(statistics.probability_of_improvement, scores, *pair) for scores in both]
            rows.append(TableRow(label, [*cells, TableCell(retention)]))
        count = len(self.datasets)
        title = f"All datasets together ({count})" if count > 1 else "All runs together"
        return ReportTable("method", columns, rows, title=title)

    def is_clearly_above(self, label: str, other: str) -> bool:
        """Whether a run of one beats one of the other at 1x expert more often than not, by the interval."""
        return _estimated(statistics.probability_of_improvement, self.at_expert, label, other).low > 0.5

    def profiles(self) -> list[Chart]:
        """The fraction of runs that score above each threshold; none where nothing was evaluated."""
        if not self.at_expert:
            return []
        scores = np.concatenate([np.ravel(each) for each in self.at_expert.values()])
        ends = (0.0, float(scores.max()))
        if ends[1] <= 0:  # none is better than a random policy
            ends = (float(scores.min()) - 1.0, 0.0)
        thresholds = np.linspace(*ends, _POINTS)
        profile = functools.partial(statistics.performance_profile, thresholds=thresholds)
        curves = [
            Curve(label, thresholds, *_bootstrap(profile, each)) for label, each in self.at_expert.items()
        ]
        seeds = min(map(len, self.at_expert.values()))
        evaluated = f"{counted(seeds, 'seed')} on each of {counted(len(self.datasets), 'dataset')}"
        bands = "; bands are 95 % bootstrap intervals over seeds" * (seeds > 1)
        where = "1× expert" if self.evidence.has_experts else self.evidence.near.phrase
        across = Axis("normalized score", limits=(ends[0], 1.01 * ends[1]), written=score)
        up = Axis("fraction of runs above it", limits=(0.0, 1.02), written="{:.2f}".format)
        caption = f"{evaluated}. Higher and further right is better{bands}."
        title = f"Performance profiles at {where}"
        return [line_chart(title, curves, across, up, self.evidence.labels, caption)]


def _estimated(
    statistic: Callable[..., Array], scores: Mapping[str, Array], label: str, *other: str
) -> TableCell:
    if any(each not in scores for each in (label, *other)):
        return TableCell()
    value, low, high = map(float, _bootstrap(statistic, *(scores[each] for each in (label, *other))))
    return TableCell(value, low, high, note=f"than {other[0]}" if other else "")


def _unless_equal(cell: TableCell) -> TableCell:
    """Runs that are all alike do not show how much others would differ: they have no interval."""
    return TableCell(cell.value) if cell.low == cell.high else cell


def _bootstrap(statistic: Callable[..., Array], *scores: Array) -> Ends:
    # The same generator for all: the same scores have the same interval wherever they are shown.
    return statistics.bootstrap(statistic, *scores, generator=np.random.default_rng(0))
