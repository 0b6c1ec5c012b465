"""`cwbc compare`: methods on one dataset, trained, evaluated and reported."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cwbc.cli import report
from cwbc.cli.options import Dataset, Flat
from cwbc.cli.planning import Plan, SweepOptions, TrainingOptions, show_resuming
from cwbc.cli.session import Session
from cwbc.core import memory
from cwbc.core.policy_spec import PolicySpec
from cwbc.data.store import contained
from cwbc.grids.cells import Cell
from cwbc.grids.engine import Options, settle, shown
from cwbc.grids.outcomes import gather
from cwbc.grids.preparation import DatasetCache, prepare
from cwbc.runs.finished import check_place
from cwbc.runs.run_directory import CONFIG, RunDirectory
from cwbc.runs.tracking import Tracking
from cwbc.system.errors import InputError
from cwbc.system.files import write_atomically

MethodNames = Annotated[Positional[tuple[str, ...]], arg(metavar="METHOD ...", help_behavior_hint="")]


@dataclasses.dataclass(frozen=True)
class Compare:
    """Train each method with all seeds, evaluate it over target returns, and write a report."""

    dataset: Dataset
    """A name (`cwbc data list`), a Minari id, or the path of a file (HDF5, NPZ, Parquet, CSV) or folder."""
    methods: MethodNames
    """A base (bc rvs dt dt-concat) with parts (+w +c +f), or with +cwbc; such as rvs rvs+cwbc."""
    training: Annotated[TrainingOptions, Flat] = dataclasses.field(default_factory=TrainingOptions)
    sweep: Annotated[SweepOptions, Flat] = dataclasses.field(default_factory=SweepOptions)

    def run(self, session: Session) -> int:
        """Compare the methods; 1 where some failed."""
        plan = Plan.make(self.methods, self.training)
        with session.reading(self.dataset) as update:
            cache = DatasetCache(self.training.env, update)
            recording = cache.recording(self.dataset)
        data = recording.data
        plan.show(recording, session)
        targets, episodes = self.sweep.plan(data.task, data.best)
        root = Path(self.training.out or f"runs/{contained(data.name)}")
        if RunDirectory(root).is_run():
            raise InputError(f"{root} is a run itself; give another --out for a comparison")
        check_place(root)
        notes = plan.notes(self.dataset, recording, session.command_line)
        directories = [root / method.name for method, _ in plan.methods]
        plan.check(data, directories, notes)
        for (method, training), directory in zip(plan.methods, directories, strict=True):
            spec = PolicySpec.fit(method, data, training)
            memory.check_evaluation(spec, len(plan.seeds), len(targets), episodes)
            run = RunDirectory(directory)
            if not (self.training.overwrite or run.trains_on(training.steps)):  # which moves its evaluation
                run.check_results(str(data.environment), targets, episodes)
        cells = [
            Cell(self.dataset, method.name, method, training, plan.seeds, targets, episodes)
            for method, training in plan.methods
        ]
        prepared = prepare(cells, root, notes, cache, by_label=True)
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
            )
            results = gather(prepared, settle(prepared, cache, options))
        for failure in results.failures:
            session.say(f"failed: {failure}")
        for outcome in results.outcomes:
            if plan.trackers and outcome.directory in finished:  # the others were tracked while they trained
                with contextlib.closing(Tracking(plan.trackers, session.warn)) as tracking:
                    RunDirectory(outcome.directory).track(tracking)
                    tracking.show(outcome.sweep, outcome.dataset)
        if results.outcomes:
            evaluated = [RunDirectory(outcome.directory) for outcome in results.outcomes]
            configs = {run.path.name: run.config() for run in evaluated}
            write_atomically(root / CONFIG, json.dumps({"runs": configs}, indent=2) + "\n")
            report.write(root, evaluated)
        return 1 if results.failures else 0
