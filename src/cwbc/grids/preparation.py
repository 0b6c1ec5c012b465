"""Cells with everything that depends on their data: target returns, environment and directory."""

from __future__ import annotations

import contextlib
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

from cwbc.core import simulation
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.tasks import Task, rounded
from cwbc.data import compatibility, read, store
from cwbc.data.checks import Recording
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.grids.cells import Cell
from cwbc.results.sweeps import same_target
from cwbc.runs import offline
from cwbc.runs.configuration import identity, planned_configuration
from cwbc.runs.run_directory import CONFIG, METRICS, RunDirectory
from cwbc.system.errors import InputError
from cwbc.system.files import write_atomically
from cwbc.system.progress import Progress
from cwbc.system.tensor_files import CHECKPOINT

ROOT = Path("runs/cells")
_KEPT = 2e9  # bytes of datasets that stay in memory, should they be needed again


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """A cell with everything that depends on its data."""

    cell: Cell
    directory: Path
    dataset: DatasetSummary
    environment: str
    targets: tuple[float, ...]
    notes: dict[str, str]
    trained_as: str  # the fingerprint of its training
    spec: PolicySpec

    @property
    def run(self) -> RunDirectory:
        """The files of its directory."""
        return RunDirectory(self.directory)

    def is_finished(self) -> bool:
        """Whether it is evaluated with its target returns and episodes; damaged results do not count."""
        if not self.run.is_evaluated(self.environment, self.targets, self.cell.episodes):
            return False
        try:  # without a checkpoint the results count; with one, they must be those of the last step
            return not self.run.has(CHECKPOINT) or self.run.steps_done() == self.cell.training.steps
        except InputError:  # damaged: another evaluation would not repair it
            return True


class DatasetCache:
    """The datasets of a command, each read once; unused ones are released where they take much memory."""

    def __init__(
        self,
        environment: str | None = None,
        progress: Progress | None = None,
        on_disk: bool | None = None,
    ) -> None:
        # Of every dataset.
        self._environment, self._progress, self._on_disk = environment, progress, on_disk
        self._kept: dict[str, Recording] = {}  # the latest last
        self._in_use: weakref.WeakValueDictionary[str, Recording] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()  # one thread per device reads

    def recording(self, name: str, acting: bool = False) -> Recording:
        """A dataset, in memory as long as it is referred to; when `acting`, its environment is needed."""
        with self._lock:
            found = self._in_use.get(name)
            if found is None:
                while sum(each.data.nbytes for each in self._kept.values()) > _KEPT:
                    del self._kept[next(iter(self._kept))]  # before the next one is read
                read_now = read(name, self._environment, progress=self._progress, on_disk=self._on_disk)
                found = compatibility.fitted(read_now, acting)
                found.trusted()
                self._in_use[name] = self._kept[name] = found
            return found


def dataset_notes(name: str, recording: Recording) -> dict[str, str]:
    """The provenance of a dataset, for the configuration of a run."""
    stored = store.find(recording.data.name) if recording.stored else None
    return {"dataset": name, "dataset from": (stored or recording.origin).source}


def prepare(
    cells: Sequence[Cell],
    root: Path,
    notes: Mapping[str, str],
    cache: DatasetCache,
    reading: Callable[[str], None] = lambda dataset: None,
    by_label: bool = False,
) -> list[Prepared]:
    """The prepared cells, in order; every mistake is reported here, before anything is written.

    Args:
        notes: stored in each cell's configuration, such as the command; they are not part of its hash.
        reading: called with the name of each dataset before it is read or generated.
        by_label: directories are named by the cells' labels, rather than by a hash of the configuration.
    """
    if not cells:
        raise InputError("a grid needs at least one cell")
    if root.exists() and not root.is_dir():
        raise InputError(f"{root} is a file; cells need a directory")
    prepared: dict[int, Prepared] = {}
    for name in dict.fromkeys(cell.dataset for cell in cells):
        reading(name)
        is_simulated = any(not cell.offline for cell in cells if cell.dataset == name)
        recording = cache.recording(name, acting=is_simulated)
        data, summary = recording.data, DatasetSummary.of(recording.data)
        known = {**notes, **dataset_notes(name, recording)}
        for number, cell in enumerate(cells):
            if cell.dataset != name:
                continue
            targets = target_returns(cell, data.task, data.best)
            spec = PolicySpec.fit(cell.method, data, cell.training)
            trained = identity(planned_configuration(spec, cell.training, cell.seeds, summary))
            evaluated = {**trained, "targets": targets, "episodes": cell.episodes}
            environment = data.environment
            if cell.offline or environment is None:
                offline.check_data(data)
                environment, evaluated = simulation.offline(environment), {**evaluated, "offline": True}
            directory = root / (cell.label if by_label else fingerprint(evaluated)[:16])
            where = (directory, summary, environment)
            prepared[number] = Prepared(cell, *where, targets, known, fingerprint(trained), spec)
    return [prepared[number] for number in range(len(cells))]


def fingerprint(settings: dict[str, Any]) -> str:
    """A hash of settings, in which 1 and 1.0 are the same number."""
    plain = json.loads(json.dumps(settings), parse_int=float)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def target_returns(cell: Cell, task: Task, best: float) -> tuple[float, ...]:
    """The target returns of a cell, ascending; none where it is evaluated without one."""
    if cell.targets == ():
        return ()
    targets = set(task.targets(best)) if cell.targets is None else set(map(float, cell.targets))
    if not all(map(math.isfinite, targets)):
        raise InputError(f"{cell.label}: targets must be finite; got {list(cell.targets or ())}")
    if cell.points is not None:
        marks = (best, task.expert_return, task.far_return)
        always = {target for target in targets if any(same_target(target, mark) for mark in marks)}
        others = sorted(targets - always)
        count = min(max(cell.points - len(always), 0), len(others))
        chosen = np.linspace(0, len(others) - 1, count).round().astype(int)
        targets = always | {others[index] for index in chosen}
    return tuple(sorted(targets | {rounded(fraction * best, abs(best)) for fraction in cell.fractions}))


def trained_as(directory: Path) -> str | None:
    """The fingerprint of a run's training; None where it cannot be read, or another version wrote it."""
    with contextlib.suppress(OSError, InputError, KeyError, TypeError, AttributeError):
        return fingerprint(identity(RunDirectory(directory).config()))
    return None


def reuse_training(
    cell: Prepared, trained_as: Callable[[Path], str | None], before_writing: Callable[[], None]
) -> None:
    """Copy the parameters of a cell with the same training into a cell without parameters.

    Such cells differ only in their target returns or episodes. The configuration, which records the hardware
    and versions of the training, and the metrics are copied as well.
    """
    if cell.run.holds_work():
        return
    for directory in cell.directory.parent.iterdir():
        is_alike = os.path.exists(directory / CHECKPOINT) and trained_as(directory) == cell.trained_as
        if is_alike and (files := _parameters(directory, cell.cell.training.steps)):
            cell.directory.mkdir(exist_ok=True)
            for name, content in files.items():
                write_atomically(cell.directory / name, content, before_writing)
            return


def _parameters(directory: Path, steps: int) -> dict[str, bytes]:
    """The files of a finished training, in the order to write them; empty where it is not finished."""
    try:
        if RunDirectory(directory).steps_done() < steps:
            return {}
        # A configuration alone is a start that training resumes from, should this be interrupted.
        paths = [directory / name for name in (CONFIG, METRICS, CHECKPOINT)]
        return {path.name: path.read_bytes() for path in paths if path.exists()}
    except (OSError, InputError):  # gone or damaged
        return {}
