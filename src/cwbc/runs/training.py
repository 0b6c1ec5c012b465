"""The training of runs: from a dataset and methods to policies, in directories that can be resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import jax

import cwbc
from cwbc.core import training_loop
from cwbc.core.device import Place
from cwbc.core.diagnostics import training_warnings
from cwbc.core.holdout import split
from cwbc.core.memory import check_training
from cwbc.core.methods import Method, Training, as_begun, to_json
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.prediction_error import PredictionError
from cwbc.core.spaces import Discrete
from cwbc.core.training_loop import Row, Trainee
from cwbc.core.trajectories import Trajectories
from cwbc.runs.configuration import configuration, differences, first_steps, in_words, sessions
from cwbc.runs.policies import Policies
from cwbc.runs.run_directory import CONFIG, EVALUATION, METRICS, RunDirectory
from cwbc.runs.tracking import Tracking
from cwbc.system import tensor_files
from cwbc.system.errors import InputError
from cwbc.system.files import open_to_append, write_atomically
from cwbc.system.tensor_files import CHECKPOINT


class Control(TypedDict, total=False):
    """The arguments of `core.training_loop.train` that callers may give."""

    progress: Callable[[int], None] | None
    should_stop: Callable[[], bool]
    data_on: Place | None
    before_writing: Callable[[], None]


@dataclasses.dataclass(frozen=True)
class Run:
    """A method fitted to a dataset, with its directory if it has one, and notes for its configuration."""

    data: Trajectories
    spec: PolicySpec
    directory: Path | None = None
    notes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tracking: Tracking = dataclasses.field(default_factory=Tracking)


def train(
    data: Trajectories,
    method: Method,
    settings: Training,
    seeds: tuple[int, ...],
    directory: Path | None = None,
    notes: Mapping[str, Any] | None = None,
    tracking: Tracking | None = None,
    **control: Unpack[Control],
) -> Policies:
    """`train_together` of one method, with its directory locked."""
    spec = PolicySpec.fit(method, data, settings)
    check_training(spec, settings, len(seeds))  # before there is a directory
    run = Run(data, spec, directory, notes or {}, tracking or Tracking())
    with contextlib.nullcontext() if directory is None else RunDirectory(directory).lock():
        return train_together([run], settings, seeds, **control)[0]


def train_together(
    runs: Sequence[Run], settings: Training, seeds: tuple[int, ...], **control: Unpack[Control]
) -> list[Policies]:
    """Train methods, those of one form in one program; with directories, resume interrupted runs.

    The caller locks the directories, and has checked that the training fits into memory.
    """
    before_writing = control.get("before_writing", lambda: None)
    before_writing()
    configs = [configuration(run.data, run.spec, settings, seeds, run.notes) for run in runs]
    begun = [_begin(run, settings, config, before_writing) for run, config in zip(runs, configs, strict=True)]
    training_loop.train([trainee for trainee, _ in begun], settings, **control)
    policies = []
    for (one, rows), config in zip(begun, configs, strict=True):
        warnings = tuple(training_warnings(rows, seeds, to_json(one.method)))
        parameters = jax.device_put(one.state.parameters)
        policies.append(Policies(one.spec, parameters, seeds, _about(config), warnings))
    return policies


def _about(config: dict[str, Any]) -> dict[str, Any]:
    """The provenance of policies."""
    dataset = config["dataset"]
    return {
        "dataset": dataset["name"],
        **{name: dataset[name] for name in ("content_hash", "environment")},
        **{f"{name}_return": dataset[name] for name in ("lowest", "best")},
        "cwbc": config["versions"].get("cwbc", cwbc.__version__),
    }


def _begin(
    run: Run, settings: Training, config: dict[str, Any], before_writing: Callable[[], None]
) -> tuple[Trainee, list[Row]]:
    """A method at the step to train from, and the rows of its metrics, which grow in training."""
    spec, seeds = run.spec, tuple(config["seeds"])
    rows = list[Row]()
    if run.directory is None:
        begun, state = as_begun(spec.method, settings.steps), training_loop.initialize(spec, seeds)
        return _trainee(run, settings, spec, begun, seeds, state, record=rows.append), rows
    directory = RunDirectory(run.directory)
    spec, state, step = _resume(directory, config, spec, seeds)
    rows += directory.metrics()
    directory.track(run.tracking)
    known = {"seeds": list(seeds), "steps": settings.steps, "about": _about(config)}
    description = {"design": spec.to_json(), **known}

    def record(row: Row) -> None:
        rows.append(row)
        with open_to_append(directory.path / METRICS) as file:
            file.write(f"{json.dumps(row)}\n".encode())
        run.tracking.record(row)

    def save(state: Any, step: int) -> None:
        tensors: dict[str, Any] = {}  # of the whole state: more steps may follow, even for a finished run
        for field in dataclasses.fields(state):
            tensors |= tensor_files.flatten(field.name, getattr(state, field.name))
        path = directory.path / CHECKPOINT
        tensor_files.write(path, tensors, {**description, "step": step}, before_writing)

    begun = as_begun(spec.method, first_steps(directory.config()))
    seconds = rows[-1]["seconds"] if rows else 0.0
    known_so_far = {"step": step, "seconds": seconds, "record": record, "save": save}
    return _trainee(run, settings, spec, begun, seeds, state, **known_so_far), rows


def _trainee(run: Run, settings: Training, spec: PolicySpec, *begun: Any, **so_far: Any) -> Trainee:
    """A method on the episodes that are not held out; on the others, its errors are measured."""
    episodes = split(run.data, settings.holdout)
    if episodes.held_out is not None:
        so_far["measure"] = PredictionError(spec, settings, episodes)
    return Trainee(episodes.training, spec, *begun, **so_far)


def _resume(
    run: RunDirectory, config: dict[str, Any], spec: PolicySpec, seeds: tuple[int, ...]
) -> tuple[PolicySpec, Any, int]:
    """The specification, state and step to train from: the checkpoint's, or the initial ones."""
    run.check_same(config)
    run.path.mkdir(parents=True, exist_ok=True)
    path, metrics, steps = run.path / CHECKPOINT, run.path / METRICS, config["training"]["steps"]
    if not run.has(CHECKPOINT):
        run.discard_other(config)
        metrics.unlink(missing_ok=True)
        run.write_config(config)
        return spec, training_loop.initialize(spec, seeds), 0
    step = run.steps_done()
    tensors, description = tensor_files.read(path)
    spec = _checked(run, config, spec, description)
    like = training_loop.shapes(spec, seeds)
    state = {
        field.name: tensor_files.unflatten(path, field.name, getattr(like, field.name), tensors)
        for field in dataclasses.fields(like)
    }
    if step < steps or run.trains_on(steps):
        _continue(run, config, step)
    rows = [row for row in run.metrics() if row["step"] <= step]
    write_atomically(metrics, "".join(f"{json.dumps(row)}\n" for row in rows))
    return spec, jax.device_put(dataclasses.replace(like, **state)), step


