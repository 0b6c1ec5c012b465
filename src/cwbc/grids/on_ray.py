"""The engine that runs a grid on an existing Ray cluster: cells are tasks, results come back from disk.

The directory of the cells is all that driver and workers share. A task that Ray starts again, as its worker
or node died, finds there what was done; a file in it tells workers that the driver still wants them.
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

from cwbc import runs, simulators
from cwbc.datasets import made, store
from cwbc.device import Device, use_device
from cwbc.errors import InputError
from cwbc.grids import leases, local
from cwbc.grids.cells import Cell
from cwbc.grids.clusters import connected, resources
from cwbc.grids.outcomes import Results, gather
from cwbc.grids.prepared import LEASES, ROOT, Prepared, Shelf, check_room, groups, prepare
from cwbc.grids.standing import Running, Show, Standing
from cwbc.training import Interrupted

_RETRIES = 5  # of a task whose worker or node died
_POLL = 1.0  # seconds between looks at the directories
_PATIENCE = 60.0  # seconds in which workers save, or a shared file system shows what they wrote


def run(
    cells: Sequence[Cell],
    root: Path | str = ROOT,
    *,
    address: str | None = None,
    device: Device | None = None,
    notes: Mapping[str, Any] | None = None,
    progress: Show | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    lease_seconds: float = leases.SECONDS,
) -> Results:
    """Bring all cells to their end on a Ray cluster, as `local.run` does in this process.

    Args:
        root: has to be the same directory on every node.
        address: of the cluster; without it, the one that $RAY_ADDRESS names or that runs on this machine.
        device: what cells are computed on; by default GPUs where the cluster has some.
    """
    tell = progress or (lambda standing: None)
    root = Path(root).resolve()
    cells = [dataclasses.replace(cell, dataset=_anywhere(cell.dataset)) for cell in cells]
    reading = lambda name: tell(Standing(len(cells), remark=made.doing(name)[0]))  # noqa: E731
    prepared = prepare(cells, root, notes or {}, Shelf(), reading)
    check_room(prepared, root)
    unique = {each.directory: each for each in prepared}
    waiting = [each for each in unique.values() if not each.is_finished()]
    reasons: dict[Path, str] = {}
    if waiting:
        with connected(address) as ray, _sign(root) as sign:
            driver = _Driver(ray, sign, len(unique), waiting, tell, reasons)
            driver.submit(notes or {}, lease_seconds, device)
            driver.watch(should_stop)
    tell(Standing(len(unique), len(unique) - len(reasons), len(reasons)))
    return gather(prepared, reasons)


class _Driver:
    """The tasks of one grid."""

    def __init__(
        self,
        ray: Any,
        sign: Path,
        total: int,
        waiting: list[Prepared],
        tell: Show,
        reasons: dict[Path, str],
    ) -> None:
        self._ray, self._sign, self._total, self._waiting = ray, sign, total, waiting
        self._tell, self._reasons = tell, reasons
        self._tasks: dict[Any, list[Prepared]] = {}
        self._finished = total - len(waiting)

    def submit(self, notes: Mapping[str, Any], lease_seconds: float, device: Device | None) -> None:
        """Hand all cells to the cluster, those that can share a program together."""
        gpus, needs = resources(self._ray, device)
        computed_on: Device = "gpu" if gpus else "cpu"
        # GPU workers end with each task, as Ray has it: no other way gives the memory of a GPU back.
        task = self._ray.remote(max_retries=_RETRIES, scheduling_strategy="SPREAD", **needs)(_work)
        place = str(store.root().resolve()) if store.VARIABLE in os.environ else None
        for group in groups(self._waiting, gpus):
            names = [each.directory.name for each in group]
            parts = [each.cell for each in group]
            size = made.ordered_size(parts[0].dataset)
            environment = group[0].environment
            order = _Order(
                parts, names, self._sign, dict(notes), lease_seconds, computed_on, place, size, environment
            )
            self._tasks[task.options(name=f"cwbc {parts[0].label}").remote(order)] = group

    def watch(self, should_stop: Callable[[], bool]) -> None:
        """Wait for all tasks, and tell how far they are."""
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
        """Record a failure; some of a group may have been finished before it."""
        failed = [each for each in group if not each.is_finished()]
        self._finished += len(group) - len(failed)
        self._reasons.update({each.directory: " ".join(reason.split()) for each in failed})

    def _stop(self) -> None:
        """Let what runs save itself; what has not begun will find nobody who wants it."""
        # Not ray.cancel: for a task that ends at this very moment, it takes the driver with it (Ray 2.60).
        self._sign.unlink(missing_ok=True)
        if running := [task for task, group in self._tasks.items() if any(map(_is_running, group))]:
            self._ray.wait(running, num_returns=len(running), timeout=_PATIENCE)
        raise Interrupted

    def _show(self) -> None:
        cells = [each for group in self._tasks.values() for each in group]
        running = tuple(_running(each) for each in cells if _is_running(each))
        self._tell(Standing(self._total, self._finished, len(self._reasons), running))


@dataclasses.dataclass(frozen=True)
class _Order:
    """What a task is to do."""

    cells: list[Cell]
    names: list[str]  # of the directories, as the driver sees them
    sign: Path
    notes: dict[str, Any]
    lease_seconds: float
    device: Device
    store: str | None  # where datasets are kept, if that was chosen
    size: int | None  # of the dataset, if it is one that can be made
    environment: str  # of the dataset, which the driver was allowed to make


@dataclasses.dataclass(frozen=True)
class _Report:
    """What came of it; the results are on disk."""

    host: str
    saw: bool = True  # the directory of the cells
    reasons: dict[str, str] = dataclasses.field(default_factory=dict)


def _work(order: _Order) -> _Report:
    """What a task does, on a worker."""
    host = socket.gethostname()
    if not order.sign.exists():
        return _Report(host, saw=False)
    if order.store is not None:
        os.environ[store.VARIABLE] = order.store
    simulators.allow(order.environment)
    shelf = Shelf()
    try:
        use_device(order.device)
        name = order.cells[0].dataset  # that of all
        if order.size is not None and store.find(name) is None:
            made.Order.of(name, order.size).make()
        prepared = prepare(order.cells, order.sign.parent.parent, order.notes, shelf)
    except (InputError, OSError) as error:
        return _Report(host, reasons=dict.fromkeys(order.names, str(error)))
    if [each.directory.name for each in prepared] != order.names:
        other = f"{order.cells[0].dataset} is not the same data there, or cwbc not the same version"
        return _Report(host, reasons=dict.fromkeys(order.names, other))
    try:
        reasons = local.settle(
            prepared, shelf, lambda standing: None, lambda: not order.sign.exists(), order.lease_seconds
        )
    except Interrupted:
        return _Report(host, reasons=dict.fromkeys(order.names, "stopped"))
    return _Report(host, reasons={path.name: reason for path, reason in reasons.items()})


@contextlib.contextmanager
def _sign(root: Path) -> Iterator[Path]:
    """A file beside the cells that is there as long as this process wants them."""
    path = root / LEASES / f"driver-{uuid.uuid4().hex}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _anywhere(dataset: str) -> str:
    """A dataset as workers can find it, whatever folder they work in."""
    path = Path(dataset)
    return str(path.resolve()) if path.exists() and store.find(dataset) is None else dataset


def _appears(cell: Prepared) -> bool:
    """Whether the results are there; a file system may take its time to show what another host wrote."""
    deadline = time.monotonic() + _PATIENCE
    while not cell.is_finished():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def _is_running(cell: Prepared) -> bool:
    return leases.is_held(cell.lease)


def _running(cell: Prepared) -> Running:
    """What a worker is doing, as its directory tells."""
    name, steps = f"{cell.cell.dataset} {cell.cell.label}", cell.cell.training.steps
    rows = runs.read_metrics(cell.directory)
    step = rows[-1]["step"] if rows else 0
    return Running(name, "evaluating") if step == steps else Running(name, "training", step, steps)
