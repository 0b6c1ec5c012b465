"""`cwbc reproduce`: run the cells of an item, judge its claims and write its report."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from rich.table import Table
from rich.text import Text
from tyro.conf import Positional, arg

from cwbc.cli.options import Device as DeviceName
from cwbc.cli.options import Directory, Flag, Precision, Trackers, Whole
from cwbc.cli.session import Session, stoppable
from cwbc.core.device import Device, default_precision, use_device
from cwbc.core.methods import Training, seeds_of
from cwbc.core.training import Interrupted
from cwbc.data import activity, generated, load, store
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.grids import engine
from cwbc.grids.cells import Cell
from cwbc.grids.engine import Options, shown
from cwbc.grids.outcomes import Outcome, Results
from cwbc.grids.preparation import ROOT, DatasetCache, prepare
from cwbc.paper import ITEMS, reproduction
from cwbc.paper.claims import Claim
from cwbc.paper.item import FULL, QUICK
from cwbc.paper.reproduction import Extent
from cwbc.reports import tracked, writing
from cwbc.reports.provenance import provenance_of
from cwbc.results.dataset_names import short_name
from cwbc.results.evidence import Evidence
from cwbc.runs.run_directory import PAGE, RESULTS
from cwbc.runs.tracking import parse_trackers
from cwbc.system.console import PlainConsole, output, say
from cwbc.system.errors import InputError, unknown
from cwbc.system.formatting import counted
from cwbc.system.progress import gauge

DEFAULT_OUT = Path("runs/reproduce")
ItemName = Annotated[Positional[str | None], arg(metavar="[ITEM]", help_behavior_hint="")]
DataKind = Annotated[Literal["ours", "d4rl"], arg(metavar="ours|d4rl", help_behavior_hint="")]
Names = Annotated[str | None, arg(metavar="NAME,...", help_behavior_hint="")]
Engine = Annotated[Literal["local", "ray"], arg(metavar="local|ray", help_behavior_hint="")]
Address = Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint="")]


@dataclasses.dataclass(frozen=True)
class Reproduce:
    """One table or figure of the paper, claim by claim; without ITEM a list of them."""

    item: ItemName = None
    """Which one, such as table1."""
    quick: Flag = False
    """A small version: fewer datasets, seeds, steps and target returns; minutes on two CPU cores."""
    data: DataKind = "ours"
    """Our datasets, generated here, or D4RL's, once downloaded (default: ours)."""
    datasets: Names = None
    """Only these of the item's datasets, such as walker2d-medium,hopper-medium-replay."""
    methods: Names = None
    """Only these of the item's methods, as its table calls them, such as rvs,rvs+cwbc or alpha=1."""
    seeds: Whole = None
    """Number of seeds (default: 10; quick: 2)."""
    steps: Whole = None
    """Training steps (default: the paper's 100,000; quick: 2,000)."""
    precision: Precision = None
    """Precision of the hidden matmuls (default: bfloat16 on a GPU, float32 on a CPU)."""
    out: Directory = None
    """Directory of the report (default: runs/reproduce/ITEM, with -quick, -part-... as given)."""
    cells: Directory = None
    """Directory of the trainings, which items share (default: runs/cells)."""
    track: Trackers = None
    """Show every cell in tensorboard, wandb or both as well, once all are finished (default: in neither)."""
    engine: Engine = "local"
    """Where to train: in this process, or on a Ray cluster (extra ray)."""
    address: Address = None
    """Address of the Ray cluster (default: $RAY_ADDRESS, or the one on this machine)."""
    device: DeviceName = None
    """Where to compute (default: the GPU when there is one)."""

    def run(self, command_line: str) -> int:
        """Run an item to its report, or list all items; 1 where cells failed."""
        if self == Reproduce():
            list_items()
            return 0
        with stoppable(command_line) as session:
            return reproduce(self, session)


