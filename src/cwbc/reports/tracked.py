"""The cells of a grid in TensorBoard and Weights & Biases, under the names that the report has for them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from cwbc.grids.outcomes import Outcome
from cwbc.results.dataset_names import distinct_names, file_names
from cwbc.runs.run_directory import RunDirectory
from cwbc.runs.tracking import Tracking, tensorboard

FOLDER = "tracked"  # in that of the report: event files go by dataset and label, where cells go by hashes


def show(
    outcomes: Sequence[Outcome], out: Path, trackers: Sequence[str], warn: Callable[[str], None]
) -> None:
    """Log every cell to trackers; in TensorBoard, the cells of an earlier report are removed.

    Args:
        out: the directory of the report.
        warn: given a line about each tracker that fails.
    """
    if not trackers:
        return
    folder = out / FOLDER
    if "tensorboard" in trackers:
        for earlier in folder.glob(f"*/*/{tensorboard.EVENTS}"):
            tensorboard.discard(earlier.parent)
    datasets = distinct_names(outcome.cell.dataset for outcome in outcomes)
    folders = file_names(datasets.values())
    labels = file_names(outcome.cell.label for outcome in outcomes)
    with contextlib.closing(Tracking(trackers, warn)) as tracking:
        for outcome in outcomes:
            cell, run = outcome.cell, RunDirectory(outcome.directory)
            place = folder / folders[datasets[cell.dataset]] / labels[cell.label]
            tracking.begin(place, {**run.config(), "label": cell.label}, run.metrics())
            tracking.show(outcome.sweep, outcome.dataset)
            tracking.close()
