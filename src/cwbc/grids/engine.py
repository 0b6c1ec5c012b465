"""The engine that runs cells in this process, on all its devices: a grid's, or those of a comparison."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from cwbc.core.device import Place, on_cpu
from cwbc.core.memory import check_training
from cwbc.core.simulation import is_offline
from cwbc.core.training_loop import Interrupted
from cwbc.data import activity
from cwbc.grids import preparation
from cwbc.grids.cells import Cell
from cwbc.grids.grouping import groups
from cwbc.grids.outcomes import Results, gather
from cwbc.grids.preparation import ROOT, DatasetCache, Prepared, prepare
from cwbc.runs import locks
from cwbc.runs.evaluating import evaluate_run
from cwbc.runs.offline import OfflineData, model_directory, offline_data, training_steps
from cwbc.runs.policies import Policies
from cwbc.runs.tracking import Tracking
from cwbc.runs.training import Control, Run, train_together
from cwbc.system.errors import DivergenceError, InputError
from cwbc.system.progress import TaskProgress, display

# The message of these errors is enough; any other error is shown with its type and line.
_IN_OWN_WORDS = (DivergenceError, InputError, OSError)
_POLL = 1.0  # seconds between two looks at the cells of other processes


@dataclasses.dataclass(frozen=True)
class GridProgress:
    """The progress of a grid."""

    total: int
    finished: int = 0
    failed: int = 0
    running: tuple[TaskProgress, ...] = ()
    remark: str = ""  # about the grid as a whole, such as "waiting for another process"

    @property
    def overall(self) -> TaskProgress:
        return TaskProgress("", self.finished + self.failed, self.total, "cells finished", self.failed)


Show = Callable[[GridProgress], None]


@contextlib.contextmanager
def shown(console: Console) -> Iterator[Show]:
    """Show a grid while it runs; yields a function that takes its progress."""
    with display(console) as tasks:
        yield lambda grid: tasks.show(grid.running, grid.overall, grid.remark)


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of an engine, which do not change the results."""

    progress: Show = lambda grid: None
    should_stop: Callable[[], bool] = lambda: False  # once true, all is saved and Interrupted is raised
    lock_seconds: float = locks.SECONDS  # without a sign of life, after which others take over a cell
    data_on: Place | None = None  # where the data is stored; by default the device if it has room
    tracking: Callable[[], Tracking] = Tracking  # returns the trackers of a cell for its training
    remark: Callable[[str], None] = lambda text: None  # called with a line about a cell
    waits: bool = True  # for other processes that work on a cell; if not, they are an error
    cache: DatasetCache = dataclasses.field(default_factory=DatasetCache)  # of the datasets that were read


def run(
    cells: Sequence[Cell],
    root: Path | str = ROOT,
    *,
    notes: Mapping[str, Any] | None = None,
    options: Options | None = None,
) -> Results:
    """Train and evaluate all cells, each in its directory below `root`; finished ones are only read.

    A cell that another process works on is waited for. A failing cell is recorded, and the others continue.

    Args:
        notes: stored in each cell's configuration, such as the command; they are not part of its hash.
    """
    options = options or Options()
    prepared = prepare_all(cells, Path(root), notes, options)
    return gather(prepared, settle(prepared, options))


def prepare_all(
    cells: Sequence[Cell], root: Path, notes: Mapping[str, Any] | None, options: Options
) -> list[Prepared]:
    """The prepared cells of a grid; unfinished ones need a directory to write to."""

    def reading(name: str) -> None:
        options.progress(GridProgress(len(cells), remark=activity(name)[0]))

    prepared = prepare(cells, root, notes or {}, options.cache, reading)
    is_closed = root.is_dir() and not os.access(root, os.W_OK)
    if is_closed and (left := sum(not each.is_finished() for each in prepared)):
        reason = f"{left} of {len(prepared)} cells are not finished"
        raise InputError(f"{root} cannot be written to, and {reason}; give another directory")
    return prepared


def settle(prepared: Sequence[Prepared], options: Options) -> dict[Path, str]:
    """Train and evaluate prepared cells; returns why some failed, by directory."""
    engine = _Engine({each.directory: each for each in prepared}, options)
    engine.run()
    return engine.reasons()


