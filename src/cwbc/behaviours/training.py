"""Online training of behaviour policies, by any learner, so that it can be stopped at any time and resumed.

Its files are a checkpoint with the replays and the running episodes, and snapshots, which a thread evaluates
meanwhile.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cwbc.behaviours import snapshots
from cwbc.behaviours.collector import Collector
from cwbc.behaviours.learners import OnlineLearner, keys_of
from cwbc.behaviours.policies import LearnedActor
from cwbc.behaviours.rollouts import evaluate
from cwbc.behaviours.snapshots import MANIFEST, Series, Snapshot, SnapshotReturns
from cwbc.core.training_loop import Interrupted
from cwbc.system import tensor_files
from cwbc.system.errors import DivergenceError, InputError
from cwbc.system.files import LOCK, locked
from cwbc.system.versions import versions

CHECKPOINT = "learner.safetensors"
SAVE_INTERVAL = 60.0  # seconds between checkpoints
_VERSIONED = ("cwbc", "jax", "mujoco", "gymnasium", "ale-py", "numpy")  # what returns depend on

Record = Callable[[list[Snapshot]], None]  # called with the newest snapshot of every seed


@dataclasses.dataclass(frozen=True)
class BehaviourTraining:
    """What a training is, apart from how long it takes."""

    environment: str
    settings: OnlineLearner
    seeds: tuple[int, ...]
    episodes: int = 10  # that evaluate each snapshot, with noise and without


def train(
    training: BehaviourTraining,
    steps: int,
    directory: Path,
    command: str = "cwbc.behaviours.training.train",
    progress: Callable[[int], None] = lambda step: None,
    record: Record = lambda snapshots: None,
    should_stop: Callable[[], bool] = lambda: False,
    overwrite: bool = False,
) -> None:
    """Train to a number of steps, resuming from the checkpoint in the directory.

    Args:
        directory: gets the checkpoint, and for each seed the snapshots through training.
        command: recorded in the manifests.
        record: called once snapshots are evaluated, from another thread.
        should_stop: called after each step; once it is true, the state is saved and Interrupted is raised.
        overwrite: start over where the directory holds another training, instead of refusing.
    """
    learner = training.settings
    with contextlib.ExitStack() as stack:
        collector = Collector(training.environment, training.seeds, learner.copies, learner.stack)
        stack.enter_context(contextlib.closing(collector))
        learner.check(training.environment, collector.simulator)
        directory.mkdir(parents=True, exist_ok=True)
        stack.enter_context(locked(directory / LOCK, f"another process is training in {directory}"))
        first = resume_step(directory, training, steps, overwrite)
        if first >= steps:
            return
        files = _Files(directory, training, collector, command, record)
        stack.enter_context(contextlib.closing(files))
        keys = keys_of(training.seeds)
        begun = files.open(*learner.initialize(collector.simulator, keys, steps), first)
        save_at, before = time.monotonic() + SAVE_INTERVAL, first
        for done, state, replay in learner.states(collector, keys, *begun, first, steps):
            if done >= steps or learner.is_due(before, done):
                files.add(state, done)
            before = done
            progress(min(done, steps))
            stopping = should_stop()
            if stopping or done >= steps or time.monotonic() > save_at:
                began = time.monotonic()
                is_over = done >= steps and learner.keeps_replay
                files.checkpoint(state, None if is_over else replay, done, is_over)
                # A large replay takes seconds to write, and training most of the time.
                save_at = time.monotonic() + max(SAVE_INTERVAL, 20 * (time.monotonic() - began))
            if stopping and done < steps:
                raise Interrupted


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
        found, wanted = tensor_files.read_description(path), dataclasses.asdict(training)
        wanted["seeds"] = list(training.seeds)  # as JSON has them
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


class _Files:
    """The files of one training in its directory, which it has locked."""

    def __init__(
        self, directory: Path, training: BehaviourTraining, collector: Collector, command: str, record: Record
    ) -> None:
        self._directory, self._training, self._record = directory, training, record
        self._collector, self._learner = collector, training.settings
        self._series = [
            Series(
                environment=training.environment,
                seed=seed,
                episodes=training.episodes,
                settings=dataclasses.asdict(training)["settings"],
                command=command,
                device=jax.devices()[0].device_kind,
                versions=versions(*_VERSIONED),
                snapshots=(),
                folder=directory / f"seed-{seed}",
            )
            for seed in training.seeds
        ]
        # One worker: snapshots are evaluated in their order, while the training continues.
        self._worker = ThreadPoolExecutor(1)
        self.close = self._worker.shutdown
        self._pending: list[Future[None]] = []

    def open(self, fresh: Any, empty: Any, step: int) -> tuple[Any, Any]:
        """The state and the replays of the checkpoint, which is at a step; at 0, those that are given.

        The collector's episodes are those of the checkpoint, too.
        """
        state, replay = fresh, empty
        if step:
            path = self._directory / CHECKPOINT
            tensors, description = tensor_files.read(path)
            state = tensor_files.unflatten(path, "state", fresh, tensors)
            filled = jax.tree.map(lambda x: x[:, :step], empty)
            stored = tensor_files.unflatten(path, "replay", filled, tensors)
            replay = jax.tree.map(lambda x, rows: x.at[:, :step].set(rows), empty, stored)
            self._collector.restore(path, tensors, description, step)
            self._series = [_until(step, series) for series in self._series]
        else:
            # First of all: from here on the directory is this training's, whatever else is still in it.
            self._collector.reset(0)
            self.checkpoint(fresh, empty, 0)
            for manifest in self._directory.glob(f"seed-*/{MANIFEST}"):
                manifest.unlink()
        listed = {series.folder / one.file for series in self._series for one in series.snapshots}
        for file in {*self._directory.glob(f"seed-*/{snapshots.SNAPSHOT_FILES}")} - listed:
            file.unlink()
        if not step:
            self.add(fresh, 0)
        return state, replay

    def checkpoint(self, state: Any, replay: Any, step: int, is_over: bool = False) -> None:
        """Replace the checkpoint once all snapshots before it are written."""
        for future in self._pending:
            future.result()
        _check_finite(state.parameters, step)
        tensors = tensor_files.flatten("state", state)
        tensors |= tensor_files.flatten("replay", jax.tree.map(lambda x: np.asarray(x)[:, :step], replay))
        episodes, generators = self._collector.saved()
        description = {"step": step, "is_over": is_over, **generators, **dataclasses.asdict(self._training)}
        tensors |= episodes
        tensor_files.write(self._directory / CHECKPOINT, tensors, description)

    def add(self, state: Any, step: int) -> None:
        """Take a snapshot of every seed, which is evaluated and written while the training continues."""
        _check_finite(state.parameters, step)
        policies = self._learner.actors(self._collector.simulator, state, step)
        self._pending = [future for future in self._pending if not future.done() or future.result()]
        self._pending.append(self._worker.submit(self._evaluate, step, policies))

    def _evaluate(self, step: int, policies: list[LearnedActor]) -> None:
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
