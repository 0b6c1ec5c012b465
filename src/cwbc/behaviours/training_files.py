"""The files of a training: a checkpoint with the replays, and snapshots that a thread evaluates."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
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
from cwbc.behaviours.sac import SAC, SACState, Transitions
from cwbc.behaviours.snapshots import MANIFEST, Series, Snapshot, SnapshotReturns
from cwbc.system import tensor_files
from cwbc.system.errors import DivergenceError, InputError

CHECKPOINT = "learner.safetensors"
_VERSIONED = ("cwbc", "jax", "mujoco", "gymnasium", "numpy")  # what returns depend on

Bounds = tuple[NDArray[np.float32], NDArray[np.float32]]  # low and high, [action] each
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
    path = directory / CHECKPOINT
    try:
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
        step = int(found["step"])
        if step < steps and found.get("is_over"):
            raise InputError(f"{path} is trained to its end, {step:,} steps, and its replay is removed")
        return step
    except InputError as error:
        if overwrite:
            return 0
        raise InputError(f"{error}; give another --out, or --overwrite") from error


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
        self.close = self._worker.shutdown
        self._pending: list[Future[None]] = []

    def open(self, fresh: SACState, empty: Transitions, step: int) -> tuple[SACState, Transitions]:
        """The state and the replays of the checkpoint, which is at a step; at 0, those that are given."""
        state, replay = fresh, empty
        if step:
            path = self._directory / CHECKPOINT
            tensors, _ = tensor_files.read(path)
            state = tensor_files.unflatten(path, "state", fresh, tensors)
            filled = jax.tree.map(lambda x: x[:, :step], empty)
            stored = tensor_files.unflatten(path, "replay", filled, tensors)
            replay = jax.tree.map(lambda x, rows: x.at[:, :step].set(rows), empty, stored)
            self._series = [_until(step, series) for series in self._series]
        else:
            # First of all: from here on the directory is this training's, whatever else is still in it.
            self.checkpoint(fresh, empty, 0)
            for manifest in self._directory.glob(f"seed-*/{MANIFEST}"):
                manifest.unlink()
        listed = {series.folder / one.file for series in self._series for one in series.snapshots}
        for file in {*self._directory.glob(f"seed-*/{snapshots.SNAPSHOT_FILES}")} - listed:
            file.unlink()
        if step == 0:
            self.add(fresh, 0)
        return state, replay

    def checkpoint(self, state: SACState, replay: Transitions | None, step: int) -> None:
        """Replace the checkpoint once all snapshots before it are written; the last one has no replays."""
        for future in self._pending:
            future.result()
        _check_finite(state.parameters, step)
        tensors = tensor_files.flatten("state", state)
        tensors |= tensor_files.flatten("replay", jax.tree.map(lambda x: np.asarray(x)[:, :step], replay))
        description = {"step": step, "is_over": replay is None, **self._training.to_json()}
        tensor_files.write(self._directory / CHECKPOINT, tensors, description)

    def add(self, state: SACState, step: int) -> None:
        """Take a snapshot of every seed, which is evaluated and written while the training continues."""
        actors = tensor_files.flatten("actor", state.parameters["actor"])
        _check_finite(actors, step)
        policies = [
            BehaviourPolicy.of({name: tensor[row] for name, tensor in actors.items()}, *self._bounds)
            for row in range(len(self._series))
        ]
        self._pending = [future for future in self._pending if not future.done() or future.result()]
        self._pending.append(self._worker.submit(self._evaluate, step, policies))

    def _evaluate(self, step: int, policies: list[BehaviourPolicy]) -> None:
        how = (self._training.environment, policies, self._training.episodes, snapshots.EVALUATION_SEED)
        returns = [evaluate(*how, noisy) for noisy in (False, True)]
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


def _check_finite(parameters: Any, step: int) -> None:
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.device_get(parameters))):
        raise DivergenceError(f"the parameters are not finite after step {step}; a lower rate usually helps")
