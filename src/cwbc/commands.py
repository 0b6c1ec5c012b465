"""What each command does, from checked options to files."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, assert_never

from rich.console import Console

from cwbc import cli, evaluation, runs
from cwbc.errors import InputError
from cwbc.files import write_atomically
from cwbc.methods import METHODS, Method, Training
from cwbc.planning import Plan, sweep_plan, use_device
from cwbc.policy import CHECKPOINT, Policies
from cwbc.progress import progress
from cwbc.reporting import summary_table, write_report
from cwbc.reporting.dataset import DatasetSummary
from cwbc.reporting.wording import headline
from cwbc.results import Sweep, read_results
from cwbc.tasks import Task, task_for
from cwbc.training import train

RESULTS = "results.csv"


@contextlib.contextmanager
def stoppable(command_line: str) -> Iterator[Session]:
    """A session whose training the first Ctrl-C stops with everything saved; a second one stops at once."""
    session = Session(command_line)
    previous = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: Any) -> None:
        if session.stopping or not session.training:
            raise KeyboardInterrupt
        session.stopping = True
        session.say("stopping after this chunk; Ctrl-C again stops at once")

    signal.signal(signal.SIGINT, stop)
    try:
        yield session
    finally:
        signal.signal(signal.SIGINT, previous)


class Session:
    """One invocation of the command line."""

    def __init__(self, command_line: str) -> None:
        self.command_line = command_line
        self.console = Console(stderr=True)
        self.output = Console()
        self.stopping = self.training = False

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def run(self, command: cli.Compare | cli.Train | cli.Evaluate | cli.Report) -> None:
        match command:
            case cli.Compare():
                self.compare(command)
            case cli.Train():
                self.train_only(command)
            case cli.Evaluate():
                self.evaluate(command)
            case cli.Report():
                self.report(command)
            case _:
                assert_never(command)

    def compare(self, command: cli.Compare) -> None:
        plan = self._plan(command.dataset, command.methods, command.training, command.hyperparameters)
        data = plan.data
        if data.environment is None:
            raise InputError(f"dataset {data.name} names no environment to act in; give --env ID")
        sweep = sweep_plan(command.sweep, data.task, data.best)
        root = Path(command.training.out or f"runs/{data.name}")
        directories = [root / method.name for method, _ in plan.methods]
        plan.check(directories, overwrite=command.training.overwrite)
        for (method, settings), directory in zip(plan.methods, directories, strict=True):
            policies = self._train(plan, method, settings, directory)
            self._sweep(directory, policies, data.environment, *sweep, overwrite=command.training.overwrite)
        same_data = [d for d in _find_runs(root) if _is_evaluated(d, data.content_hash)]
        write_atomically(root / runs.CONFIG, json.dumps(_configurations(same_data), indent=2) + "\n")
        self._write_report(root, same_data)

    def train_only(self, command: cli.Train) -> None:
        plan = self._plan(command.dataset, (command.method,), command.training, command.hyperparameters)
        method, settings = plan.methods[0]
        directory = Path(command.training.out or f"runs/{plan.data.name}/{method.name}")
        plan.check([directory], overwrite=command.training.overwrite)
        self._train(plan, method, settings, directory)
        self.say(f"trained: {directory}; `cwbc evaluate {directory}` measures it")

    def evaluate(self, command: cli.Evaluate) -> None:
        use_device(command.device)
        root = Path(command.run)
        found = _find_runs(root)
        for directory in found:
            dataset = DatasetSummary.from_json(runs.read_config(directory)["dataset"])
            environment = command.env or dataset.environment
            if environment is None:
                raise InputError(f"{directory} names no environment to act in; give --env ID")
            plan = sweep_plan(command.sweep, _task(dataset), dataset.best)
            policies = Policies.load(directory)
            self._sweep(directory, policies, environment, *plan, overwrite=command.overwrite)
        if found != [root]:
            self._write_report(root, found)

    def report(self, command: cli.Report) -> None:
        if not command.runs:
            raise InputError("give at least one run directory")
        found = [directory for name in command.runs for directory in _find_runs(Path(name))]
        single = command.runs[0] if len(command.runs) == 1 else "report"
        self._write_report(Path(command.out or single), found)

    def _plan(
        self,
        dataset: str,
        names: Sequence[str],
        options: cli.TrainingOptions,
        hyperparameters: cli.Hyperparameters,
    ) -> Plan:
        plan = Plan.make(dataset, names, options, hyperparameters, self.command_line)
        for line in plan.lines():
            self.say(line)
        return plan

    def _train(self, plan: Plan, method: Method, settings: Training, directory: Path) -> Policies:
        done = runs.steps_done(directory)
        if done == settings.steps:
            self.say(f"{method.name}: already trained")
            return Policies.load(directory)
        if done:
            self.say(f"{method.name}: going on from step {done:,}")
        self.training = True
        with progress(self.console, f"training {method.name}", settings.steps, "steps", done) as update:
            policies = train(
                plan.data, method, settings, plan.seeds, directory, plan.notes, update, lambda: self.stopping
            )
        self.training = False
        return policies

    def _sweep(
        self,
        directory: Path,
        policies: Policies,
        environment: str,
        targets: tuple[float, ...],
        episodes: int,
        overwrite: bool,
    ) -> None:
        name = policies.design.method.name
        if (directory / RESULTS).exists() and not overwrite:
            (found,) = read_results(directory / RESULTS)
            same = tuple(found.targets.tolist()) == targets and found.returns.shape[2] == episodes
            if not same:
                raise InputError(
                    f"{directory / RESULTS} was measured with other targets or episodes; "
                    "--overwrite replaces it"
                )
            self.say(f"{name}: already evaluated")
        else:
            rows = len(policies.seeds) * len(targets) * episodes
            title = f"evaluating {name} ({rows:,} episodes)"
            with progress(self.console, title, policies.design.horizon, "timesteps") as update:
                found = evaluation.evaluate(policies, environment, targets, episodes, progress=update)
        dataset = DatasetSummary.from_json(runs.read_config(directory)["dataset"])
        write_report(directory, [found], _task(dataset), dataset, _provenance([directory]))

    def _write_report(self, out: Path, directories: list[Path]) -> None:
        datasets = [DatasetSummary.from_json(runs.read_config(d)["dataset"]) for d in directories]
        for directory, dataset in zip(directories, datasets, strict=True):
            if dataset.content_hash != datasets[0].content_hash:
                raise InputError(
                    f"{directory} was trained on {dataset.name}, {directories[0]} on {datasets[0].name}; "
                    "a report shows one dataset"
                )
        sweeps = _read_sweeps(directories)
        summary = write_report(out, sweeps, _task(datasets[0]), datasets[0], _provenance(directories))
        self.output.print(summary_table(summary))
        self.output.print(
            headline(summary["methods"], _task(datasets[0]), datasets[0].best), highlight=False, markup=False
        )
        self.output.print(f"report: {out / 'report.html'}", highlight=False, soft_wrap=True, markup=False)


def _task(dataset: DatasetSummary) -> Task:
    return task_for(dataset.environment, dataset.lowest, dataset.best)


def _find_runs(path: Path) -> list[Path]:
    """The run directories at a path: itself, or those directly below it."""
    if not path.is_dir():
        raise InputError(f"no such run: {path} is not a directory")
    if (path / CHECKPOINT).exists():
        return [path]
    order = list(METHODS)
    found = [child.parent for child in path.glob(f"*/{CHECKPOINT}")]
    if not found:
        raise InputError(f"{path} holds no run: neither it nor a directory below it has a {CHECKPOINT}")
    return sorted(found, key=lambda d: (order.index(d.name) if d.name in order else len(order), d.name))


def _is_evaluated(directory: Path, content_hash: str) -> bool:
    return (directory / RESULTS).exists() and (
        runs.read_config(directory)["dataset"]["content_hash"] == content_hash
    )


def _configurations(directories: list[Path]) -> dict[str, Any]:
    return {"runs": {directory.name: runs.read_config(directory) for directory in directories}}


def _read_sweeps(directories: list[Path]) -> list[Sweep]:
    sweeps: list[Sweep] = []
    for directory in directories:
        if not (directory / RESULTS).exists():
            raise InputError(f"{directory} is not evaluated yet; `cwbc evaluate {directory}` does it")
        (sweep,) = read_results(directory / RESULTS)
        sweeps.append(sweep)
    names = [sweep.method for sweep in sweeps]
    # The same method from two runs is told apart by where it lies.
    return [
        dataclasses.replace(sweep, method=f"{sweep.method} ({directory})")
        if names.count(sweep.method) > 1
        else sweep
        for sweep, directory in zip(sweeps, directories, strict=True)
    ]


def _provenance(directories: list[Path]) -> dict[str, str]:
    configs = {directory: runs.read_config(directory) for directory in directories}

    def each(value: Callable[[dict[str, Any]], str]) -> str:
        return "\n".join(dict.fromkeys(value(config) for config in configs.values()))

    return {
        "command": each(lambda c: c["notes"].get("command", "")),
        "preset": each(lambda c: c["notes"].get("preset", "")),
        "steps": each(lambda c: f"{c['training']['steps']:,} of {c['training']['batch_size']} windows"),
        "training time": "\n".join(
            f"{config['method']['name']}: {runs.training_seconds(directory):,.0f} s"
            for directory, config in configs.items()
        ),
        "hardware": each(lambda c: f"{c['hardware']['device']}, {c['hardware']['cores']} cores"),
        "versions": each(lambda c: ", ".join(f"{name} {version}" for name, version in c["versions"].items())),
    }
