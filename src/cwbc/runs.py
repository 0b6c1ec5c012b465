"""A run directory: a training that may be killed at any moment and goes on with the same command."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cwbc import checkpoints
from cwbc.checkpoints import CHECKPOINT
from cwbc.dataset_summary import DatasetSummary
from cwbc.errors import InputError
from cwbc.files import LOCK, is_aside, locked, write_atomically
from cwbc.tracking import Tracking, tensorboard
from cwbc.trajectories import Trajectories

if TYPE_CHECKING:
    from cwbc.design import Design
    from cwbc.methods import Training
    from cwbc.updates import State

CONFIG = "config.json"
METRICS = "metrics.jsonl"
RESULTS = "results.csv"
SUMMARY = "summary.json"
PAGE = "report.html"
CELLS = "cells.csv"  # of a report about a grid: where its runs are
REPORT = ("reliability.png", "training.png", "returns.png", "scores.md", "scores.csv", PAGE)
_VERSIONED = ("cwbc", "jax", "jaxlib", "optax", "numpy", "mujoco", "gymnasium")


def configuration(
    data: Trajectories, design: Design, settings: Training, seeds: tuple[int, ...], notes: dict[str, Any]
) -> dict[str, Any]:
    """Everything needed to run a training again. `notes` are kept, but do not tell runs apart."""
    import jax  # here, as what follows: reading a finished run needs none of it

    from cwbc.methods import to_json

    dataset = DatasetSummary.of(data)
    return {
        "method": to_json(design.method),
        "training": to_json(settings),
        "seeds": list(seeds),
        "horizon": design.horizon,
        "dataset": dataset.to_json(),
        "drawn": _drawn(data, design, dataset),
        "notes": notes,
        "versions": versions(),
        "hardware": {"device": jax.devices()[0].device_kind, "cores": os.cpu_count()},
    }


def versions() -> dict[str, str]:
    """What runs here: numbers may depend on it."""
    installed = {name: importlib.metadata.version(name) for name in _VERSIONED}
    return {**installed, "python": platform.python_version(), "source": _source()}


@functools.cache
def _source() -> str:
    """A hash of this package's code, which between two releases changes without its version."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _drawn(data: Trajectories, design: Design, dataset: DatasetSummary) -> list[float]:
    """How much of training falls into each bin of the dataset's histogram: reports never see the data."""
    probabilities = design.method.weighting.probabilities(data)
    return np.histogram(data.returns, dataset.histogram_edges, weights=probabilities)[0].tolist()


def check_same(directory: Path, config: dict[str, Any], overwrite: bool = False) -> None:
    """Refuse a directory of other things, and a run that was begun with other settings unless `overwrite`."""
    _check_place(directory)
    if not (directory / CONFIG).exists():
        return
    different = [
        f"{name} was {old!r}, now {new!r}" for name, (old, new) in _changes(directory, config).items()
    ]
    if different and holds_work(directory) and not overwrite:
        told = f"{directory} holds a run with other settings: {'; '.join(different[:4])}"
        remedy = "give another directory (--out), or remove this one to begin anew (--overwrite)"
        was, now = (each["dataset"]["environment"] for each in (read_config(directory), config))
        if now and not was:  # its time limit may tell otherwise how episodes ended, so that the data is other
            command = shlex.join(["cwbc", "evaluate", str(directory), "--env", now])
            remedy += f"; `{command}` measures what is trained"
        raise InputError(f"{told}; {remedy}")


def _changes(directory: Path, config: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """In what a run was begun otherwise: was and now, by the names of the settings."""
    found = _differences(identity(read_config(directory)), identity(config))
    if None in found.get("dataset.environment", ()):
        # To name an environment makes no other run: what training takes from it is compared by itself.
        del found["dataset.environment"]
    return found


def holds_work(directory: Path) -> bool:
    """Whether there is more than a beginning: a checkpoint, or what is left where somebody moved it away."""
    if any((directory / name).exists() for name in (CHECKPOINT, SUMMARY, RESULTS)):
        return True
    rows = read_metrics(directory)
    return bool(rows) and bool(rows[-1]["step"] >= read_config(directory)["training"]["steps"])


def _check_place(directory: Path) -> None:
    if (directory / CONFIG).exists() or not directory.exists():
        return
    if not directory.is_dir():
        raise InputError(f"{directory} is a file, and a run needs a directory; give another (--out)")
    if not all(map(is_aside, directory.iterdir())):
        raise InputError(f"{directory} is not empty and holds no run; give another directory (--out)")


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Keep other processes from working in a run directory; the lock of one that was killed is free."""
    _check_place(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory / LOCK, f"another process is working in {directory}; wait for it"):
        yield


def discard_other(directory: Path, config: dict[str, Any]) -> None:
    """Remove the files of a run that was begun with other settings; nothing else is touched."""
    if (directory / CONFIG).exists() and _changes(directory, config):
        # The configuration goes last: a kill before that leaves a directory that can be discarded again.
        tensorboard.discard(directory)
        for name in (SUMMARY, RESULTS, CHECKPOINT, METRICS, *REPORT, CONFIG):
            (directory / name).unlink(missing_ok=True)


def steps_done(directory: Path) -> int:
    """How many steps the checkpoint of a run holds."""
    path = directory / CHECKPOINT
    return int(checkpoints.read_description(path)["step"]) if path.exists() else 0


def training_seconds(directory: Path) -> float | None:
    """How long a run was trained, over all its sittings; None where its metrics are gone.

    Of the time in which several were trained side by side, each has its share.
    """
    rows = read_metrics(directory)
    return rows[-1]["seconds"] if rows else None


def track(directory: Path, tracking: Tracking) -> None:
    """Begin to show a run elsewhere, with all that its files tell."""
    tracking.begin(directory, read_config(directory), read_metrics(directory))


def read_metrics(directory: Path) -> list[dict[str, Any]]:
    """The rows of a run's metrics, but for one that a kill cut short; none where the file is gone."""
    try:
        text = (directory / METRICS).read_text()
    except FileNotFoundError:
        return []
    rows = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            break
        if isinstance(row, dict) and {"step", "seconds"} <= row.keys():
            rows.append(row)
    return rows


def read_config(directory: Path) -> dict[str, Any]:
    """The configuration of a run."""
    path = directory / CONFIG
    try:
        config = json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(f"{directory} is not a run directory: {CONFIG} is missing") from None
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}") from error
    if not isinstance(config, dict) or "method" not in config:
        raise InputError(f"{path} does not describe a run")
    return config


