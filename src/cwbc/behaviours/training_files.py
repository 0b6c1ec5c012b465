"""The files of a training: a checkpoint, the replays' transitions, and snapshots that a thread evaluates."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from cwbc.behaviours import snapshots
from cwbc.behaviours.policies import BehaviourPolicy
from cwbc.behaviours.rollouts import evaluate
from cwbc.behaviours.sac import SAC, SACState
from cwbc.behaviours.snapshots import (
    EVALUATION_SEED,
    MANIFEST,
    SNAPSHOT_FILES,
    Series,
    Snapshot,
    SnapshotReturns,
)
from cwbc.system import tensor_files
from cwbc.system.errors import DivergenceError, InputError

CHECKPOINT = "learner.safetensors"
HISTORY = "replay.npy"  # all transitions that the replays hold, until the training is done
_VERSIONED = ("cwbc", "jax", "mujoco", "gymnasium", "numpy")  # what returns depend on

Bounds = tuple[NDArray[np.float32], NDArray[np.float32]]  # low and high, [action] each
ReplayRows = np.memmap[Any, np.dtype[np.float32]]  # [seed, row, column]
Record = Callable[[list[Snapshot]], None]  # called with the newest snapshot of every seed


@dataclasses.dataclass(frozen=True)
class BehaviourTraining:
    """What a training is, apart from how long it takes.

    Args:
        episodes: that evaluate each snapshot, with noise and without.
    """

    environment: str
    settings: SAC
    seeds: tuple[int, ...]
    episodes: int = 10

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"seeds": list(self.seeds)}


def checkpointed(directory: Path) -> dict[str, Any]:
    """The values of the training in a directory, and its `step`; empty where no checkpoint can be read."""
    try:
        return tensor_files.read_description(directory / CHECKPOINT)
    except InputError:
        return {}


def resume_step(directory: Path, training: BehaviourTraining, steps: int, overwrite: bool) -> int:
    """The step from which a training resumes in a directory: 0 where it starts, or starts over."""
    try:
        return _resume_step(directory, training, steps)
    except InputError as error:
        if overwrite:
            return 0
        raise InputError(f"{error}; give another --out, or --overwrite") from error


def _resume_step(directory: Path, training: BehaviourTraining, steps: int) -> int:
    path = directory / CHECKPOINT
    if not path.exists():
        if others := sorted(file.name for file in directory.glob("[!.]*")):
            raise InputError(f"{directory} holds other files, such as {others[0]}")
        return 0
    found, wanted = tensor_files.read_description(path), training.to_json()
    found |= found.pop("settings", {})
    for name, value in (wanted | wanted.pop("settings")).items():
        if found.get(name) != value:
            stored = json.dumps(found.get(name))
            raise InputError(f"{path} was trained with {name} {stored}, not {json.dumps(value)}")
    step, history = int(found["step"]), directory / HISTORY
    if 0 < step < steps:
        if not history.exists():
            raise InputError(f"{path} is trained to its end, {step:,} steps, and its replay is removed")
        _read_history(history, len(training.seeds))
    return step


def _read_history(path: Path, seeds: int, columns: int | None = None) -> ReplayRows:
    """The transitions that an earlier process stored, with as many rows as its training could fill."""
    if not path.is_file() or path.is_symlink():
        raise InputError(f"{path} is no plain file")
    try:
        history = np.lib.format.open_memmap(path, "r+")
    except (ValueError, OSError, SyntaxError) as error:
        raise InputError(f"{path} is damaged: {error}") from error
    alike = history.dtype == np.float32 and history.ndim == 3 and len(history) == seeds
    if not alike or columns not in (None, history.shape[2]):
        raise InputError(f"{path} is the replay of another training")
    return history


class TrainingFiles:
    """The files of one training in its directory, which it has locked."""

    def __init__(
        self, directory: Path, training: BehaviourTraining, bounds: Bounds, command: str, record: Record
    ) -> None:
        self._directory, self._training, self._bounds, self._record = directory, training, bounds, record
        self._series = [
            Series(
                environment=training.environment,
                seed=seed,
                episodes=training.episodes,
                settings=dataclasses.asdict(training.settings),
                command=command,
                device=jax.devices()[0].device_kind,
                versions={name: importlib.metadata.version(name) for name in _VERSIONED},
                snapshots=(),
                folder=directory / f"seed-{seed}",
            )
            for seed in training.seeds
        ]
        # One worker: snapshots are evaluated in their order, while the training continues.
        self._worker = ThreadPoolExecutor(1)
        self._pending: list[Future[None]] = []
        self._history: ReplayRows | None = None

    def open(self, fresh: SACState, shape: tuple[int, int, int], step: int) -> tuple[SACState, ReplayRows]:
        """The state and the replays' transitions at a step, at which the checkpoint is; at 0, fresh ones.

        Args:
            shape: of fresh transitions, [seed, row, column].
        """
        state, path = fresh, self._directory / CHECKPOINT
        if step:
            self._history = _read_history(self._directory / HISTORY, shape[0], shape[2])
            state = tensor_files.unflatten(path, "state", fresh, tensor_files.read(path)[0])
            self._series = [_until(step, series) for series in self._series]
        else:
            # First of all: from here on the directory is this training's, whatever else is still in it.
            self.checkpoint(fresh, 0)
            for manifest in self._directory.glob(f"seed-*/{MANIFEST}"):
                manifest.unlink()
            self._history = _new_history(self._directory / HISTORY, shape)
        listed = {series.folder / one.file for series in self._series for one in series.snapshots}
        for file in {*self._directory.glob(f"seed-*/{SNAPSHOT_FILES}")} - listed:
            file.unlink()
        if step == 0:
            self.add(fresh, 0)
        return state, self._history

    def checkpoint(self, state: SACState, step: int) -> None:
        """Replace the checkpoint, once all transitions and snapshots before it are written."""
        if self._history is not None:
            self._history.flush()
        self._wait()
        _check_finite(state.parameters, step)
        description = {"step": step, **self._training.to_json()}
        tensor_files.write(self._directory / CHECKPOINT, tensor_files.flatten("state", state), description)

    def discard_history(self) -> None:
        """Remove the transitions when the training is done."""
        (self._directory / HISTORY).unlink(missing_ok=True)

    def add(self, state: SACState, step: int) -> None:
        """Take a snapshot of every seed, which is evaluated and written while the training continues."""
        actors = jax.device_get(state.parameters["actor"])
        _check_finite(actors, step)
        policies = [
            BehaviourPolicy.of(jax.tree.map(lambda x, row=row: x[row], actors), *self._bounds)
            for row in range(len(self._series))
        ]
        self._pending = [future for future in self._pending if not future.done() or future.result()]
        self._pending.append(self._worker.submit(self._evaluate, step, policies))

    def close(self) -> None:
        """Wait for the snapshots that are being evaluated."""
        try:
            self._wait()
        finally:
            self._worker.shutdown()

    def _wait(self) -> None:
        for future in self._pending:
            future.result()
        self._pending = []

    def _evaluate(self, step: int, policies: list[BehaviourPolicy]) -> None:
        environment, episodes = self._training.environment, self._training.episodes
        returns = [
            evaluate(environment, policies, episodes, EVALUATION_SEED, noisy) for noisy in (False, True)
        ]
        new = [Snapshot(step, *map(SnapshotReturns.of, own)) for own in zip(*returns, strict=True)]
        for row, (policy, snapshot) in enumerate(zip(policies, new, strict=True)):
            series = self._series[row]
            series.folder.mkdir(exist_ok=True)
            policy.save(series.folder / snapshot.file)
            self._series[row] = dataclasses.replace(series, snapshots=(*series.snapshots, snapshot))
            self._series[row].write()
        self._record(new)


def _until(step: int, series: Series) -> Series:
    """The stored series without the snapshots after a step, which the training repeats."""
    stored = snapshots.read(series.folder).snapshots
    series = dataclasses.replace(series, snapshots=tuple(one for one in stored if one.steps <= step))
    series.write()  # before any file is removed, so that no manifest lists one that is missing
    return series


def _new_history(path: Path, shape: tuple[int, int, int]) -> ReplayRows:
    """Transitions on disk, so that a killed training loses none."""
    path.unlink(missing_ok=True)  # rather than overwritten: a link there would lead elsewhere
    history = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    if hasattr(os, "posix_fallocate"):  # a full disk is reported now, rather than by a crash later
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return history


def _check_finite(parameters: Any, step: int) -> None:
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.device_get(parameters))):
        raise DivergenceError(f"the parameters are not finite after step {step}; a lower rate usually helps")
