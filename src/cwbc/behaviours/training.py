"""Online training of behaviour policies: the device updates learners while the CPU simulates next steps."""

from __future__ import annotations

import bisect
import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc import envs
from cwbc.behaviours import sac
from cwbc.behaviours.policies import scale
from cwbc.behaviours.sac import SAC, SACState, Transitions
from cwbc.behaviours.training_files import BehaviourTraining, Record, TrainingFiles, resume_step
from cwbc.core.training import Interrupted
from cwbc.system.errors import InputError
from cwbc.system.files import LOCK, locked

SAVE_INTERVAL = 60.0  # seconds between checkpoints
# Often while a learner changes fast: 40 between ten thousand steps and a million.
_SNAPSHOTS = [round(1000 * 1.12**number) for number in range(120)]


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
        progress: called with the number of steps done.
        record: called with the snapshots of all seeds once they are evaluated, from another thread.
        should_stop: called after each step; once it is true, the state is saved and Interrupted is raised.
        overwrite: start over where the directory holds another training, instead of refusing.
    """
    collector = Collector(training.environment, training.seeds, training.settings.copies)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(collector))
        directory.mkdir(parents=True, exist_ok=True)
        stack.enter_context(locked(directory / LOCK, f"another process is training in {directory}"))
        first = resume_step(directory, training, steps, overwrite)
        files = TrainingFiles(directory, training, collector.bounds, command, record)
        stack.enter_context(contextlib.closing(files))
        save_at, copies = time.monotonic() + SAVE_INTERVAL, training.settings.copies
        for done, state, replay in _states(training, first, steps, collector, files):
            is_due = bisect.bisect(_SNAPSHOTS, done - copies) < bisect.bisect(_SNAPSHOTS, done)
            if done >= steps or (done > training.settings.warmup and is_due):
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
    training: BehaviourTraining, first: int, steps: int, collector: Collector, files: TrainingFiles
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
    state, replay = files.open(initialize(settings, observation_size, action_size, keys), empty, first)
    collector.reset(first)
    for step in range(first, steps, settings.copies):
        if step < settings.warmup:
            actions: Any = collector.uniform()
        else:
            actions = act(state.parameters["actor"], collector.observations, keys, step)
            # Queued behind the actions: the device updates while the simulator computes the transitions.
            if step > first:
                state = learn(settings, state, replay, keys, step)
        replay = insert(replay, collector.step(np.asarray(actions)), step)
        yield step + settings.copies, state, replay


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def initialize(settings: SAC, observation_size: int, action_size: int, keys: jax.Array) -> SACState:
    """The states of all seeds before the first update."""
    one = functools.partial(sac.initialize, settings, observation_size, action_size)
    return jax.vmap(one)(_keys_for(keys, 0))


@jax.jit
def act(actor: Any, observations: jax.Array, keys: jax.Array, step: int) -> jax.Array:
    """Sampled actions of every seed within -1 and 1, [seed, copy, action]."""
    return jax.vmap(sac.act)(actor, observations, _keys_for(keys, 1, step))


@functools.partial(jax.jit, donate_argnums=0)
def insert(replay: Transitions, fresh: Transitions, step: int) -> Transitions:
    """Insert the fresh transitions of every seed, [seed, copy, ...]."""
    return jax.vmap(sac.insert, in_axes=(0, 0, None))(replay, fresh, step)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
def learn(settings: SAC, state: SACState, replay: Transitions, keys: jax.Array, step: int) -> SACState:
    """Update each seed's learner."""
    one = functools.partial(sac.learn, settings)
    return jax.vmap(one, in_axes=(0, 0, None, 0))(state, replay, step, _keys_for(keys, 2, step))[0]


def _keys_for(keys: jax.Array, *numbers: int) -> jax.Array:
    """Keys of all seeds for one purpose."""
    for number in numbers:
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, number)
    return keys


class Collector:
    """The environments that learners act in: the copies of all seeds in one batch, reset as they end."""

    observations: NDArray[np.float32]  # [seed, copy, dimension]

    def __init__(self, environment: str, seeds: tuple[int, ...], copies: int) -> None:
        self.simulator = envs.make(environment, len(seeds) * copies)
        self.close = self.simulator.close
        bounds = self.simulator.action_bounds
        if bounds is None or not (np.abs(bounds) < np.finfo(np.float32).max).all():
            raise InputError(f"{environment} has no bounded continuous actions, which this learner needs")
        self.bounds = bounds[0].astype(np.float32), bounds[1].astype(np.float32)  # low and high, [action]
        self._environment, self._seeds, self._copies = environment, seeds, copies
        self._rows = np.arange(len(seeds) * copies)
        self.reset(0)

    def reset(self, step: int) -> None:
        """Reset all copies; a training that resumes at a later step does not repeat its first episodes."""
        self._generators = [np.random.default_rng((seed, step)) for seed in self._seeds]
        self.observations = self._reset(self._rows).reshape(len(self._seeds), self._copies, -1)

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
