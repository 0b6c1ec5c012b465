"""The cells of a grid: how they were trained, where they lie, what each seed achieved; also in trackers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cwbc.core.methods import to_json
from cwbc.grids.cells import Cell
from cwbc.grids.outcomes import Outcome
from cwbc.reports.report import File
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.results.dataset_names import distinct_names, file_names
from cwbc.runs.configuration import settings
from cwbc.runs.finished import provenance
from cwbc.runs.run_directory import CELLS, RunDirectory
from cwbc.runs.tracking import Tracking, tensorboard
from cwbc.system.formatting import csv_text

SEEDS = "seeds.csv"
TRACKED = "tracked"  # in that of the report: event files go by dataset and label, where cells go by hashes


def provenance_of(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """How at least one cell came about, for people to read; empty words where that is not known."""
    runs = list(dict.fromkeys(RunDirectory(each.directory) for each in outcomes))  # labels may share one
    seconds = sum(run.training_seconds() or 0.0 for run in runs)
    cells = f"all {len(runs)} cells" if len(runs) > 1 else "the one cell"
    return provenance(runs) | {"training time": f"{seconds:,.0f} s for {cells}"}


def settings_of(cells: Sequence[Cell]) -> tuple[str, ReportTable]:
    """The settings that all cells share, in words, and a table of the others by label."""
    values = _values(cells)
    alike = [name for name, found in values.items() if len(found) == 1 and name != "method"]
    columns = [TableColumn(name) for name in values if name not in alike]
    rows = []
    for label in dict.fromkeys(cell.label for cell in cells):
        found = _values([cell for cell in cells if cell.label == label])  # as a rule one of each
        words = (" or ".join(found.get(column.name, ())) for column in columns)
        rows.append(TableRow(label, [TableCell(each or math.nan) for each in words], label))
    shared = ", ".join(f"{name} {next(iter(values[name]))}" for name in alike)
    return shared, ReportTable("label", columns, rows, title="What the labels stand for")


def _values(cells: Sequence[Cell]) -> dict[str, dict[str, None]]:
    """The different values of each setting, in order."""
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        training = to_json(cell.training) | {"holdout": cell.training.holdout}  # which JSON leaves out if 0
        parts = {"method": to_json(cell.method), "training": training, "seeds": cell.seeds}
        named = {"method": cell.method.name, **settings(parts), "episodes": cell.episodes}
        for name, value in named.items():
            form = "g" if isinstance(value, float) else "," if isinstance(value, int) else ""
            words = "not set" if value is None else f"{value:{form}}"
            values.setdefault(name, {})[words] = None
    return values


def cell_files(outcomes: Sequence[Outcome]) -> dict[str, File]:
    """Where each cell lies, and the mean of every seed: all that the tables are computed from."""
    if not outcomes:
        return {}
    cells = [(each.cell.dataset, each.cell.label, each.directory) for each in outcomes]
    columns = ("dataset", "method", "seed", "target", "return", "normalized", "length")
    seeds = [(outcome.cell.dataset, *row) for outcome in outcomes for row in _seeds(outcome)]
    where = csv_text([("dataset", "method", "directory"), *cells])
    return {
        CELLS: File(where, "the directory of each cell, where every episode is"),
        SEEDS: File(csv_text([columns, *seeds]), "what each seed achieved at each target return"),
    }


def _seeds(outcome: Outcome) -> Iterator[tuple[object, ...]]:
    sweep = outcome.sweep
    means = (sweep.means, outcome.dataset.task.normalize(sweep.means), sweep.lengths.mean(axis=2))
    for s, seed in enumerate(sweep.seeds.tolist()):
        for t, target in enumerate(sweep.targets.tolist() if sweep.takes_target else [""]):
            yield sweep.method, seed, target, *(f"{float(each[s, t]):.8g}" for each in means)


def track_cells(
    outcomes: Sequence[Outcome], out: Path, trackers: Sequence[str], warn: Callable[[str], None]
) -> None:
    """Log every cell of the report in `out`; in TensorBoard, those of an earlier report are removed."""
    if not trackers:
        return
    folder = out / TRACKED
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
