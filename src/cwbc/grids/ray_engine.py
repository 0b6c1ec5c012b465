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
from cwbc.core.training_loop import Interrupted
from cwbc.data import generated, store
from cwbc.grids import engine
from cwbc.grids.cells import Cell
from cwbc.grids.engine import GridProgress, Options
from cwbc.grids.grouping import groups
from cwbc.grids.outcomes import Results, gather
from cwbc.grids.preparation import ROOT, Prepared, prepare
from cwbc.runs import locks
from cwbc.system.errors import InputError, need_extra
from cwbc.system.progress import TaskProgress

DRIVERS = ".drivers"  # hidden, beside the cells: a file per driver, for as long as it runs
_RETRIES = 5  # of a task whose worker or node died
_POLL = 1.0  # seconds between looks at the directories
_PATIENCE = 60.0  # seconds for workers to save, or for a shared file system to show their files
_CORES = 2  # per cell on a cluster without GPUs, where a node has as many


def run(
    cells: Sequence[Cell],
    root: Path | str = ROOT,
    *,
    address: str | None = None,
    device: Device | None = None,
    notes: Mapping[str, Any] | None = None,
    options: Options | None = None,
) -> Results:
    """Train and evaluate all cells on a Ray cluster, as `engine.run` does in this process.

    Args:
        root: has to be the same directory on every node.
        address: of the cluster; without it, the one that $RAY_ADDRESS names or that runs on this machine.
        device: to compute on; by default GPUs where the cluster has some.
    """
    root = Path(root).resolve()
    cells = [dataclasses.replace(cell, dataset=_anywhere(cell.dataset)) for cell in cells]
    options = options or Options()
    prepared = engine.prepare_all(cells, root, notes, options)
    unique = {each.directory: each for each in prepared}
    waiting = [each for each in unique.values() if not each.is_finished()]
    reasons: dict[Path, str] = {}
    if waiting:
        with connected(address) as ray, _sign(root) as sign:
            driver = _Driver(ray, sign, options, len(unique), reasons)
            driver.submit(waiting, device)
            driver.watch()
    options.progress(GridProgress(len(unique), len(unique) - len(reasons), len(reasons)))
    return gather(prepared, reasons)


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster, without its own log messages."""
    ray = need_extra("ray", "ray", "grids on a Ray cluster")
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS")
    _check_answer(address)
    # No option of Ray turns off that it prints the log of a node that died.
    worker: Any = ray._private.worker
    printing = getattr(worker, "print_to_stdstream", None)
    worker.print_to_stdstream = lambda *_, **__: None
    try:
        try:
            ray.init(address or "auto", log_to_driver=False, logging_level="CRITICAL")
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = f"at {address}" if address else "here; --address names one, `ray start --head` starts one"
            raise InputError(f"no Ray cluster {where} ({str(error).splitlines()[0]})") from error
        yield ray
    finally:
        ray.shutdown()
        worker.print_to_stdstream = printing


def _check_answer(address: str | None) -> None:
    """Refuse an address where nothing answers: Ray itself would try for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except (OSError, OverflowError) as error:
            raise InputError(f"no Ray cluster at {address} ({error})") from error


def offered(address: str | None = None) -> Device:
    """The device of a cluster, which decides the default sizes and precision."""
    with connected(address) as ray:
        return "gpu" if ray.cluster_resources().get("GPU", 0) >= 1 else "cpu"


