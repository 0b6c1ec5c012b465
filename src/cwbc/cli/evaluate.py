"""`cwbc evaluate`: a trained run over target returns."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cwbc import envs
from cwbc.cli import report
from cwbc.cli.options import Device, Environment, Flag, Flat, Trackers
from cwbc.cli.planning import SweepOptions
from cwbc.cli.session import Session, stoppable
from cwbc.core.device import use_device
from cwbc.core.tasks import task_for
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.runs import run_directory
from cwbc.runs.evaluating import evaluate_run
from cwbc.runs.finished import check_results, evaluated_in, evaluated_on, find_runs, is_evaluated, read_sweeps
from cwbc.runs.policies import Policies
from cwbc.runs.tracking import parse_trackers, tracked
from cwbc.system.errors import InputError
from cwbc.system.progress import progress
from cwbc.system.tensor_files import CHECKPOINT


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Evaluate a trained run over target returns."""

    directory: Annotated[Positional[str], arg(metavar="RUN", help_behavior_hint="")]
    """A run directory, or one that holds several."""
    sweep: Annotated[SweepOptions, Flat] = dataclasses.field(default_factory=SweepOptions)
    env: Environment = None
    """Gymnasium id of the environment, or module:ID of your own (default: the run's)."""
    device: Device = None
    """Where to compute (default: the GPU when there is one)."""
    track: Trackers = None
    """Show the results in tensorboard, wandb or both as well (default: neither)."""
    overwrite: Flag = False
    """Replace results that were evaluated with other targets or episodes."""

    def run(self, command_line: str) -> None:
        """Evaluate the run, or all below its directory."""
        with stoppable(command_line) as session:
            _evaluate(self, session)


@dataclasses.dataclass(frozen=True)
class _Protocol:
    """The settings of a run's evaluation."""

    directory: Path
    environment: str
    targets: tuple[float, ...]
    episodes: int


def _protocol(directory: Path, command: Evaluate) -> _Protocol:
    if not (directory / CHECKPOINT).exists():
        raise InputError(f"{directory} holds results without parameters: {CHECKPOINT} is missing")
    dataset = DatasetSummary.from_json(run_directory.read_config(directory)["dataset"])
    environment = command.env or dataset.environment or evaluated_in(directory)
    if environment is None:
        raise InputError(f"{directory} names no environment to act in; give --env ID")
    task = task_for(environment, dataset.lowest, dataset.best)
    targets, episodes = command.sweep.plan(task, dataset.best)
    check_results(directory, environment, targets, episodes, command.overwrite)
    return _Protocol(directory, environment, targets, episodes)


def _evaluate(command: Evaluate, session: Session) -> None:
    trackers = parse_trackers(command.track)
    use_device(command.device)
    envs.allow(command.env)
    root = Path(command.directory)
    found = find_runs(root)
    for protocol in [_protocol(directory, command) for directory in found]:
        _evaluate_run(protocol, trackers, session)
    report.write_locked(root, found)
    if found == [root] and (root.parent / run_directory.SUMMARY).exists():
        session.say(f"`cwbc report {shlex.quote(str(root.parent))}` shows it beside the others there")


def _evaluate_run(protocol: _Protocol, trackers: tuple[str, ...], session: Session) -> None:
    directory = protocol.directory
    how = (protocol.environment, protocol.targets, protocol.episodes)
    with run_directory.locked(directory), tracked(trackers, session.warn) as tracking:
        run_directory.track(directory, tracking)
        policies = Policies.load(directory)
        name = policies.spec.method.name
        if is_evaluated(directory, *how):
            session.say(f"{name}: already evaluated")
            tracking.show(read_sweeps([directory])[0], evaluated_on(directory))
            return
        points = len(protocol.targets) if policies.spec.method.is_conditioned else 1
        rows = len(policies.seeds) * points * protocol.episodes
        what = f"{points} target returns" if policies.spec.method.is_conditioned else "unconditioned"
        session.say(f"{name}: {what}, {rows:,} episodes")
        with progress(session.console, f"evaluating {name}", policies.spec.horizon, "steps") as update:
            sweep, dataset = evaluate_run(directory, policies, *how, update)
        tracking.show(sweep, dataset)
