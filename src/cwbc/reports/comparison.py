"""The report about methods on one dataset: what to deploy, the finding, charts, tables and provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.dataset_charts import Histories
from cwbc.reports.reliability_chart import reliability_chart
from cwbc.reports.report import DatasetPart, Picture, ReportDocument, paths_image
from cwbc.reports.showing import scores_table
from cwbc.results import sentences
from cwbc.results.estimates import Estimates
from cwbc.results.evaluated import Methods, evaluated
from cwbc.results.recommendation import recommend
from cwbc.results.sweeps import Sweep
from cwbc.runs.finished import write_results
from cwbc.runs.run_directory import CONFIG, REPORT, RESULTS, VIDEO
from cwbc.system.formatting import PERCENT, amount, percent

NOTHING = "No policy to deploy: no return could be evaluated."
_PICTURES = {
    "training.png": "prediction losses",
    "heldout.png": "prediction errors on held-out episodes",
    "returns.png": "returns in the data and in training",
}


def write_report(
    directory: Path,
    sweeps: Sequence[Sweep],
    dataset: DatasetSummary,
    provenance: Mapping[str, str],
    histories: Histories | None = None,
    evaluated_with: Mapping[str, dict[str, str]] | None = None,
    training_warnings: Mapping[str, Sequence[str]] | None = None,
    estimates: Mapping[str, Estimates | None] | None = None,
    videos: Mapping[str, bytes] | None = None,
) -> Methods:
    """Write results.csv, summary.json, scores, pictures and report.html; returns the methods."""
    errors = {name: known.errors.final for name, known in (histories or {}).items() if known.errors}
    methods = evaluated(sweeps, dataset, training_warnings, errors, estimates)
    written = {RESULTS: "every episode: method, seed, target return, achieved return"}
    if (directory / CONFIG).exists():
        written[CONFIG] = "all that is needed to run it again"
    if (directory / VIDEO).exists():
        written[VIDEO] = "a video of its policies"
    report = comparison(methods, dataset, provenance, histories or {}, written, videos)
    directory.mkdir(parents=True, exist_ok=True)
    # What this report has not, such as the losses of unknown trainings, is about other runs.
    files = {**dict.fromkeys(REPORT), **report.contents()}
    write_results(directory, methods, evaluated_with or {}, files)
    return methods


def comparison(
    methods: Methods,
    dataset: DatasetSummary,
    provenance: Mapping[str, str],
    histories: Histories,
    written: Mapping[str, str],
    videos: Mapping[str, bytes] | None = None,
) -> ReportDocument:
    """The report about methods on one dataset; `written` are the files beside it."""
    chart = reliability_chart(methods)
    part = DatasetPart(dataset, methods, histories, list(methods), videos or {})
    pictures = {"reliability.png": Picture(chart, dataset.name, chart.title[0].lower() + chart.title[1:])}
    for name, trained in part.charts.items():
        pictures[name] = Picture(trained, dataset.name, _PICTURES[name])
    recommended = recommend(methods)
    seeds = {len(method.scores) for method in methods.values()}
    episodes = {method.sweep.episodes for method in methods.values()}
    spread = sentences.intervals_in_words(methods).replace("95 %", "the small numbers are 95 %", 1)
    remarks = [
        *sentences.estimated_in_words(methods),
        sentences.evaluated_in_words(seeds, episodes, spread),
        _scale(dataset),
    ]
    return ReportDocument(
        f"{dataset.name} – reliability report",
        f"Reliability report · {dataset.name}{' · estimated offline' if dataset.is_estimated else ''}",
        recommended.sentence() if recommended else NOTHING,
        remarks + sentences.differing_in_words(methods) + sentences.broken_in_words(methods),
        {dataset.name: part},
        provenance,
        caveats=recommended.caveats if recommended else (),
        finding=" ".join([sentences.finding(methods), *sentences.calibration_in_words(methods)]),
        training_warnings=training_warnings(methods),
        tables={"scores": part.scores},
        charts=[chart],
        pictures=pictures,
        images={"paths.png": paths} if (paths := paths_image(methods)) else {},
        written=written,
    )


def training_warnings(methods: Methods) -> list[str]:
    """The warnings about the training of each method, with its name."""
    return [f"{name}: {text}" for name, method in methods.items() for text in method.training_warnings]


def _scale(dataset: DatasetSummary) -> str:
    task = dataset.task
    if dataset.counts_successes:
        data = f"that of the dataset's episodes is {percent(dataset.mean_return)}"
        return f"Every return in the dataset is 0 or 1: scores are success rates in{PERCENT}; {data}."
    if task.published:
        expert = amount(task.expert_score)
        if (target := amount(task.expert_return)) != expert:
            expert += f"; the target 1× expert is {target}, in round numbers"
        words = f"0 is a random policy (return {amount(task.random_score)}), 100 the expert (return {expert})"
        return f"Scores are normalized as in D4RL: {words}."
    if task.is_game:
        words = (
            f"0 is a random policy ({amount(task.random_score)}), 100 a gamer ({amount(task.expert_score)})"
        )
        return f"Scores are gamer-normalized: {words}, in points of the game."
    words = f"0 is its min (return {amount(task.random_score)}), 100 its best ({amount(task.expert_score)})"
    unpublished = "This environment has no published reference returns"
    return f"{unpublished}: scores are relative to the dataset's own, {words}."


def summary_table(methods: Methods) -> Table:
    """The scores at the named targets, for a terminal."""
    scores, marks = scores_table(methods), next(iter(methods.values())).landmarks
    shown = {f"at {mark.label}": index for index, mark in enumerate(marks)}
    shown["OOD retention"] = len(marks) + 1  # after the best point
    rates = next(iter(methods.values())).dataset.counts_successes
    numbers = f"success rates in{PERCENT}" if rates else "normalized scores"
    table = Table(caption=f"{numbers}, {sentences.intervals_in_words(methods)}")
    table.add_column("method")
    for name in shown:
        table.add_column(name, justify="right")
    for row in scores.rows:
        cells = [scores.shown(index, row) for index in shown.values()]
        texts = [Text.assemble(cell.text, *((f"\n{note}", "dim") for note in cell.notes)) for cell in cells]
        table.add_row(Text(row.name, style="bold"), *texts)
    return table
