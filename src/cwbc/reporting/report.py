"""The report about methods on one dataset: the finding, its charts and tables, and how it all came about."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from cwbc.dataset_summary import DatasetSummary
from cwbc.reporting.charts import looks_of
from cwbc.reporting.page import Page, Section, facts, folded, links
from cwbc.reporting.reliability import reliability_chart
from cwbc.reporting.tables import Cell, Column, Row, Table
from cwbc.reporting.training import Histories, drawn_chart, training_chart
from cwbc.results import Measure, MethodSummary, Sweep, same_target
from cwbc.tasks import Task
from cwbc.wording import (
    amount,
    asked_alike,
    broken_in_words,
    differing_in_words,
    headline,
    landmarks,
    measured_in_words,
    obedience_in_words,
    percent,
)

Methods = Mapping[str, MethodSummary]


def report_page(
    sweeps: Sequence[Sweep],
    methods: Methods,
    dataset: DatasetSummary,
    provenance: Mapping[str, str],
    histories: Histories,
    files: Mapping[str, str],
) -> Page:
    """The whole page; `provenance` is what made the numbers, `files` what else lies beside it."""
    names = list(methods)
    trained = [training_chart(histories, names), drawn_chart(histories, dataset, names)]
    charts = [chart.to_html() for chart in trained if chart is not None]
    scores, every = scores_table(methods, dataset), _targets(methods, dataset)
    broken = broken_in_words({sweep.method: sweep for sweep in sweeps})
    asked = f"Scores at all {len(every.rows)} asked returns"
    return Page(
        f"{dataset.name} – reliability report",
        f"Reliability report · {dataset.name}",
        headline(methods, dataset),
        " ".join(
            [
                _measured(methods),
                _scale(dataset.task),
                *obedience_in_words(methods),
                *differing_in_words(methods),
                *broken,
            ]
        ),
        [
            Section("Reliability", [reliability_chart(sweeps, dataset, names).to_html()]),
            Section("Scores", [scores.to_html(), folded(asked, every.to_html())]),
            *([Section("Training", charts)] if charts else []),
            Section("Dataset", [facts({"name": dataset.name, **described(dataset)})]),
            Section("Provenance", [facts(provenance)]),
            *([Section("Files", [links(files)])] if files else []),
        ],
    )


def _measured(methods: Methods) -> str:
    seeds, episodes = ({method[what] for method in methods.values()} for what in ("seeds", "episodes"))
    return measured_in_words(seeds, episodes, "the small numbers are 95 % intervals over seeds")


def _scale(task: Task) -> str:
    if task.published:
        expert = amount(task.expert_score)
        if (asked := amount(task.expert_return)) != expert:
            expert += f"; 1× expert asks for {asked}, in round numbers"
        return (
            "Scores are normalized as in D4RL: 0 is a random policy "
            f"(return {amount(task.random_score)}), 100 the expert (return {expert})."
        )
    return (
        "This environment has no published reference returns: scores are relative to the dataset's own, "
        f"0 is its lowest (return {amount(task.random_score)}), 100 its best ({amount(task.expert_score)})."
    )


def scores_table(methods: Methods, dataset: DatasetSummary) -> Table:
    """The table of scores, for the page and for files of its own."""
    marks = landmarks(dataset.task, dataset.best)
    columns = [Column(mark.label, f"asked {amount(mark.target)}", better="higher") for mark in marks]
    over_all = [  # of the asked returns
        Column("best point", "of the curve", better="higher"),
        Column("retention", f"{marks[-1].label} / best point", percent, better="higher", bar=True),
        Column("monotonicity", "no loss = 100 %", percent, better="higher", bar=True),
        Column("calibration", "error in points", better="lower"),
    ]
    if not asked_alike(methods):
        over_all = [dataclasses.replace(column, better=None) for column in over_all]
    rows = []
    for name, method in methods.items():
        top = method["best_point"]
        cells = [_cell(method[mark.key]) for mark in marks]
        cells += [_cell(top, f"asked {amount(top['target'])}"), _cell(method["ood_retention"])]
        cells += [_cell(method["monotonicity"]), _cell(method["calibration_error"])]
        rows.append(Row(name, cells, series=name))
    return Table("method", [*columns, *over_all], rows, looks_of(list(methods), ()))


def _cell(point: Measure | None, note: str = "") -> Cell:
    if point is None or point["value"] is None:
        return Cell()
    return Cell(point["value"], point["low"], point["high"], note=note)


def _targets(methods: Methods, dataset: DatasetSummary) -> Table:
    marks = landmarks(dataset.task, dataset.best)
    curves = {name: {point["target"]: point for point in method["curve"]} for name, method in methods.items()}
    rows = []
    for target in sorted({target for curve in curves.values() for target in curve}):
        named = [mark.label for mark in marks if same_target(mark.target, target)]
        points = [curve.get(target) for curve in curves.values()]
        cells = [
            Cell() if p is None else Cell(p["normalized"], p["normalized_low"], p["normalized_high"])
            for p in points
        ]
        rows.append(Row(amount(target), cells, tags=tuple(named)))
    columns = [Column(name, series=name) for name in methods]
    return Table("asked return", columns, rows, looks_of(list(methods), ()), heat=True)


def described(dataset: DatasetSummary) -> dict[str, str]:
    """What a page says about a dataset."""
    return {
        "environment": dataset.environment or "unknown",
        "episodes": f"{dataset.episodes:,}",
        "steps": f"{dataset.steps:,}",
        "best return": amount(dataset.best),
        "mean return": amount(dataset.mean_return),
        "lowest return": amount(dataset.lowest),
        "content hash": dataset.content_hash,
    }
