"""The part of a report about one dataset: its facts, the methods evaluated on it, and their training."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from cwbc.core.tasks import Landmark, landmarks
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.charts import Chart
from cwbc.reports.looks import looks_of
from cwbc.reports.page import Block, Facts, Folded
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.reports.training_charts import Histories, sampled_chart, training_chart
from cwbc.results.recommendation import Recommendation, recommend
from cwbc.results.sentences import same_targets
from cwbc.results.sweeps import Measure, MethodSummary, same_target
from cwbc.system.formatting import amount, percent, retention_percent

Methods = Mapping[str, MethodSummary]


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
        return recommend(self.methods, self.dataset)

    @property
    def scores(self) -> ReportTable:
        """Scores at the named targets, and how well each method follows its target."""
        return scores_table(self.methods, self.dataset, self.names)

    def charts(self) -> dict[str, Chart]:
        """The charts of training, by the names of their files."""
        found = {
            "training.png": training_chart(self.histories, self.names),
            "returns.png": sampled_chart(self.histories, self.dataset, self.names),
        }
        return {name: chart for name, chart in found.items() if chart is not None}

    def blocks(self, name: str, but: Sequence[ReportTable]) -> list[Block]:
        """All of it, without the tables that the page shows elsewhere."""
        dataset, blocks = self.dataset, list[Block]()
        if self.methods:
            targets = targets_table(self.methods, dataset, self.names)
            blocks += [table for table in (self.scores,) if table not in but]
            blocks.append(Folded("Scores at every target return", [targets]))
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
        return [*blocks, *self.charts().values(), Facts(about)]


def scores_table(methods: Methods, dataset: DatasetSummary, names: Sequence[str] = ()) -> ReportTable:
    """Scores at the named targets, and how well each method follows its target."""
    marks = landmarks(dataset.task, dataset.best)
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
        top, target = method["best_point"], method["best_point"]["target"]
        cells = [_cell(method[mark.key]) for mark in marks]
        cells.append(_cell(top, "" if target is None else f"target {amount(target)}"))
        cells.append(_cell(method["ood_retention"], undefined(method, marks[-1])))
        cells += map(_cell, (method["monotonicity"], method["calibration_error"]))
        rows.append(TableRow(name, cells, name, () if method["takes_target"] else ("takes no target",)))
    looks = looks_of(list(methods), names)
    return ReportTable("method", [*columns, *over_all], rows, looks, title="Scores at the named targets")


def undefined(method: MethodSummary, far: Landmark) -> str:
    """Why a method has no OOD retention, if it was evaluated at the far target; nothing where it has one."""
    point = method[far.key]
    if method["ood_retention"] is not None or point is None or point["value"] is None:
        return ""
    return "not defined" if method["takes_target"] else "takes no target"


def _cell(point: Measure | None, note: str = "") -> TableCell:
    if point is None or point["value"] is None:
        return TableCell(note=note)
    return TableCell(point["value"], point["low"], point["high"], note=note)


def targets_table(methods: Methods, dataset: DatasetSummary, names: Sequence[str] = ()) -> ReportTable:
    """The scores of every method at every target."""
    marks = landmarks(dataset.task, dataset.best)
    curves = {name: {point["target"]: point for point in method["curve"]} for name, method in methods.items()}
    rows = []
    targets = {target for curve in curves.values() for target in curve}
    for target in sorted(targets, key=lambda target: -math.inf if target is None else target):
        named = [mark.label for mark in marks if target is not None and same_target(mark.target, target)]
        points = [curve.get(target) for curve in curves.values()]
        cells = [
            TableCell()
            if p is None
            else TableCell(p["normalized"], p["normalized_low"], p["normalized_high"])
            for p in points
        ]
        rows.append(
            TableRow("takes no target" if target is None else amount(target), cells, tags=tuple(named))
        )
    columns = [TableColumn(name, series=name) for name in methods]
    return ReportTable("target return", columns, rows, looks_of(list(methods), names), heat=True)
