"""Online training of behaviour policies: the device updates learners while the CPU simulates next steps.

Its files are a checkpoint with the replays, and snapshots, which a thread evaluates meanwhile.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import functools
import importlib.metadata
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc import envs
from cwbc.behaviours import sac, snapshots
from cwbc.behaviours.policies import BehaviourPolicy, scale
from cwbc.behaviours.rollouts import evaluate
from cwbc.behaviours.sac import SAC, SACState, Transitions
from cwbc.behaviours.snapshots import MANIFEST, Series, Snapshot, SnapshotReturns
from cwbc.core.training_loop import Interrupted
from cwbc.system import tensor_files
from cwbc.system.errors import DivergenceError, InputError
from cwbc.system.files import LOCK, locked

CHECKPOINT = "learner.safetensors"
SAVE_INTERVAL = 60.0  # seconds between checkpoints
# Often while a learner changes fast: 40 between ten thousand steps and a million.
_SNAPSHOTS = [round(1000 * 1.12**number) for number in range(120)]
_VERSIONED = ("cwbc", "jax", "mujoco", "gymnasium", "numpy")  # what returns depend on

Record = Callable[[list[Snapshot]], None]  # called with the newest snapshot of every seed


@dataclasses.dataclass(frozen=True)
class BehaviourTraining:
    """What a training is, apart from how long it takes."""

    environment: str
    settings: SAC
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
    settings = training.settings
    with contextlib.ExitStack() as stack:
        collector = Collector(training.environment, training.seeds, settings.copies)
        stack.enter_context(contextlib.closing(collector))
        directory.mkdir(parents=True, exist_ok=True)
        stack.enter_context(locked(directory / LOCK, f"another process is training in {directory}"))
        first = resume_step(directory, training, steps, overwrite)
        files = _Files(directory, training, collector.bounds, command, record)
        stack.enter_context(contextlib.closing(files))
        save_at = time.monotonic() + SAVE_INTERVAL
        for done, state, replay in _states(training, first, steps, collector, files):
            is_due = bisect.bisect(_SNAPSHOTS, done - settings.copies) < bisect.bisect(_SNAPSHOTS, done)
            if done >= steps or (done > settings.warmup and is_due):
                files.add(state, done)
            progress(min(done, steps))
            stopping = should_stop()
            if stopping or done >= steps or time.monotonic() > save_at:
                began = time.monotonic()
                files.checkpoint(state, None if done >= steps else replay, done)
                # A large replay takes seconds to write, and training most of the time.
                save_at = time.monotonic() + max(SAVE_INTERVAL, 20 * (time.monotonic() - began))
            if stopping and done < steps:
                raise Interrupted


def _states(
    training: BehaviourTraining, first: int, steps: int, collector: Collector, files: _Files
) -> Iterator[tuple[int, SACState, Transitions]]:
    """The steps, the state and the replays after each step of all copies; the next one uses these up."""
    if first >= steps:
        return
    settings = training.settings
    observation_size, action_size = collector.simulator.observation_size, collector.simulator.action_size
    keys = jax.vmap(jax.random.key)(jnp.asarray(training.seeds, jnp.uint32))
    # No larger than the training can fill it.
    rows = min(settings.capacity, -(-steps // settings.copies) * settings.copies)
    sizes = ((observation_size,), (action_size,), (), (), (observation_size,))
    empty = Transitions(*(jnp.zeros((len(training.seeds), rows, *size)) for size in sizes))
    state, replay = files.open(_initialize(settings, observation_size, action_size, keys), empty, first)
    collector.reset(first)
    for step in range(first, steps, settings.copies):
        if step < settings.warmup:
            actions: Any = collector.uniform()
        else:
            actions = _act(state.parameters["actor"], collector.observations, keys, step)
            # Queued behind the actions: the device updates while the simulator computes the transitions.
            if step > first:
                state = _learn(settings, state, replay, keys, step)
        replay = _insert(replay, collector.step(np.asarray(actions)), step)
        yield step + settings.copies, state, replay


# The functions of `sac` for all seeds: arrays have an axis [seed] in front; each purpose has its own keys.


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
@functools.partial(jax.vmap, in_axes=(None, None, None, 0))
def _initialize(settings: SAC, observation_size: int, action_size: int, key: jax.Array) -> SACState:
    return sac.initialize(settings, observation_size, action_size, jax.random.fold_in(key, 0))


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, 0, 0, None))
def _act(actor: Any, observations: jax.Array, key: jax.Array, step: int) -> jax.Array:
    return sac.act(actor, observations, jax.random.fold_in(jax.random.fold_in(key, 1), step))


_insert = jax.jit(jax.vmap(sac.insert, in_axes=(0, 0, None)), donate_argnums=0)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
@functools.partial(jax.vmap, in_axes=(None, 0, 0, 0, None))
def _learn(settings: SAC, state: SACState, replay: Transitions, key: jax.Array, step: int) -> SACState:
    key = jax.random.fold_in(jax.random.fold_in(key, 2), step)
    return sac.learn(settings, state, replay, step, key)[0]


class Collector:
    """The environments that learners act in: the copies of all seeds in one batch, reset as they end."""

    def __init__(self, environment: str, seeds: tuple[int, ...], copies: int) -> None:
        self.simulator = envs.make(environment, len(seeds) * copies)
        self.close = self.simulator.close
        bounds = self.simulator.action_bounds
        if bounds is None or not (np.abs(bounds) < np.finfo(np.float32).max).all():
            raise InputError(f"{environment} has no bounded continuous actions, which this learner needs")
        self.bounds = bounds[0].astype(np.float32), bounds[1].astype(np.float32)  # low and high, [action]
        self._environment, self._seeds, self._copies = environment, seeds, copies
        self._rows = np.arange(len(seeds) * copies)

    def reset(self, step: int) -> None:
        """Reset all copies; a training that resumes at a later step does not repeat its first episodes."""
        self._generators = [np.random.default_rng((seed, step)) for seed in self._seeds]
        first, shape = self._reset(self._rows), (len(self._seeds), self._copies, -1)
        self.observations = first.reshape(shape)  # [seed, copy, dimension]

    def uniform(self) -> NDArray[np.float32]:
        """Random actions within -1 and 1, [seed, copy, action]."""
        shape = (self._copies, self.simulator.action_size)
        actions = np.stack([generator.uniform(-1, 1, shape) for generator in self._generators])
        return actions.astype(np.float32)

    def step(self, actions: NDArray[np.float32]) -> Transitions:
        """Act in every copy, [seed, copy, action]."""
        outcome = self.simulator.step(self._rows, scale(actions.reshape(len(self._rows), -1), *self.bounds))
        arrived, rewards, terminated = (
            np.asarray(part, np.float32).reshape(*actions.shape[:2], *part.shape[1:])
            for part in (outcome.observations, outcome.rewards, outcome.terminated)
        )
        fresh = Transitions(self.observations, actions, rewards, terminated, arrived)
        if not all(np.isfinite(part).all() for part in fresh):
            raise InputError(f"{self._environment} gave an observation or a reward that is not finite")
        finished = np.flatnonzero(outcome.terminated | outcome.truncated)
        if len(finished):
            arrived = arrived.copy()  # the transitions keep the last observation of an episode
            arrived.reshape(len(self._rows), -1)[finished] = self._reset(finished)
        self.observations = arrived
        return fresh

    def _reset(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        seeds = [int(self._generators[row // self._copies].integers(2**31)) for row in rows]
        return self.simulator.reset(rows, seeds).astype(np.float32)


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
        self, directory: Path, training: BehaviourTraining, bounds: Any, command: str, record: Record
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
        if not step:
            self.add(fresh, 0)
        return state, replay

    def checkpoint(self, state: SACState, replay: Transitions | None, step: int) -> None:
        """Replace the checkpoint once all snapshots before it are written; the last one has no replays."""
        for future in self._pending:
            future.result()
        _check_finite(state.parameters, step)
        tensors = tensor_files.flatten("state", state)
        tensors |= tensor_files.flatten("replay", jax.tree.map(lambda x: np.asarray(x)[:, :step], replay))
        description = {"step": step, "is_over": replay is None, **dataclasses.asdict(self._training)}
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
