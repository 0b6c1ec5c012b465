"""Tables and charts over several datasets, with published scores beside ours where there are some."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from cwbc.reports.charts import Chart
from cwbc.reports.reliability_chart import reliability_chart
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.evidence import Evidence
from cwbc.system.formatting import amount, retention_percent


@dataclasses.dataclass(frozen=True)
class Score:
    """A mean over seeds and its standard deviation, where one is printed."""

    mean: float
    deviation: float | None = None


@dataclasses.dataclass(frozen=True)
class PublishedTable:
    """A published table."""

    name: str  # as people cite it
    scores: Mapping[str, Mapping[str, Score]]  # by method, by dataset
    wins: Mapping[str, int] = dataclasses.field(default_factory=dict)  # by method: better than RvS or DT

    @property
    def datasets(self) -> set[str]:
        """All that it has scores on."""
        return {dataset for of_method in self.scores.values() for dataset in of_method}

    def score(self, method: str, dataset: str) -> Score | None:
        """What was published for a method on a dataset such as walker2d-medium; None where nothing was."""
        return self.scores.get(method, {}).get(dataset)


def expert_table(
    evidence: Evidence,
    labels: Sequence[str],
    published: PublishedTable | None = None,
    others: Sequence[str] = (),
    wins_over: Mapping[str, str] | None = None,
    by_quality: bool = False,
) -> ReportTable:
    """Scores at the expert return by dataset, beside what was published.

    Args:
        others: methods that were published alone, perhaps on other data, so never the best of a row.
        wins_over: methods whose wins are counted, with the method that each is to beat.
        by_quality: whether there is an average for each kind of data as well.
    """
    columns = [TableColumn(label, better="higher") for label in labels]
    columns += [TableColumn(name, "published") for name in others]
    rows = [
        TableRow(
            dataset,
            [_expert(methods.get(label), published, label, dataset) for label in labels]
            + [_published(published, name, dataset) for name in others],
        )
        for dataset, methods in evidence.evaluated.items()
    ]
    summed = [_averages("average", rows)] if len(rows) > 1 else []
    if summed and wins_over:
        summed.insert(0, _wins(rows, [*labels, *others], wins_over, published))
    if summed and by_quality:
        summed[:0] = _quality_averages(rows)
    title = f"Scores at {evidence.near.phrase}" + (", the paper's beside ours" if published else "")
    return ReportTable("dataset", columns, [*rows, *summed], best_of="row", title=title)


def landmark_table(evidence: Evidence) -> ReportTable:
    """Scores of every method at the named targets, its best point, and its OOD retention."""
    best, near, far = "dataset's best", evidence.near.label, evidence.far.label
    columns = [
        *map(
            TableColumn, dict.fromkeys((best, near, far))
        ),  # without an expert, the best is the near one, too
        TableColumn("best point", "of the curve"),
        TableColumn("OOD retention", f"{far} / best point", retention_percent, bar=True),
    ]
    rows = [
        TableRow(
            label,
            [
                *([cell_at(measured, measured.dataset.best)] if near != best else []),
                cell_at(measured, measured.task.expert_return),
                cell_at(measured, measured.task.far_return),
                TableCell(measured.top),
                TableCell(measured.retention),
            ],
            group=dataset,
        )
        for dataset, methods in evidence.evaluated.items()
        for label, measured in methods.items()
    ]
    return ReportTable("method", columns, rows, title="Scores at the named targets", groups="dataset")


def curves(evidence: Evidence) -> list[Chart]:
    """The reliability chart of every dataset."""
    charts = []
    for dataset, methods in evidence.evaluated.items():
        sweeps = [measured.sweep for measured in methods.values()]
        summary = next(iter(methods.values())).dataset
        charts.append(reliability_chart(sweeps, summary, evidence.labels, dataset))
    return charts


def cell_at(measured: EvaluatedMethod, target: float) -> TableCell:
    """The mean and the std over seeds (the paper's ±) at a target return.

    The std divides by the number of seeds, not by one less, as the paper's does: its table of mazes
    has 1.0 ± 3.0, which ten seeds with one success in ten episodes among them give only so. (Its caption
    says 3 seeds. Those cannot give these numbers either way: at most 1.0 ± 1.4, or 1.0 ± 1.7.)
    """
    scores = measured.of_seeds(target)
    if not len(scores):
        return TableCell()
    return TableCell(float(scores.mean()), spread=float(scores.std()) if len(scores) > 1 else None)


def _expert(
    measured: EvaluatedMethod | None, published: PublishedTable | None, label: str, dataset: str
) -> TableCell:
    theirs = published.score(label, dataset) if published else None
    ours = TableCell() if measured is None else cell_at(measured, measured.task.expert_return)
    if theirs is None:
        return ours
    return TableCell(ours.value, spread=ours.spread, published=theirs.mean, published_spread=theirs.deviation)


def _published(published: PublishedTable | None, name: str, dataset: str) -> TableCell:
    theirs = published.score(name, dataset) if published else None
    return TableCell() if theirs is None else TableCell(theirs.mean, spread=theirs.deviation)


def _averages(name: str, rows: Sequence[TableRow]) -> TableRow:
    return TableRow(name, [_average(cells) for cells in zip(*(row.cells for row in rows), strict=True)])


def _quality_averages(rows: Sequence[TableRow]) -> list[TableRow]:
    """The average of each kind of data, where there are several kinds."""
    kinds = dict.fromkeys(row.name.partition("-")[2] for row in rows)
    members = {kind: [row for row in rows if row.name.partition("-")[2] == kind] for kind in kinds}
    return [_averages(f"{kind} average", each) for kind, each in members.items()] if len(kinds) > 1 else []


def _wins(
    rows: Sequence[TableRow], labels: Sequence[str], over: Mapping[str, str], published: PublishedTable | None
) -> TableRow:
    """On how many datasets a method scores higher than another; published counts are of all datasets."""
    printed = published.wins if published and {row.name for row in rows} == published.datasets else {}
    cells = []
    for label in labels:
        against = over.get(label)
        count = None if against is None else _count(rows, labels.index(label), labels.index(against))
        cells.append(TableCell(count, published=printed.get(label)))
    return TableRow("# wins", cells, written=amount)


def _count(rows: Sequence[TableRow], ours: int, theirs: int) -> int | None:
    count = 0
    for row in rows:
        one, other = row.cells[ours].number, row.cells[theirs].number
        if one is None or other is None:
            return None
        count += one > other
    return count


def _average(cells: Sequence[TableCell]) -> TableCell:
    """The mean of a column where all of its numbers are there."""
    ours = [cell.number for cell in cells]
    theirs = [cell.published for cell in cells]
    return TableCell(
        float(np.mean([n for n in ours if n is not None])) if None not in ours else None,
        published=float(np.mean([n for n in theirs if n is not None])) if None not in theirs else None,
    )
