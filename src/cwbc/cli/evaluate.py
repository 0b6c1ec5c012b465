"""`cwbc evaluate`: a trained run over target returns."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cwbc import envs
from cwbc.cli import report
from cwbc.cli.options import (
    OFFLINE_MEANS,
    Device,
    Environment,
    Flag,
    Flat,
    Offline,
    SweepOptions,
    Trackers,
)  # fmt: skip
from cwbc.cli.session import Session
from cwbc.core.device import use_device
from cwbc.core.methods import method_from_json
from cwbc.core.policy_spec import ActionChoice
from cwbc.core.simulation import is_offline, offline
from cwbc.core.tasks import task_for
from cwbc.data import read
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.sweeps import Sweep
from cwbc.runs.evaluating import evaluate_run
from cwbc.runs.finished import find_runs
from cwbc.runs.offline import OfflineData, model_directory, offline_data, training_steps
from cwbc.runs.policies import Policies
from cwbc.runs.run_directory import CONFIG, SUMMARY, RunDirectory
from cwbc.runs.tracking import Tracking, parse_trackers
from cwbc.system.errors import InputError
from cwbc.system.progress import progress
from cwbc.system.tensor_files import CHECKPOINT

Protocol = tuple[str, tuple[float, ...], int]  # environment, target returns, episodes


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Evaluate a trained run over target returns."""

    directory: Annotated[Positional[str], arg(metavar="RUN", help_behavior_hint="")]
    """A run directory, or one that holds several."""
    sweep: Annotated[SweepOptions, Flat] = dataclasses.field(default_factory=SweepOptions)
    offline: Offline = False
    dataset: Annotated[str | None, arg(help_behavior_hint="")] = None
    """The data that the run was trained on, for --offline (default: as the run's configuration names it)."""
    actions: Annotated[ActionChoice | None, arg(help_behavior_hint="")] = None
    """How discrete actions are chosen (default: sampled for images, else greedy)."""
    env: Environment = None
    """Gymnasium id of the environment, or module:ID of your own (default: the run's)."""
    device: Device = None
    track: Trackers = None
    """Show the results in tensorboard, wandb or both as well (default: neither)."""
    overwrite: Flag = False
    """Replace results that were evaluated with other targets or episodes."""

    def run(self, session: Session) -> None:
        """Evaluate the run, or all below its directory."""
        trackers = parse_trackers(self.track)
        use_device(self.device)
        envs.allow(self.env)
        root = Path(self.directory)
        found = find_runs(root)
        for run, protocol in [(run, self._protocol(run)) for run in found]:
            with run.lock(), contextlib.closing(Tracking(trackers, session.warn)) as tracking:
                run.track(tracking)
                tracking.show(*self._evaluated(run, root, protocol, session))
        report.write(root, found)
        if found == [RunDirectory(root)] and (root.parent / SUMMARY).exists():
            session.say(f"`cwbc report {shlex.quote(str(root.parent))}` shows it beside the others there")

    def _protocol(self, run: RunDirectory) -> Protocol:
        """The settings of a run's evaluation."""
        if not run.has(CHECKPOINT):
            raise InputError(f"{run.path} holds results without parameters: {CHECKPOINT} is missing")
        dataset = DatasetSummary.from_json(run.config()["dataset"])
        environment = self.env or dataset.environment or run.evaluated_in()
        if self.offline:
            if self.env is not None:
                raise InputError("--offline uses no environment; give it or --env, not both")
            environment = offline(dataset.environment)
        if environment is None:
            hint = "give --env ID, or --offline to estimate returns with a model of the data"
            if run.has_images():
                hint = f"give --env ID; {run.without_estimates()}"
            raise InputError(f"{run.path} names no environment to act in; {hint}")
        task = task_for(environment, dataset.lowest, dataset.best)
        targets, episodes = self.sweep.plan(task, dataset.best)
        method = method_from_json(run.config()["method"], f"{run.path / CONFIG}, method")
        protocol = (environment, self.sweep.of(method, targets), episodes)
        if not self.overwrite:
            run.check_results(*protocol, self.actions)
        return protocol

    def _offline(self, run: RunDirectory, root: Path, session: Session) -> OfflineData:
        """The run's data and its models, which are trained where they are not there."""
        config = run.config()
        name, expected = self.dataset or config["notes"].get("dataset"), config["dataset"]["content_hash"]
        if name is None:
            raise InputError(f"{run.path} does not say what it was trained on; give --dataset")
        with session.reading(name) as update:
            data = read(name, config["dataset"]["environment"] or "none", progress=update).trusted()
        if data.content_hash != expected:
            raise InputError(f"{name} is not the data that {run.path} was trained on; give --dataset")
        session.say(OFFLINE_MEANS)
        # Those of a comparison that the run belongs to, where they are there.
        places = [model_directory(each, expected) for each in (root.resolve().parent, root)]
        directory = next(filter(Path.exists, places), places[-1])
        with (
            RunDirectory(directory).lock(),
            session.saving(),
            progress(
                session.console, "learning a model of the data", training_steps(data), "steps"
            ) as update,
        ):
            return offline_data(data, directory, progress=update, should_stop=session.is_stopping)

    def _evaluated(
        self, run: RunDirectory, root: Path, protocol: Protocol, session: Session
    ) -> tuple[Sweep, DatasetSummary]:
        """The results of a run, which are evaluated where they are not there."""
        policies = Policies.load(run.path).acting(self.actions)
        name = policies.spec.method.name
        if run.is_evaluated(*protocol, self.actions):
            session.say(f"{name}: already evaluated")
            return run.sweep(), run.dataset()
        environment, targets, episodes = protocol
        known = self._offline(run, root, session) if is_offline(environment) else None
        session.say(f"{name}: {policies.sweep_in_words(len(targets), episodes)}")
        with progress(session.console, f"evaluating {name}", policies.spec.horizon, "steps") as update:
            return evaluate_run(run.path, policies, *protocol, update, offline=known)
