"""The results of runs on disk: results.csv has every episode, summary.json the metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.recommendation import recommend
from cwbc.results.seed_warnings import seed_warnings
from cwbc.results.sweeps import MethodSummary, Sweep, results_text, summarize
from cwbc.runs.run_directory import REPORT, RESULTS, SUMMARY
from cwbc.system.errors import InputError
from cwbc.system.files import read_json, read_text, write_together


class Summary(TypedDict):
    """The contents of summary.json."""

    dataset: dict[str, Any]  # DatasetSummary.to_json()
    task: dict[str, Any]  # Task.to_json(): what the scores mean
    recommendation: dict[str, Any] | None  # Recommendation.to_json(); None where no return was evaluated
    methods: dict[str, MethodSummary]
    measured_with: dict[str, dict[str, str]]  # versions, by method; without unknown ones


def summary_of(
    sweeps: Sequence[Sweep],
    dataset: DatasetSummary,
    evaluated_with: Mapping[str, dict[str, str]] | None = None,
    training_warnings: Mapping[str, Sequence[str]] | None = None,
) -> Summary:
    """The summary of methods on one dataset.

    Args:
        evaluated_with: the versions that each was evaluated with, by method.
        training_warnings: by method; those about seeds that differ are added.
    """
    task, methods = dataset.task, {}
    for sweep in sweeps:
        warnings = [*(training_warnings or {}).get(sweep.method, ()), *seed_warnings(sweep, task)]
        methods[sweep.method] = summarize(sweep, task, dataset.best, warnings)
    recommended = recommend(methods, dataset)
    return {
        "dataset": dataset.to_json(),
        "task": task.to_json(),
        "recommendation": None if recommended is None else recommended.to_json(),
        "methods": methods,
        "measured_with": {name: versions for name, versions in (evaluated_with or {}).items() if versions},
    }


def write_results(
    directory: Path,
    sweeps: Sequence[Sweep],
    summary: Summary,
    report: Mapping[str, str | bytes | None] | None = None,
    before_replacing: Callable[[], None] = lambda: None,
) -> None:
    """Write results.csv and summary.json, and a report beside them; if that fails, all old files stay.

    Args:
        report: the files of the report; by default, that of other results is removed.
        before_replacing: may raise, and then nothing is written.
    """
    results = results_text(sweeps, DatasetSummary.from_json(summary["dataset"]).task)
    contents: dict[str, str | bytes | None] = {RESULTS: results}
    is_new = not _holds(directory, results, summary["dataset"])
    if is_new:
        contents |= dict.fromkeys(REPORT)  # it is about other results
    # The summary is written last: where it exists, the other files are complete.
    contents |= {**(report or {}), SUMMARY: json.dumps(summary, indent=2, allow_nan=False) + "\n"}
    files = {directory / name: content for name, content in contents.items()}
    write_together(files, before_replacing, withdrawn=[directory / SUMMARY] if is_new else [])


def _holds(directory: Path, results: str, dataset: dict[str, Any]) -> bool:
    """Whether a directory has these results already: an interruption must not lose them."""
    try:
        stored = read_json(directory / SUMMARY)["dataset"]
        return bool(stored == dataset) and read_text(directory / RESULTS) == results
    except (OSError, InputError, KeyError, TypeError):
        return False
