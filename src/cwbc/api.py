"""The library's two verbs, with names and numbers where the modules below take values."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cwbc import evaluation, fitting, memory, runs, simulators
from cwbc.datasets import made, read
from cwbc.design import Design
from cwbc.device import Place, default_precision, default_preset
from cwbc.errors import InputError, unknown
from cwbc.finished import measured_in
from cwbc.methods import DEFAULT_SEEDS, Method, Preset, Training, seeds_of, sized, with_all_options
from cwbc.plain_text import PlainConsole, say
from cwbc.policy import Policies
from cwbc.progress import gauge, progress
from cwbc.results import Sweep
from cwbc.tasks import task_for
from cwbc.tracking import parse_trackers, tracked
from cwbc.training import train as train_policies
from cwbc.trajectories import Trajectories


def train(
    dataset: Trajectories | str | os.PathLike[str],
    method: Method | str,
    *,
    seeds: int | Sequence[int] | None = None,
    preset: Preset | None = None,
    training: Training | None = None,
    directory: str | os.PathLike[str] | None = None,
    data_on: Place | None = None,
    track: str | Sequence[str] | None = None,
    **options: Any,
) -> Policies:
    """Train a method on a dataset, one policy per seed. How far it is shows on stderr.

    Args:
        seeds: how many (then 0, 1, ...) or which; by default 10 with the paper preset, 3 with the small one.
        preset: "paper" or "small", the sizes of a method given by name; by default paper on a GPU.
        training: replaces the preset's steps and batch.
        directory: where the run is kept; a call that was cut off goes on from there.
        data_on: "host" streams the data from host memory, with the same result; by default only where it does
            not fit into half of the device's free memory.
        track: "tensorboard", "wandb" or both, which show the run that is kept in the directory as well.
        options: hyper-parameters by name, such as steps=20_000, width=512 or coefficient=0.5.
    """
    trackers = parse_trackers(track)
    if trackers and directory is None:
        raise InputError("track shows a run that is kept; give its directory, too")
    console = PlainConsole(stderr=True)
    if isinstance(dataset, Trajectories):
        data = dataset
    else:
        with gauge(console, *made.doing(str(dataset))) as tell:
            data = read(dataset, progress=tell).trusted()
    data = fitting.with_actions(data)
    preset = preset or default_preset()
    named, preset_training = sized(method if isinstance(method, str) else "rvs", preset)
    if training is None:
        options.setdefault("precision", default_precision())
    chosen = named if isinstance(method, str) else method
    chosen, settings = with_all_options(chosen, training or preset_training, options)
    which = seeds_of(DEFAULT_SEEDS[preset] if seeds is None else seeds)
    if data_on not in (None, "device", "host"):
        raise unknown("place for the data", data_on, ("device", "host"))
    memory.check_training(Design.fit(chosen, data, settings.context), settings, len(which))
    place = None if directory is None else Path(directory)
    done = 0 if place is None else runs.steps_done(place)
    shown = progress(console, f"training {chosen.name}", settings.steps, "steps", done)
    is_over = done == settings.steps  # then it is only read
    with tracked(trackers) as tracking, contextlib.nullcontext() if is_over else shown as update:
        policies = train_policies(
            data, chosen, settings, which, place, progress=update, data_on=data_on, tracking=tracking
        )
    for text in policies.warnings:
        say(f"warning: {chosen.name}, {text}")
    return policies


def evaluate(
    policies: Policies | str | os.PathLike[str],
    environment: simulators.Environment | None = None,
    targets: Sequence[float] | None = None,
    *,
    episodes: int = 10,
    seed: int = 0,
) -> Sweep:
    """Evaluate policies (or those of a run directory) at every target return; by default the paper's sweep.

    Progress is printed to stderr.

    Args:
        environment: a Gymnasium id, or module:ID of your own; a gymnasium.Env, in which one episode runs
            after another, and which is left open; or a function that makes a new one for each episode, which
            then run side by side. By default the dataset's id; one with a module has to be given again.
    """
    measured = None
    if not isinstance(policies, Policies):
        measured = measured_in(Path(policies))
        policies = Policies.load(policies)
    about = policies.about
    if environment is None:
        environment = about.get("environment") or measured
    elif isinstance(environment, str):
        simulators.allow(environment)
    elif not callable(environment) and not simulators.takes_turns(environment):
        wanted = "a Gymnasium id, a gymnasium.Env or a function that makes one"
        raise InputError(f"environment must be {wanted}; got a {type(environment).__name__}")
    if environment is None or environment == "":
        raise InputError("the dataset names no environment; give one, such as environment='Hopper-v5'")
    if targets is None:
        name = simulators.name_of(environment) or about.get("environment")
        task = task_for(name, about["lowest_return"], about["best_return"])
        targets = task.targets(about["best_return"])
    design, console = policies.design, PlainConsole(stderr=True)
    with progress(console, f"evaluating {design.method.name}", design.horizon, "steps") as update:
        return evaluation.evaluate(policies, environment, targets, episodes, seed, update)
