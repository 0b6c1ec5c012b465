"""How the cells of a grid were trained: by what, with which settings, how long, and with which warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cwbc.core.methods import to_json
from cwbc.grids.cells import Cell
from cwbc.grids.outcomes import Outcome
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.runs.configuration import settings
from cwbc.runs.finished import TrainingHistory, provenance
from cwbc.runs.run_directory import RunDirectory


def provenance_of(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """How at least one cell came about, for people to read; empty words where that is not known."""
    runs = list(
        dict.fromkeys(RunDirectory(outcome.directory) for outcome in outcomes)
    )  # labels may share one
    seconds = sum(run.training_seconds() or 0.0 for run in runs)
    cells = f"all {len(runs)} cells" if len(runs) > 1 else "the one cell"
    return provenance(runs) | {"training time": f"{seconds:,.0f} s for {cells}"}


def warnings_of(outcomes: Sequence[Outcome]) -> list[str]:
    """The training warnings of cells."""
    return [
        f"{outcome.cell.dataset}, {outcome.cell.label}: {text}"
        for outcome in outcomes
        for text in RunDirectory(outcome.directory).training_warnings()
    ]


def histories_of(outcomes: Sequence[Outcome]) -> dict[str, dict[str, TrainingHistory]]:
    """How cells were trained, by dataset and label."""
    found: dict[str, dict[str, TrainingHistory]] = {}
    for outcome in outcomes:
        run = RunDirectory(outcome.directory)
        history = TrainingHistory.of(run.config(), run.metrics())
        found.setdefault(outcome.cell.dataset, {})[outcome.cell.label] = history
    return found


def settings_table(cells: Sequence[Cell]) -> ReportTable:
    """A row per label; a column per setting that is not the same for all that have it."""
    differing = [name for name, values in _values(cells).items() if len(values) > 1 or name == "method"]
    columns = [TableColumn(name) for name in differing]
    rows = []
    for label in dict.fromkeys(cell.label for cell in cells):
        found = _values([cell for cell in cells if cell.label == label])  # as a rule one of each
        rows.append(
            TableRow(
                label, [TableCell(" or ".join(found.get(c.name, [])) or math.nan) for c in columns], label
            )
        )
    return ReportTable("label", columns, rows, title="What the labels stand for")


def shared_settings(cells: Sequence[Cell]) -> str:
    """The settings that are the same for all that have them."""
    alike = {name: values for name, values in _values(cells).items() if len(values) == 1 and name != "method"}
    return ", ".join(f"{name} {value}" for name, (value,) in alike.items())


def _values(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """The different values of each setting."""
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        parts = {"method": to_json(cell.method), "training": to_json(cell.training), "seeds": cell.seeds}
        named = {"method": cell.method.name, **settings(parts), "episodes": cell.episodes}
        for name, value in named.items():
            values.setdefault(name, {})[_words(value)] = None
    return {name: list(found) for name, found in values.items()}


def _words(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