def list_items() -> None:
    """Print every item with its name, its contents and its number of cells."""
    table = Table(box=None, pad_edge=False)
    for title in ("item", "in the paper", "cells", "quick", "shows"):
        table.add_column(title, justify="right" if title in ("cells", "quick") else "left")
    for item in ITEMS.values():
        counts = (str(item.count(quick)) for quick in (False, True))
        table.add_row(*map(Text, (item.name, item.place, *counts, item.shows)))
    PlainConsole().print(table)
    output("")
    output(
        f"A cell is one method on one dataset: {FULL.seeds} seeds of the paper's sizes, or with --quick "
        f"{QUICK.seeds} of a small one. Items share cells."
    )
    output("`cwbc reproduce ITEM` runs one; the same command again resumes it.")


def reproduce(command: Reproduce, session: Session) -> int:
    """Run an item to its report; 1 where cells failed."""
    begun = time.time()
    extent, trackers = _checked(command), parse_trackers(command.track)
    item = extent.item.only(_names(command.datasets), _names(command.methods))
    out = Path(command.out or DEFAULT_OUT / extent.folder)
    reproduction.check(item, command.data, command.quick, out)
    device = _device(command)  # before anything is written: the device may not exist
    reproduction.prepare(item, out, Path(command.cells or ROOT))
    names = item.names(command.data, command.quick)
    datasets = _summaries(names, command.quick)
    results = Results([], [])
    if item.variants:
        scale = dataclasses.replace(
            extent.scale, precision=extent.scale.precision or default_precision(device)
        )
        cells = item.cells(names, scale)
        where = "a Ray cluster" if command.engine == "ray" else f"a {device.upper()}"
        say(f"{item.place}: {counted(len(cells), 'cell')} on {where}, below {command.cells or ROOT}")
        if where == "a CPU" and not command.quick and (left := _unfinished(cells, command)):
            say(f"warning: {left} of them not trained yet, which takes days without a GPU; --quick minutes")
        results = _run(cells, command, session)
    data = {short_name(name): load(name) for name in names} if item.needs_data else {}
    # The datasets of the claims, run or not: few with --quick, unless --datasets names others.
    whole = extent.item.names(command.data, command.quick and command.datasets is None)
    evidence = Evidence.of(results.outcomes, [short_name(name) for name in whole], data)
    provenance = _provenance(session.command_line, results.outcomes, begun)
    report, claims = reproduction.report(extent, evidence, results, datasets, provenance)
    writing.write(out, report)
    tracked.show(results.outcomes, out, trackers, session.warn)
    _print(report.headline, claims, results, out)
    if "tensorboard" in trackers:
        output(f"event files: {out / tracked.FOLDER}")
    return 1 if results.failures else 0


def _device(command: Reproduce) -> Device:
    """The device of the cells: on a cluster, not that of this process."""
    if command.engine == "local":
        return use_device(command.device)
    from cwbc.grids import ray_engine

    use_device(None)
    return command.device or ray_engine.offered(command.address)


def _checked(command: Reproduce) -> Extent:
    if (name := command.item) is None:
        raise InputError(f"which item? {', '.join(ITEMS)}; `cwbc reproduce` alone lists them")
    if name not in ITEMS:
        raise unknown("item", name, ITEMS)
    if command.steps is not None:
        Training(steps=command.steps)
    if command.seeds is not None:
        seeds_of(command.seeds, "--seeds")
    training = {
        "--methods": command.methods,
        "--seeds": command.seeds,
        "--steps": command.steps,
        "--precision": command.precision,
        "--cells": command.cells,
        "--track": command.track,
    }
    given = [option for option, value in training.items() if value is not None]
    if given and not ITEMS[name].variants:
        verb = "does" if len(given) == 1 else "do"
        raise InputError(f"{', '.join(given)} {verb} nothing for {name}, which trains nothing")
    if command.address is not None and command.engine != "ray":
        raise InputError("--address is that of a Ray cluster; give --engine ray with it")
    scale = QUICK if command.quick else FULL
    steps, seeds = command.steps or scale.steps, command.seeds or scale.seeds
    scale = dataclasses.replace(scale, steps=steps, seeds=seeds, precision=command.precision)
    return Extent(ITEMS[name], command.data, command.quick, scale, _changes(command))


