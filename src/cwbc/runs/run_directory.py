"""A run directory: a training that may be killed at any moment and resumes with the same command."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from cwbc.core.trajectories import Trajectories
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.runs import locks
from cwbc.runs.tracking import Tracking, tensorboard
from cwbc.system import tensor_files
from cwbc.system.errors import InputError
from cwbc.system.files import is_aside, read_json
from cwbc.system.tensor_files import CHECKPOINT
from cwbc.system.typed_json import decode

if TYPE_CHECKING:
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec

CONFIG = "config.json"
METRICS = "metrics.jsonl"
RESULTS = "results.csv"
SUMMARY = "summary.json"
PAGE = "report.html"
CELLS = "cells.csv"  # of a report about a grid: where its runs are
REPORT = ("reliability.png", "training.png", "returns.png", "scores.md", "scores.csv", PAGE)
_SCALE = "method.condition.condition_scale"
_EARLIER = re.compile(r"after-\d+-steps")  # folders of earlier evaluations
_VERSIONED = ("cwbc", "jax", "jaxlib", "optax", "numpy", "mujoco", "gymnasium")


def configuration(
    data: Trajectories, spec: PolicySpec, settings: Training, seeds: tuple[int, ...], notes: dict[str, Any]
) -> dict[str, Any]:
    """Everything needed to repeat a training; `notes` are stored, but are not part of a run's identity."""
    import jax  # imported here, since reading a finished run does not need it

    from cwbc.core.methods import to_json

    dataset = DatasetSummary.of(data)
    return {
        "method": to_json(spec.method),
        "training": to_json(settings),
        "seeds": list(seeds),
        "horizon": spec.horizon,
        "dataset": dataset.to_json(),
        "drawn": _sampled(data, spec, dataset),
        "notes": notes,
        "versions": versions(),
        "hardware": {"device": jax.devices()[0].device_kind, "cores": os.cpu_count()},
    }


def versions() -> dict[str, str]:
    """The installed versions, on which results may depend."""
    installed = {name: importlib.metadata.version(name) for name in _VERSIONED}
    return {**installed, "python": platform.python_version(), "source": _source()}


@functools.cache
def _source() -> str:
    """A hash of this package's code, which changes between two releases."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _sampled(data: Trajectories, spec: PolicySpec, dataset: DatasetSummary) -> list[float]:
    """The fraction of sampled trajectories in each bin of the return histogram, for reports without data."""
    probabilities = spec.method.weighting.probabilities(data)
    return np.histogram(data.returns, dataset.histogram_edges, weights=probabilities)[0].tolist()


def check_same(directory: Path, config: dict[str, Any], overwrite: bool = False) -> None:
    """Refuse a directory with other files, and a run with other settings unless `overwrite`."""
    _check_place(directory)
    if not (directory / CONFIG).exists():
        return
    changes = _changes(directory, config)
    if changes.keys() == {"training.steps"} and trains_on(directory, config["training"]["steps"]):
        if (directory / CHECKPOINT).exists() and not overwrite:
            check_resumable(directory, RunProgress.read(directory / CHECKPOINT))
        return
    if changes and holds_work(directory) and not overwrite:
        scale, fitted = (
            changes.get(_SCALE),
            [name for name in changes if name.startswith("method.condition.")],
        )
        if scale is not None:  # the other settings of the condition follow from it
            changes = {name: pair for name, pair in changes.items() if name not in fitted}
            changes["condition_scale"] = (scale[0] or "paper", scale[1] or "paper")
        different = [f"{name} was {old!r}, now {new!r}" for name, (old, new) in changes.items()]
        problem = f"{directory} holds a run with other settings: {'; '.join(different[:4])}"
        remedy = "give another directory (--out), or remove this one to start over (--overwrite)"
        if different[1:] == [] and scale is not None:
            remedy += f"; --condition-scale {scale[0] or 'paper'} resumes it"
        was, now = (each["dataset"]["environment"] for each in (read_config(directory), config))
        if now and not was:  # its time limit may change which episodes are truncated, and so the data
            command = shlex.join(["cwbc", "evaluate", str(directory), "--env", now])
            remedy += f"; `{command}` evaluates the trained run"
        raise InputError(f"{problem}; {remedy}")


def check_trainable(directory: Path) -> None:
    """Refuse to train where there are results without their parameters."""
    if (directory / CHECKPOINT).exists() or not any(
        (directory / name).exists() for name in (SUMMARY, RESULTS)
    ):
        return
    raise InputError(
        f"{directory} holds results without the parameters that they were evaluated with, so nothing can "
        "resume there; remove it to start over"
    )


def _changes(directory: Path, config: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The settings in which a run differs from `config`: was and now, by name."""
    found = differences(identity(read_config(directory)), identity(config))
    if None in found.get("dataset.environment", ()):
        # Naming the environment does not make another run: its effects on training are compared separately.
        del found["dataset.environment"]
    return found


