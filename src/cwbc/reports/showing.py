"""The tables of reports, about one dataset or several, with published scores beside ours."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.chart import Chart
from cwbc.reports.method_styles import looks_of
from cwbc.reports.reliability_chart import reliability_chart
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.results.evaluated import EvaluatedMethod, Methods
from cwbc.results.evidence import Evidence
from cwbc.results.sentences import same_targets
from cwbc.results.sweeps import same_target
from cwbc.system.formatting import PERCENT, amount, listed, percent, retention_percent


class Score(NamedTuple):
    """A mean over seeds and its standard deviation, where one is printed."""

    mean: float = math.nan
    deviation: float = math.nan


@dataclasses.dataclass(frozen=True)
class PublishedTable:
    """A published table."""

    name: str  # as people cite it
    scores: Mapping[str, Mapping[str, Score]]  # by method, by dataset
    wins: Mapping[str, int] = dataclasses.field(default_factory=dict)  # by method: better than RvS or DT
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict)  # by method: whose, if another's

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
    target: Callable[[EvaluatedMethod], float] = lambda method: method.task.expert_return,
    where: str | None = None,
) -> ReportTable:
    """Scores at the expert return, or at another target, by dataset, beside what was published.

    Args:
        others: methods that were published alone, perhaps on other data, so never the best of a row.
        wins_over: methods whose wins are counted, with the method that each is to beat.
        by_quality: whether there is an average for each kind of data as well.
        where: the target in words, by default those of its landmark.
    """
    if published and evidence.evaluated and not published.datasets & evidence.evaluated.keys():
        published, others = None, ()  # it has nothing on these
    theirs = published or PublishedTable("", {})
    open_ended = {each.sweep.method for each in evidence if not each.sweep.takes_target}
    columns = []
    for label in labels:
        source = f"beside it {theirs.sources[label]}'s" if label in theirs.sources else ""
        note = ", ".join(filter(None, ("without a target" * (label in open_ended), source)))
        columns.append(TableColumn(label, note, better="higher"))
    for name in others:
        source = f" by {theirs.sources[name]}" if name in theirs.sources else ""
        columns.append(TableColumn(name, f"published{source}"))
    rows = []
    for dataset, methods in evidence.evaluated.items():
        cells = []
        for label in labels:
            ours = cell_at(each, target(each)) if (each := methods.get(label)) else TableCell()
            mean, deviation = theirs.score(label, dataset) or Score()
            cells.append(dataclasses.replace(ours, published=mean, published_spread=deviation))
        for name in others:
            mean, deviation = theirs.score(name, dataset) or Score()
            cells.append(TableCell(mean, spread=deviation))
        rows.append(TableRow(dataset, cells))
    summed = []
    if len(rows) > 1:
        summed += _quality_averages(rows) if by_quality else []
        summed += [_wins(rows, [*labels, *others], wins_over, theirs)] if wins_over else []
        summed.append(_averages("average", rows))
    numbers = scores_in_words(each.dataset for each in evidence)
    whose = listed([f"{name}'s" for name in dict.fromkeys(("the paper", *theirs.sources.values()))])
    beside = f", {whose} beside ours" if published else ""
    title = f"{numbers} at {where or evidence.near.phrase}{beside}"
    return ReportTable("dataset", columns, [*rows, *summed], best_of="row", title=title)


def landmark_table(evidence: Evidence) -> ReportTable:
    """Scores of every method at the named targets, its best point, and its OOD retention."""
    best, near, far = "dataset's best", evidence.near.label, evidence.far.label
    names = dict.fromkeys((best, near, far))  # without an expert, the best is the near one, too
    columns = [
        *map(TableColumn, names),
        TableColumn("best point", "of the curve"),
        TableColumn("OOD retention", f"{far} / best point", retention_percent, bar=True),
    ]
    rows = []
    for dataset, methods in evidence.evaluated.items():
        for label, each in methods.items():
            targets = (each.dataset.best, each.task.expert_return, each.task.far_return)[-len(names) :]
            cells = [*(cell_at(each, target) for target in targets), TableCell(each.top)]
            rows.append(TableRow(label, [*cells, TableCell(each.retention)], group=dataset))
    title = f"{scores_in_words(each.dataset for each in evidence)} at the named targets"
    return ReportTable("method", columns, rows, title=title, groups="dataset")


def scores_in_words(datasets: Iterable[DatasetSummary]) -> str:
    """What the scores on all of these are called."""
    rates = {dataset.counts_successes for dataset in datasets} == {True}
    return f"Success rates in{PERCENT}" if rates else "Scores"


def curves(evidence: Evidence) -> list[Chart]:
    """The reliability chart of every dataset."""
    return [reliability_chart(of, evidence.labels, name) for name, of in evidence.evaluated.items()]


def cell_at(measured: EvaluatedMethod, target: float) -> TableCell:
    """The mean and the std over seeds (the paper's ±) at a target return; of success rates, the interval.

    The std divides by the number of seeds, not by one less, as the paper's does: its table of mazes
    has 1.0 ± 3.0, which ten seeds with one success in ten episodes among them give only so. (Its caption
    says 3 seeds. Those cannot give these numbers either way: at most 1.0 ± 1.4, or 1.0 ± 1.7.)
    """
    if (point := measured.point_at(target)) is None:
        return TableCell()
    if measured.dataset.counts_successes:
        return TableCell(*point.score)
    scores = measured.of_seeds(target)
    return TableCell(float(scores.mean()), spread=float(scores.std()) if len(scores) > 1 else math.nan)


def _averages(name: str, rows: Sequence[TableRow]) -> TableRow:
    """The means of columns; NaN where a number is missing."""
    cells = []
    for column in zip(*(row.cells for row in rows), strict=True):
        ours = float(np.mean([cell.number for cell in column]))
        cells.append(TableCell(ours, published=float(np.mean([cell.published for cell in column]))))
    return TableRow(name, cells)


def _quality_averages(rows: Sequence[TableRow]) -> list[TableRow]:
    """The average of each kind of data, where there are several kinds."""
    kinds: dict[str, list[TableRow]] = {}
    for row in rows:
        kinds.setdefault(row.name.partition("-")[2], []).append(row)
    return [_averages(f"{kind} average", each) for kind, each in kinds.items()] if len(kinds) > 1 else []


def _wins(
    rows: Sequence[TableRow], labels: Sequence[str], over: Mapping[str, str], published: PublishedTable
) -> TableRow:
    """On how many datasets a method scores higher than another; published counts are of all datasets."""
    printed = published.wins if {row.name for row in rows} == published.datasets else {}
    scores = np.array([[cell.number for cell in row.cells] for row in rows])  # [dataset, method]
    cells = []
    for label, ours in zip(labels, scores.T, strict=True):
        theirs = scores[:, labels.index(over[label])] if label in over else np.full(len(rows), math.nan)
        is_known = bool(np.isfinite(ours - theirs).all())
        count = int((ours > theirs).sum()) if is_known else math.nan
        cells.append(TableCell(count, published=printed.get(label, math.nan)))
    return TableRow("# wins", cells, written=amount)


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
    keys = [mark.key for mark in marks]
    keys += ["best_point", "ood_retention", "monotonicity", "calibration_error"]
    if not same_targets(methods):
        over_all = [dataclasses.replace(column, better=None) for column in over_all]
    rows = []
    for name, method in methods.items():
        metrics, top, notes = method.metrics, method.named_points["best_point"], {}
        if top is not None and not math.isnan(top.target):
            notes["best_point"] = f"target {amount(top.target)}"
        if metrics[marks[-1].key].is_known and not metrics["ood_retention"].is_known:
            notes["ood_retention"] = "not defined" if method.sweep.takes_target else "without a target"
        cells = [TableCell(*metrics[key], note=notes.get(key, "")) for key in keys]
        rows.append(TableRow(name, cells, name, () if method.sweep.takes_target else ("without a target",)))
    looks = looks_of(list(methods), names)
    title = f"{scores_in_words(each.dataset for each in methods.values())} at the named targets"
    return ReportTable("method", [*columns, *over_all], rows, looks, title=title)


def targets_table(methods: Methods, names: Sequence[str] = ()) -> ReportTable:
    """The scores of every method at every target."""
    marks = next(iter(methods.values())).landmarks
    # The target of methods that take none comes first: -inf, as NaN does not equal itself.
    curves = [
        {-math.inf if math.isnan(point.target) else point.target: point.score for point in method.points}
        for method in methods.values()
    ]
    rows = []
    for target in sorted({target for curve in curves for target in curve}):
        named = tuple(mark.label for mark in marks if same_target(mark.target, target))
        words = "without a target" if math.isinf(target) else amount(target)
        rows.append(TableRow(words, [TableCell(*curve.get(target, ())) for curve in curves], tags=named))
    columns = [TableColumn(name, series=name) for name in methods]
    return ReportTable("target return", columns, rows, looks_of(list(methods), names), heat=True)


def estimates_table(methods: Methods, names: Sequence[str] = ()) -> ReportTable:
    """Both estimates of the return at every target, and the support, of an offline evaluation."""
    columns, cells = list[TableColumn](), dict[float, list[TableCell]]()
    for name, method in methods.items():
        if (estimates := method.estimates) is None:
            continue
        whats = {"model of the data": amount, "fitted Q evaluation": amount, "support": percent}
        columns += [TableColumn(name, what, written, series=name) for what, written in whats.items()]
        for point in method.points:
            target = -math.inf if math.isnan(point.target) else point.target
            known = estimates.at(point.target) or (math.nan, math.nan)
            row = cells.setdefault(target, [TableCell()] * (len(columns) - 3))
            row += [TableCell()] * (len(columns) - 3 - len(row))
            row += [TableCell(*point.achieved), *map(TableCell, known)]
    rows = []
    for target in sorted(cells):
        words = "without a target" if math.isinf(target) else amount(target)
        rows.append(TableRow(words, cells[target] + [TableCell()] * (len(columns) - len(cells[target]))))
    return ReportTable("target return", columns, rows, looks_of(list(methods), names))
