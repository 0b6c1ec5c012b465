"""From measured sweeps to the files people read; works from disk alone and never needs a simulator."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from rich.table import Table
from rich.text import Text

from cwbc.dataset_summary import DatasetSummary
from cwbc.diagnostics import seed_warnings
from cwbc.errors import InputError
from cwbc.files import read_json, read_text, write_together
from cwbc.intervals import meaning
from cwbc.recommendation import recommend
from cwbc.reporting.figures import reliability_figure
from cwbc.reporting.report import report_page, scores_table, undefined
from cwbc.reporting.training import Histories
from cwbc.reporting.training_figures import returns_figure, training_figure
from cwbc.results import MethodSummary, Sweep, results_text, summarize
from cwbc.runs import CONFIG, PAGE, REPORT, RESULTS, SUMMARY
from cwbc.tasks import landmarks
from cwbc.wording import value_and_interval

__all__ = ["DatasetSummary", "Summary", "summary_table", "write_measured", "write_report"]


class Summary(TypedDict):
    """What summary.json holds."""

    dataset: dict[str, Any]  # DatasetSummary.to_json()
    task: dict[str, Any]  # Task.to_json(): what the scores mean
    recommendation: dict[str, Any] | None  # Recommendation.to_json(); None where no return was evaluated
    methods: dict[str, MethodSummary]
    measured_with: dict[str, dict[str, str]]  # versions, by method; left out where they are not known


FILES = {
    "results.csv": "every episode: method, seed, target return, achieved return",
    SUMMARY: "the numbers of this page, with intervals",
    "scores.md": "the table of scores in Markdown",
    "scores.csv": "the same as numbers",
    "reliability.png": "achieved vs. target return",
    "training.png": "prediction losses",
    "returns.png": "returns in the data and in training",
    "config.json": "all that is needed to run it again",
}


def write_report(
    directory: Path,
    sweeps: Sequence[Sweep],
    dataset: DatasetSummary,
    provenance: Mapping[str, str],
    histories: Histories | None = None,
    measured_with: Mapping[str, dict[str, str]] | None = None,
    training_warnings: Mapping[str, Sequence[str]] | None = None,
) -> Summary:
    """Write results.csv, summary.json, scores, pictures and report.html; hands the summary back.

    Args:
        training_warnings: by method, what is wrong with its training; shown at the top.
    """
    summary = _summary(sweeps, dataset, measured_with or {}, training_warnings or {})
    methods = summary["methods"]
    scores = scores_table(methods, dataset)
    known = histories or {}
    contents: dict[str, str | bytes | None] = {
        "scores.md": scores.to_markdown(),
        "scores.csv": scores.to_csv(),
        "reliability.png": reliability_figure(sweeps, dataset),
        "training.png": training_figure(known, dataset, list(methods)),  # None removes that of other runs
        "returns.png": returns_figure(known, dataset, list(methods)),
    }
    there = {RESULTS, SUMMARY, *(name for name, content in contents.items() if content is not None)}
    there |= {CONFIG} if (directory / CONFIG).exists() else set()
    files = {name: what for name, what in FILES.items() if name in there}
    page = report_page(sweeps, methods, dataset, provenance, known, files)
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory, sweeps, summary, {**contents, PAGE: page.to_html()})
    return summary


def write_measured(
    directory: Path,
    sweeps: Sequence[Sweep],
    dataset: DatasetSummary,
    measured_with: Mapping[str, dict[str, str]],
    before_replacing: Callable[[], None],
    training_warnings: Mapping[str, Sequence[str]] | None = None,
) -> Summary:
    """Write results.csv and summary.json alone, unless `before_replacing` raises."""
    summary = _summary(sweeps, dataset, measured_with, training_warnings or {})
    _write(directory, sweeps, summary, {}, before_replacing)
    return summary


def _summary(
    sweeps: Sequence[Sweep],
    dataset: DatasetSummary,
    measured_with: Mapping[str, dict[str, str]],
    training_warnings: Mapping[str, Sequence[str]],
) -> Summary:
    task, best = dataset.task, dataset.best
    methods = {}
    for sweep in sweeps:
        warnings = [*training_warnings.get(sweep.method, ()), *seed_warnings(sweep, task)]
        methods[sweep.method] = summarize(sweep, task, best, warnings)
    recommended = recommend(methods, dataset)
    return {
        "dataset": dataset.to_json(),
        "task": task.to_json(),
        "recommendation": None if recommended is None else recommended.to_json(),
        "methods": methods,
        "measured_with": {name: versions for name, versions in measured_with.items() if versions},
    }


def _write(
    directory: Path,
    sweeps: Sequence[Sweep],
    summary: Summary,
    beside: Mapping[str, str | bytes | None],
    before_replacing: Callable[[], None] = lambda: None,
) -> None:
    """Replace results, summary and what lies beside them; where that fails, the old ones all stay."""
    results = results_text(sweeps, _dataset(summary).task)
    contents: dict[str, str | bytes | None] = {RESULTS: results}
    is_new = not _holds(directory, results, summary["dataset"])
    if is_new:
        contents |= dict.fromkeys(REPORT)  # beside other results they would tell lies
    # The summary last: it is what tells that all is there.
    contents |= {**beside, SUMMARY: json.dumps(summary, indent=2, allow_nan=False) + "\n"}
    files = {directory / name: content for name, content in contents.items()}
    write_together(files, before_replacing, withdrawn=[directory / SUMMARY] if is_new else [])


def _holds(directory: Path, results: str, dataset: dict[str, Any]) -> bool:
    """Whether a directory has just these results: shown anew, they must not be lost by a kill."""
    try:
        kept = read_json(directory / SUMMARY)["dataset"]
        return bool(kept == dataset) and read_text(directory / RESULTS) == results
    except (OSError, InputError, KeyError, TypeError):
        return False


def summary_table(summary: Summary) -> Table:
    """The scores at the named targets, for a terminal."""
    dataset, methods = _dataset(summary), summary["methods"]
    marks = landmarks(dataset.task, dataset.best)
    around = meaning({method["seeds"] for method in methods.values()})
    table = Table(caption=f"normalized scores, {around}")
    for name in ("method", *(f"at {mark.label}" for mark in marks), "OOD retention"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for name, method in methods.items():
        cells = [value_and_interval(method[mark.key]) for mark in marks]
        value, around = value_and_interval(method["ood_retention"], fraction=True)
        cells.append((value, around or undefined(method, marks[-1])))
        table.add_row(Text(name, style="bold"), *(_cell(*cell) for cell in cells))
    return table


def _dataset(summary: Summary) -> DatasetSummary:
    return DatasetSummary.from_json(summary["dataset"])


def _cell(value: str, interval: str) -> Text:
    return Text.assemble(value, (f"\n{interval}", "dim") if interval else "")