def holds_work(directory: Path) -> bool:
    """Whether a run has a checkpoint or results, or metrics of a finished training."""
    if any((directory / name).exists() for name in (CHECKPOINT, SUMMARY, RESULTS)):
        return True
    rows = read_metrics(directory)
    return bool(rows) and bool(rows[-1]["step"] >= read_config(directory)["training"]["steps"])


def _check_place(directory: Path) -> None:
    if (directory / CONFIG).exists() or not directory.exists():
        return
    if not directory.is_dir():
        raise InputError(f"{directory} is a file, and a run needs a directory; give another (--out)")
    if not all(
        is_aside(path) or path.name == locks.FOLDER or _EARLIER.fullmatch(path.name)
        for path in directory.iterdir()
    ):
        raise InputError(f"{directory} is not empty and holds no run; give another directory (--out)")


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock a run directory against other processes; the lock of a killed process is free."""
    _check_place(directory)
    with locks.locked(directory):
        yield


def discard_other(directory: Path, config: dict[str, Any]) -> None:
    """Remove the files of a run with other settings, and no other files."""
    if (directory / CONFIG).exists() and _changes(directory, config):
        # The configuration is removed last: if interrupted, the directory can be discarded again.
        tensorboard.discard(directory)
        for folder in filter(_is_earlier_evaluation, directory.iterdir()):
            for name in (SUMMARY, RESULTS, *REPORT):
                (folder / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it has other files
                folder.rmdir()
        for name in (SUMMARY, RESULTS, CHECKPOINT, METRICS, *REPORT, CONFIG):
            (directory / name).unlink(missing_ok=True)


def steps_done(directory: Path) -> int:
    """The steps of a run's checkpoint; 0 without one."""
    path = directory / CHECKPOINT
    return RunProgress.read(path).step if path.exists() else 0


class _Progress(TypedDict):
    """The fields about training in the description of a checkpoint."""

    seeds: list[int]
    step: int
    steps: int


@dataclasses.dataclass(frozen=True)
class RunProgress:
    """The training progress of a checkpoint."""

    seeds: tuple[int, ...]
    step: int  # done
    steps: int  # to do in all
    resumable: bool  # whether it has the optimizer's state

    @classmethod
    def read(cls, path: Path) -> RunProgress:
        """The progress in a checkpoint, checked against the counts of its optimizer."""
        counts, description = tensor_files.read(path, _is_count)
        found = decode(_Progress, description, f"{path}, description")
        seeds, step, steps = tuple(found["seeds"]), found["step"], found["steps"]
        if not 0 <= step <= steps:
            raise InputError(f"{path}, description.step is {step}; expected 0 to {steps}")
        if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0 or max(seeds) >= 2**32:
            raise InputError(f"{path}, description.seeds is no list of different seeds from 0 to 2^32 - 1")
        for name, count in counts.items():
            if count.shape != (len(seeds),) or (count != step).any():
                found_counts = np.unique(count).tolist()[:3]
                raise InputError(f"{path} is damaged: it says step {step}, but {name} counts {found_counts}")
        return cls(seeds, step, steps, bool(counts))


def _is_count(name: str) -> bool:
    return name.startswith("optimizer/") and name.endswith("/count")


def training_seconds(directory: Path) -> float | None:
    """The training time of a run over all its sessions; None where its metrics are gone.

    The time of runs that were trained together is divided by their number.
    """
    rows = read_metrics(directory)
    return rows[-1]["seconds"] if rows else None


