"""What `cwbc reproduce` does: an item's cells are run, its claims judged, its report written."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from cwbc.cli_reproduce import Reproduce
from cwbc.dataset_summary import DatasetSummary
from cwbc.datasets import load, made, store
from cwbc.device import Device, default_precision, use_device
from cwbc.errors import InputError, unknown
from cwbc.evidence.item import FULL, QUICK
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import short_name
from cwbc.experiments.catalogue import ITEMS
from cwbc.grids import local
from cwbc.grids.cells import Cell
from cwbc.grids.outcomes import Outcome, Results
from cwbc.grids.prepared import ROOT, Shelf, prepare
from cwbc.grids.standing import shown
from cwbc.methods import Training, seeds_of
from cwbc.plain_text import PlainConsole, output, say
from cwbc.progress import gauge
from cwbc.runs import PAGE, RESULTS
from cwbc.studies import readiness, reproduction, tracked, writing
from cwbc.studies.extent import Extent
from cwbc.studies.origins import provenance_of
from cwbc.tracking import parse_trackers
from cwbc.training import Interrupted
from cwbc.wording import counted

if TYPE_CHECKING:
    from cwbc.commands import Session

DEFAULT_OUT = Path("runs/reproduce")


def list_items() -> None:
    """Every item: what is typed, what it shows, how many trainings it takes."""
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
    output("`cwbc reproduce ITEM` runs one; the same command again goes on where it was cut off.")


def reproduce(command: Reproduce, session: Session) -> int:
    """Run an item to its report; 1 where cells failed."""
    begun = time.time()
    extent, trackers = _checked(command), parse_trackers(command.track)
    item = extent.item.only(_names(command.datasets), _names(command.methods))
    out = Path(command.out or DEFAULT_OUT / extent.folder)
    readiness.check(item, command.data, command.quick, out)
    device = _device(command)  # a mistake, too, where there is none: nothing is written before
    readiness.prepare(item, out, Path(command.cells or ROOT))
    names = item.names(command.data, command.quick)
    datasets = _made(names, command.quick)
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
    # What claims are about, run or not: a quick run is about few, unless others are asked for.
    whole = extent.item.names(command.data, command.quick and command.datasets is None)
    evidence = Evidence.of(results.outcomes, [short_name(name) for name in whole], data)
    provenance = _provenance(session.command_line, results.outcomes, begun)
    report = reproduction.report(extent, evidence, results, datasets, provenance)
    writing.write(out, report)
    tracked.show(results.outcomes, out, trackers, session.warn)
    _print(report, out)
    if "tensorboard" in trackers:
        output(f"event files: {out / tracked.FOLDER}")
    return 1 if results.failures else 0


def _device(command: Reproduce) -> Device:
    """What the cells are computed on: for a cluster, not what this process has."""
    if command.engine == "local":
        return use_device(command.device)
    from cwbc.grids import clusters

    use_device(None)
    return command.device or clusters.offered(command.address)


def _checked(command: Reproduce) -> Extent:
    if (name := command.item) is None:
        raise InputError(f"which item? {', '.join(ITEMS)}; `cwbc reproduce` alone tells what they are")
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
    """What a list of names asks for, whatever their order, blanks and capitals."""
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


def _made(names: Sequence[str], quick: bool) -> dict[str, DatasetSummary]:
    """What is known about every dataset; those of ours that are not here are made, at D4RL's size if full."""
    found = {}
    for name in names:
        with gauge(PlainConsole(stderr=True), *made.doing(name)) as update:
            if name in made.CATALOGUE and store.find(name) is None:
                made.Order.of(name, made.DEFAULT_SIZE if quick else made.FULL).make(progress=update)
            found[name] = DatasetSummary.of(load(name))
    return found


def _unfinished(cells: Sequence[Cell], command: Reproduce) -> int:
    """How many cells are to be trained; refused where others are finished in another precision."""
    root, shelf = Path(command.cells or ROOT), Shelf()
    left = [each.cell for each in prepare(cells, root, {}, shelf) if not each.is_finished()]
    if command.precision is None and left:
        ours, other = left[0].training.precision, default_precision("gpu")
        others = [
            dataclasses.replace(cell, training=dataclasses.replace(cell.training, precision=other))
            for cell in left
        ]
        if there := sum(each.is_finished() for each in prepare(others, root, {}, shelf)):
            raise InputError(
                f"of {len(left)} cells that are not finished in {ours}, {there} are in {other}, as GPUs "
                f"train; give --precision {other} to take those, or --precision {ours} to train all of them"
            )
    return len(left)


def _run(cells: Sequence[Cell], command: Reproduce, session: Session) -> Results:
    run: Callable[..., Results] = local.run
    if command.engine == "ray":
        from cwbc.grids import on_ray

        run = functools.partial(on_ray.run, address=command.address, device=command.device)
    notes = {"command": session.command_line, "preset": "small" if command.quick else "paper"}
    root = Path(command.cells) if command.cells else ROOT
    session.training = True  # from here on the first Ctrl-C saves what there is
    with shown(session.console) as show:
        results = run(cells, root, notes=notes, progress=show, should_stop=lambda: session.stopping)
    session.training = False
    if session.stopping:  # asked for at the very end: what is trained is saved
        raise Interrupted
    return results


def _provenance(command_line: str, outcomes: Sequence[Outcome], begun: float) -> dict[str, str]:
    """How the cells came about, and how long all of it took."""
    if not outcomes:
        return {"command": command_line}
    known = provenance_of(outcomes)
    earlier = known.pop("command")
    new = sum((outcome.directory / RESULTS).stat().st_mtime >= begun for outcome in outcomes)
    known["wall time"] = (
        f"{time.time() - begun:,.0f} s for this command, in which {counted(new, 'cell')} came to an end"
    )
    return {"command": command_line, "cells trained by": "" if earlier == command_line else earlier} | known


def _print(report: writing.Report, out: Path) -> None:
    for claim in report.findings.claims:
        output(f"{claim.verdict}: {claim.text}")
        output(f"    {claim.reason}")
        for case in claim.cases:
            output(f"    {reproduction.case_in_words(case)}")
    for failure in report.results.failures:
        say(f"failed: {failure} (in {failure.directory})")
    output(report.headline)
    output(f"report: {out / PAGE}")