@dataclasses.dataclass(frozen=True)
class _Mine:
    """A cell that this process works on."""

    cell: Prepared
    lock: locks.Lock
    tracking: Tracking


class _Engine:
    def __init__(self, cells: Mapping[Path, Prepared], options: Options) -> None:
        self._cells, self._options = cells, options
        self._several_datasets = len({each.cell.dataset for each in cells.values()}) > 1
        self._abandoned = threading.Event()
        self._trained_as = functools.cache(preparation.trained_as)  # reads each configuration once
        self._settled: dict[Path, str | None] = {}  # with the reason of a failure
        self._running: dict[Path, TaskProgress] = {}
        self._lock = threading.Lock()
        self._offline_data: dict[str, OfflineData] = {}  # by the hash of their data
        self._learning = threading.Lock()

    def run(self) -> None:
        """Run the cells until all are settled, here or by other processes."""
        for cell in self._cells.values():  # first, so that the progress bar starts with the finished ones
            self._stop_if_wanted()
            with self._noting(cell):
                if cell.is_finished():
                    self._options.remark(f"{cell.cell.label}: already evaluated")
                    self._settle(cell)
        while waiting := [cell for path, cell in self._cells.items() if path not in self._settled]:
            gpus = 0 if on_cpu() else len(jax.local_devices())
            self._on_all_devices(groups(waiting, gpus))
            if len(self._settled) + len(waiting) == len(self._cells):  # other processes work on the others
                self._show("waiting for another process")
                self._stop_if_wanted()
                time.sleep(_POLL)

    def _on_all_devices(self, waiting: list[list[Prepared]]) -> None:
        devices, queue = jax.local_devices()[: len(waiting)], iter(waiting)  # from which all devices take

        def work(device: jax.Device | None = None) -> None:
            with contextlib.nullcontext() if device is None else jax.default_device(device):
                for group in queue:
                    self._stop_if_wanted()
                    self._attempt(group)

        if len(devices) == 1:
            work()
            return
        with ThreadPoolExecutor(len(devices)) as pool:
            try:
                for future in as_completed([pool.submit(work, device) for device in devices]):
                    future.result()
            except BaseException:  # from one device, or Ctrl-C: the other devices save their work
                self._abandoned.set()
                raise

    def _attempt(self, group: list[Prepared]) -> None:
        """Settle the cells of a group that no other process works on."""
        with contextlib.ExitStack() as stack:
            mine = []
            for cell in group:
                with self._noting(cell):
                    acquire = locks.acquire if self._options.waits else locks.acquire_at_once
                    lock = acquire(cell.directory, self._options.lock_seconds)
                    if lock is None:
                        continue
                    stack.enter_context(lock)
                    if cell.is_finished():  # by another process
                        self._settle(cell, lock)
                        continue
                    tracking = stack.enter_context(contextlib.closing(self._options.tracking()))
                    mine.append(_Mine(cell, lock, tracking))
            if mine:
                self._work(mine)

    @contextlib.contextmanager
    def _noting(self, cell: Prepared) -> Iterator[None]:
        """Record an error of reading the cell's files as its failure; other cells may be readable."""
        try:
            yield
        except OSError as error:
            self._settle(cell, reason=_in_words(error))

    def _work(self, mine: list[_Mine]) -> None:
        """Train and evaluate cells; a group that fails is tried again in halves, down to single cells."""
        reason = self._failure(mine)
        left = [each for each in mine if each.cell.directory not in self._settled]
        if reason is None or not left or any(each.lock.is_lost() for each in left):
            return  # in the last case, the lock's new owner may have caused the error
        if len(left) == 1:
            self._settle(left[0].cell, left[0].lock, reason)
            return
        for half in (left[: len(left) // 2], left[len(left) // 2 :]):  # one of them failed, unknown which
            self._work(half)

    def _failure(self, mine: list[_Mine]) -> str | None:
        """Train and evaluate cells; returns an error as text, since the exception would hold their memory."""
        try:
            for each in mine:
                preparation.reuse_training(each.cell, self._trained_as, each.lock.check)
            for each, policies in zip(mine, self._train(mine), strict=True):
                self._evaluate(each, policies)
        except locks.LockLost:
            pass  # the engine waits for the new owner
        except Exception as error:  # an environment may raise anything; other cells are not affected
            return _in_words(error)
        finally:
            with self._lock:
                for each in mine:
                    self._running.pop(each.cell.directory, None)
        return None

    def _train(self, mine: list[_Mine]) -> list[Policies]:
        first, steps = mine[0].cell.cell, mine[0].cell.cell.training.steps
        runs = []
        for each in mine:
            cell, dataset = each.cell, each.cell.cell.dataset
            data = self._options.cache.recording(dataset).data  # stays in memory while referred to
            if data.content_hash != cell.dataset.content_hash:
                raise InputError(f"{dataset} was replaced meanwhile; run the same command again")
            check_training(cell.spec, first.training, len(first.seeds))
            runs.append(Run(data, cell.spec, cell.directory, cell.notes, each.tracking))

        def progress(step: int) -> None:
            self._show_at(mine, "training", step, steps)

        def check() -> None:
            for each in mine:
                each.lock.check()

        progress(0)
        return train_together(
            runs,
            first.training,
            first.seeds,
            progress=progress,
            should_stop=self._should_stop,
            data_on=self._options.data_on,
            before_writing=check,
        )

    def _evaluate(self, mine: _Mine, policies: Policies) -> None:
        cell = mine.cell

        def progress(timestep: int) -> None:
            self._show_at([mine], "evaluating", timestep, policies.spec.horizon)
            self._stop_if_wanted()

        progress(0)
        what = policies.sweep_in_words(len(cell.targets), cell.cell.episodes)
        self._options.remark(f"{cell.cell.label}: {what}")
        offline = self._offline(mine) if is_offline(cell.environment) else None
        # Without charts, which take a tenth of an evaluation's time: `cwbc report` plots those of a cell.
        protocol = (cell.environment, cell.targets, cell.cell.episodes)
        sweep, dataset = evaluate_run(cell.directory, policies, *protocol, progress, mine.lock.check, offline)
        mine.tracking.show(sweep, dataset)
        self._settle(cell, mine.lock)

    def _offline(self, mine: _Mine) -> OfflineData:
        """A cell's data with its models, trained here or by another process that works on the same grid."""
        cell, known = mine.cell, mine.cell.dataset.content_hash
        with self._learning:  # one device trains them, the others read them
            if known in self._offline_data:
                return self._offline_data[known]
            data = self._options.cache.recording(cell.cell.dataset).data
            directory = model_directory(cell.directory.parent, known)
            while (lock := locks.acquire(directory, self._options.lock_seconds)) is None:
                self._show("waiting for another process")
                self._stop_if_wanted()
                time.sleep(_POLL)

            def progress(step: int) -> None:
                self._show_at([mine], "learning a model for", step, training_steps(data))

            with lock:
                control = Control(progress=progress, should_stop=self._should_stop, before_writing=lock.check)
                self._offline_data[known] = offline_data(data, directory, **control)
            return self._offline_data[known]

    def _settle(self, cell: Prepared, lock: locks.Lock | None = None, reason: str | None = None) -> None:
        if lock is not None:
            lock.release(finished=True)
        with self._lock:
            self._settled[cell.directory] = reason
            self._running.pop(cell.directory, None)
        self._show()

    def reasons(self) -> dict[Path, str]:
        """Why cells failed."""
        return {path: reason for path, reason in self._settled.items() if reason is not None}

    def _should_stop(self) -> bool:
        return self._abandoned.is_set() or self._options.should_stop()

    def _stop_if_wanted(self) -> None:
        if self._should_stop():
            raise Interrupted

    def _show_at(self, mine: list[_Mine], doing: str, done: int, total: int) -> None:
        with self._lock:
            for each in mine:
                cell = each.cell.cell
                name = f"{cell.dataset} {cell.label}" if self._several_datasets else cell.label
                self._running[each.cell.directory] = TaskProgress(f"{doing} {name}", done, total)
        self._show()

    def _show(self, remark: str = "") -> None:
        with self._lock:
            done, failed, running = len(self._settled), len(self.reasons()), tuple(self._running.values())
            self._options.progress(GridProgress(len(self._cells), done - failed, failed, running, remark))


def _in_words(error: Exception) -> str:
    words = " ".join(str(error).split())
    if words and isinstance(error, _IN_OWN_WORDS):
        return words
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {words} ({Path(last.filename).name}, line {last.lineno})"
