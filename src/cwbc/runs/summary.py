"""The results of runs on disk: results.csv has every episode, summary.json the metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.evaluated import Methods
from cwbc.results.recommendation import recommend
from cwbc.results.sweeps import Sweep, results_text
from cwbc.runs.run_directory import REPORT, RESULTS, SUMMARY
from cwbc.system.errors import InputError
from cwbc.system.files import read_json, read_text, write_together


def summary_of(
    methods: Methods, dataset: DatasetSummary, evaluated_with: Mapping[str, dict[str, str]] | None = None
) -> dict[str, Any]:
    """The contents of summary.json; `evaluated_with` has versions by method."""
    recommended = recommend(methods)
    return {
        "dataset": dataset.to_json(),
        "task": dataset.task.to_json(),  # what the scores mean
        "recommendation": None if recommended is None else recommended.to_json(),
        "methods": {name: method.to_json() for name, method in methods.items()},
        "measured_with": {name: versions for name, versions in (evaluated_with or {}).items() if versions},
    }


def write_results(
    directory: Path,
    sweeps: Sequence[Sweep],
    summary: dict[str, Any],
    report: Mapping[str, str | bytes | None] | None = None,
    before_replacing: Callable[[], None] = lambda: None,
) -> None:
    """Write results.csv and summary.json, and a report beside them; if that fails, all old files stay.

    Args:
        report: the files of the report; by default, that of other results is removed.
        before_replacing: may raise, and then nothing is written.
    """
    results = results_text(sweeps, DatasetSummary.from_json(summary["dataset"]).task)
    try:
        known = read_json(directory / SUMMARY)["dataset"] == summary["dataset"]
        is_new = not known or read_text(directory / RESULTS) != results
    except (OSError, InputError, KeyError, TypeError):
        is_new = True
    contents: dict[str, str | bytes | None] = {RESULTS: results}
    contents |= dict.fromkeys(REPORT) if is_new else {}  # a report is about other results
    # The summary is written last: where it exists, the other files are complete.
    contents |= {**(report or {}), SUMMARY: json.dumps(summary, indent=2, allow_nan=False) + "\n"}
    files = {directory / name: content for name, content in contents.items()}
    # Results that are there already must survive an interruption; others must not keep their summary.
    write_together(files, before_replacing, withdrawn=[directory / SUMMARY] if is_new else [])
