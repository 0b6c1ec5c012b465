"""What each command does, from checked options to files."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, assert_never

from cwbc import cli, memory, report_commands, runs, simulators
from cwbc.checkpoints import CHECKPOINT
from cwbc.cli_reproduce import Reproduce
from cwbc.dataset_summary import DatasetSummary
from cwbc.datasets import made
from cwbc.datasets.naming import contained
from cwbc.device import use_device
from cwbc.errors import InputError
from cwbc.files import write_atomically
from cwbc.finished import (
    check_place,
    check_results,
    evaluate_command,
    find_runs,
    is_measured,
    is_run,
    measured_in,
    measured_on,
    read_sweeps,
    read_warnings,
)
from cwbc.interrupts import remarks
from cwbc.measuring import measure
from cwbc.methods import Method, Training
from cwbc.plain_text import PlainConsole, say
from cwbc.planning import Plan, sweep_plan
from cwbc.policy import Policies
from cwbc.progress import gauge, progress
from cwbc.reporting import Summary
from cwbc.tasks import task_for
from cwbc.tracking import Tracking, parse_trackers, tracked
from cwbc.training import Interrupted, train

DEMO_STEPS = 5_000  # half of the preset's: enough to see it
DEMO_DATA, DEMO_METHODS = "cwbc/halfcheetah/medium-replay-v0", ("rvs", "rvs+cwbc")


@contextlib.contextmanager
def stoppable(command_line: str) -> Iterator[Session]:
    """A session whose training the first Ctrl-C stops with everything saved; a second one stops at once."""
    session = Session(command_line)
    previous = signal.getsignal(signal.SIGINT)

    with remarks(session.say) as remark:

        def stop(number: int, frame: Any) -> None:
            if session.stopping or not session.training:
                cli.stop_now(command_line)
            session.stopping = True
            remark("saving; Ctrl-C again stops at once")

        signal.signal(signal.SIGINT, stop)
        try:
            yield session
        finally:
            signal.signal(signal.SIGINT, previous)


class Session:
    """One invocation of the command line."""

    def __init__(self, command_line: str) -> None:
        self.command_line = command_line
        self.console = PlainConsole(stderr=True)
        self.output = PlainConsole()
        self.stopping = self.training = False

    def say(self, text: str) -> None:
        say(text, self.console)

    def warn(self, text: str) -> None:
        self.say(f"warning: {text}")

    def run(self, command: cli.Work) -> None:
        match command:
            case cli.Compare():
                self.compare(command)
            case cli.Train():
                self.train_only(command)
            case cli.Evaluate():
                self.evaluate(command)
            case cli.Demo():
                self.demo(command)
            case _:
                assert_never(command)

    def compare(self, command: cli.Compare) -> None:
        plan = self._plan(
            command.dataset, command.methods, command.training, command.hyperparameters, acting=True
        )
        data, overwrite = plan.data, command.training.overwrite
        assert data.environment is not None  # an acting plan has one
        asked = sweep_plan(command.sweep, data.task, data.best)
        for design in plan.designs:
            memory.check_evaluation(design, len(plan.seeds), len(asked[0]), asked[1])
        root = Path(command.training.out or f"runs/{contained(data.name)}")
        if is_run(root):
            raise InputError(f"{root} is a run itself; give another --out for a comparison")
        check_place(root)
        directories = [root / method.name for method, _ in plan.methods]
        plan.check(directories, overwrite)
        for (_, settings), directory in zip(plan.methods, directories, strict=True):
            if not runs.trains_on(directory, settings.steps):  # what it was evaluated to is kept aside
                check_results(directory, data.environment, *asked, overwrite)
        for (method, settings), directory in zip(plan.methods, directories, strict=True):
            with tracked(plan.track, self.warn) as tracking:
                policies = self._train(plan, method, settings, directory, tracking)
                with runs.held(directory):
                    self._sweep(directory, policies, tracking, data.environment, *asked)
        configs = {directory.name: runs.read_config(directory) for directory in directories}
        write_atomically(root / runs.CONFIG, json.dumps({"runs": configs}, indent=2) + "\n")
        report_commands.write(root, directories)

    def train_only(self, command: cli.Train) -> None:
        if len(command.method) > 1:
            raise InputError(
                f"train takes one METHOD; got {' '.join(command.method)}. compare takes several, or train "
                "each with a command of its own"
            )
        plan = self._plan(
            command.dataset, command.method, command.training, command.hyperparameters, acting=False
        )
        method, settings = plan.methods[0]
        directory = Path(command.training.out or f"runs/{contained(plan.data.name)}/{method.name}")
        plan.check([directory], overwrite=command.training.overwrite)
        with tracked(plan.track, self.warn) as tracking:
            self._train(plan, method, settings, directory, tracking)
        for text in read_warnings(directory):
            self.warn(f"{method.name}, {text}")
        self.say(f"trained: {directory}")
        self.say(f"`{evaluate_command(directory)}` measures it")

    def evaluate(self, command: cli.Evaluate) -> None:
        track = parse_trackers(command.track)
        use_device(command.device)
        simulators.allow(command.env)
        root = Path(command.run)
        found = find_runs(root)
        planned = []
        for directory in found:
            if not (directory / CHECKPOINT).exists():
                raise InputError(f"{directory} holds results without parameters: {CHECKPOINT} is missing")
            dataset = DatasetSummary.from_json(runs.read_config(directory)["dataset"])
            environment = command.env or dataset.environment or measured_in(directory)
            if environment is None:
                raise InputError(f"{directory} names no environment to act in; give --env ID")
            task = task_for(environment, dataset.lowest, dataset.best)
            asked = sweep_plan(command.sweep, task, dataset.best)
            check_results(directory, environment, *asked, command.overwrite)
            planned.append((directory, environment, asked))
        for directory, environment, asked in planned:
            with runs.held(directory), tracked(track, self.warn) as tracking:
                runs.track(directory, tracking)
                policies = Policies.load(directory)
                measured = self._sweep(directory, policies, tracking, environment, *asked)
        if found == [root] and measured is not None:  # then its own report is all there is to write
            report_commands.show(root, *measured)
        else:
            report_commands.write_held(root, found)
        if found == [root] and (root.parent / runs.SUMMARY).exists():
            self.say(f"`cwbc report {shlex.quote(str(root.parent))}` shows it beside the others there")

    def demo(self, command: cli.Demo) -> None:
        self.say(f"{DEMO_DATA}: a HalfCheetah that learns to run, from random steps to medium")
        self.say(
            "two policies clone it, conditioned on a target return; then the target is raised ever further"
        )
        training = cli.TrainingOptions(
            seeds=command.seeds,
            steps=command.steps or DEMO_STEPS,
            preset="small",
            device=command.device,
            out=command.out or "runs/demo",
            overwrite=command.overwrite,
        )
        self.compare(cli.Compare(DEMO_DATA, DEMO_METHODS, training, cli.SweepOptions(episodes=5)))

    def reproduce(self, command: Reproduce) -> int:
        from cwbc import reproduce_commands

        return reproduce_commands.reproduce(command, self)

    def _plan(
        self,
        dataset: str,
        names: Sequence[str],
        options: cli.TrainingOptions,
        hyperparameters: cli.Hyperparameters,
        acting: bool,
    ) -> Plan:
        with gauge(self.console, *made.doing(dataset)) as update:
            plan = Plan.make(dataset, names, options, hyperparameters, self.command_line, acting, update)
        for line in plan.lines():
            self.say(line)
        return plan

    def _train(
        self, plan: Plan, method: Method, settings: Training, directory: Path, tracking: Tracking
    ) -> Policies:
        done = runs.steps_done(directory)
        if done == settings.steps:
            self.say(f"{method.name}: already trained")
            runs.track(directory, tracking)
            return Policies.load(directory)
        if (directory / runs.METRICS).exists() and not runs.holds_work(directory):
            self.say(f"{method.name}: no checkpoint was reached before; beginning anew")
        if done:
            self.say(f"{method.name}: going on from step {done:,}")
            if runs.trains_on(directory, settings.steps) and (directory / runs.SUMMARY).exists():
                self.say(f"its evaluation so far is kept in {runs.earlier_evaluation(directory, done)}")
        self.training = True
        with progress(self.console, f"training {method.name}", settings.steps, "steps", done) as update:
            policies = train(
                plan.data,
                method,
                settings,
                plan.seeds,
                directory,
                plan.notes,
                update,
                lambda: self.stopping,
                plan.data_on,
                tracking,
            )
        self.training = False
        if self.stopping:  # asked for during the last chunk: what is trained is saved
            raise Interrupted
        return policies

    def _sweep(
        self,
        directory: Path,
        policies: Policies,
        tracking: Tracking,
        environment: str,
        targets: tuple[float, ...],
        episodes: int,
    ) -> tuple[Summary, DatasetSummary] | None:
        """Evaluate a run and write its report; None where it was evaluated before."""
        name = policies.design.method.name
        if is_measured(directory, environment, targets, episodes):
            self.say(f"{name}: already evaluated")
            tracking.show(read_sweeps([directory])[0], measured_on(directory))
            return None
        if policies.design.method.condition is None:
            rows = len(policies.seeds) * episodes
            self.say(f"{name}: takes no target, {rows:,} episodes")
        else:
            rows = len(policies.seeds) * len(targets) * episodes
            self.say(f"{name}: {len(targets)} target returns, {rows:,} episodes")
        with progress(self.console, f"evaluating {name}", policies.design.horizon, "steps") as update:
            sweep, dataset, summary = measure(directory, policies, environment, targets, episodes, update)
        tracking.show(sweep, dataset)
        return summary, dataset
