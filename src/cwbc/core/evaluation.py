"""Rollouts of trained policies at every target return: seeds x targets x episodes in one batch."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.core.acting import History, act
from cwbc.core.device import on_cpu, over_seeds
from cwbc.core.layers import Parameters
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.simulation import Simulator, Transition

_THREADS = 8  # at most, that act and simulate on a CPU; not the number of cores: each machine rounds alike
_BLOCK = 640  # remembered steps that a CPU works on at a time: more would not stay in its cache
Progress = Callable[[int], None]


@dataclasses.dataclass(frozen=True)
class Rollouts:
    """The state of every episode, which is updated in place."""

    observations: NDArray[Any]  # [row, ...] the latest
    remaining: NDArray[np.float64]  # [row] remaining return-to-go
    returns: NDArray[np.float64]  # [row]
    lengths: NDArray[np.int64]  # [row]
    running: NDArray[np.bool_]  # [row]
    keys: NDArray[np.uint32]  # [row, 2] for sampled actions

    @classmethod
    def of(cls, spec: PolicySpec, targets: NDArray[np.float64], reset_seeds: Sequence[int]) -> Rollouts:
        """Episodes before their first step."""
        count, space = len(targets), spec.observations
        empty = (np.zeros(count), np.zeros(count, np.int64), np.ones(count, np.bool_))
        # Other numbers than those of the environment, which has the same seed.
        keys = [np.random.SeedSequence([int(seed), 1]).generate_state(2) for seed in reset_seeds]
        return cls(np.zeros((count, *space.shape), space.dtype), targets.copy(), *empty, np.stack(keys))

    def reset(self, rows: NDArray[np.int64], observations: NDArray[Any]) -> None:
        """Store the first observations; simulators may flatten images."""
        self.observations[rows] = observations.reshape(self.observations[rows].shape)

    def record(self, spec: PolicySpec, rows: NDArray[np.int64], outcome: Transition) -> None:
        """Update the episodes that were stepped."""
        self.reset(rows, outcome.observations)
        self.remaining[rows] = spec.remaining_after(self.remaining[rows], outcome.rewards)
        self.returns[rows] += outcome.rewards
        self.lengths[rows] += 1
        self.running[rows] = ~(outcome.terminated | outcome.truncated)


def roll_out(
    spec: PolicySpec,
    parameters: Parameters,  # [seed, ...]
    targets: NDArray[np.float64],  # [row], the rows of one seed after those of another
    reset_seeds: Sequence[int],  # [row]
    simulator: Simulator,
    *,
    one_at_a_time: bool = False,
    overlapping: bool = False,
    independent: bool = False,
    progress: Progress = lambda timesteps: None,
) -> Rollouts:
    """Run every episode to its end, each conditioned on its target return.

    Args:
        one_at_a_time: one episode after another, as the only copy of an environment requires.
        overlapping: simulate one half of the episodes while a GPU computes the actions of the other.
        independent: several threads may step the simulator at a time, and on a CPU they do.
        progress: called with the number of timesteps done; one at a time, as a fraction of all of them.
    """
    seeds = len(jax.tree.leaves(parameters)[0])
    count = len(targets)
    rollouts = Rollouts.of(spec, targets, reset_seeds)
    if not one_at_a_time:
        rollouts.reset(np.arange(count), simulator.reset(np.arange(count), reset_seeds))
        own = np.arange(count).reshape(seeds, -1)
        if independent and on_cpu():
            # Equal parts, which one program computes.
            number = max(n for n in range(1, _THREADS + 1) if own.shape[1] % n == 0)
        else:
            number = min(2, own.shape[1]) if overlapping and not on_cpu() else 1
        parts = [_Part(spec, parameters, rollouts, own[:, first::number]) for first in range(number)]
        run = _run_side_by_side if independent and on_cpu() else _run
        run(parts, rollouts, simulator, progress)
        return rollouts
    stored = jax.tree.map(np.asarray, parameters)
    for row in range(count):
        own, seed = np.array([row]), row * seeds // count
        alone = jax.device_put(jax.tree.map(lambda x, seed=seed: x[seed : seed + 1], stored))
        rollouts.reset(own, simulator.reset(own, reset_seeds[row : row + 1]))

        def report(timestep: int, row: int = row) -> None:
            progress((row * simulator.horizon + timestep) // count)

        _run([_Part(spec, alone, rollouts, own[None])], rollouts, simulator, report)
    return rollouts


@dataclasses.dataclass
class _Part:
    """Episodes whose actions are computed together, as many of every seed."""

    spec: PolicySpec
    parameters: Parameters
    rollouts: Rollouts
    own: NDArray[np.int64]  # [seed, row of the seed]
    timestep: int = 0

    def __post_init__(self) -> None:
        self.program = _program(self.spec.form)
        empty = History.empty(self.spec, self.own.shape[1])
        stack = np.broadcast_to if on_cpu() else jnp.broadcast_to  # NumPy's compiles nothing
        history = jax.tree.map(lambda x: stack(x, (len(self.own), *x.shape)), empty)
        keys = self.rollouts.keys[self.own] if self.spec.sampled else None
        self.history = dataclasses.replace(history, keys=keys)

    def act(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The episodes that are still running, and their actions."""
        spec, rollouts, own = self.spec, self.rollouts, self.own
        running = rollouts.running[own]
        self.history, actions = self.program(
            self.parameters,
            self.history,
            np.int32(self.timestep),
            spec.observations.received(rollouts.observations[own]),
            spec.standardized(rollouts.remaining[own], self.timestep),
            running,
        )
        self.timestep += 1
        return own[running], np.asarray(actions)[running]


