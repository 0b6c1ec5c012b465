"""Whole episodes of several policies, side by side in one batch; each depends on its own seed alone."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cwbc import envs
from cwbc.behaviours.policies import Float32s, Floats
from cwbc.core.simulation import Simulator

_MOST_COPIES = 256  # of a robot whose physics run in one batch
_MOST_SINGLES = 32  # of an environment that is stepped copy by copy
_BLOCK = 250  # steps whose noise is sampled at once

Progress = Callable[[int], None]


class Acting(Protocol):
    """A policy that generates episodes."""

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """The random numbers of so many steps of one episode, [step, action]."""
        ...

    def act(self, observations: Floats, noise: Floats | None = None) -> Float32s:
        """Actions for observations [episode, dimension], with the noise of a step or without any."""
        ...


@dataclasses.dataclass(frozen=True)
class Stage:
    """Episodes wanted of one policy: at least so many, and at least so many steps."""

    actor: Acting
    seed: tuple[int, ...]  # to which the number of an episode is added
    episodes: int = 0
    steps: int = 0
    noisy: bool = True  # whether actions are sampled, or deterministic


@dataclasses.dataclass(frozen=True)
class Episode:
    """The steps of one episode."""

    observations: NDArray[np.float32]  # [step, dimension]
    actions: NDArray[np.float32]  # [step, action]
    rewards: NDArray[np.float32]  # [step]
    terminated: bool  # rather than truncated


def collect(
    environment: str, stages: Sequence[Stage], progress: Progress = lambda steps: None
) -> list[list[Episode]]:
    """The episodes of each stage, in the order of their numbers; progress is the number of steps done."""
    most = _MOST_COPIES if envs.is_batched(environment) else _MOST_SINGLES
    longest = envs.time_limit(environment) or 1
    return collect_in(functools.partial(envs.make, environment), longest, stages, progress, most)


def collect_in(
    make: Callable[[int], Simulator],
    longest: int,
    stages: Sequence[Stage],
    progress: Progress = lambda steps: None,
    most: int = _MOST_COPIES,
) -> list[list[Episode]]:
    """The same in any simulator.

    Args:
        make: makes so many copies.
        longest: steps of an episode, at most.
        most: copies side by side.
    """
    wanted = sum(max(stage.episodes, -(-stage.steps // longest)) for stage in stages)
    count, done = max(1, min(most, wanted)), 0
    episodes: list[list[Episode]] = [[] for _ in stages]
    with contextlib.closing(make(count)) as simulator:
        while batch := _needed(stages, episodes, simulator.horizon)[:count]:
            finished = _run(simulator, stages, batch, done, progress)
            for (index, _), episode in zip(batch, finished, strict=True):
                episodes[index].append(episode)
                done += len(episode.rewards)
    return episodes


def evaluate(
    environment: str, actors: Sequence[Acting], episodes: int, seed: int, noisy: bool = False
) -> NDArray[np.float64]:
    """The returns of each policy, [policy, episode]; all of them start from the same states."""
    collected = collect(environment, [Stage(actor, (seed,), episodes, noisy=noisy) for actor in actors])
    return np.array([[episode.rewards.sum(dtype=np.float64) for episode in own] for own in collected])


def _needed(
    stages: Sequence[Stage], episodes: Sequence[Sequence[Episode]], horizon: int
) -> list[tuple[int, int]]:
    """The next episodes, needed however long they are: the index of a stage, and a number in the stage."""
    needed: list[tuple[int, int]] = []
    for index, (stage, own) in enumerate(zip(stages, episodes, strict=True)):
        steps = stage.steps - sum(len(episode.rewards) for episode in own)
        last = max(stage.episodes, len(own) + -(-steps // horizon))
        needed += [(index, number) for number in range(len(own), last)]
    return needed


def _run(
    simulator: Simulator, stages: Sequence[Stage], batch: list[tuple[int, int]], done: int, progress: Progress
) -> list[Episode]:
    """Run episodes side by side, each to its end, after so many steps; a batch is as in `_needed`."""
    count, horizon = len(batch), simulator.horizon
    # Pages that are never written to take no memory, so a long horizon costs nothing.
    observations = np.empty((count, horizon, simulator.observation_size), np.float32)
    actions = np.empty((count, horizon, simulator.action_size), np.float32)
    rewards = np.empty((count, horizon), np.float32)
    noise = np.empty((count, _BLOCK, simulator.action_size))
    terminated, lengths = np.zeros(count, np.bool_), np.zeros(count, np.int64)
    owners = np.array([index for index, _ in batch])
    generators = [np.random.default_rng((*stages[index].seed, number)) for index, number in batch]
    running, step = np.arange(count), 0
    now = simulator.reset(running, [int(generator.integers(2**31)) for generator in generators])
    while len(running):
        if step % _BLOCK == 0:
            for row in running:
                noise[row] = stages[owners[row]].actor.noise(generators[row], _BLOCK)
        for index in np.unique(owners[running]):
            own, stage = owners[running] == index, stages[index]
            rows = running[own]
            sampled = noise[rows, step % _BLOCK] if stage.noisy else None
            actions[rows, step] = stage.actor.act(now[own], sampled)
        outcome = simulator.step(running, actions[running, step])
        observations[running, step], rewards[running, step] = now, outcome.rewards
        lengths[running], terminated[running] = step + 1, outcome.terminated
        progress(done + int(lengths.sum()))
        goes_on = ~(outcome.terminated | outcome.truncated)
        running, now, step = running[goes_on], outcome.observations[goes_on], step + 1
    return [
        Episode(observations[row, :n].copy(), actions[row, :n].copy(), rewards[row, :n].copy(), bool(end))
        for row, (n, end) in enumerate(zip(lengths, terminated, strict=True))
    ]
