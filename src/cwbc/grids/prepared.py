"""Cells beside their data, which decides what is asked in them and where they lie."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cwbc import fitting, runs
from cwbc.checkpoints import CHECKPOINT
from cwbc.dataset_summary import DatasetSummary
from cwbc.datasets import read, store
from cwbc.errors import InputError
from cwbc.finished import is_measured
from cwbc.grids.cells import Cell
from cwbc.hyperparameters import form
from cwbc.methods import to_json
from cwbc.recordings import Recording
from cwbc.results import same_target
from cwbc.tasks import Task, rounded
from cwbc.trajectories import Trajectories

ROOT = Path("runs/cells")
LEASES = ".leases"  # hidden: what lies below it is nobody's run
_LARGEST_GROUP = 16  # beyond which another cell gains nothing


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """A cell with all that its data decides."""

    cell: Cell
    root: Path
    dataset: DatasetSummary
    environment: str
    targets: tuple[float, ...]
    notes: Mapping[str, Any]
    fingerprint: str  # of the full configuration
    trained_as: str  # the same without what is asked of it

    @property
    def directory(self) -> Path:
        """An ordinary run directory."""
        return self.root / self.fingerprint[:16]

    @property
    def lease(self) -> Path:
        """Where processes agree on who runs this cell."""
        return self.root / LEASES / self.fingerprint[:16]

    def is_finished(self) -> bool:
        """Whether its results are there, measured as asked; damaged ones are none."""
        if not is_measured(self.directory, self.environment, self.targets, self.cell.episodes):
            return False
        # Who gives the parameters away keeps the results; but those that are there must be the last ones.
        return not (self.directory / CHECKPOINT).exists() or self._is_trained()

    def _is_trained(self) -> bool:
        try:
            return runs.steps_done(self.directory) == self.cell.training.steps
        except InputError:  # damaged: to measure again what was measured would not mend it
            return True


class Shelf:
    """The datasets in use, each once; the next one takes the place of what nobody uses any more."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._recording: Recording | None = None
        self._lent: weakref.WeakValueDictionary[str, Trajectories] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()  # devices share it

    def recording(self, name: str) -> Recording:
        """A dataset that policies can act in the environment of."""
        if self._recording is None or self._name != name:
            self._recording = None  # before the next one is read
            recording = fitting.fitted(read(name), acting=True)
            if recording.trusted().environment is None:
                raise InputError(f"dataset {name} names no environment to act in; import it with --env ID")
            self._name, self._recording = name, recording
        return self._recording

    def data(self, name: str) -> Trajectories:
        """Its trajectories."""
        with self._lock:
            data = self._lent.get(name)
            if data is None:
                self._lent[name] = data = self.recording(name).data
            return data


def prepare(
    cells: Sequence[Cell],
    root: Path,
    notes: Mapping[str, Any],
    shelf: Shelf,
    reading: Callable[[str], None] = lambda dataset: None,
) -> list[Prepared]:
    """Cells with what their data decides, in order; every mistake is found here, before anything is written.

    Args:
        notes: kept in each cell's configuration, such as the command; they do not tell cells apart.
        reading: told the name of each dataset before it is read, or made.
    """
    if not cells:
        raise InputError("a grid needs at least one cell")
    if root.exists() and not root.is_dir():
        raise InputError(f"{root} is a file; cells need a directory")
    prepared: dict[int, Prepared] = {}
    for name in dict.fromkeys(cell.dataset for cell in cells):
        reading(name)
        recording = shelf.recording(name)
        kept = store.find(recording.data.name) if recording.kept else None
        origin = kept.source if kept else recording.origin.source
        known = {**notes, "dataset": name, "dataset from": origin}
        summary = DatasetSummary.of(recording.data)
        for number, cell in enumerate(cells):
            if cell.dataset == name:
                prepared[number] = _prepared(cell, root, known, recording.data, summary)
    return [prepared[number] for number in range(len(cells))]


def check_room(prepared: Sequence[Prepared], root: Path) -> None:
    """Refuse a directory that cannot be written to, which is fine for what is finished."""
    if root.is_dir() and not os.access(root, os.W_OK):
        left = sum(not each.is_finished() for each in prepared)
        if left:
            told = f"{left} of {len(prepared)} cells are not finished"
            raise InputError(f"{root} cannot be written to, and {told}; give another directory")


def _prepared(
    cell: Cell, root: Path, notes: Mapping[str, Any], data: Trajectories, summary: DatasetSummary
) -> Prepared:
    assert data.environment is not None  # the shelf has no other
    targets = asked_targets(cell, data.task, data.best)
    # Not all of runs.configuration: to ask which device there is would take hold of it.
    config = {
        "method": to_json(cell.method.fit(data)),
        "training": to_json(cell.training),
        "seeds": cell.seeds,
        "horizon": data.horizon,
        "dataset": summary.to_json(),
    }
    fingerprint = _hashed({**runs.identity(config), "targets": targets, "episodes": cell.episodes})
    return Prepared(cell, root, summary, data.environment, targets, notes, fingerprint, trained_as(config))


def trained_as(config: dict[str, Any]) -> str:
    """The fingerprint of all that a training depends on."""
    return _hashed(runs.identity(config))


def _hashed(identity: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(_canonical(identity), sort_keys=True).encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """Plain values in which 1 and 1.0 are the same number."""
    if isinstance(value, dict):
        return {key: _canonical(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(each) for each in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def asked_targets(cell: Cell, task: Task, best: float) -> tuple[float, ...]:
    """The returns that a cell asks for, ascending."""
    beside = {rounded(share * best, abs(best)) for share in cell.shares}
    return tuple(sorted(beside | _swept(cell, task, best)))


def _swept(cell: Cell, task: Task, best: float) -> set[float]:
    if cell.targets is not None:
        if not all(map(math.isfinite, cell.targets)):
            raise InputError(f"{cell.label}: targets must be finite; got {list(cell.targets)}")
        return {float(target) for target in cell.targets}
    sweep = task.targets(best)
    if cell.points is None:
        return set(sweep)
    marks = (best, task.expert_return, task.far_return)
    kept = {target for target in sweep if any(same_target(target, mark) for mark in marks)}
    others = [target for target in sweep if target not in kept]
    count = min(max(cell.points - len(kept), 0), len(others))
    chosen = np.linspace(0, len(others) - 1, count).round().astype(int)
    return kept | {others[index] for index in chosen}


def groups(prepared: Sequence[Prepared], gpus: int) -> list[list[Prepared]]:
    """Cells that one program trains: one dataset, training, seeds and form of method.

    Side by side pays on a GPU alone, and not where another GPU would be left without cells.
    """
    largest = min(math.ceil(len(prepared) / gpus), _LARGEST_GROUP) if gpus else 1
    found: dict[Any, list[list[Prepared]]] = {}
    ordered: list[list[Prepared]] = []
    for each in prepared:
        cell = each.cell
        method = (form(cell.method), cell.method.condition)  # whose numbers say what the data looks like
        alike = (cell.dataset, each.dataset.content_hash, cell.training, cell.seeds, *method)
        lots = found.setdefault(alike, [])
        if not lots or len(lots[-1]) == largest:
            lots.append([])
            ordered.append(lots[-1])
        lots[-1].append(each)
    return ordered