def _checked(
    run: RunDirectory, config: dict[str, Any], spec: PolicySpec, description: dict[str, Any]
) -> PolicySpec:
    """The specification with the bounds on actions of the first training; another run's is refused."""
    path = run.path / CHECKPOINT
    was = PolicySpec.from_json(description.get("design"), f"{path}, design")
    # If the logs lack the highest actions, only the environment knows the number of actions.
    old, new = (each.size if isinstance(each, Discrete) else None for each in (was.actions, spec.actions))
    if old != new:
        raise InputError(
            f"{run.path} was trained for {old} actions, now there are {new}; "
            "give another directory (--out), or remove this one to start over"
        )
    if was.actions.size == spec.actions.size:  # the environment, which has bounds, may be known only now
        spec = dataclasses.replace(spec, actions=was.actions)
    if was.observations.form == spec.observations.form:  # statistics may be rounded otherwise
        spec = dataclasses.replace(spec, observations=was.observations)
    spec = dataclasses.replace(spec, sampled=was.sampled)  # which training does not depend on
    was = dataclasses.replace(was, method=dataclasses.replace(was.method, name=spec.method.name))
    before = was.to_json() | {"seeds": description["seeds"]}
    if different := differences(before, spec.to_json() | {"seeds": config["seeds"]}):
        raise InputError(f"{path} is of another run than {CONFIG} beside it: {in_words(different)}")
    return spec


def _continue(run: RunDirectory, config: dict[str, Any], step: int) -> None:
    """Add this session to the configuration; where more steps follow, set the evaluation so far aside."""
    stored = run.config()
    now, known, (session,) = {**stored}, sessions(stored), sessions(config)
    if session not in known:
        now["later_sittings"] = [*known[1:], session]
    if run.trains_on(config["training"]["steps"]):
        now |= {"training": config["training"], "notes": config["notes"], "first_steps": first_steps(stored)}
        folder = run.earlier_evaluation(step)
        for name in EVALUATION:
            if run.has(name):
                if folder.is_symlink():
                    raise InputError(f"{folder} is a link, and nothing is moved through it; remove it")
                folder.mkdir(exist_ok=True)
                os.replace(run.path / name, folder / name)
    if now != stored:
        run.write_config(now)
