"""The report about methods on one dataset: what to deploy, the finding, charts, tables and provenance."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from cwbc.core.tasks import Task, landmarks
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.dataset_part import DatasetPart, Methods, undefined
from cwbc.reports.reliability_chart import reliability_chart
from cwbc.reports.report import Picture, ReportDocument
from cwbc.reports.training_charts import Histories
from cwbc.results.intervals import meaning
from cwbc.results.sentences import (
    broken_in_words,
    calibration_in_words,
    differing_in_words,
    evaluated_in_words,
    finding,
    value_and_interval,
)
from cwbc.results.sweeps import Sweep
from cwbc.runs.run_directory import CONFIG, PAGE, REPORT, RESULTS
from cwbc.runs.summary import Summary, summary_of, write_results
from cwbc.system.formatting import amount

NOTHING = "No policy to deploy: no return could be evaluated."
_PICTURES = {"training.png": "prediction losses", "returns.png": "returns in the data and in training"}


def write_report(
    directory: Path,
    sweeps: Sequence[Sweep],
    dataset: DatasetSummary,
    provenance: Mapping[str, str],
    histories: Histories | None = None,
    evaluated_with: Mapping[str, dict[str, str]] | None = None,
    training_warnings: Mapping[str, Sequence[str]] | None = None,
) -> Summary:
    """Write results.csv, summary.json, scores, pictures and report.html; returns the summary.

    Args:
        training_warnings: by method; shown at the top.
    """
    summary = summary_of(sweeps, dataset, evaluated_with, training_warnings)
    report = comparison(sweeps, summary["methods"], dataset, provenance, histories or {})
    if (directory / CONFIG).exists():
        report = dataclasses.replace(
            report, written={**report.written, CONFIG: "all that is needed to run it again"}
        )
    directory.mkdir(parents=True, exist_ok=True)
    files = report.beside()
    contents = {name: file.content for name, file in files.items()} | {PAGE: report.page(files).to_html()}
    # What this report has not, such as the losses of unknown trainings, is about other runs.
    write_results(directory, sweeps, summary, {**dict.fromkeys(REPORT), **contents})
    return summary


def comparison(
    sweeps: Sequence[Sweep],
    methods: Methods,
    dataset: DatasetSummary,
    provenance: Mapping[str, str],
    histories: Histories,
) -> ReportDocument:
    """The report about methods on one dataset."""
    chart = reliability_chart(sweeps, dataset, list(methods))
    part = DatasetPart(dataset, methods, histories, list(methods))
    pictures = {"reliability.png": Picture(chart, dataset.name, "achieved vs. target return")}
    for name, trained in part.charts().items():
        pictures[name] = Picture(trained, dataset.name, _PICTURES[name])
    recommended = part.recommended
    return ReportDocument(
        f"{dataset.name} – reliability report",
        f"Reliability report · {dataset.name}",
        recommended.sentence() if recommended else NOTHING,
        [
            _evaluated(methods),
            _scale(dataset.task),
            *differing_in_words(methods),
            *broken_in_words({sweep.method: sweep for sweep in sweeps}),
        ],
        {dataset.name: part},
        provenance,
        caveats=recommended.caveats if recommended else (),
        finding=" ".join([finding(methods, dataset), *calibration_in_words(methods)]),
        training_warnings=training_warnings(methods),
        tables={"scores": part.scores},
        charts=[chart],
        pictures=pictures,
        written={RESULTS: "every episode: method, seed, target return, achieved return"},
    )


def training_warnings(methods: Methods) -> list[str]:
    """The warnings about the training of each method, with its name."""
    return [f"{name}: {text}" for name, method in methods.items() for text in method["training_warnings"]]


def _evaluated(methods: Methods) -> str:
    seeds, episodes = ({method[what] for method in methods.values()} for what in ("seeds", "episodes"))
    beside = meaning(seeds)
    return evaluated_in_words(seeds, episodes, beside.replace("95 %", "the small numbers are 95 %", 1))


def _scale(task: Task) -> str:
    if task.published:
        expert = amount(task.expert_score)
        if (target := amount(task.expert_return)) != expert:
            expert += f"; the target 1× expert is {target}, in round numbers"
        return (
            "Scores are normalized as in D4RL: 0 is a random policy "
            f"(return {amount(task.random_score)}), 100 the expert (return {expert})."
        )
    return (
        "This environment has no published reference returns: scores are relative to the dataset's own, "
        f"0 is its min (return {amount(task.random_score)}), 100 its best ({amount(task.expert_score)})."
    )


def summary_table(summary: Summary) -> Table:
    """The scores at the named targets, for a terminal."""
    dataset, methods = DatasetSummary.from_json(summary["dataset"]), summary["methods"]
    marks = landmarks(dataset.task, dataset.best)
    around = meaning({method["seeds"] for method in methods.values()})
    table = Table(caption=f"normalized scores, {around}")
    for name in ("method", *(f"at {mark.label}" for mark in marks), "OOD retention"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for name, method in methods.items():
        cells = [value_and_interval(method[mark.key]) for mark in marks]
        value, around = value_and_interval(method["ood_retention"], fraction=True)
        cells.append((value, around or undefined(method, marks[-1])))
        shown = [Text.assemble(value, (f"\n{around}", "dim") if around else "") for value, around in cells]
        table.add_row(Text(name, style="bold"), *shown)
    return table
