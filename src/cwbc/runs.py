"""A run directory: a training that may be killed at any moment and goes on with the same command."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cwbc import checkpoints
from cwbc.design import Design
from cwbc.errors import InputError
from cwbc.files import write_atomically
from cwbc.methods import Training, to_json
from cwbc.policy import CHECKPOINT
from cwbc.reporting import REPORT_FILES
from cwbc.reporting.dataset import DatasetSummary
from cwbc.trajectories import Trajectories
from cwbc.updates import State

CONFIG = "config.json"
METRICS = "metrics.jsonl"
_VERSIONED = ("cwbc", "jax", "jaxlib", "optax", "numpy", "mujoco", "gymnasium")


def describe(data: Trajectories) -> DatasetSummary:
    """What a run keeps of its dataset, so that reports never need the data."""
    counts, edges = np.histogram(data.returns, bins=min(50, max(10, data.episodes // 4)))
    return DatasetSummary(
        name=data.name,
        environment=data.environment,
        content_hash=data.content_hash,
        episodes=data.episodes,
        steps=data.steps,
        lowest=data.lowest,
        best=data.best,
        mean_return=float(data.returns.mean()),
        histogram_edges=tuple(edges.tolist()),
        histogram_counts=tuple(counts.tolist()),
    )


def configuration(
    data: Trajectories, design: Design, settings: Training, seeds: tuple[int, ...], notes: dict[str, Any]
) -> dict[str, Any]:
    """Everything needed to run a training again. `notes` are kept, but do not tell runs apart."""
    return {
        "method": to_json(design.method),
        "training": to_json(settings),
        "seeds": list(seeds),
        "horizon": design.horizon,
        "dataset": describe(data).to_json(),
        "notes": notes,
        "versions": {name: importlib.metadata.version(name) for name in _VERSIONED}
        | {"python": platform.python_version()},
        "hardware": {"device": jax.devices()[0].device_kind, "cores": os.cpu_count()},
    }


def check_same(directory: Path, config: dict[str, Any]) -> None:
    """Refuse to go on with a run that was begun with other settings."""
    if not (directory / CONFIG).exists():
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise InputError(f"{directory} is not empty and holds no run; give another --out")
        return
    different = [
        f"{name} was {old!r}, now {new!r}"
        for name, (old, new) in _differences(_identity(read_config(directory)), _identity(config)).items()
    ]
    if different:
        raise InputError(
            f"{directory} holds a run with other settings: {'; '.join(different[:4])}; "
            "give another --out, or --overwrite to begin anew"
        )


def discard_other(directory: Path, config: dict[str, Any]) -> None:
    """Remove the files of a run that was begun with other settings; nothing else is touched."""
    if (directory / CONFIG).exists() and _identity(read_config(directory)) != _identity(config):
        # The configuration goes last: a kill before that leaves a directory that can be discarded again.
        for name in (CHECKPOINT, METRICS, *REPORT_FILES, CONFIG):
            (directory / name).unlink(missing_ok=True)


def steps_done(directory: Path) -> int:
    """How many steps the checkpoint of a run holds."""
    path = directory / CHECKPOINT
    return int(checkpoints.read_description(path)["step"]) if path.exists() else 0


def training_seconds(directory: Path) -> float:
    """How long a run was trained, over all its sittings."""
    rows = [json.loads(line) for line in (directory / METRICS).read_text().splitlines()]
    later = [*rows[1:], {"seconds": 0.0}]
    # The clock begins anew with every sitting: its last row is the one before a fall.
    return sum(
        row["seconds"] for row, after in zip(rows, later, strict=True) if after["seconds"] < row["seconds"]
    )


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
    """The files of a run."""

    def __init__(self, directory: Path, config: dict[str, Any]) -> None:
        check_same(directory, config)
        self._checkpoint = directory / CHECKPOINT
        self._metrics = directory / METRICS
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / CONFIG).exists():
            write_atomically(directory / CONFIG, json.dumps(config, indent=2) + "\n")

    def resume(self, like: State) -> tuple[State, int] | None:
        """The state of the checkpoint and its step; the metrics after it are dropped."""
        if not self._checkpoint.exists():
            self._metrics.unlink(missing_ok=True)
            return None
        tensors, description = checkpoints.read(self._checkpoint)
        step = int(description["step"])
        parameters = checkpoints.unflatten("parameters", like.parameters, tensors)
        if step == description["steps"]:
            return State(jax.tree.map(jax.numpy.asarray, parameters), like.optimizer), step
        optimizer = checkpoints.unflatten("optimizer", like.optimizer, tensors)
        kept = [line for line in self._metrics.read_text().splitlines() if _step_of(line) <= step]
        write_atomically(self._metrics, "".join(f"{line}\n" for line in kept))
        return jax.tree.map(jax.numpy.asarray, State(parameters, optimizer)), step

    def save(self, header: dict[str, Any], state: State, step: int) -> None:
        tensors = checkpoints.flatten("parameters", state.parameters) | header["statistics"]
        if step < header["steps"]:  # a finished run has no more use for the optimizer's moments
            tensors |= checkpoints.flatten("optimizer", state.optimizer)
        description = {name: value for name, value in header.items() if name != "statistics"}
        checkpoints.write(self._checkpoint, tensors, {**description, "step": step})

    def record(self, row: dict[str, Any]) -> None:
        with self._metrics.open("a") as file:
            file.write(json.dumps(row) + "\n")


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")  # a line that a kill cut short


def _identity(config: dict[str, Any]) -> dict[str, Any]:
    dataset = config["dataset"]
    return {
        **{name: config[name] for name in ("method", "training", "seeds", "horizon")},
        "dataset": {name: dataset[name] for name in ("content_hash", "environment")},
    }


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
