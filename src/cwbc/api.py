"""The library's functions `train`, `evaluate` and `run`, with progress on stderr."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from cwbc import envs
from cwbc.core.device import PLACES, Place, default_precision, default_preset
from cwbc.core.encoders import is_large
from cwbc.core.methods import DEFAULT_SEEDS, Method, Preset, Training, seeds_of, sized, with_all_options
from cwbc.core.policy_spec import ActionChoice
from cwbc.core.simulation import is_offline
from cwbc.core.spaces import Image
from cwbc.core.tasks import task_for
from cwbc.core.training_loop import Interrupted
from cwbc.core.trajectories import Trajectories
from cwbc.data import activity, compatibility, load, read
from cwbc.data.unpacked import check_mapped, wants_disk
from cwbc.grids import ray_engine
from cwbc.grids.cells import Cell, several
from cwbc.grids.engine import Options, shown
from cwbc.grids.engine import run as run_here
from cwbc.grids.outcomes import Results
from cwbc.grids.preparation import ROOT
from cwbc.results.sweeps import Sweep
from cwbc.runs import evaluating
from cwbc.runs.offline import offline_data, training_steps
from cwbc.runs.policies import Policies
from cwbc.runs.run_directory import RunDirectory
from cwbc.runs.tracking import Tracking, parse_trackers
from cwbc.runs.training import train as train_policies
from cwbc.system.console import PlainConsole, say
from cwbc.system.errors import InputError, unknown
from cwbc.system.interrupts import stoppable
from cwbc.system.progress import gauge, progress


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
    """Train a method on a dataset, one policy per seed. Progress is printed to stderr.

    Args:
        seeds: their number (0, 1, ...) or a list; by default 10 with the paper preset, 3 with the small one.
        preset: "paper" or "small", the sizes of a method given by name; by default paper on a GPU.
        training: replaces the preset's steps and batch.
        directory: where the run is stored; a call that was interrupted resumes from there.
        data_on: "host" streams the data from host memory, with the same result; by default only where it does
            not fit into half of the device's free memory. "disk" streams images of the store from there; by
            default only where they exceed half of the memory that this process may use.
        track: "tensorboard", "wandb" or both, which also show the run in the directory.
        options: hyper-parameters by name, such as steps=20_000, width=512 or coefficient=0.5.
    """
    trackers = parse_trackers(track)
    if trackers and directory is None:
        raise InputError("track shows a run in a directory; give the directory, too")
    if data_on is not None and data_on not in PLACES:
        raise unknown("place for the data", data_on, PLACES)
    console = PlainConsole(stderr=True)
    if isinstance(dataset, Trajectories):
        data = dataset
        if data_on == "disk":
            check_mapped(data)
    else:
        with gauge(console, *activity(str(dataset))) as update:
            data = read(dataset, progress=update, on_disk=wants_disk(data_on)).trusted()
    data = compatibility.with_actions(data)
    preset = preset or default_preset()
    named, preset_training = sized(
        method if isinstance(method, str) else "rvs", preset, is_large(data.observations.shape[1:])
    )
    if training is None:
        options.setdefault("precision", default_precision())
    chosen = named if isinstance(method, str) else method
    chosen, settings = with_all_options(chosen, training or preset_training, options)
    which = seeds_of(DEFAULT_SEEDS[preset] if seeds is None else seeds)
    place = None if directory is None else Path(directory)
    done = 0 if place is None else RunDirectory(place).steps_done()
    bar = progress(console, f"training {chosen.name}", settings.steps, "steps", done)
    with (
        contextlib.closing(Tracking(trackers)) as tracking,
        contextlib.nullcontext() if done == settings.steps else bar as update,
    ):
        policies = train_policies(
            data, chosen, settings, which, place, tracking=tracking, progress=update, data_on=data_on
        )
    for text in policies.warnings:
        say(f"warning: {chosen.name}, {text}")
    return policies


def evaluate(
    policies: Policies | str | os.PathLike[str],
    environment: envs.Environment | None = None,
    targets: Sequence[float] | None = None,
    *,
    episodes: int = 10,
    seed: int = 0,
    actions: ActionChoice | None = None,
    offline: Trajectories | str | os.PathLike[str] | None = None,
) -> Sweep:
    """Evaluate policies (or those of a run directory) at every target return; by default the paper's sweep.

    Progress is printed to stderr.

    Args:
        environment: a Gymnasium id, or module:ID of your own; a gymnasium.Env, in which one episode runs
            after another, and which is left open; or a function that makes a new one for each episode, which
            then run side by side. By default the dataset's id; one with a module has to be given again.
        actions: "sampled" or "greedy", of discrete actions; by default sampled where observations are images.
        targets: none, [], evaluates methods that choose their target (+q) once, without one.
        offline: logged data, with a model of which the returns are estimated instead of simulated.
    """
    evaluated = None
    if not isinstance(policies, Policies):
        evaluated = RunDirectory(Path(policies)).evaluated_in()
        policies = Policies.load(policies)
    policies, about = policies.acting(actions), policies.about
    if offline is not None:
        if environment is not None:
            raise InputError("offline evaluation uses no environment; give one of the two")
        task = task_for(about.get("environment"), about["lowest_return"], about["best_return"])
        sweep = task.targets(about["best_return"]) if targets is None else targets
        return _evaluated_offline(policies, offline, sweep, episodes, seed)
    if environment is None:
        environment = about.get("environment") or evaluated
        if environment is not None and is_offline(environment):
            raise InputError("the run was evaluated offline; give offline=DATASET, or an environment")
    elif isinstance(environment, str):
        envs.allow(environment)
    elif not callable(environment) and not envs.takes_turns(environment):
        wanted = "a Gymnasium id, a gymnasium.Env or a function that makes one"
        raise InputError(f"environment must be {wanted}; got a {type(environment).__name__}")
    if environment is None or environment == "":
        offered = "" if isinstance(policies.spec.observations, Image) else ", or offline=DATASET"
        raise InputError(
            f"the dataset names no environment; give one, such as environment='Hopper-v5'{offered}"
        )
    if targets is None:
        name = envs.name_of(environment) or about.get("environment")
        task = task_for(name, about["lowest_return"], about["best_return"])
        targets = task.targets(about["best_return"])
    design, console = policies.spec, PlainConsole(stderr=True)
    with progress(console, f"evaluating {design.method.name}", design.horizon, "steps") as update:
        return evaluating.evaluate(policies, environment, targets, episodes, seed, update)


def _evaluated_offline(
    policies: Policies,
    dataset: Trajectories | str | os.PathLike[str],
    targets: Sequence[float],
    episodes: int,
    seed: int,
) -> Sweep:
    data, console = dataset if isinstance(dataset, Trajectories) else load(dataset), PlainConsole(stderr=True)
    with progress(console, "learning a model of the data", training_steps(data), "steps") as update:
        known = offline_data(data, progress=update)
    with progress(
        console, f"evaluating {policies.spec.method.name}", policies.spec.horizon, "steps"
    ) as update:
        return evaluating.evaluate_offline(policies, known, targets, episodes, seed, update)[0]


def run(
    cells: Iterable[Cell] | Cell,
    root: Path | str = ROOT,
    *,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
) -> Results:
    """Train and evaluate all cells of a grid, each in its directory below `root`.

    Finished cells are only read. Progress is printed to stderr. The first Ctrl-C saves the running cells, and
    the same program resumes them.

    Args:
        engine: this process with all its devices, or a Ray cluster that is running.
        address: of the cluster; without it, the one that $RAY_ADDRESS names or that runs on this machine.
    """
    cells = several(cells, (Cell,), "cwbc.run takes the cells that cwbc.grid gives")
    if engine not in ("local", "ray"):
        raise unknown("engine", engine, ("local", "ray"))
    if address is not None and engine != "ray":
        raise InputError("address is that of a Ray cluster; give engine='ray' with it")
    run_all: Callable[..., Results] = run_here
    if engine == "ray":
        run_all = functools.partial(ray_engine.run, address=address)
    console = PlainConsole(stderr=True)
    with shown(console) as show, stoppable(lambda text: say(text, console)) as is_stopping:
        with contextlib.suppress(Interrupted):
            results = run_all(cells, root, options=Options(progress=show, should_stop=is_stopping))
        if is_stopping():  # even if all cells were just finished
            raise KeyboardInterrupt("all is saved; the same program resumes from here")
    for failure in results.failures:
        say(f"failed: {failure} (in {failure.directory})", console)
    return results
