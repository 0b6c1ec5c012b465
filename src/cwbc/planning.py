"""From what was typed to what is to be done; every mistake is found here, before anything is written."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from cwbc import checks, fitting, memory, option_types, runs
from cwbc.datasets import read, store
from cwbc.datasets.source import Progress
from cwbc.design import Design
from cwbc.device import Place, default_place, default_precision, default_preset, use_device
from cwbc.errors import InputError, require
from cwbc.methods import DEFAULT_SEEDS, Method, Preset, Training, seeds_of, sized, with_options
from cwbc.tasks import Task
from cwbc.tracking import parse_trackers
from cwbc.trajectories import Trajectories
from cwbc.wording import amount, counted

if TYPE_CHECKING:
    from cwbc import cli

DEFAULT_EPISODES = 10


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is to be trained on what."""

    data: Trajectories
    methods: list[tuple[Method, Training]]
    seeds: tuple[int, ...]
    notes: dict[str, Any]
    remarks: list[str]
    data_on: Place
    track: tuple[str, ...]

    @classmethod
    def make(
        cls,
        dataset: str,
        names: Sequence[str],
        options: cli.TrainingOptions,
        hyperparameters: cli.Hyperparameters,
        command_line: str,
        acting: bool,
        progress: Progress | None = None,
    ) -> Plan:
        """The plan of a command line; `acting` says whether the policies are to act as well."""
        given = option_types.given(hyperparameters)
        if options.steps is not None:
            given["steps"] = options.steps
        asked = None if options.seeds is None else seeds_of(options.seeds, "--seeds")
        # Before the seconds that a device and a dataset take.
        check_methods(names, options.preset or "paper", given)
        track = parse_trackers(options.track)
        device = use_device(options.device)
        preset: Preset = options.preset or default_preset()
        given.setdefault("precision", default_precision())
        recording = fitting.fitted(read(dataset, options.env, progress=progress), acting)
        data = recording.trusted()
        if acting and data.environment is None:
            raise InputError(f"dataset {data.name} names no environment to act in; give --env ID")
        methods = check_methods(names, preset, given)
        doubts = [] if recording.kept else recording.warnings()
        if recording.kept and any(method.condition for method, _ in methods):
            doubts += checks.equal_returns(data)  # told when it was imported, but not that it matters here
        seeds = asked or seeds_of(DEFAULT_SEEDS[preset])
        why = "as asked" if options.preset else f"the default on a {device.upper()}"
        kept = store.find(data.name) if recording.kept else None
        notes = {
            "command": command_line,
            "preset": preset,
            "why this preset": why,
            "dataset": dataset,
            "dataset from": kept.source if kept else recording.origin.source,
        }
        remarks = [f"warning: {finding.sentence()}" for finding in doubts]
        data_on = options.data_on or default_place(data.nbytes)
        if data_on == "host":
            size = f"its {data.nbytes / 1e9:.3g} GB are more than half of the device's free memory"
            remarks.append(f"data streamed from host memory ({'as asked' if options.data_on else size})")
        return cls(data, methods, seeds, notes, remarks, data_on, track)

    def lines(self) -> list[str]:
        """The plan in words."""
        data = self.data
        lines = [
            f"{data.name}: {counted(data.episodes, 'episode')}, {counted(data.steps, 'step')}, returns "
            f"{amount(data.lowest)} to {amount(data.best)}, environment {data.environment or 'unknown'}"
        ]
        lines += self.remarks
        kind = jax.devices()[0].device_kind
        preset = f"{self.notes['preset']} ({self.notes['why this preset']})"
        lines.append(f"preset {preset}, {counted(len(self.seeds), 'seed')}, device {kind}")
        return lines

    @functools.cached_property
    def designs(self) -> list[Design]:
        """Those of the methods, in order."""
        return [Design.fit(method, self.data, settings.context) for method, settings in self.methods]

    def check(self, directories: list[Path], overwrite: bool) -> None:
        """Refuse what does not fit into memory, and directories that hold something else; make room."""
        configs = []
        for design, (_, settings) in zip(self.designs, self.methods, strict=True):
            memory.check_training(design, settings, len(self.seeds))
            configs.append(runs.configuration(self.data, design, settings, self.seeds, self.notes))
        planned = list(zip(directories, configs, strict=True))
        for directory, config in planned:
            runs.check_same(directory, config, overwrite)
        if overwrite:
            with contextlib.ExitStack() as stack:  # once all of them are known to be all right
                for directory in directories:
                    stack.enter_context(runs.held(directory))
                for directory, config in planned:
                    runs.discard_other(directory, config)


def check_methods(
    names: Sequence[str], preset: Preset, options: dict[str, Any]
) -> list[tuple[Method, Training]]:
    """The methods that names stand for, with options applied to those that have them."""
    if not names:
        raise InputError("give at least one method, such as rvs+cwbc")
    used: set[str] = set()
    methods = []
    for name in names:
        method, settings, mine = with_options(*sized(name, preset), options)
        used |= mine
        methods.append((method, settings))
    if unused := sorted(set(options) - used):
        flags = ", ".join("--" + name.replace("_", "-") for name in unused)
        raise InputError(f"{flags} does nothing for {', '.join(names)}")
    nameless = [(tuple(v for k, v in vars(m).items() if k != "name"), m.name) for m, _ in methods]
    for number, (value, name) in enumerate(nameless):
        for other, earlier in nameless[:number]:
            if other == value:
                raise InputError(f"{earlier} and {name} are the same method; give it once")
    return methods


def sweep_plan(options: cli.SweepOptions, task: Task, best: float) -> tuple[tuple[float, ...], int]:
    """The targets to ask for, and how many episodes each."""
    episodes = DEFAULT_EPISODES if options.episodes is None else options.episodes
    require(episodes >= 1, "--episodes", episodes, "at least 1")
    if options.targets is None:
        return task.targets(best), episodes
    try:
        targets = sorted({float(text) for text in options.targets.split(",")})
    except ValueError:
        raise InputError(f"--targets takes numbers such as 1000,2000,3000; got {options.targets!r}") from None
    for target in targets:
        require(math.isfinite(target), "--targets", target, "finite")
        if task.published and target <= 0 < task.near_return:
            raise InputError(f"--targets must be positive for this task; got {target:g}")
    return tuple(targets), episodes
