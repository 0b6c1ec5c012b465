"""The engine that runs a grid in this process, on all its devices."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import jax

from cwbc.datasets import made
from cwbc.device import on_cpu
from cwbc.errors import DivergenceError, InputError
from cwbc.grids import leases
from cwbc.grids.cells import Cell
from cwbc.grids.lending import Lender
from cwbc.grids.outcomes import Results, gather
from cwbc.grids.prepared import ROOT, Prepared, Shelf, check_room, groups, prepare
from cwbc.grids.standing import Running, Show, Standing
from cwbc.measuring import measure
from cwbc.policy import Policies
from cwbc.training import Interrupted, train_together

# What says by itself what went wrong with a cell; anything else is told with its kind and place.
_TOLD = (DivergenceError, InputError, OSError)
_POLL = 1.0  # seconds between looks at what other processes are working on


def run(
    cells: Sequence[Cell],
    root: Path | str = ROOT,
    *,
    notes: Mapping[str, Any] | None = None,
    progress: Show | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    lease_seconds: float = leases.SECONDS,
) -> Results:
    """Bring all cells to their end, each in its directory below `root`; what is finished is only read.

    A cell that another process works on is waited for. A failing cell is recorded, and the others go on.

    Args:
        notes: kept in each cell's configuration, such as the command; they do not tell cells apart.
        progress: told how far the grid is; see `standing.shown`.
        should_stop: once it says yes, everything is saved and Interrupted is raised.
        lease_seconds: how long this process may give no sign of life until others take over its cells.
    """
    root, tell = Path(root), progress or (lambda standing: None)
    shelf = Shelf()
    reading = lambda name: tell(Standing(len(cells), remark=made.doing(name)[0]))  # noqa: E731
    prepared = prepare(cells, root, notes or {}, shelf, reading)
    check_room(prepared, root)
    return gather(prepared, settle(prepared, shelf, tell, should_stop, lease_seconds))


def settle(
    prepared: Sequence[Prepared],
    shelf: Shelf,
    tell: Show,
    should_stop: Callable[[], bool],
    lease_seconds: float,
) -> dict[Path, str]:
    """Bring prepared cells to their end; hands back why some failed, by directory."""
    engine = _Engine({each.directory: each for each in prepared}, tell, should_stop, lease_seconds)
    engine.run(shelf)
    return engine.reasons


@dataclasses.dataclass(frozen=True)
class _Held:
    """A cell that this process works on."""

    cell: Prepared
    lease: leases.Lease


class _Engine:
    def __init__(
        self,
        cells: Mapping[Path, Prepared],
        tell: Show,
        should_stop: Callable[[], bool],
        lease_seconds: float,
    ) -> None:
        self._cells, self._tell, self._lease_seconds = cells, tell, lease_seconds
        self._is_asked_to_stop = should_stop
        self._abandoned = threading.Event()
        self._lender = Lender()
        self._settled: set[Path] = set()
        self.reasons: dict[Path, str] = {}  # why a cell failed
        self._running: dict[Path, Running] = {}
        self._lock = threading.Lock()

    def run(self, shelf: Shelf) -> None:
        """Go over the cells until all are settled, here or by other processes."""
        for cell in self._cells.values():  # first, so that the bar begins where it was
            self._stop_if_asked()
            with self._noting(cell):
                if cell.is_finished():
                    self._settle(cell)
        while waiting := [cell for path, cell in self._cells.items() if path not in self._settled]:
            gpus = 0 if on_cpu() else len(jax.local_devices())
            self._on_all_devices(collections.deque(groups(waiting, gpus)), shelf)
            if len(self._settled) + len(waiting) == len(self._cells):  # others work on all the rest
                self._show("waiting for another process")
                self._stop_if_asked()
                time.sleep(_POLL)

    def _on_all_devices(self, queue: collections.deque[list[Prepared]], shelf: Shelf) -> None:
        devices = jax.local_devices()[: len(queue)]
        if len(devices) == 1:
            self._empty(queue, shelf)
            return

        def work(device: jax.Device) -> None:
            with jax.default_device(device):
                self._empty(queue, shelf)

        with ThreadPoolExecutor(len(devices)) as pool:
            try:
                for future in as_completed([pool.submit(work, device) for device in devices]):
                    future.result()
            except BaseException:  # of one of them, or Ctrl-C: the others save what they are at
                self._abandoned.set()
                raise

    def _empty(self, queue: collections.deque[list[Prepared]], shelf: Shelf) -> None:
        while True:
            try:
                group = queue.popleft()
            except IndexError:  # another device took the last one
                return
            self._stop_if_asked()
            self._attempt(group, shelf)

    def _attempt(self, group: list[Prepared], shelf: Shelf) -> None:
        """Settle those of a group that nobody else works on."""
        with contextlib.ExitStack() as stack:
            mine = []
            for cell in group:
                with self._noting(cell):
                    if cell.is_finished():
                        self._settle(cell)
                        continue
                    lease = leases.acquire(cell.lease, self._lease_seconds)
                    if lease is None:
                        continue
                    stack.enter_context(lease)
                    if cell.is_finished():  # by whoever had the lease a moment ago
                        self._settle(cell, lease)
                    else:
                        mine.append(_Held(cell, lease))
            if mine:
                self._work(mine, shelf)

    @contextlib.contextmanager
    def _noting(self, cell: Prepared) -> Iterator[None]:
        """Note it as the cell's failure if its files cannot be looked at; the others may be all right."""
        try:
            yield
        except OSError as error:
            self._settle(cell, reason=_in_words(error))

    def _work(self, mine: list[_Held], shelf: Shelf) -> None:
        reason = self._failure(mine, shelf)
        left = [held for held in mine if held.cell.directory not in self._settled]
        if reason is None or not left or any(held.lease.is_lost() for held in left):
            return  # in the last case its new owner was in the way
        if len(left) == 1:
            self._settle(left[0].cell, reason=reason)
            return
        for half in (left[: len(left) // 2], left[len(left) // 2 :]):  # one of them spoilt it for all
            self._work(half, shelf)

    def _failure(self, mine: list[_Held], shelf: Shelf) -> str | None:
        """Bring cells to their end; why that failed, in words: the error itself holds on to their memory."""
        try:
            for held in mine:
                self._lender.lend(held.cell, held.lease.check)
            for held, policies in zip(mine, self._train(mine, shelf), strict=True):
                self._measure(held, policies)
        except leases.LeaseLost:
            pass  # whoever has it now is waited for
        except Exception as error:  # an environment may raise anything, and the other cells are all right
            return _in_words(error)
        finally:
            with self._lock:
                for held in mine:
                    self._running.pop(held.cell.directory, None)
        return None

    def _train(self, mine: list[_Held], shelf: Shelf) -> list[Policies]:
        first, steps = mine[0].cell, mine[0].cell.cell.training.steps
        data = shelf.data(first.cell.dataset)
        if data.content_hash != first.dataset.content_hash:
            raise InputError(f"{first.cell.dataset} was replaced meanwhile; run the same command again")

        def progress(step: int) -> None:
            self._show_at(mine, "training", step, steps)

        def check() -> None:
            for held in mine:
                held.lease.check()

        progress(0)
        return train_together(
            data,
            [held.cell.cell.method for held in mine],
            first.cell.training,
            first.cell.seeds,
            [held.cell.directory for held in mine],
            dict(first.notes),  # a group has one dataset, and so the same notes
            progress,
            self._should_stop,
            before_writing=check,
        )

    def _measure(self, held: _Held, policies: Policies) -> None:
        cell = held.cell

        def progress(timestep: int) -> None:
            self._show_at([held], "evaluating", timestep, policies.design.horizon)
            self._stop_if_asked()

        progress(0)
        asked = (cell.environment, cell.targets, cell.cell.episodes)
        # Without pictures, which take as long as a tenth of a sweep: `cwbc report` draws those of a cell.
        measure(cell.directory, policies, *asked, progress, held.lease.check, illustrated=False)
        self._settle(cell, held.lease)

    def _settle(self, cell: Prepared, lease: leases.Lease | None = None, reason: str | None = None) -> None:
        if lease is not None:
            lease.release(finished=True)
        with self._lock:
            self._settled.add(cell.directory)
            self._running.pop(cell.directory, None)
            if reason is not None:
                self.reasons[cell.directory] = reason
        self._show()

    def _should_stop(self) -> bool:
        return self._abandoned.is_set() or self._is_asked_to_stop()

    def _stop_if_asked(self) -> None:
        if self._should_stop():
            raise Interrupted

    def _show_at(self, mine: list[_Held], doing: str, done: int, total: int) -> None:
        with self._lock:
            for held in mine:
                name = f"{held.cell.cell.dataset} {held.cell.cell.label}"
                self._running[held.cell.directory] = Running(name, doing, done, total)
        self._show()

    def _show(self, remark: str = "") -> None:
        with self._lock:
            failed = len(self.reasons)
            finished = len(self._settled) - failed
            running = tuple(self._running.values())
            self._tell(Standing(len(self._cells), finished, failed, running, remark))


def _in_words(error: Exception) -> str:
    words = " ".join(str(error).split())
    if words and isinstance(error, _TOLD):
        return words
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {words} ({Path(last.filename).name}, line {last.lineno})"