def _names(text: str | None) -> list[str] | None:
    """The names in a list, in alphabetical order, without blanks and capitals."""
    return None if text is None else sorted({name.replace(" ", "").lower() for name in text.split(",")})


def _changes(command: Reproduce) -> dict[str, str]:
    datasets, methods = _names(command.datasets), _names(command.methods)
    given = {
        "--datasets": datasets and ",".join(datasets),
        "--methods": methods and ",".join(methods),
        "--seeds": command.seeds,
        "--steps": command.steps,
    }
    return {option: str(value) for option, value in given.items() if value is not None}


def _summaries(names: Sequence[str], quick: bool) -> dict[str, DatasetSummary]:
    """The summary of every dataset; missing ones of ours are generated, at D4RL's size unless `quick`."""
    found = {}
    for name in names:
        with gauge(PlainConsole(stderr=True), *activity(name)) as update:
            if name in generated.CATALOGUE and store.find(name) is None:
                generated.DatasetSpec.of(name, generated.DEFAULT_SIZE if quick else generated.FULL).generate(
                    progress=update
                )
            found[name] = DatasetSummary.of(load(name))
    return found


def _unfinished(cells: Sequence[Cell], command: Reproduce) -> int:
    """The number of unfinished cells; refused where they are finished in another precision."""
    root, cache = Path(command.cells or ROOT), DatasetCache()
    left = [each.cell for each in prepare(cells, root, {}, cache) if not each.is_finished()]
    if command.precision is None and left:
        ours, other = left[0].training.precision, default_precision("gpu")
        others = [
            dataclasses.replace(cell, training=dataclasses.replace(cell.training, precision=other))
            for cell in left
        ]
        if there := sum(each.is_finished() for each in prepare(others, root, {}, cache)):
            raise InputError(
                f"of {len(left)} cells that are not finished in {ours}, {there} are in {other}, as GPUs "
                f"train; give --precision {other} to take those, or --precision {ours} to train all of them"
            )
    return len(left)


def _run(cells: Sequence[Cell], command: Reproduce, session: Session) -> Results:
    run: Callable[..., Results] = engine.run
    if command.engine == "ray":
        from cwbc.grids import ray_engine

        run = functools.partial(ray_engine.run, address=command.address, device=command.device)
    notes = {"command": session.command_line, "preset": "small" if command.quick else "paper"}
    root = Path(command.cells) if command.cells else ROOT
    session.training = True  # from here on the first Ctrl-C saves the training
    with shown(session.console) as show:
        options = Options(progress=show, should_stop=session.is_stopping)
        results = run(cells, root, notes=notes, options=options)
    session.training = False
    if session.is_stopping():  # at the very end: everything is saved
        raise Interrupted
    return results


def _provenance(command_line: str, outcomes: Sequence[Outcome], begun: float) -> dict[str, str]:
    """The provenance of the cells, and the wall time of this command."""
    if not outcomes:
        return {"command": command_line}
    known = provenance_of(outcomes)
    earlier = known.pop("command")
    new = sum((outcome.directory / RESULTS).stat().st_mtime >= begun for outcome in outcomes)
    known["wall time"] = (
        f"{time.time() - begun:,.0f} s for this command, in which {counted(new, 'cell')} finished"
    )
    return {"command": command_line, "cells trained by": "" if earlier == command_line else earlier} | known


def _print(headline: str, claims: Sequence[Claim], results: Results, out: Path) -> None:
    for claim in claims:
        output(f"{claim.verdict}: {claim.text}")
        output(f"    {claim.reason}")
        for case in claim.cases:
            output(f"    {reproduction.case_in_words(case)}")
    for failure in results.failures:
        say(f"failed: {failure} (in {failure.directory})")
    output(headline)
    output(f"report: {out / PAGE}")
