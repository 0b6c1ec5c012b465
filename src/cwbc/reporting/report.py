"""The report about methods on one dataset: what to deploy, the finding, charts, tables and provenance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from cwbc.dataset_summary import DatasetSummary
from cwbc.intervals import meaning
from cwbc.recommendation import recommend
from cwbc.reporting.charts import looks_of
from cwbc.reporting.page import Page, Section, facts, folded, links
from cwbc.reporting.reliability import reliability_chart
from cwbc.reporting.tables import Cell, Column, Row, Table
from cwbc.reporting.training import Histories, drawn_chart, training_chart
from cwbc.results import Measure, MethodSummary, Sweep, same_target
from cwbc.tasks import Landmark, Task, landmarks
from cwbc.wording import (
    amount,
    asked_alike,
    broken_in_words,
    calibration_in_words,
    differing_in_words,
    finding,
    measured_in_words,
    percent,
    retention_percent,
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
    recommended = recommend(methods, dataset)
    return Page(
        f"{dataset.name} – reliability report",
        f"Reliability report · {dataset.name}",
        recommended.sentence() if recommended else "No policy to deploy: no return could be evaluated.",
        " ".join(
            [
                _measured(methods),
                _scale(dataset.task),
                *differing_in_words(methods),
                *broken_in_words({sweep.method: sweep for sweep in sweeps}),
            ]
        ),
        [
            Section("Reliability", [reliability_chart(sweeps, dataset, names).to_html()]),
            Section("Scores", [scores.to_html(), folded("Scores at every target return", every.to_html())]),
            *([Section("Training", charts)] if charts else []),
            Section("Dataset", [facts({"name": dataset.name, **described(dataset)})]),
            Section("Provenance", [facts(provenance)]),
            *([Section("Files", [links(files)])] if files else []),
        ],
        recommended.caveats if recommended else (),
        training_warnings(methods),
        " ".join([finding(methods, dataset), *calibration_in_words(methods)]),
    )


def training_warnings(methods: Methods) -> list[str]:
    """The warnings about the training of each method, with its name."""
    return [f"{name}: {text}" for name, method in methods.items() for text in method["training_warnings"]]


def _measured(methods: Methods) -> str:
    seeds, episodes = ({method[what] for method in methods.values()} for what in ("seeds", "episodes"))
    beside = meaning(seeds)
    return measured_in_words(seeds, episodes, beside.replace("95 %", "the small numbers are 95 %", 1))


def _scale(task: Task) -> str:
    if task.published:
        expert = amount(task.expert_score)
        if (asked := amount(task.expert_return)) != expert:
            expert += f"; the target 1× expert is {asked}, in round numbers"
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
    columns = [Column(mark.label, f"target {amount(mark.target)}", better="higher") for mark in marks]
    far = f"{marks[-1].label} / best point"
    over_all = [  # of the targets
        Column("best point", "of the curve", better="higher"),
        Column("OOD retention", far, retention_percent, better="higher", bar=True),
        Column("monotonicity", "no loss = 100 %", percent, better="higher", bar=True),
        Column("calibration error", "in points", better="lower"),
    ]
    if not asked_alike(methods):
        over_all = [dataclasses.replace(column, better=None) for column in over_all]
    rows = []
    for name, method in methods.items():
        top, target = method["best_point"], method["best_point"]["target"]
        cells = [_cell(method[mark.key]) for mark in marks]
        cells.append(_cell(top, "" if target is None else f"target {amount(target)}"))
        cells.append(_cell(method["ood_retention"], undefined(method, marks[-1])))
        cells += map(_cell, (method["monotonicity"], method["calibration_error"]))
        rows.append(Row(name, cells, name, () if method["takes_target"] else ("takes no target",)))
    return Table("method", [*columns, *over_all], rows, looks_of(list(methods), ()))


def undefined(method: MethodSummary, far: Landmark) -> str:
    """Why a method has no OOD retention, if it was evaluated at the far target; nothing where it has one."""
    point = method[far.key]
    if method["ood_retention"] is not None or point is None or point["value"] is None:
        return ""
    return "not defined" if method["takes_target"] else "takes no target"


def _cell(point: Measure | None, note: str = "") -> Cell:
    if point is None or point["value"] is None:
        return Cell(note=note)
    return Cell(point["value"], point["low"], point["high"], note=note)


def _targets(methods: Methods, dataset: DatasetSummary) -> Table:
    marks = landmarks(dataset.task, dataset.best)
    curves = {name: {point["target"]: point for point in method["curve"]} for name, method in methods.items()}
    rows = []
    targets = {target for curve in curves.values() for target in curve}
    for target in sorted(targets, key=lambda target: -math.inf if target is None else target):
        named = [mark.label for mark in marks if target is not None and same_target(mark.target, target)]
        points = [curve.get(target) for curve in curves.values()]
        cells = [
            Cell() if p is None else Cell(p["normalized"], p["normalized_low"], p["normalized_high"])
            for p in points
        ]
        rows.append(Row("takes no target" if target is None else amount(target), cells, tags=tuple(named)))
    columns = [Column(name, series=name) for name in methods]
    return Table("target return", columns, rows, looks_of(list(methods), ()), heat=True)


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