def _run(parts: Sequence[_Part], rollouts: Rollouts, simulator: Simulator, progress: Progress) -> None:
    """Run all episodes to their ends, the parts in turn."""
    with ThreadPoolExecutor(1) as physics:

        def begin(part: _Part) -> tuple[_Part, NDArray[np.int64], Callable[[], Transition]]:
            own, actions = part.act()
            if simulator.action_bounds is not None:
                actions = actions.clip(*simulator.action_bounds)
            if len(parts) == 1:  # some environments can only be stepped by the thread that created them
                return part, own, functools.partial(simulator.step, own, actions)
            return part, own, physics.submit(simulator.step, own, actions).result

        under_way = collections.deque(begin(part) for part in parts)
        while under_way:
            part, own, outcome = under_way.popleft()
            rollouts.record(part.spec, own, outcome())
            progress(part.timestep)
            # Finished episodes leave the batch: they cost no more simulation.
            if rollouts.running[own].any() and part.timestep < simulator.horizon:
                under_way.append(begin(part))


def _run_side_by_side(
    parts: Sequence[_Part], rollouts: Rollouts, simulator: Simulator, progress: Progress
) -> None:
    """Run all episodes to their ends, each part in a thread of its own."""
    stopping, lock, furthest = threading.Event(), threading.Lock(), 0

    def report(timestep: int) -> None:
        nonlocal furthest
        if stopping.is_set():
            raise CancelledError
        with lock:
            if timestep > furthest:
                furthest = timestep
                progress(timestep)

    with ThreadPoolExecutor(len(parts)) as pool:
        under_way = [pool.submit(_run, [part], rollouts, simulator, report) for part in parts]
        try:
            for part in as_completed(under_way):
                part.result()
        finally:  # after an error, or Ctrl-C
            stopping.set()


@functools.lru_cache(maxsize=8)
def _program(spec: PolicySpec) -> Callable[..., tuple[History, jax.Array]]:
    def step(parameters, history, timestep, observations, returns_to_go, running):  # type: ignore[no-untyped-def]
        def one_seed(parameters: Parameters, running: jax.Array, *rows: Any) -> tuple[History, jax.Array]:
            def actions(history: History, *now: jax.Array) -> tuple[History, jax.Array]:
                return act(spec, parameters, history, timestep, *now)

            return _in_blocks(spec, actions, running, rows)

        return over_seeds(one_seed)(parameters, running, history, observations, returns_to_go)

    return jax.jit(step, donate_argnums=1)


def _in_blocks(
    spec: PolicySpec,
    actions: Callable[..., tuple[History, jax.Array]],
    running: jax.Array,  # [row]
    rows: tuple[Any, ...],  # [row, ...]
) -> tuple[History, jax.Array]:
    """On a CPU, compute some rows at a time, and skip blocks without running episodes; else all at once."""
    count = len(running)
    least = min(count, math.ceil(_BLOCK / spec.memory))
    size = next(size for size in range(least, count + 1) if count % size == 0)
    if size == count or not on_cpu():
        return actions(*rows)

    def skip(history: History, *_: jax.Array) -> tuple[History, jax.Array]:
        return history, spec.actions.choose(jnp.zeros((size, spec.actions.size)))

    blocks = jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), (running, rows))
    computed = jax.lax.map(lambda block: jax.lax.cond(block[0].any(), actions, skip, *block[1]), blocks)
    return jax.tree.map(lambda x: x.reshape(count, *x.shape[2:]), computed)


def reset_seed(evaluation_seed: int, policy_seed: int, episode: int) -> int:
    """The seed of an episode's first state: the same for every target and method."""
    entropy = np.random.SeedSequence([evaluation_seed, policy_seed, episode])
    return int(entropy.generate_state(1)[0])
