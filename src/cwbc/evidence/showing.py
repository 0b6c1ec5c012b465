"""Tables and charts that several items show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cwbc.evidence.measured import Evidence, Measured
from cwbc.evidence.naming import quality
from cwbc.evidence.published import DATASETS, QUALITIES, PublishedTable
from cwbc.reporting.reliability import reliability_chart
from cwbc.reporting.tables import Cell, Column, Row, Table
from cwbc.wording import amount, retention_percent

if TYPE_CHECKING:
    from cwbc.reporting.interactive import Chart


def expert_table(
    evidence: Evidence,
    labels: Sequence[str],
    published: PublishedTable | None = None,
    others: Sequence[str] = (),
    wins_over: Mapping[str, str] | None = None,
    by_quality: bool = False,
) -> Table:
    """Scores at the expert return by dataset, beside what was published.

    Args:
        others: methods that were published alone, perhaps on other data, so never the best of a row.
        wins_over: methods whose wins are counted, with the method that each is to beat.
        by_quality: whether there is an average for each kind of data as well.
    """
    columns = [Column(label, better="higher") for label in labels]
    columns += [Column(name, "published") for name in others]
    rows = [
        Row(
            dataset,
            [_expert(methods.get(label), published, label, dataset) for label in labels]
            + [_published(published, name, dataset) for name in others],
        )
        for dataset, methods in evidence.measured.items()
    ]
    summed = [_averages("average", rows)] if len(rows) > 1 else []
    if summed and wins_over:
        summed.insert(0, _wins(rows, [*labels, *others], wins_over, published))
    if summed and by_quality:
        summed[:0] = _quality_averages(rows)
    title = f"Scores at {evidence.near.phrase}" + (", the paper's beside ours" if published else "")
    return Table("dataset", columns, [*rows, *summed], best_of="row", title=title)


def landmark_table(evidence: Evidence) -> Table:
    """Scores of every method at the named returns, its best point, and what is kept of it."""
    best, near, far = "dataset's best", evidence.near.label, evidence.far.label
    columns = [
        *map(Column, dict.fromkeys((best, near, far))),  # without an expert, the best is the near one, too
        Column("best point", "of the curve"),
        Column("OOD retention", f"{far} / best point", retention_percent, bar=True),
    ]
    rows = [
        Row(
            label,
            [
                *([cell_at(measured, measured.dataset.best)] if near != best else []),
                cell_at(measured, measured.task.expert_return),
                cell_at(measured, measured.task.far_return),
                Cell(measured.top),
                Cell(measured.retention),
            ],
            group=dataset,
        )
        for dataset, methods in evidence.measured.items()
        for label, measured in methods.items()
    ]
    return Table("method", columns, rows, title="Scores at the named returns", groups="dataset")


def curves(evidence: Evidence) -> list[Chart]:
    """The reliability chart of every dataset."""
    charts = []
    for dataset, methods in evidence.measured.items():
        sweeps = [measured.sweep for measured in methods.values()]
        summary = next(iter(methods.values())).dataset
        charts.append(reliability_chart(sweeps, summary, evidence.labels, dataset))
    return charts


def cell_at(measured: Measured, target: float) -> Cell:
    """The mean and the deviation over seeds (the paper's ±) at an asked return.

    The deviation divides by the number of seeds, not by one less, as the paper's does: its table of mazes
    has 1.0 ± 3.0, which ten seeds with one success in ten episodes among them give only so. (Its caption
    says 3 seeds. Those cannot give these numbers either way: at most 1.0 ± 1.4, or 1.0 ± 1.7.)
    """
    scores = measured.of_seeds(target)
    if not len(scores):
        return Cell()
    return Cell(float(scores.mean()), spread=float(scores.std()) if len(scores) > 1 else None)


def _expert(measured: Measured | None, published: PublishedTable | None, label: str, dataset: str) -> Cell:
    theirs = published.score(label, dataset) if published else None
    ours = Cell() if measured is None else cell_at(measured, measured.task.expert_return)
    if theirs is None:
        return ours
    return Cell(ours.value, spread=ours.spread, published=theirs.mean, published_spread=theirs.deviation)


def _published(published: PublishedTable | None, name: str, dataset: str) -> Cell:
    theirs = published.score(name, dataset) if published else None
    return Cell() if theirs is None else Cell(theirs.mean, spread=theirs.deviation)


def _averages(name: str, rows: Sequence[Row]) -> Row:
    return Row(name, [_average(cells) for cells in zip(*(row.cells for row in rows), strict=True)])


def _quality_averages(rows: Sequence[Row]) -> list[Row]:
    """The average of each kind of data, where there are several kinds."""
    kinds = {kind: [row for row in rows if quality(row.name) == kind] for kind in QUALITIES}
    there = {kind: members for kind, members in kinds.items() if members}
    return [_averages(f"{kind} average", each) for kind, each in there.items()] if len(there) > 1 else []


def _wins(
    rows: Sequence[Row], labels: Sequence[str], over: Mapping[str, str], published: PublishedTable | None
) -> Row:
    """On how many datasets a method scores higher than another; printed counts are of all nine."""
    printed = published.wins if published and {row.name for row in rows} == set(DATASETS) else {}
    cells = []
    for label in labels:
        against = over.get(label)
        count = None if against is None else _count(rows, labels.index(label), labels.index(against))
        cells.append(Cell(count, published=printed.get(label)))
    return Row("# wins", cells, written=amount)


def _count(rows: Sequence[Row], ours: int, theirs: int) -> int | None:
    count = 0
    for row in rows:
        one, other = row.cells[ours].number, row.cells[theirs].number
        if one is None or other is None:
            return None
        count += one > other
    return count


def _average(cells: Sequence[Cell]) -> Cell:
    """The mean of a column where all of its numbers are there."""
    ours = [cell.number for cell in cells]
    theirs = [cell.published for cell in cells]
    return Cell(
        float(np.mean([n for n in ours if n is not None])) if None not in ours else None,
        published=float(np.mean([n for n in theirs if n is not None])) if None not in theirs else None,
    )
