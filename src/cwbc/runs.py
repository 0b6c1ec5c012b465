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
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from cwbc import checkpoints
from cwbc.checkpoints import CHECKPOINT
from cwbc.dataset_summary import DatasetSummary
from cwbc.errors import InputError
from cwbc.files import LOCK, is_aside, locked, read_json
from cwbc.json_values import decode
from cwbc.tracking import Tracking, tensorboard
from cwbc.trajectories import Trajectories

if TYPE_CHECKING:
    from cwbc.design import Design
    from cwbc.methods import Training

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
        if scale is not None:  # and all that follows from it
            changes = {name: pair for name, pair in changes.items() if name not in fitted}
            changes["condition_scale"] = (scale[0] or "paper", scale[1] or "paper")
        different = [f"{name} was {old!r}, now {new!r}" for name, (old, new) in changes.items()]
        told = f"{directory} holds a run with other settings: {'; '.join(different[:4])}"
        remedy = "give another directory (--out), or remove this one to begin anew (--overwrite)"
        if different[1:] == [] and scale is not None:
            remedy += f"; --condition-scale {scale[0] or 'paper'} resumes it"
        was, now = (each["dataset"]["environment"] for each in (read_config(directory), config))
        if now and not was:  # its time limit may tell otherwise how episodes ended, so that the data is other
            command = shlex.join(["cwbc", "evaluate", str(directory), "--env", now])
            remedy += f"; `{command}` measures what is trained"
        raise InputError(f"{told}; {remedy}")


def _changes(directory: Path, config: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """In what a run was begun otherwise: was and now, by the names of the settings."""
    found = differences(identity(read_config(directory)), identity(config))
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
    if not all(is_aside(path) or _EARLIER.fullmatch(path.name) for path in directory.iterdir()):
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
        for folder in filter(_is_earlier_evaluation, directory.iterdir()):
            for name in (SUMMARY, RESULTS, *REPORT):
                (folder / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # somebody keeps something else there
                folder.rmdir()
        for name in (SUMMARY, RESULTS, CHECKPOINT, METRICS, *REPORT, CONFIG):
            (directory / name).unlink(missing_ok=True)


def steps_done(directory: Path) -> int:
    """How many steps the checkpoint of a run holds."""
    path = directory / CHECKPOINT
    return RunProgress.read(path).step if path.exists() else 0


class _Progress(TypedDict):
    """What the description of a run's checkpoint says about its training."""

    seeds: list[int]
    step: int
    steps: int


@dataclasses.dataclass(frozen=True)
class RunProgress:
    """How far a run's checkpoint is."""

    seeds: tuple[int, ...]
    step: int  # done
    steps: int  # to do in all
    resumable: bool  # whether the optimizer's state is there, to train on

    @classmethod
    def read(cls, path: Path) -> RunProgress:
        """What a checkpoint says, compared with what its optimizer has counted."""
        counts, description = checkpoints.read(path, _is_count)
        found = decode(_Progress, description, f"{path}, description")
        seeds, step, steps = tuple(found["seeds"]), found["step"], found["steps"]
        if not 0 <= step <= steps:
            raise InputError(f"{path}, description.step is {step}; expected 0 to {steps}")
        if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0 or max(seeds) >= 2**32:
            raise InputError(f"{path}, description.seeds is no list of different seeds from 0 to 2^32 - 1")
        for name, count in counts.items():
            if count.shape != (len(seeds),) or (count != step).any():
                told = np.unique(count).tolist()[:3]
                raise InputError(f"{path} is damaged: it says step {step}, but {name} counts {told}")
        return cls(seeds, step, steps, bool(counts))


def _is_count(name: str) -> bool:
    return name.startswith("optimizer/") and name.endswith("/count")


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
    """The rows of a run's metrics, but for those that a kill cut short or that are damaged."""
    try:
        data = (directory / METRICS).read_bytes() if (directory / METRICS).is_file() else b""
    except OSError:  # there is nothing in it that cannot be done without
        return []
    rows = []
    for line in data.splitlines():
        with contextlib.suppress(ValueError, RecursionError, InputError):
            row = decode(_Row, json.loads(line), "row")
            losses = {name: value for name, value in row.items() if name not in _Row.__annotations__}
            rows.append(row | decode(dict[str, list[float]], losses, "row"))
    return rows


class _Row(TypedDict):
    """A row of the metrics, which has losses over seeds as well."""

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


class _Sitting(TypedDict):
    versions: dict[str, str]
    hardware: _Hardware


_Notes = TypedDict("_Notes", {"command": str, "dataset from": str, "preset": str}, total=False)


class _Optional(TypedDict, total=False):
    drawn: list[float] | None
    later_sittings: list[_Sitting]
    first_steps: int


class _Config(_Sitting, _Optional):
    """What config.json holds, as far as it is read again without the data."""

    method: _Method
    training: _Training
    seeds: list[int]
    horizon: int
    dataset: dict[str, Any]
    notes: _Notes


def read_config(directory: Path) -> dict[str, Any]:
    """The configuration of a run, every value of its kind."""
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
    """The steps that a run was begun with; later commands may have asked for more."""
    return int(config.get("first_steps", config["training"]["steps"]))


def trains_on(directory: Path, steps: int) -> bool:
    """Whether a run was begun with fewer steps, so that a command with these trains it on."""
    return (directory / CONFIG).exists() and read_config(directory)["training"]["steps"] < steps


def check_resumable(directory: Path, progress: RunProgress) -> None:
    """Refuse to train on what was kept without the optimizer's state."""
    if progress.step and not progress.resumable:
        raise InputError(
            f"{directory} was trained to its end, {progress.step:,} steps, by a version of cwbc that did not "
            "keep the optimizer's state, so it cannot be trained on; give another directory (--out), or "
            "start over (--overwrite)"
        )


def earlier_evaluation(directory: Path, step: int) -> Path:
    """Where the evaluation of a run is kept that was trained on since."""
    return directory / f"after-{step}-steps"


def _is_earlier_evaluation(path: Path) -> bool:
    return bool(_EARLIER.fullmatch(path.name)) and path.is_dir() and not path.is_symlink()


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


def differences(old: Any, new: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """What two JSON values differ in: was and now, by where it stands."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            name: pair
            for key in {**old, **new}
            for name, pair in differences(
                old.get(key), new.get(key), f"{path}.{key}" if path else key
            ).items()
        }
    return {} if old == new else {path: (old, new)}