def track(directory: Path, tracking: Tracking) -> None:
    """Start tracking a run, with its configuration and its metrics so far."""
    tracking.begin(directory, read_config(directory), read_metrics(directory))


def read_metrics(directory: Path) -> list[dict[str, Any]]:
    """The rows of a run's metrics, without incomplete or damaged ones."""
    try:
        data = (directory / METRICS).read_bytes() if (directory / METRICS).is_file() else b""
    except OSError:  # metrics are not essential
        return []
    rows = []
    for line in data.splitlines():
        with contextlib.suppress(ValueError, RecursionError, InputError):
            row = decode(_Row, json.loads(line), "row")
            losses = {name: value for name, value in row.items() if name not in _Row.__annotations__}
            rows.append(row | decode(dict[str, list[float]], losses, "row"))
    return rows


class _Row(TypedDict):
    """The fields of a metrics row besides its losses over seeds."""

    step: int
    seconds: float


class _Weighting(TypedDict, total=False):
    kind: str
    top_fraction: float


class _Method(TypedDict):
    name: str
    weighting: _Weighting


class _Training(TypedDict):
    steps: int
    batch_size: int


class _Hardware(TypedDict):
    device: str
    cores: int | None


class _Session(TypedDict):
    versions: dict[str, str]
    hardware: _Hardware


_Notes = TypedDict("_Notes", {"command": str, "dataset from": str, "preset": str}, total=False)


class _Optional(TypedDict, total=False):
    drawn: list[float] | None
    later_sittings: list[_Session]
    first_steps: int


class _Config(_Session, _Optional):
    """The fields of config.json that are read again without the data."""

    method: _Method
    training: _Training
    seeds: list[int]
    horizon: int
    dataset: dict[str, Any]
    notes: _Notes


def read_config(directory: Path) -> dict[str, Any]:
    """The configuration of a run, with the type of every field checked."""
    path = directory / CONFIG
    try:
        config = read_json(path)
    except FileNotFoundError:
        raise InputError(f"{directory} is not a run directory: {CONFIG} is missing") from None
    if not isinstance(config, dict) or "method" not in config:
        raise InputError(f"{path} does not describe a run")
    config = decode(_Config, config, f"{path}: config")
    for place, counts in (("seeds", config["seeds"]), ("training.steps", [config["training"]["steps"]])):
        if not counts or min(counts) < (place != "seeds"):
            raise InputError(f"{path}: config.{place} is {counts}")
    try:
        DatasetSummary.from_json(config["dataset"])
    except InputError as error:
        raise InputError(f"{path} is damaged: {error}") from error
    return config


def first_steps(config: dict[str, Any]) -> int:
    """The steps of a run's first training; later commands may have extended it."""
    return int(config.get("first_steps", config["training"]["steps"]))


def trains_on(directory: Path, steps: int) -> bool:
    """Whether a run was started with fewer steps, so that its training continues to these."""
    return (directory / CONFIG).exists() and read_config(directory)["training"]["steps"] < steps


def check_resumable(directory: Path, progress: RunProgress) -> None:
    """Refuse to continue from a checkpoint without the optimizer's state."""
    if progress.step and not progress.resumable:
        raise InputError(
            f"{directory} was trained to its end, {progress.step:,} steps, by a version of cwbc that did not "
            "store the optimizer's state, so its training cannot continue; give another directory (--out), "
            "or start over (--overwrite)"
        )


def earlier_evaluation(directory: Path, step: int) -> Path:
    """The folder of an evaluation after `step` steps of a run that was trained further."""
    return directory / f"after-{step}-steps"


def _is_earlier_evaluation(path: Path) -> bool:
    return bool(_EARLIER.fullmatch(path.name)) and path.is_dir() and not path.is_symlink()


def sessions(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The versions and hardware of all sessions in which a run was trained, without repetitions."""
    first = {name: config[name] for name in ("versions", "hardware")}
    return [first, *config.get("later_sittings", [])]


def identity(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that identify a training, without its name and hardware."""
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


def differences(old: Any, new: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """The differences of two JSON values: was and now, by path."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            name: pair
            for key in {**old, **new}
            for name, pair in differences(
                old.get(key), new.get(key), f"{path}.{key}" if path else key
            ).items()
        }
    return {} if old == new else {path: (old, new)}
