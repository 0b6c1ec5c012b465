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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cwbc import envs
from cwbc.core.device import Device, use_device
from cwbc.core.training import Interrupted
from cwbc.data import activity, generated, store
from cwbc.grids import engine
from cwbc.grids.cells import Cell
from cwbc.grids.clusters import connected, resources
from cwbc.grids.engine import DEFAULTS, Options
from cwbc.grids.grid_progress import GridProgress, Show
from cwbc.grids.outcomes import Results, gather
from cwbc.grids.preparation import DRIVERS, ROOT, DatasetCache, Prepared, check_room, groups, prepare
from cwbc.runs import locks, run_directory
from cwbc.system.errors import InputError
from cwbc.system.progress import TaskProgress

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

    def reading(name: str) -> None:
        options.progress(GridProgress(len(cells), remark=activity(name)[0]))

    prepared = prepare(cells, root, notes or {}, DatasetCache(), reading)
    check_room(prepared, root)
    unique = {each.directory: each for each in prepared}
    waiting = [each for each in unique.values() if not each.is_finished()]
    reasons: dict[Path, str] = {}
    if waiting:
        with connected(address) as ray, _sign(root) as sign:
            driver = _Driver(ray, sign, len(unique), waiting, options.progress, reasons)
            driver.submit(notes or {}, options.lock_seconds, device)
            driver.watch(options.should_stop)
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
        show: Show,
        reasons: dict[Path, str],
    ) -> None:
        self._ray, self._sign, self._total, self._waiting = ray, sign, total, waiting
        self._show_progress, self._reasons = show, reasons
        self._tasks: dict[Any, list[Prepared]] = {}
        self._finished = total - len(waiting)

    def submit(self, notes: Mapping[str, Any], lock_seconds: float, device: Device | None) -> None:
        """Submit all cells to the cluster; each group that one program trains is a task."""
        gpus, needs = resources(self._ray, device)
        computed_on: Device = "gpu" if gpus else "cpu"
        # Ray ends a GPU worker after each task: only this releases the GPU's memory.
        task = self._ray.remote(max_retries=_RETRIES, scheduling_strategy="SPREAD", **needs)(_work)
        place = str(store.root().resolve()) if store.VARIABLE in os.environ else None
        for group in groups(self._waiting, gpus):
            names = [each.directory.name for each in group]
            parts = [each.cell for each in group]
            size = generated.generated_steps(parts[0].dataset)
            environment = group[0].environment
            order = _Order(
                parts, names, self._sign, dict(notes), lock_seconds, computed_on, place, size, environment
            )
            self._tasks[task.options(name=f"cwbc {parts[0].label}").remote(order)] = group

    def watch(self, should_stop: Callable[[], bool]) -> None:
        """Wait for all tasks, and show their progress."""
        while self._tasks:
            ready, _ = self._ray.wait(list(self._tasks), num_returns=1, timeout=_POLL)
            for task in ready:
                self._settle(task, self._tasks.pop(task))
            self._show()
            if self._tasks and should_stop():
                self._stop()

    def _settle(self, task: Any, group: list[Prepared]) -> None:
        errors = self._ray.exceptions
        try:
            report: _Report = self._ray.get(task)
        except errors.RayTaskError as error:
            cause = error.cause or error
            self._fail(group, f"{type(cause).__name__}: {cause}")
            return
        except errors.RayError as error:
            self._fail(group, f"its worker died, and so did {_RETRIES} more: {type(error).__name__}")
            return
        if not report.saw:
            raise InputError(
                f"{self._sign.parent.parent} cannot be seen from {report.host}; cells need a directory that "
                "all nodes of the cluster share"
            )
        for each in group:
            if each.directory.name in report.reasons:
                self._fail([each], f"{report.reasons[each.directory.name]} (on {report.host})")
            elif _appears(each):
                self._finished += 1
            else:
                self._fail([each], f"{report.host} finished it, but its results cannot be seen here")

    def _fail(self, group: list[Prepared], reason: str) -> None:
        """Record a failure; some cells of the group may be finished already."""
        failed = [each for each in group if not each.is_finished()]
        self._finished += len(group) - len(failed)
        self._reasons.update({each.directory: " ".join(reason.split()) for each in failed})

    def _stop(self) -> None:
        """Let running tasks save their work; tasks that have not started end at once."""
        # Not ray.cancel: if the task ends at the same moment, it crashes the driver (Ray 2.60).
        self._sign.unlink(missing_ok=True)
        if running := [task for task, group in self._tasks.items() if any(map(_is_running, group))]:
            self._ray.wait(running, num_returns=len(running), timeout=_PATIENCE)
        raise Interrupted

    def _show(self) -> None:
        cells = [each for group in self._tasks.values() for each in group]
        running = tuple(_running(each) for each in cells if _is_running(each))
        self._show_progress(GridProgress(self._total, self._finished, len(self._reasons), running))


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


@dataclasses.dataclass(frozen=True)
class _Report:
    """The output of a task; the results are on disk."""

    host: str
    saw: bool = True  # whether the directory of the cells is visible
    reasons: dict[str, str] = dataclasses.field(default_factory=dict)


def _work(order: _Order) -> _Report:
    """Run a task on a worker."""
    host = socket.gethostname()
    if not order.sign.exists():
        return _Report(host, saw=False)
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
        return _Report(host, reasons=dict.fromkeys(order.names, str(error)))
    if [each.directory.name for each in prepared] != order.names:
        other = f"{order.cells[0].dataset} is not the same data there, or cwbc not the same version"
        return _Report(host, reasons=dict.fromkeys(order.names, other))
    try:
        wanted = Options(should_stop=lambda: not order.sign.exists(), lock_seconds=order.lock_seconds)
        reasons = engine.settle(prepared, cache, wanted)
    except Interrupted:
        return _Report(host, reasons=dict.fromkeys(order.names, "stopped"))
    return _Report(host, reasons={path.name: reason for path, reason in reasons.items()})


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


def _is_running(cell: Prepared) -> bool:
    return locks.is_locked(cell.directory)


def _running(cell: Prepared) -> TaskProgress:
    """The progress of a cell on a worker, read from its directory."""
    name, steps = f"{cell.cell.dataset} {cell.cell.label}", cell.cell.training.steps
    rows = run_directory.read_metrics(cell.directory)
    step = rows[-1]["step"] if rows else 0
    if step == steps:
        return TaskProgress(f"evaluating {name}")
    return TaskProgress(f"training {name}", step, steps)
