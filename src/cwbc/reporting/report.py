"""The report about methods on one dataset: the finding, its charts and tables, and how it all came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cwbc.dataset_summary import DatasetSummary
from cwbc.reporting.charts import looks_of
from cwbc.reporting.page import Page, Section, facts, folded, links
from cwbc.reporting.reliability import reliability_chart
from cwbc.reporting.tables import Cell, Column, Row, Table
from cwbc.reporting.training import Histories, drawn_chart, training_chart
from cwbc.results import Measure, MethodSummary, Sweep, same_target
from cwbc.tasks import Task
from cwbc.wording import amount, broken_in_words, headline, landmarks, percent

Methods = Mapping[str, MethodSummary]


def report_page(
    sweeps: Sequence[Sweep],
    methods: Methods,
    task: Task,
    dataset: DatasetSummary,
    provenance: Mapping[str, str],
    histories: Histories,
    files: Mapping[str, str],
) -> Page:
    """The whole page; `provenance` is what made the numbers, `files` what else lies beside it."""
    names = list(methods)
    trained = [training_chart(histories, names), drawn_chart(histories, dataset, names)]
    charts = [chart.to_html() for chart in trained if chart is not None]
    scores = _scores(methods, task, dataset.best)
    every = _targets(methods, task, dataset.best)
    broken = broken_in_words({sweep.method: sweep for sweep in sweeps})
    asked = f"Scores at all {len(every.rows)} asked returns"
    return Page(
        f"{dataset.name} – reliability report",
        f"Reliability report · {dataset.name}",
        headline(methods, task, dataset.best),
        " ".join([_measured(methods), _scale(task), *broken]),
        [
            Section("Reliability", [reliability_chart(sweeps, task, dataset, names).to_html()]),
            Section("Scores", [scores.to_html(), folded(asked, every.to_html())]),
            *([Section("Training", charts)] if charts else []),
            Section("Dataset", [facts(_describe(dataset))]),
            Section("Provenance", [facts(provenance)]),
            *([Section("Files", [links(files)])] if files else []),
        ],
    )


def scores_table(methods: Methods, task: Task, dataset: DatasetSummary) -> Table:
    """The table of scores, for the page and for files of its own."""
    return _scores(methods, task, dataset.best)


def _measured(methods: Methods) -> str:
    seeds = sorted({method["seeds"] for method in methods.values()})
    episodes = " or ".join(map(str, sorted({method["episodes"] for method in methods.values()})))
    each = f"{episodes} episode{'s' * (episodes != '1')} per asked return"
    if seeds == [1]:
        return f"One seed with {each}, so there are no intervals."
    return (
        f"Means over {' or '.join(map(str, seeds))} seeds with {each}; "
        "the small numbers are 95 % intervals over seeds."
    )


def _scale(task: Task) -> str:
    if task.published:
        return (
            "Scores are normalized as in D4RL: 0 is a random policy "
            f"(return {amount(task.random_score)}), 100 the expert (return {amount(task.expert_score)})."
        )
    return (
        "This environment has no published reference returns: scores are relative to the dataset's own, "
        f"0 is its lowest (return {amount(task.random_score)}), 100 its best ({amount(task.expert_score)})."
    )


def _scores(methods: Methods, task: Task, best: float) -> Table:
    marks = landmarks(task, best)
    columns = [Column(mark.label, f"asked {amount(mark.target)}", better="higher") for mark in marks]
    columns.append(Column("best point", "of the curve", better="higher"))
    retained = f"{marks[-1].label} / best point"
    columns.append(Column("retention", retained, percent, bar=True))
    columns.append(Column("monotonicity", "no loss = 100 %", percent, bar=True))
    columns.append(Column("calibration", "error in points", better="lower"))
    rows = []
    for name, method in methods.items():
        top = method["best_point"]
        cells = [_cell(method[mark.key]) for mark in marks]
        cells += [_cell(top, f"asked {amount(top['target'])}"), _cell(method["ood_retention"])]
        cells += [_cell(method["monotonicity"]), _cell(method["calibration_error"])]
        rows.append(Row(name, cells, series=name))
    return Table("method", columns, rows, looks_of(list(methods), ()))


def _cell(point: Measure | None, note: str = "") -> Cell:
    if point is None or point["value"] is None:
        return Cell()
    return Cell(point["value"], point["low"], point["high"], note=note)


def _targets(methods: Methods, task: Task, best: float) -> Table:
    curves = {name: {point["target"]: point for point in method["curve"]} for name, method in methods.items()}
    rows = []
    for target in sorted({target for curve in curves.values() for target in curve}):
        named = [mark.label for mark in landmarks(task, best) if same_target(mark.target, target)]
        points = [curve.get(target) for curve in curves.values()]
        cells = [
            Cell() if p is None else Cell(p["normalized"], p["normalized_low"], p["normalized_high"])
            for p in points
        ]
        rows.append(Row(amount(target), cells, tags=tuple(named)))
    columns = [Column(name, series=name) for name in methods]
    return Table("asked return", columns, rows, looks_of(list(methods), ()), heat=True)


def _describe(dataset: DatasetSummary) -> dict[str, str]:
    return {
        "name": dataset.name,
        "environment": dataset.environment or "unknown",
        "episodes": f"{dataset.episodes:,}",
        "steps": f"{dataset.steps:,}",
        "best return": amount(dataset.best),
        "mean return": amount(dataset.mean_return),
        "lowest return": amount(dataset.lowest),
        "content hash": dataset.content_hash,
    }
