"""The part of a report about one dataset: its facts, the methods evaluated on it, and their training."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

from markupsafe import Markup

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.charts import Chart
from cwbc.reports.looks import looks_of
from cwbc.reports.page import block
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.reports.training_charts import Histories, sampled_chart, training_chart
from cwbc.results.evaluated import Methods
from cwbc.results.recommendation import Recommendation, recommend
from cwbc.results.sentences import same_targets
from cwbc.results.sweeps import same_target
from cwbc.system.formatting import amount, percent, retention_percent


@dataclasses.dataclass(frozen=True)
class DatasetPart:
    """What a page shows of one dataset."""

    dataset: DatasetSummary
    methods: Methods = dataclasses.field(default_factory=dict)  # that were evaluated on it
    histories: Histories = dataclasses.field(default_factory=dict)  # of their training, by method
    names: Sequence[str] = ()  # of all methods of the page

    @property
    def recommended(self) -> Recommendation | None:
        """What to deploy."""
        return recommend(self.methods)

    @functools.cached_property
    def scores(self) -> ReportTable:
        """Scores at the named targets, and how well each method follows its target."""
        return scores_table(self.methods, self.names)

    def charts(self) -> dict[str, Chart]:
        """The charts of training, by the names of their files."""
        found = {
            "training.png": training_chart(self.histories, self.names),
            "returns.png": sampled_chart(self.histories, self.dataset, self.names),
        }
        return {name: chart for name, chart in found.items() if chart is not None}

    def blocks(self, name: str, but: Sequence[ReportTable]) -> list[Markup]:
        """All of it, without the tables that the page shows elsewhere."""
        dataset, blocks = self.dataset, list[Markup]()
        if self.methods:
            if not any(table is self.scores for table in but):
                blocks.append(block("table", self.scores))
            targets = block("table", targets_table(self.methods, self.names))
            blocks.append(block("folded", "Scores at every target return", [targets]))
        about = {
            "name": name,
            "environment": dataset.environment or "unknown",
            "episodes": f"{dataset.episodes:,}",
            "steps": f"{dataset.steps:,}",
            "best return": amount(dataset.best),
            "mean return": amount(dataset.mean_return),
            "min return": amount(dataset.lowest),
            "content hash": dataset.content_hash,
        }
        return [*blocks, *(block("chart", chart) for chart in self.charts().values()), block("facts", about)]


def scores_table(methods: Methods, names: Sequence[str] = ()) -> ReportTable:
    """Scores at the named targets, and how well each method follows its target."""
    marks = next(iter(methods.values())).landmarks
    columns = [TableColumn(mark.label, f"target {amount(mark.target)}", better="higher") for mark in marks]
    far = f"{marks[-1].label} / best point"
    over_all = [  # of the targets
        TableColumn("best point", "of the curve", better="higher"),
        TableColumn("OOD retention", far, retention_percent, better="higher", bar=True),
        TableColumn("monotonicity", "no loss = 100 %", percent, better="higher", bar=True),
        TableColumn("calibration error", "in points", better="lower"),
    ]
    if not same_targets(methods):
        over_all = [dataclasses.replace(column, better=None) for column in over_all]
    rows = []
    for name, method in methods.items():
        metrics, top, notes = method.metrics, method.named_points["best_point"], {}
        if top is not None and not math.isnan(top.target):
            notes["best_point"] = f"target {amount(top.target)}"
        if metrics[marks[-1].key].is_known and not metrics["ood_retention"].is_known:
            notes["ood_retention"] = "not defined" if method.sweep.takes_target else "takes no target"
        keys = [mark.key for mark in marks]
        keys += ["best_point", "ood_retention", "monotonicity", "calibration_error"]
        cells = [TableCell(*metrics[key], note=notes.get(key, "")) for key in keys]
        rows.append(TableRow(name, cells, name, () if method.sweep.takes_target else ("takes no target",)))
    looks = looks_of(list(methods), names)
    return ReportTable("method", [*columns, *over_all], rows, looks, title="Scores at the named targets")


def targets_table(methods: Methods, names: Sequence[str] = ()) -> ReportTable:
    """The scores of every method at every target."""
    marks = next(iter(methods.values())).landmarks
    # None is the target of methods that take none: NaN does not equal itself.
    curves = {
        name: {None if math.isnan(point.target) else point.target: point.score for point in method.points}
        for name, method in methods.items()
    }
    rows = []
    targets = {target for curve in curves.values() for target in curve}
    for target in sorted(targets, key=lambda target: -math.inf if target is None else target):
        named = [mark.label for mark in marks if target is not None and same_target(mark.target, target)]
        cells = [TableCell(*curve.get(target, ())) for curve in curves.values()]
        rows.append(
            TableRow("takes no target" if target is None else amount(target), cells, tags=tuple(named))
        )
    columns = [TableColumn(name, series=name) for name in methods]
    return ReportTable("target return", columns, rows, looks_of(list(methods), names), heat=True)
