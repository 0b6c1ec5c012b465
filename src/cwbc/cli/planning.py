"""From the options of `train` and `compare` to a plan; every mistake is found before anything is written."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import jax
import numpy as np
from tyro.conf import arg

from cwbc.cli.options import (
    EPISODES,
    FEW_EPISODES,
    Device,
    Directory,
    Environment,
    Flag,
    Flat,
    Trackers,
    Whole,
    given,
    options_of,
)
from cwbc.cli.session import Session
from cwbc.core import memory
from cwbc.core.device import default_place, default_precision, default_preset, use_device
from cwbc.core.encoders import is_large
from cwbc.core.holdout import FEWEST, split
from cwbc.core.methods import CHOICES, DEFAULT_SEEDS, Method, Preset, Training, seeds_of, sized, with_options
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.trajectories import Trajectories
from cwbc.data import checks
from cwbc.data.checks import Recording
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.data.sources import size_text
from cwbc.runs.configuration import planned_configuration
from cwbc.runs.run_directory import CONFIG, METRICS, SUMMARY, RunDirectory
from cwbc.runs.tracking import parse_trackers
from cwbc.system.errors import InputError
from cwbc.system.formatting import counted

HELD_OUT = 0.1  # of the episodes, by default where the data has no environment

if TYPE_CHECKING:
    Hyperparameters = Any
else:
    Hyperparameters = options_of(CHOICES, "Hyperparameters", without=("steps",))


@dataclasses.dataclass(frozen=True)
class TrainingOptions:
    """How much to train, and where."""

    seeds: Whole = None
    """Number of seeds (default: 10 with the paper preset, 3 with the small one)."""
    steps: Whole = None
    """Training steps (default: the preset's); more than before continue a finished run."""
    preset: Annotated[Preset | None, arg(help_behavior_hint="")] = None
    """Sizes: the paper's, or minutes on two CPU cores (default: paper with a GPU, small without)."""
    device: Device = None
    data_on: Annotated[Literal["device", "host", "disk"] | None, arg(help_behavior_hint="")] = None
    """Where the dataset is; from host and disk it is streamed (default: the device, if it has room)."""
    env: Environment = None
    """Gymnasium id of the environment, or module:ID of your own (default: the dataset's)."""
    out: Directory = None
    """Directory of the results (default: runs/DATASET; for train, METHOD below it)."""
    track: Trackers = None
    """Show the run in tensorboard, wandb or both as well (default: neither)."""
    overwrite: Flag = False
    """Start over where the directory holds a run with other settings."""
    hyperparameters: Annotated[Hyperparameters, Flat] = dataclasses.field(default_factory=Hyperparameters)


@dataclasses.dataclass(frozen=True)
class Plan:
    """Methods at their final sizes, before any dataset is read."""

    methods: list[tuple[Method, Training]]
    seeds: tuple[int, ...]
    preset: Preset
    reason: str  # for the preset
    trackers: tuple[str, ...]
    options: TrainingOptions
    names: tuple[str, ...]
    chosen: Mapping[str, Any]  # hyper-parameters

    @classmethod
    def make(cls, names: Sequence[str], options: TrainingOptions) -> Plan:
        """The plan of a command line."""
        chosen = given(options.hyperparameters)
        if options.steps is not None:
            chosen["steps"] = options.steps
        seeds = None if options.seeds is None else seeds_of(options.seeds, "--seeds")
        # Before the seconds that a device takes.
        _methods(names, options.preset or "paper", chosen)
        trackers = parse_trackers(options.track)
        device = use_device(options.device)
        preset: Preset = options.preset or default_preset()
        chosen.setdefault("precision", default_precision())
        reason = "as given" if options.preset else f"the default on a {device.upper()}"
        methods = _methods(names, preset, chosen)
        return cls(
            methods,
            seeds or seeds_of(DEFAULT_SEEDS[preset]),
            preset,
            reason,
            trackers,
            options,
            tuple(names),
            chosen,
        )

    def on(self, data: Trajectories, directories: Sequence[Path]) -> Plan:
        """The plan with defaults that depend on the data: small sizes on images, and `--holdout`.

        The latter is that of a run in the directories, else some without an environment.
        """
        if self._is_small_on_images(data):
            methods = _methods(self.names, self.preset, self.chosen, large_images=True)
            return dataclasses.replace(self, methods=methods)._with_holdout(data, directories)
        return self._with_holdout(data, directories)

    def episodes(self, data: Trajectories) -> int:
        """The default number of episodes per seed and target."""
        return FEW_EPISODES if self._is_small_on_images(data) else EPISODES

    def _is_small_on_images(self, data: Trajectories) -> bool:
        return self.preset == "small" and is_large(data.observations.shape[1:])

    def _with_holdout(self, data: Trajectories, directories: Sequence[Path]) -> Plan:
        if self.options.hyperparameters.holdout is not None:
            return self
        runs = [run for run in map(RunDirectory, directories) if run.has(CONFIG)]
        fraction = HELD_OUT if data.environment is None and data.episodes >= FEWEST else 0.0
        if runs and not self.options.overwrite:
            fraction = runs[0].config()["training"].get("holdout", 0.0)
        methods = [(each, dataclasses.replace(training, holdout=fraction)) for each, training in self.methods]
        return dataclasses.replace(self, methods=methods)

    def notes(self, session: Session) -> dict[str, str]:
        """The provenance in a run's configuration, without that of its dataset."""
        return {"command": session.command_line, "preset": self.preset, "why this preset": self.reason}

    def data_on(self, data: Trajectories) -> Any:
        """The place of the dataset during training."""
        return self.options.data_on or default_place(data.nbytes, data.is_mapped)

    def show(self, recording: Recording, session: Session) -> None:
        """Print the plan, with the warnings about the dataset."""
        data = recording.data
        warnings = [] if recording.stored else recording.warnings()
        if recording.stored and any(method.is_conditioned for method, _ in self.methods):
            # Shown when it was imported, but not why it matters here.
            warnings += checks.equal_returns(data.lowest, data.best, data.episodes)
        session.show(data)
        for warning in warnings:
            session.warn(warning.sentence())
        if words := self._streamed_in_words(data):
            session.say(words)
        seeds, kind = counted(len(self.seeds), "seed"), jax.devices()[0].device_kind
        session.say(f"preset {self.preset} ({self.reason}), {seeds}, device {kind}")
        if words := self._held_out_in_words(data):
            session.say(words)

    def _streamed_in_words(self, data: Trajectories) -> str:
        """From where the dataset is streamed, and why; nothing where it is not."""
        place, size = self.data_on(data), f"{data.nbytes / 1e9:.3g} GB"
        if place == "device":
            return ""
        if place == "host":
            why, whose = "data streamed from host memory", "the device's free memory"
        else:
            raw = data.observations
            assert isinstance(raw, np.memmap)  # reading it has checked that
            kept = (
                f"{size_text(raw.nbytes)} in {raw.filename}, which `cwbc data remove {data.name}` removes too"
            )
            why, whose = f"data streamed from disk, {kept}", "the memory that this process may use"
        reason = "as given" if self.options.data_on else f"its {size} are more than half of {whose}"
        return f"{why} ({reason})"

    def _held_out_in_words(self, data: Trajectories) -> str:
        """How many episodes are held out, and why; nothing where none are and nobody would expect any."""
        is_given = self.options.hyperparameters.holdout is not None
        every = counted(data.episodes, "episode")
        if held_out := split(data, self.methods[0][1].holdout).held_out:
            reason = "as given" if is_given else "the default without an environment, or as before"
            return f"held out of training: {held_out.episodes} of {every} ({reason})"
        if not is_given and data.environment is None and data.episodes < FEWEST:
            return f"held out of training: none ({every} are too few; it takes {FEWEST})"
        return ""

    def check(self, dataset: DatasetSummary, specs: Mapping[Path, PolicySpec]) -> None:
        """Refuse trainings that do not fit into memory, and directories with other files; overwrite runs."""
        planned = []
        for (directory, spec), (_, training) in zip(specs.items(), self.methods, strict=True):
            memory.check_training(spec, training, len(self.seeds))
            config = planned_configuration(spec, training, self.seeds, dataset)
            planned.append((RunDirectory(directory), config))
        for run, config in planned:
            run.check_same(config, self.options.overwrite)
        if self.options.overwrite:
            with contextlib.ExitStack() as stack:  # once all of them are known to be all right
                for run, _ in planned:
                    stack.enter_context(run.lock())
                for run, config in planned:
                    run.discard_other(config)


def _methods(
    names: Sequence[str], preset: Preset, options: Mapping[str, Any], large_images: bool = False
) -> list[tuple[Method, Training]]:
    """The methods that names mean, with options applied to those that have them."""
    if not names:
        raise InputError("give at least one method, such as rvs+cwbc")
    unused = set(options)
    methods: list[tuple[Method, Training]] = []
    for name in names:
        method, training, used = with_options(*sized(name, preset, large_images), options)
        unused -= used
        for earlier, _ in methods:
            if dataclasses.replace(earlier, name=method.name) == method:
                raise InputError(f"{earlier.name} and {method.name} are the same method; give it once")
        methods.append((method, training))
    if unused:
        flags = ", ".join("--" + name.replace("_", "-") for name in sorted(unused))
        raise InputError(f"{flags} does nothing for {', '.join(names)}")
    return methods


def show_resuming(name: str, directory: Path, steps: int, session: Session) -> int:
    """Print that a training resumes in a directory, where it does; returns the steps that are done."""
    run = RunDirectory(directory)
    done = run.steps_done()
    if done == steps:
        session.say(f"{name}: already trained")
    elif done:
        session.say(f"{name}: resumes from step {done:,}")
        if run.trains_on(steps) and run.has(SUMMARY):
            session.say(f"its evaluation so far moves to {run.earlier_evaluation(done)}")
    elif run.has(METRICS) and not run.holds_work():
        session.say(f"{name}: no checkpoint was reached before; starting over")
    return done
