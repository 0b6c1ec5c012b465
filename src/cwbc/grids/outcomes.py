"""What came of a grid, as it lies on disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from cwbc.dataset_summary import DatasetSummary
from cwbc.finished import read_sweeps
from cwbc.grids.cells import Cell
from cwbc.grids.prepared import Prepared
from cwbc.results import Sweep


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What was measured in a cell; the sweep goes by the cell's label."""

    cell: Cell
    directory: Path
    sweep: Sweep
    dataset: DatasetSummary


@dataclasses.dataclass(frozen=True)
class Failure:
    """A cell without results, and why."""

    cell: Cell
    directory: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.cell.dataset}, {self.cell.label}: {self.reason}"


@dataclasses.dataclass(frozen=True)
class Results:
    """Every cell of a grid in its order, either here or there."""

    outcomes: list[Outcome]
    failures: list[Failure]

    @property
    def datasets(self) -> list[str]:
        """The names of all datasets, of those first on which something was measured."""
        cells = [outcome.cell for outcome in self.outcomes] + [failure.cell for failure in self.failures]
        return list(dict.fromkeys(cell.dataset for cell in cells))


def gather(prepared: Sequence[Prepared], reasons: Mapping[Path, str]) -> Results:
    """Read the results of all cells but those whose directories have a reason against it."""
    failed = [each for each in prepared if each.directory in reasons]
    return Results(
        [_outcome(each) for each in prepared if each.directory not in reasons],
        [Failure(each.cell, each.directory, reasons[each.directory]) for each in failed],
    )


def _outcome(prepared: Prepared) -> Outcome:
    (sweep,) = read_sweeps([prepared.directory])
    sweep = dataclasses.replace(sweep, method=prepared.cell.label)
    return Outcome(prepared.cell, prepared.directory, sweep, prepared.dataset)
