"""Online training of behaviours: the GPU learns from the last steps while the CPU simulates the next."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cwbc.behaviours import replay, sac
from cwbc.behaviours.album import Album, Report
from cwbc.behaviours.collecting import Collector
from cwbc.behaviours.replay import Replay
from cwbc.behaviours.sac import Settings, State
from cwbc.files import LOCK, locked

SAVE_INTERVAL = 60.0  # seconds between checkpoints
# Often while a learner changes fast: 40 between ten thousand steps and a million.
_SNAPSHOTS = [round(1000 * 1.12**number) for number in range(120)]


def train(
    environment: str,
    settings: Settings,
    seeds: tuple[int, ...],
    steps: int,
    directory: Path,
    episodes: int = 10,
    command: str = "cwbc.behaviours.learning.train",
    threads: int = 0,
    begin: Callable[[int], None] = lambda step: None,
    progress: Callable[[int], None] = lambda step: None,
    report: Report = lambda seed, snapshot: None,
    should_stop: Callable[[], bool] = lambda: False,
    overwrite: bool = False,
) -> int:
    """Train to a number of steps, or go on from where an earlier call was cut off; the steps that are done.

    Args:
        directory: gets a checkpoint, and for each seed the snapshots through training.
        episodes: that measure each snapshot, in either way of acting.
        command: what the manifests say that made them.
        threads: for the physics; 0 takes every core.
        begin: told the step that it begins from.
        report: told each snapshot once it is measured, from another thread.
        overwrite: begin anew where the directory holds another training, instead of refusing.
    """
    collector = Collector(environment, seeds, settings.copies, threads)  # refused before anything is written
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory / LOCK, f"another process is training in {directory}"):
        album = Album(directory, environment, settings, seeds, episodes, command, threads, report)
        try:
            loop = _Loop(settings, seeds, collector, album, begin, progress, should_stop)
            return loop.run(steps, overwrite)
        finally:
            album.close()
            collector.simulator.close()


@dataclasses.dataclass(frozen=True)
class _Loop:
    settings: Settings
    seeds: tuple[int, ...]
    collector: Collector
    album: Album
    begin: Callable[[int], None]
    progress: Callable[[int], None]
    should_stop: Callable[[], bool]

    def run(self, steps: int, overwrite: bool) -> int:
        settings, collector, keys = self.settings, self.collector, _keys(self.seeds)
        sizes = collector.simulator.observation_size, collector.simulator.action_size
        step = self.album.first_step(steps, overwrite)
        self.begin(step)
        if step < steps:
            state = self.album.resume(initialize(settings, *sizes, keys), step)
            # No larger than the training can fill it.
            rows = min(settings.capacity, -(-steps // settings.copies) * settings.copies)
            history = self.album.history((len(self.seeds), rows, replay.columns(*sizes)), step)
            if step == 0:
                self.album.add(state, step, collector.bounds)
            collector.begin(step)
            step = self._learn(state, step, steps, keys, history)
        if step >= steps:
            self.album.discard_history()
        return step

    def _learn(
        self,
        state: State,
        step: int,
        steps: int,
        keys: jax.Array,
        history: np.memmap[Any, np.dtype[np.float32]],
    ) -> int:
        settings, collector, capacity = self.settings, self.collector, history.shape[1]
        memory = replay.restore(history, step)
        fresh, saved, stopping = None, time.monotonic(), False
        while step < steps and not stopping:
            actions: Any = (
                collector.uniform()
                if step < settings.warmup
                else act(state.parameters["actor"], collector.observations, keys, step)
            )
            # Queued behind the actions: the device learns while the simulator makes the next transitions.
            if fresh is not None:
                updates = settings.updates if step >= settings.warmup else 0
                state, memory = learn(settings, state, memory, fresh, keys, step, updates)
            fresh = collector.step(np.asarray(actions))
            history[:, step % capacity : step % capacity + settings.copies] = fresh
            step += settings.copies
            if step >= steps or (step > settings.warmup and _is_due(step - settings.copies, step)):
                self.album.add(state, step, collector.bounds)
            self.progress(min(step, steps))
            stopping = self.should_stop()
            if stopping or step >= steps or time.monotonic() - saved > SAVE_INTERVAL:
                history.flush()
                self.album.checkpoint(state, step)
                saved = time.monotonic()
        return step


def _is_due(before: int, after: int) -> bool:
    return bisect.bisect(_SNAPSHOTS, before) < bisect.bisect(_SNAPSHOTS, after)


@jax.jit
def act(actor: Any, observations: jax.Array, keys: jax.Array, step: int) -> jax.Array:
    """Actions within -1 and 1 of every seed, [seed, copy, action]."""

    def one(actor: Any, observations: jax.Array, key: jax.Array) -> jax.Array:
        shape = (len(observations), len(actor["output"]["bias"]) // 2)
        noise_key = jax.random.fold_in(jax.random.fold_in(key, 1), step)
        return sac.sample(actor, observations, jax.random.normal(noise_key, shape))[0]

    return jax.vmap(one)(actor, observations, keys)


@functools.partial(jax.jit, static_argnames=("settings", "updates"), donate_argnames=("state", "memory"))
def learn(
    settings: Settings,
    state: State,
    memory: Replay,
    fresh: jax.Array,
    keys: jax.Array,
    step: int,
    updates: int,
) -> tuple[State, Replay]:
    """Take in the fresh rows of every seed, [seed, copy, column], and update each seed's learner."""
    if updates == 0:
        return state, jax.vmap(replay.insert)(memory, fresh)

    def one(state: State, memory: Replay, fresh: jax.Array, key: jax.Array) -> tuple[State, Replay]:
        key = jax.random.fold_in(jax.random.fold_in(key, 2), step)
        return sac.learn(settings, state, memory, fresh, key, updates)[:2]

    return jax.vmap(one)(state, memory, fresh, keys)


def _keys(seeds: tuple[int, ...]) -> jax.Array:
    return jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def initialize(settings: Settings, observation_size: int, action_size: int, keys: jax.Array) -> State:
    """Fresh learners, one for each key."""

    def one(key: jax.Array) -> State:
        return sac.initialize(settings, observation_size, action_size, jax.random.fold_in(key, 0))

    return jax.vmap(one)(keys)