class Keeper:
    """The files of a run while it is trained."""

    def __init__(self, directory: Path, config: dict[str, Any], description: dict[str, Any]) -> None:
        check_same(directory, config)
        self._directory = directory
        self._checkpoint = directory / CHECKPOINT
        self._metrics = directory / METRICS
        self._description = description
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / CONFIG
        if not holds_work(directory):
            discard_other(directory, config)
            write_atomically(path, json.dumps(config, indent=2) + "\n")
        elif self._goes_on() and (kept := _with_sitting(read_config(directory), config)):
            write_atomically(path, json.dumps(kept, indent=2) + "\n")

    def _goes_on(self) -> bool:
        """Whether there is something left to train of what was begun."""
        return self._checkpoint.exists() and steps_done(self._directory) < self._description["steps"]

    def resume(self, like: State) -> tuple[State, int, float]:
        """The state to go on from, its step and the seconds it took: the checkpoint's, or the beginning."""
        import jax

        if not self._checkpoint.exists():
            if any((self._directory / name).exists() for name in (SUMMARY, RESULTS)):
                raise InputError(
                    f"{self._directory} holds results without the parameters that they were measured with, "
                    "so nothing can go on there; remove it to train anew"
                )
            self._metrics.unlink(missing_ok=True)
            return like, 0, 0.0
        tensors, description = checkpoints.read(self._checkpoint)
        # Of logs that leave out the highest actions, only an environment tells how many there are.
        was, now = (each["design"]["actions"].get("count") for each in (description, self._description))
        if was != now:
            raise InputError(
                f"{self._directory} was trained for {was} actions, now there are {now}; "
                "give another directory (--out), or remove this one to begin anew"
            )
        step = int(description["step"])
        try:
            parameters = checkpoints.unflatten("parameters", like.parameters, tensors)
            optimizer = like.optimizer
            if step < description["steps"]:
                optimizer = checkpoints.unflatten("optimizer", like.optimizer, tensors)
        except KeyError as error:
            raise InputError(
                f"{self._checkpoint} lacks {error}: it was written by another version of cwbc or optax"
            ) from error
        rows = [row for row in read_metrics(self._directory) if row["step"] <= step]
        write_atomically(self._metrics, "".join(f"{json.dumps(row)}\n" for row in rows))
        state = dataclasses.replace(like, parameters=parameters, optimizer=optimizer)
        state = jax.tree.map(jax.numpy.asarray, state)
        return state, step, rows[-1]["seconds"] if rows else 0.0

    def save(
        self, state: State, step: int, statistics: dict[str, Any], before_replacing: Callable[[], None]
    ) -> None:
        """Replace the checkpoint, unless `before_replacing` raises."""
        tensors = checkpoints.flatten("parameters", state.parameters) | statistics
        if step < self._description["steps"]:  # a finished run has no more use for the optimizer's moments
            tensors |= checkpoints.flatten("optimizer", state.optimizer)
        checkpoints.write(self._checkpoint, tensors, {**self._description, "step": step}, before_replacing)

    def record(self, row: dict[str, Any]) -> None:
        """Add a line to the metrics."""
        with self._metrics.open("a") as file:
            file.write(json.dumps(row) + "\n")


def _with_sitting(kept: dict[str, Any], now: dict[str, Any]) -> dict[str, Any] | None:
    """The configuration with this sitting's versions and hardware added, if they are new to it."""
    known, (sitting,) = sittings(kept), sittings(now)
    return None if sitting in known else {**kept, "later_sittings": [*known[1:], sitting]}


def sittings(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The versions and hardware of all sittings in which a run was trained, each kind once."""
    first = {name: config[name] for name in ("versions", "hardware")}
    return [first, *config.get("later_sittings", [])]


def identity(config: dict[str, Any]) -> dict[str, Any]:
    """What tells a training from another: not its name, and not where it ran."""
    dataset = config["dataset"]
    return {
        "method": {name: value for name, value in config["method"].items() if name != "name"},
        **{name: config[name] for name in ("training", "seeds", "horizon")},
        "dataset": {name: dataset[name] for name in ("content_hash", "environment")},
    }


def settings(config: dict[str, Any]) -> dict[str, Any]:
    """The options of a run's method and training, by the names that `cwbc.train` has for them."""
    parts = [*(part for part in config["method"].values() if isinstance(part, dict)), config["training"]]
    named = {name: value for part in parts for name, value in part.items() if name != "kind"}
    return {**named, "seeds": len(config["seeds"])}


def _differences(old: Any, new: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            name: pair
            for key in {**old, **new}
            for name, pair in _differences(
                old.get(key), new.get(key), f"{path}.{key}" if path else key
            ).items()
        }
    return {} if old == new else {path: (old, new)}
