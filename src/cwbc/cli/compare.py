"""`cwbc compare`: methods on one dataset, trained, evaluated and reported; `cwbc demo` is one of these."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cwbc.cli import report
from cwbc.cli.options import (
    OFFLINE_MEANS,
    Dataset,
    Device,
    Directory,
    Flag,
    Flat,
    Offline,
    SweepOptions,
    Whole,
)
from cwbc.cli.planning import Plan, TrainingOptions, show_resuming
from cwbc.cli.session import Session
from cwbc.core import memory
from cwbc.core.simulation import is_offline
from cwbc.data.store import contained
from cwbc.data.unpacked import wants_disk
from cwbc.grids.cells import Cell
from cwbc.grids.engine import Options, settle, shown
from cwbc.grids.preparation import DatasetCache, prepare
from cwbc.runs.finished import check_place
from cwbc.runs.run_directory import CONFIG, RunDirectory
from cwbc.runs.tracking import Tracking
from cwbc.system.errors import InputError
from cwbc.system.files import write_atomically

DEMO_STEPS = 5_000  # half of the preset's: enough to see it
DEMO_DATASET, DEMO_METHODS = "cwbc/halfcheetah/medium-replay-v0", ("rvs", "rvs+cwbc")


@dataclasses.dataclass(frozen=True)
class Compare:
    """Train each method with all seeds, evaluate it over target returns, and write a report."""

    dataset: Dataset
    """A name (`cwbc data list`), a Minari id, or the path of a file (HDF5, NPZ, Parquet, CSV) or folder."""
    methods: Annotated[Positional[tuple[str, ...]], arg(metavar="METHOD ...", help_behavior_hint="")]
    """A base (bc rvs dt dt-concat) with parts (+w +c +f +q), or +cwbc; or td3bc, iql, cql, rebrac."""
    training: Annotated[TrainingOptions, Flat] = dataclasses.field(default_factory=TrainingOptions)
    sweep: Annotated[SweepOptions, Flat] = dataclasses.field(default_factory=SweepOptions)
    offline: Offline = False

    def run(self, session: Session) -> int:
        """Compare the methods; 1 where some failed."""
        plan = Plan.make(self.methods, self.training)
        with session.reading(self.dataset) as update:
            cache = DatasetCache(self.training.env, update, wants_disk(self.training.data_on))
            recording = cache.recording(self.dataset, acting=not self.offline)
        data = recording.data
        root = Path(self.training.out or f"runs/{contained(data.name)}")
        plan = plan.on(data, [root / method.name for method, _ in plan.methods])
        plan.show(recording, session)
        targets, episodes = self.sweep.plan(data.task, data.best)
        if RunDirectory(root).is_run():
            raise InputError(f"{root} is a run itself; give another --out for a comparison")
        check_place(root)
        cells = [
            Cell(
                *(self.dataset, method.name, method, training, plan.seeds),
                *(self.sweep.of(method, targets), episodes),
                offline=self.offline,
            )
            for method, training in plan.methods
        ]
        prepared = prepare(cells, root, plan.notes(session), cache, by_label=True)
        if is_offline(prepared[0].environment):
            session.say(f"{'' if self.offline else 'no environment: '}{OFFLINE_MEANS}")
        for each in prepared:
            memory.check_evaluation(each.spec, len(plan.seeds), len(each.targets), episodes)
        plan.check(prepared[0].dataset, {each.directory: each.spec for each in prepared})
        for each in prepared:
            steps = each.cell.training.steps
            if not (self.training.overwrite or each.run.trains_on(steps)):  # which moves its evaluation
                each.run.check_results(each.environment, each.targets, episodes)
        finished = [each.directory for each in prepared if each.is_finished()]
        for each in prepared:
            show_resuming(each.cell.label, each.directory, each.cell.training.steps, session)
        with session.saving(), shown(session.console) as show:
            options = Options(
                progress=show,
                should_stop=session.is_stopping,
                data_on=plan.data_on(data),
                tracking=lambda: Tracking(plan.trackers, session.warn),
                remark=session.say,
                waits=False,
                cache=cache,
            )
            reasons = settle(prepared, options)
        for each in prepared:
            if each.directory in reasons:
                session.say(f"failed: {self.dataset}, {each.cell.label}: {reasons[each.directory]}")
        evaluated = [each.run for each in prepared if each.directory not in reasons]
        for run in evaluated:
            if plan.trackers and run.path in finished:  # the others were tracked while they trained
                with contextlib.closing(Tracking(plan.trackers, session.warn)) as tracking:
                    run.track(tracking)
                    tracking.show(run.sweep(), run.dataset())
        if evaluated:
            configs = {run.path.name: run.config() for run in evaluated}
            write_atomically(root / CONFIG, json.dumps({"runs": configs}, indent=2) + "\n")
            report.write(root, evaluated)
        return 1 if reasons else 0


@dataclasses.dataclass(frozen=True)
class Demo:
    """Compare rvs with rvs+cwbc on a generated dataset, in minutes on any machine."""

    seeds: Whole = None
    """Number of seeds (default: 3)."""
    steps: Whole = None
    """Training steps (default: 5,000)."""
    out: Directory = None
    """Directory of the results (default: runs/demo)."""
    device: Device = None
    overwrite: Flag = False
    """Start over where the directory holds a run with other settings."""

    def run(self, session: Session) -> int:
        """Generate the dataset and compare the methods."""
        session.say(f"{DEMO_DATASET}: replay data of a HalfCheetah that learns to run, from random to medium")
        session.say("two policies clone it, conditioned on the return-to-go; the target then increases")
        changed = {"steps": self.steps or DEMO_STEPS, "out": self.out or "runs/demo"}
        training = TrainingOptions(preset="small", **vars(self) | changed)
        return Compare(DEMO_DATASET, DEMO_METHODS, training, SweepOptions(episodes=5)).run(session)
