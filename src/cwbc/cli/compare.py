"""`cwbc compare`: methods on one dataset, trained, evaluated and reported; `cwbc demo` is one of these."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cwbc.behaviours import GAMES, REPLAY
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
from cwbc.cli.video import Video, three_targets
from cwbc.core import memory
from cwbc.core.simulation import is_offline
from cwbc.data import read
from cwbc.data.store import contained
from cwbc.data.unpacked import wants_disk
from cwbc.grids.cells import Cell
from cwbc.grids.engine import Options, settle, shown
from cwbc.grids.preparation import DatasetCache, prepare
from cwbc.reports.report import need_plots
from cwbc.runs.finished import check_place
from cwbc.runs.run_directory import CONFIG, RunDirectory
from cwbc.runs.tracking import Tracking
from cwbc.system.errors import InputError, unknown
from cwbc.system.files import write_atomically

DEMO_STEPS = 5_000  # half of the preset's: enough to see it
DEMO_DATASET, DEMO_METHODS = "cwbc/halfcheetah/medium-replay-v0", ("rvs", "rvs+cwbc")
GAME_STEPS, GAME_METHOD = 6_000, "rvs+cwbc"  # twice the preset's, of one seed


@dataclasses.dataclass(frozen=True)
class Compare:
    """Train each method with all seeds, evaluate it over target returns, and write a report."""

    dataset: Dataset
    """A name (`cwbc data list`), a Minari id, or the path of a file (HDF5, NPZ, Parquet, CSV) or folder."""
    methods: Annotated[Positional[tuple[str, ...]], arg(metavar="METHOD ...", help_behavior_hint="")]
    """A base (bc rvs dt dt-concat) with parts (+w +c +f +q), or +cwbc; or td3bc, iql, cql, rebrac,
    discrete-cql."""
    training: Annotated[TrainingOptions, Flat] = dataclasses.field(default_factory=TrainingOptions)
    sweep: Annotated[SweepOptions, Flat] = dataclasses.field(default_factory=SweepOptions)
    offline: Offline = False

    def run(
        self, session: Session, before_report: Callable[[list[RunDirectory]], None] = lambda runs: None
    ) -> int:
        """Compare the methods; 1 where some failed."""
        plan = Plan.make(self.methods, self.training)
        with session.reading(self.dataset) as update:
            cache = DatasetCache(self.training.env, update, wants_disk(self.training.data_on))
            recording = cache.recording(self.dataset, acting=not self.offline)
        data = recording.data
        root = Path(self.training.out or f"runs/{contained(data.name)}")
        plan = plan.on(data, [root / method.name for method, _ in plan.methods])
        plan.show(recording, session)
        targets, episodes = self.sweep.plan(data.task, data.best, plan.episodes(data))
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
            before_report(evaluated)
            report.write(root, evaluated)
        return 1 if reasons else 0


@dataclasses.dataclass(frozen=True)
class Demo:
    """Compare rvs with rvs+cwbc on a generated dataset, in minutes on any machine."""

    game: Annotated[str | None, arg(metavar="|".join(GAMES), help_behavior_hint="")] = None
    """In place of a robot, an Atari game: rvs+cwbc plays it at three target returns, with a video."""
    seeds: Whole = None
    """Number of seeds (default: 3; of a game 1)."""
    steps: Whole = None
    """Training steps (default: 5,000; of a game 6,000)."""
    out: Directory = None
    """Directory of the results (default: runs/demo, or runs/demo-GAME)."""
    device: Device = None
    overwrite: Flag = False
    """Start over where the directory holds a run with other settings."""

    def run(self, session: Session) -> int:
        """Generate the dataset, train and evaluate on it."""
        if self.game is not None:
            return self._play(self.game, session)
        session.say(f"{DEMO_DATASET}: replay data of a HalfCheetah that learns to run, from random to medium")
        session.say("two policies clone it, conditioned on the return-to-go; the target then increases")
        training = self._training(DEMO_STEPS, "runs/demo", self.seeds)
        return Compare(DEMO_DATASET, DEMO_METHODS, training, SweepOptions(episodes=5)).run(session)

    def _play(self, game: str, session: Session) -> int:
        """The same with a game: one method, three targets, a video."""
        if game not in GAMES:
            raise unknown("game", game, GAMES)
        need_plots()
        dataset = f"cwbc/{game}/{REPLAY}-v0"
        with session.reading(dataset) as update:
            data = read(dataset, progress=update).data
        session.say(f"{dataset}: replay data of a policy that learns to play, with frames of its screen")
        session.say("a policy clones it, conditioned on the return-to-go, and plays at three target returns")
        targets = ",".join(map(str, three_targets(data.lowest, data.best)))
        seeds = 1 if self.seeds is None else self.seeds
        training = self._training(GAME_STEPS, f"runs/demo-{game}", seeds)

        def film(runs: list[RunDirectory]) -> None:
            for run in runs:
                if run.video() is None:
                    Video(str(run.path), device=self.device).run(session)

        comparison = Compare(dataset, (GAME_METHOD,), training, SweepOptions(targets, episodes=3))
        return comparison.run(session, film)

    def _training(self, steps: int, out: str, seeds: int | None) -> TrainingOptions:
        """The options of the demo, with its defaults."""
        return TrainingOptions(
            seeds,
            self.steps or steps,
            preset="small",
            device=self.device,
            out=self.out or out,
            overwrite=self.overwrite,
        )
