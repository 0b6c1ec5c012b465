"""The cells of a grid in TensorBoard and Weights & Biases, under the names that the report has for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cwbc import runs
from cwbc.evidence.naming import distinct_names, file_names
from cwbc.grids.outcomes import Outcome
from cwbc.tracking import tensorboard, tracked

FOLDER = "tracked"  # in that of the report: event files go by dataset and label, where cells go by hashes


def show(
    outcomes: Sequence[Outcome], out: Path, trackers: Sequence[str], tell: Callable[[str], None]
) -> None:
    """Show every cell elsewhere as well; TensorBoard, nothing of an earlier report.

    Args:
        out: the directory of the report.
        tell: given a line about each tracker that fails.
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
    with tracked(trackers, tell) as tracking:
        for outcome in outcomes:
            cell = outcome.cell
            place = folder / folders[datasets[cell.dataset]] / labels[cell.label]
            config = {**runs.read_config(outcome.directory), "label": cell.label}
            tracking.begin(place, config, runs.read_metrics(outcome.directory))
            tracking.show(outcome.sweep, outcome.dataset)
            tracking.close()
