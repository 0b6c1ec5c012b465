"""A grid as people run it from a program or a notebook: a bar to watch, and Ctrl-C that saves."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from cwbc.errors import InputError, unknown
from cwbc.grids import local
from cwbc.grids.cells import Cell, several
from cwbc.grids.outcomes import Results
from cwbc.grids.prepared import ROOT
from cwbc.grids.standing import shown
from cwbc.interrupts import remarks
from cwbc.plain_text import PlainConsole, say
from cwbc.training import Interrupted


def run(
    cells: Iterable[Cell] | Cell,
    root: Path | str = ROOT,
    *,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
) -> Results:
    """Bring all cells of a grid to their end, each in its directory below `root`.

    What is finished is only read. How far it is shows on stderr. The first Ctrl-C saves what runs, and the
    same program goes on from there.

    Args:
        engine: this process with all its devices, or a Ray cluster that is running.
        address: of the cluster; without it, the one that $RAY_ADDRESS names or that runs on this machine.
    """
    cells = several(cells, (Cell,), "cwbc.run takes the cells that cwbc.grid gives")
    if engine not in ("local", "ray"):
        raise unknown("engine", engine, ("local", "ray"))
    if address is not None and engine != "ray":
        raise InputError("address is that of a Ray cluster; give engine='ray' with it")
    run_all: Callable[..., Results] = local.run
    if engine == "ray":
        from cwbc.grids import on_ray

        run_all = functools.partial(on_ray.run, address=address)
    console = PlainConsole(stderr=True)
    with shown(console) as show, _stoppable(console) as is_stopping:
        with contextlib.suppress(Interrupted):
            results = run_all(cells, root, progress=show, should_stop=is_stopping)
        if is_stopping():  # perhaps at the very end: all is finished, but somebody wants to stop
            raise KeyboardInterrupt("all is saved; the same program goes on from here")
    for failure in results.failures:
        say(f"failed: {failure} (in {failure.directory})", console)
    return results


@contextlib.contextmanager
def _stoppable(console: PlainConsole) -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed once; a second time it interrupts as ever."""
    is_main = threading.current_thread() is threading.main_thread()  # which alone can listen
    if not is_main or signal.getsignal(signal.SIGINT) is None:  # not of Python, so it could not be set back
        yield lambda: False
        return
    stopping = False  # no Event: a handler that comes while one is being set would wait for itself
    with remarks(lambda text: say(text, console)) as remark:

        def stop(number: int, frame: Any) -> None:
            nonlocal stopping
            if stopping:
                signal.default_int_handler(number, frame)
            stopping = True
            remark("saving; Ctrl-C again stops at once")

        previous = signal.signal(signal.SIGINT, stop)
        try:
            yield lambda: stopping
        finally:
            signal.signal(signal.SIGINT, previous)
