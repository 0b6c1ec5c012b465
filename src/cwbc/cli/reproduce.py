"""`cwbc reproduce`: run the cells of an item, judge its claims and write its report."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from rich.table import Column, Table
from rich.text import Text
from tyro.conf import Positional, arg

from cwbc.cli.options import Device as DeviceName
from cwbc.cli.options import Directory, Flag, Trackers, Whole
from cwbc.cli.session import Session
from cwbc.core.device import Device, default_precision, use_device
from cwbc.core.methods import Training, seeds_of
from cwbc.data import generated, store
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.grids import engine, ray_engine
from cwbc.grids.cells import Cell
from cwbc.grids.engine import Options, shown
from cwbc.grids.outcomes import Outcome, Results
from cwbc.grids.preparation import ROOT, DatasetCache, prepare
from cwbc.paper import ITEMS, reproduction
from cwbc.paper.item import FULL, QUICK
from cwbc.paper.reproduction import Extent
from cwbc.reports import writing
from cwbc.reports.provenance import TRACKED, provenance_of, track_cells
from cwbc.results.dataset_names import short_name
from cwbc.results.evidence import Evidence
from cwbc.runs.run_directory import PAGE, RESULTS
from cwbc.runs.tracking import parse_trackers
from cwbc.system.console import PlainConsole, output
from cwbc.system.errors import InputError, unknown
from cwbc.system.formatting import counted

DEFAULT_OUT = Path("runs/reproduce")
Names = Annotated[str | None, arg(metavar="NAME,...", help_behavior_hint="")]


@dataclasses.dataclass(frozen=True)
class Reproduce:
    """One table or figure of the paper, claim by claim; without ITEM a list of them."""

    item: Annotated[Positional[str | None], arg(metavar="[ITEM]", help_behavior_hint="")] = None
    """Which one, such as table1."""
    quick: Flag = False
    """A small version: fewer datasets, seeds, steps and target returns; minutes on two CPU cores."""
    data: Annotated[Literal["ours", "d4rl"], arg(help_behavior_hint="")] = "ours"
    """Our datasets, generated here, or D4RL's, once downloaded (default: ours)."""
    datasets: Names = None
    """Only these of the item's datasets, such as walker2d-medium,hopper-medium-replay."""
    methods: Names = None
    """Only these of the item's methods, as its table calls them, such as rvs,rvs+cwbc or alpha=1."""
    seeds: Whole = None
    """Number of seeds (default: the paper's 10, for atari and antmaze 3, for cql and rebrac at most 5; quick:
    2, for antmaze 3)."""
    steps: Whole = None
    """Training steps (default: the paper's 100,000, for atari 25,000, for value-based methods 300,000; quick:
    2,000, for atari 400)."""
    precision: Annotated[Literal["float32", "bfloat16"] | None, arg(help_behavior_hint="")] = None
    """Precision of the hidden matmuls (default: bfloat16 on a GPU, float32 on a CPU)."""
    out: Directory = None
    """Directory of the report (default: runs/reproduce/ITEM, with -quick, -part-... as given)."""
    cells: Directory = None
    """Directory of the trainings, which items share (default: runs/cells)."""
    track: Trackers = None
    """Show every cell in tensorboard, wandb or both as well, once all are finished (default: in neither)."""
    engine: Annotated[Literal["local", "ray"], arg(help_behavior_hint="")] = "local"
    """Where to train: in this process, or on a Ray cluster (extra ray)."""
    address: Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint="")] = None
    """Address of the Ray cluster (default: $RAY_ADDRESS, or the one on this machine)."""
    device: DeviceName = None

    def run(self, session: Session) -> int:
        """Run an item to its report, or list all items; 1 where cells failed."""
        if self == Reproduce():
            _list_items()
            return 0
        begun = time.time()
        extent, trackers = self._extent(), parse_trackers(self.track)
        item = extent.item.only(_names(self.datasets), _names(self.methods))
        out, root = Path(self.out or DEFAULT_OUT / extent.folder), Path(self.cells or ROOT)
        reproduction.check(item, self.data, self.quick, out)
        device = self._device()  # before anything is written: the device may not exist
        reproduction.prepare(item, out, root)
        names = item.names(self.data, self.quick)
        cache = DatasetCache()
        datasets = {name: self._summary(name, cache, session) for name in names}
        results = Results([], [])
        if item.variants:
            precision = self.precision or default_precision(device)
            scale = dataclasses.replace(extent.scale, precision=precision)
            cells = item.cells(names, scale, seeds_are_given=self.seeds is not None)
            where = "a Ray cluster" if self.engine == "ray" else f"a {device.upper()}"
            session.say(f"{item.place}: {counted(len(cells), 'cell')} on {where}, below {root}")
            if where == "a CPU" and not self.quick and (left := self._unfinished(cells, root, cache)):
                days = "which takes days without a GPU; --quick minutes"
                session.warn(f"{left} of them not trained yet, {days}")
            results = self._run_cells(cells, root, cache, session)
        data = {short_name(name): cache.recording(name).data for name in names} if item.needs_data else {}
        # The datasets of the claims, run or not: few with --quick, unless --datasets names others.
        whole = extent.item.names(self.data, self.quick and self.datasets is None)
        evidence = Evidence.of(results.outcomes, [short_name(name) for name in whole], data)
        provenance = _provenance(session.command_line, results.outcomes, begun)
        report, claims = reproduction.report(extent, evidence, results, datasets, provenance)
        writing.write(out, report)
        track_cells(results.outcomes, out, trackers, session.warn)
        for claim in claims:
            cases = [reproduction.case_in_words(case) for case in claim.cases]
            output("\n    ".join([f"{claim.verdict}: {claim.text}", claim.reason, *cases]))
        for failure in results.failures:
            session.say(f"failed: {failure} (in {failure.directory})")
        output(report.headline)
        output(f"report: {out / PAGE}")
        if "tensorboard" in trackers:
            output(f"event files: {out / TRACKED}")
        return 1 if results.failures else 0

    def _extent(self) -> Extent:
        """How much of which item is run; every mistake in the options is found here."""
        if self.item is None:
            raise InputError(f"which item? {', '.join(ITEMS)}; `cwbc reproduce` alone lists them")
        if self.item not in ITEMS:
            raise unknown("item", self.item, ITEMS)
        if self.steps is not None:
            Training(steps=self.steps)
        if self.seeds is not None:
            seeds_of(self.seeds, "--seeds")
        training = ("methods", "seeds", "steps", "precision", "cells", "track")
        given = [f"--{name}" for name in training if getattr(self, name) is not None]
        if given and not ITEMS[self.item].variants:
            verb = "does" if len(given) == 1 else "do"
            raise InputError(f"{', '.join(given)} {verb} nothing for {self.item}, which trains nothing")
        if self.address is not None and self.engine != "ray":
            raise InputError("--address is that of a Ray cluster; give --engine ray with it")
        item = ITEMS[self.item]
        scale = item.benchmark.quick if self.quick else item.benchmark.full
        steps, seeds = self.steps or scale.steps, self.seeds or scale.seeds
        scale = dataclasses.replace(scale, steps=steps, seeds=seeds, precision=self.precision)
        lists = {f"--{name}": _names(getattr(self, name)) for name in ("datasets", "methods")}
        changes = {option: ",".join(names) for option, names in lists.items() if names}
        numbers = {"--seeds": self.seeds, "--steps": self.steps}
        changes |= {option: str(number) for option, number in numbers.items() if number}
        return Extent(item, self.data, self.quick, scale, changes)

    def _device(self) -> Device:
        """The device of the cells: on a cluster, not that of this process."""
        if self.engine == "local":
            return use_device(self.device)
        use_device(None)
        return self.device or ray_engine.offered(self.address)

    def _summary(self, name: str, cache: DatasetCache, session: Session) -> DatasetSummary:
        """The summary of a dataset; a missing one of ours is generated, at D4RL's size unless `quick`."""
        with session.reading(name) as update:
            if name in generated.catalogue() and store.find(name) is None:
                size = generated.SMALL if self.quick else generated.FULL
                generated.DatasetSpec.of(name, size).generate(progress=update)
            return DatasetSummary.of(cache.recording(name).data)

    def _unfinished(self, cells: Sequence[Cell], root: Path, cache: DatasetCache) -> int:
        """The number of unfinished cells; refused where they are finished in another precision."""
        left = [each.cell for each in prepare(cells, root, {}, cache) if not each.is_finished()]
        if self.precision is None and left:
            ours, other = left[0].training.precision, default_precision("gpu")
            others = [
                dataclasses.replace(cell, training=dataclasses.replace(cell.training, precision=other))
                for cell in left
            ]
            if there := sum(each.is_finished() for each in prepare(others, root, {}, cache)):
                raise InputError(
                    f"of {len(left)} cells that are not finished in {ours}, {there} are in {other}, as GPUs "
                    f"train; give --precision {other} to take those, or --precision {ours} to train all of "
                    "them"
                )
        return len(left)

    def _run_cells(self, cells: Sequence[Cell], root: Path, cache: DatasetCache, session: Session) -> Results:
        run: Callable[..., Results] = engine.run
        if self.engine == "ray":
            run = functools.partial(ray_engine.run, address=self.address, device=self.device)
        notes = {"command": session.command_line, "preset": "small" if self.quick else "paper"}
        with session.saving(), shown(session.console) as show:
            options = Options(progress=show, should_stop=session.is_stopping, cache=cache)
            return run(cells, root, notes=notes, options=options)


def _list_items() -> None:
    """Print every item with its name, its contents and its number of cells."""
    numbers = (Column(title, justify="right") for title in ("cells", "quick"))
    table = Table("item", "in the paper", *numbers, "shows", box=None, pad_edge=False)
    for item in ITEMS.values():
        counts = (str(item.count(quick)) for quick in (False, True))
        table.add_row(*map(Text, (item.name, item.place, *counts, item.shows)))
    PlainConsole().print(table)
    output(
        f"\nA cell is one method on one dataset: {FULL.seeds} seeds of the paper's sizes (atari and antmaze: "
        f"{ITEMS['atari'].benchmark.full.seeds}), or with --quick {QUICK.seeds} of a small one (antmaze: "
        f"{ITEMS['antmaze'].benchmark.quick.seeds}). Items share cells.\n"
        "`cwbc reproduce ITEM` runs one; the same command again resumes it."
    )


def _names(text: str | None) -> list[str] | None:
    """The names in a list, in alphabetical order, without blanks and capitals."""
    return None if text is None else sorted({name.replace(" ", "").lower() for name in text.split(",")})


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
