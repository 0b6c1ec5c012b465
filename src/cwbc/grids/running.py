"""Grids run from a program or a notebook, with a progress bar, and with a Ctrl-C that saves."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from cwbc.core.training import Interrupted
from cwbc.grids.cells import Cell, several
from cwbc.grids.engine import Options, shown
from cwbc.grids.engine import run as run_here
from cwbc.grids.outcomes import Results
from cwbc.grids.preparation import ROOT
from cwbc.system.console import PlainConsole, say
from cwbc.system.errors import InputError, unknown
from cwbc.system.interrupts import stoppable


def run(
    cells: Iterable[Cell] | Cell,
    root: Path | str = ROOT,
    *,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
) -> Results:
    """Train and evaluate all cells of a grid, each in its directory below `root`.

    Finished cells are only read. Progress is printed to stderr. The first Ctrl-C saves the running cells, and
    the same program resumes them.

    Args:
        engine: this process with all its devices, or a Ray cluster that is running.
        address: of the cluster; without it, the one that $RAY_ADDRESS names or that runs on this machine.
    """
    cells = several(cells, (Cell,), "cwbc.run takes the cells that cwbc.grid gives")
    if engine not in ("local", "ray"):
        raise unknown("engine", engine, ("local", "ray"))
    if address is not None and engine != "ray":
        raise InputError("address is that of a Ray cluster; give engine='ray' with it")
    run_all: Callable[..., Results] = run_here
    if engine == "ray":
        from cwbc.grids import ray_engine

        run_all = functools.partial(ray_engine.run, address=address)
    console = PlainConsole(stderr=True)
    with shown(console) as show, stoppable(lambda text: say(text, console)) as is_stopping:
        with contextlib.suppress(Interrupted):
            options = Options(progress=show, should_stop=is_stopping)
            results = run_all(cells, root, options=options)
        if is_stopping():  # even if all cells were just finished
            raise KeyboardInterrupt("all is saved; the same program resumes from here")
    for failure in results.failures:
        say(f"failed: {failure} (in {failure.directory})", console)
    return results
