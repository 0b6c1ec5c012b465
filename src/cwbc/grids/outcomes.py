"""The results of a grid, read from disk: an outcome or a failure for every cell."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.grids.cells import Cell
from cwbc.grids.preparation import Prepared
from cwbc.results.estimates import Estimates
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.sweeps import Sweep


@dataclasses.dataclass(frozen=True)
class Outcome:
    """An evaluated cell; its sweep is named by the cell's label."""

    cell: Cell
    directory: Path
    sweep: Sweep
    dataset: DatasetSummary
    warnings: tuple[str, ...] = ()  # about its training
    estimates: Estimates | None = None  # of an offline evaluation

    @property
    def dataset_name(self) -> str:
        """The dataset as the cell names it."""
        return self.cell.dataset

    @functools.cached_property
    def method(self) -> EvaluatedMethod:
        """The method with all numbers that follow from its returns."""
        return EvaluatedMethod.of(self.sweep, self.dataset, self.warnings, estimates=self.estimates)


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
    """Every cell of a grid, in order, either as an outcome or as a failure."""

    outcomes: list[Outcome]
    failures: list[Failure]

    @property
    def datasets(self) -> list[str]:
        """The names of all datasets; those with outcomes come first."""
        cells = [outcome.cell for outcome in self.outcomes] + [failure.cell for failure in self.failures]
        return list(dict.fromkeys(cell.dataset for cell in cells))


def gather(prepared: Sequence[Prepared], reasons: Mapping[Path, str]) -> Results:
    """Read the results of all cells but those that failed; `reasons` are by directory."""
    results = Results([], [])
    for each in prepared:
        if (reason := reasons.get(each.directory)) is not None:
            results.failures.append(Failure(each.cell, each.directory, reason))
        else:
            sweep = dataclasses.replace(each.run.sweep(), method=each.cell.label)
            warnings = tuple(each.run.training_warnings())
            dataset = dataclasses.replace(each.dataset, environment=each.environment)
            estimates = each.run.estimates()
            results.outcomes.append(Outcome(each.cell, each.directory, sweep, dataset, warnings, estimates))
    return results