def resources(ray: Any, device: Device | None) -> tuple[int, dict[str, int]]:
    """The number of GPUs to compute on, 0 for CPUs, and the resources of each task."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    cores = max(int(node.get("CPU", 0)) for node in nodes)
    if device != "cpu" and gpus:
        return gpus, {"num_gpus": 1}
    if device == "gpu":
        raise InputError("--device gpu: no node of the Ray cluster offers a GPU")
    if not cores:
        raise InputError("no node of the Ray cluster offers a CPU or a GPU; start one with `ray start`")
    return 0, {"num_cpus": min(_CORES, cores)}


@dataclasses.dataclass
class _Driver:
    """The tasks of one grid."""

    ray: Any
    sign: Path
    options: Options
    total: int
    reasons: dict[Path, str]
    tasks: dict[Any, list[Prepared]] = dataclasses.field(default_factory=dict)

    def submit(self, waiting: list[Prepared], device: Device | None) -> None:
        """Submit cells to the cluster; each group that one program trains is a task."""
        gpus, needs = resources(self.ray, device)
        # Ray ends a GPU worker after each task: only this releases the GPU's memory.
        task = self.ray.remote(max_retries=_RETRIES, scheduling_strategy="SPREAD", **needs)(_work)
        offered: Device = "gpu" if gpus else "cpu"
        chosen_store = str(store.root().resolve()) if store.VARIABLE in os.environ else None
        for group in groups(waiting, gpus):
            first, seconds = group[0].cell, self.options.lock_seconds
            size = generated.generated_steps(first.dataset)
            order = _Order(group, self.sign, seconds, offered, chosen_store, size)
            self.tasks[task.options(name=f"cwbc {first.label}").remote(order)] = group

    def watch(self) -> None:
        """Wait for all tasks, and show their progress; if asked to stop, let running ones save their work."""
        while self.tasks:
            ready, _ = self.ray.wait(list(self.tasks), num_returns=1, timeout=_POLL)
            for task in ready:
                self._settle(task, self.tasks.pop(task))
            left = [each for group in self.tasks.values() for each in group]
            running = tuple(_running(each) for each in left if _is_running(each))
            finished = self.total - len(left) - len(self.reasons)
            self.options.progress(GridProgress(self.total, finished, len(self.reasons), running))
            if self.tasks and self.options.should_stop():
                # Not ray.cancel: if the task ends at the same moment, it crashes the driver (Ray 2.60).
                self.sign.unlink(missing_ok=True)  # tasks that have not started end at once
                if begun := [task for task, group in self.tasks.items() if any(map(_is_running, group))]:
                    self.ray.wait(begun, num_returns=len(begun), timeout=_PATIENCE)
                raise Interrupted

    def _settle(self, task: Any, group: list[Prepared]) -> None:
        """Record why cells failed; of a task that failed, some may be finished already."""
        directories = [each.directory for each in group]
        try:
            host, reasons = self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:
            cause = error.cause or error
            host, reasons = "", dict.fromkeys(directories, f"{type(cause).__name__}: {cause}")
        except self.ray.exceptions.RayError as error:
            reason = f"its worker died, and so did {_RETRIES} more: {type(error).__name__}"
            host, reasons = "", dict.fromkeys(directories, reason)
        if reasons is None:
            where = f"{self.sign.parent.parent} cannot be seen from {host}"
            raise InputError(f"{where}; cells need a directory that all nodes of the cluster share")
        for each in group:
            reason = reasons.get(each.directory)
            if reason is None and not _appears(each):
                reason = f"{host} finished it, but its results cannot be seen here"
            if reason is not None and not each.is_finished():
                self.reasons[each.directory] = " ".join(reason.split())


@dataclasses.dataclass(frozen=True)
class _Order:
    """The input of a task."""

    group: list[Prepared]  # with one dataset
    sign: Path
    lock_seconds: float
    device: Device
    store: str | None  # the directory of the dataset store, if the user has chosen one
    size: int | None  # of the dataset, if it can be generated


def _work(order: _Order) -> tuple[str, dict[Path, str] | None]:
    """Run a task on a worker: its host, and why cells failed; None where their directory is not visible."""
    host = socket.gethostname()
    directories = [each.directory for each in order.group]

    def failed(reason: str) -> tuple[str, dict[Path, str]]:
        return host, dict.fromkeys(directories, f"{reason} (on {host})")

    if not order.sign.exists():
        return host, None
    if order.store is not None:
        os.environ[store.VARIABLE] = order.store
    first = order.group[0]
    envs.allow(first.environment)  # as the user did
    options = Options(should_stop=lambda: not order.sign.exists(), lock_seconds=order.lock_seconds)
    try:
        use_device(order.device)
        name = first.cell.dataset
        if order.size is not None and store.find(name) is None:
            generated.DatasetSpec.of(name, order.size).generate()
        cells = [each.cell for each in order.group]
        prepared = prepare(cells, order.sign.parent.parent, first.notes, options.cache)
    except (InputError, OSError) as error:
        return failed(str(error))
    if [each.directory for each in prepared] != directories:
        return failed(f"{name} is not the same data there, or cwbc not the same version")
    try:
        reasons = engine.settle(prepared, options)
    except Interrupted:
        return failed("stopped")
    return host, {path: f"{reason} (on {host})" for path, reason in reasons.items()}


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
    name, steps, rows = f"{cell.cell.dataset} {cell.cell.label}", cell.cell.training.steps, cell.run.metrics()
    step = rows[-1]["step"] if rows else 0
    if step == steps:
        return TaskProgress(f"evaluating {name}")
    return TaskProgress(f"training {name}", step, steps)
