"""The engine that runs a grid on an existing Ray cluster: cells are tasks, results are read from disk.

Driver and workers communicate through the directory of the cells only. A task that Ray restarts, because its
worker or node died, resumes from the files there. Workers stop when the driver's file in it is removed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cwbc import envs
from cwbc.core.device import Device, use_device
from cwbc.core.training import Interrupted
from cwbc.data import generated, store
from cwbc.grids import engine
from cwbc.grids.cells import Cell
from cwbc.grids.clusters import connected, resources
from cwbc.grids.engine import DEFAULTS, GridProgress, Options
from cwbc.grids.outcomes import Results, gather
from cwbc.grids.preparation import ROOT, DatasetCache, Prepared, groups, prepare
from cwbc.runs import locks
from cwbc.system.errors import InputError
from cwbc.system.progress import TaskProgress

DRIVERS = ".leases"  # hidden, beside the cells: a file per driver, for as long as it runs
_RETRIES = 5  # of a task whose worker or node died
_POLL = 1.0  # seconds between looks at the directories
_PATIENCE = 60.0  # seconds for workers to save, or for a shared file system to show their files


def run(
    cells: Sequence[Cell],
    root: Path | str = ROOT,
    *,
    address: str | None = None,
    device: Device | None = None,
    notes: Mapping[str, Any] | None = None,
    options: Options = DEFAULTS,
) -> Results:
    """Train and evaluate all cells on a Ray cluster, as `engine.run` does in this process.

    Args:
        root: has to be the same directory on every node.
        address: of the cluster; without it, the one that $RAY_ADDRESS names or that runs on this machine.
        device: to compute on; by default GPUs where the cluster has some.
    """
    root = Path(root).resolve()
    cells = [dataclasses.replace(cell, dataset=_anywhere(cell.dataset)) for cell in cells]
    prepared, _ = engine.prepare_all(cells, root, notes, options)
    unique = {each.directory: each for each in prepared}
    waiting = [each for each in unique.values() if not each.is_finished()]
    reasons: dict[Path, str] = {}
    if waiting:
        with connected(address) as ray, _sign(root) as sign:
            driver = _Driver(ray, sign, len(unique), waiting, options, reasons)
            driver.submit(notes or {}, device)
            driver.watch()
    options.progress(GridProgress(len(unique), len(unique) - len(reasons), len(reasons)))
    return gather(prepared, reasons)


class _Driver:
    """The tasks of one grid."""

    def __init__(
        self,
        ray: Any,
        sign: Path,
        total: int,
        waiting: list[Prepared],
        options: Options,
        reasons: dict[Path, str],
    ) -> None:
        self._ray, self._sign, self._total, self._waiting = ray, sign, total, waiting
        self._options, self._reasons = options, reasons
        self._tasks: dict[Any, list[Prepared]] = {}
        self._finished = total - len(waiting)

    def submit(self, notes: Mapping[str, Any], device: Device | None) -> None:
        """Submit all cells to the cluster; each group that one program trains is a task."""
        gpus, needs = resources(self._ray, device)
        # Ray ends a GPU worker after each task: only this releases the GPU's memory.
        task = self._ray.remote(max_retries=_RETRIES, scheduling_strategy="SPREAD", **needs)(_work)
        for group in groups(self._waiting, gpus):
            cells = [each.cell for each in group]
            order = _Order(
                cells,
                [each.directory.name for each in group],
                self._sign,
                dict(notes),
                self._options.lock_seconds,
                "gpu" if gpus else "cpu",
                str(store.root().resolve()) if store.VARIABLE in os.environ else None,
                generated.generated_steps(cells[0].dataset),
                group[0].environment,
            )
            self._tasks[task.options(name=f"cwbc {cells[0].label}").remote(order)] = group

    def watch(self) -> None:
        """Wait for all tasks, and show their progress."""
        while self._tasks:
            ready, _ = self._ray.wait(list(self._tasks), num_returns=1, timeout=_POLL)
            for task in ready:
                self._settle(task, self._tasks.pop(task))
            self._show()
            if self._tasks and self._options.should_stop():
                self._stop()

    def _settle(self, task: Any, group: list[Prepared]) -> None:
        errors = self._ray.exceptions
        try:
            host, reasons = self._ray.get(task)
        except errors.RayTaskError as error:
            cause = error.cause or error
            self._fail(group, f"{type(cause).__name__}: {cause}")
            return
        except errors.RayError as error:
            self._fail(group, f"its worker died, and so did {_RETRIES} more: {type(error).__name__}")
            return
        if reasons is None:
            raise InputError(
                f"{self._sign.parent.parent} cannot be seen from {host}; cells need a directory that all "
                "nodes of the cluster share"
            )
        for each in group:
            if (reason := reasons.get(each.directory.name)) is not None:
                self._fail([each], f"{reason} (on {host})")
            elif _appears(each):
                self._finished += 1
            else:
                self._fail([each], f"{host} finished it, but its results cannot be seen here")

    def _fail(self, group: list[Prepared], reason: str) -> None:
        """Record a failure; some cells of the group may be finished already."""
        failed = [each for each in group if not each.is_finished()]
        self._finished += len(group) - len(failed)
        self._reasons.update({each.directory: " ".join(reason.split()) for each in failed})

    def _stop(self) -> None:
        """Let running tasks save their work; tasks that have not started end at once."""
        # Not ray.cancel: if the task ends at the same moment, it crashes the driver (Ray 2.60).
        self._sign.unlink(missing_ok=True)
        running = [
            task
            for task, group in self._tasks.items()
            if any(locks.is_locked(each.directory) for each in group)
        ]
        if running:
            self._ray.wait(running, num_returns=len(running), timeout=_PATIENCE)
        raise Interrupted

    def _show(self) -> None:
        cells = [each for group in self._tasks.values() for each in group]
        running = tuple(_running(each) for each in cells if locks.is_locked(each.directory))
        self._options.progress(GridProgress(self._total, self._finished, len(self._reasons), running))


@dataclasses.dataclass(frozen=True)
class _Order:
    """The input of a task."""

    cells: list[Cell]
    names: list[str]  # of the directories, as the driver sees them
    sign: Path
    notes: dict[str, Any]
    lock_seconds: float
    device: Device
    store: str | None  # the directory of the dataset store, if the user has chosen one
    size: int | None  # of the dataset, if it can be generated
    environment: str  # of the dataset, which the user has allowed


def _work(order: _Order) -> tuple[str, dict[str, str] | None]:
    """Run a task on a worker: its host, and why cells failed; None where their directory is not visible."""
    host = socket.gethostname()
    if not order.sign.exists():
        return host, None
    if order.store is not None:
        os.environ[store.VARIABLE] = order.store
    envs.allow(order.environment)
    cache = DatasetCache()
    try:
        use_device(order.device)
        name = order.cells[0].dataset  # of all cells
        if order.size is not None and store.find(name) is None:
            generated.DatasetSpec.of(name, order.size).generate()
        prepared = prepare(order.cells, order.sign.parent.parent, order.notes, cache)
    except (InputError, OSError) as error:
        return host, dict.fromkeys(order.names, str(error))
    if [each.directory.name for each in prepared] != order.names:
        other = f"{name} is not the same data there, or cwbc not the same version"
        return host, dict.fromkeys(order.names, other)
    try:
        wanted = Options(should_stop=lambda: not order.sign.exists(), lock_seconds=order.lock_seconds)
        reasons = engine.settle(prepared, cache, wanted)
    except Interrupted:
        return host, dict.fromkeys(order.names, "stopped")
    return host, {path.name: reason for path, reason in reasons.items()}


@contextlib.contextmanager
def _sign(root: Path) -> Iterator[Path]:
    """A file beside the cells that exists as long as this driver runs."""
    path = root / DRIVERS / f"driver-{uuid.uuid4().hex}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _anywhere(dataset: str) -> str:
    """The dataset's name, or its absolute path, so that workers find it from any folder."""
    path = Path(dataset)
    return str(path.resolve()) if path.exists() and store.find(dataset) is None else dataset


def _appears(cell: Prepared) -> bool:
    """Whether the results appear; a file system may show the files of another host with a delay."""
    deadline = time.monotonic() + _PATIENCE
    while not cell.is_finished():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def _running(cell: Prepared) -> TaskProgress:
    """The progress of a cell on a worker, read from its directory."""
    name, steps, rows = f"{cell.cell.dataset} {cell.cell.label}", cell.cell.training.steps, cell.run.metrics()
    step = rows[-1]["step"] if rows else 0
    if step == steps:
        return TaskProgress(f"evaluating {name}")
    return TaskProgress(f"training {name}", step, steps)
