"""How the cells of a grid came about: what made them, how long it took, how training went."""

from __future__ import annotations

from collections.abc import Sequence

from cwbc.finished import provenance, read_history, read_warnings
from cwbc.grids.outcomes import Outcome
from cwbc.histories import History
from cwbc.runs import training_seconds


def provenance_of(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """How at least one cell came about, for people to read; empty words where that is not known."""
    directories = list(dict.fromkeys(outcome.directory for outcome in outcomes))  # labels may share a cell
    seconds = sum(training_seconds(directory) or 0.0 for directory in directories)
    cells = f"all {len(directories)} cells" if len(directories) > 1 else "the one cell"
    return provenance(directories) | {"training time": f"{seconds:,.0f} s for {cells}"}


def warnings_of(outcomes: Sequence[Outcome]) -> list[str]:
    """What looks wrong in the trainings of cells."""
    return [
        f"{outcome.cell.dataset}, {outcome.cell.label}: {text}"
        for outcome in outcomes
        for text in read_warnings(outcome.directory)
    ]


def histories_of(outcomes: Sequence[Outcome]) -> dict[str, dict[str, History]]:
    """How cells were trained, by dataset and label."""
    found: dict[str, dict[str, History]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.cell.dataset, {})[outcome.cell.label] = read_history(outcome.directory)
    return found
