"""Whole episodes of several policies, side by side in one batch; each depends on its own seed alone."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc import envs
from cwbc.behaviours.policies import Actor
from cwbc.core.simulation import Simulator

_MOST_COPIES = 256  # of a robot whose physics run in one batch
_MOST_SINGLES = 32  # of an environment that is stepped copy by copy
_BLOCK = 250  # steps whose noise is sampled at once


@dataclasses.dataclass(frozen=True)
class Stage:
    """Episodes wanted of one policy: at least so many, and at least so many steps."""

    actor: Actor
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
    environment: str,
    stages: Sequence[Stage],
    threads: int = 0,
    progress: Callable[[int], None] | None = None,
) -> list[list[Episode]]:
    """The episodes of each stage, in the order of their numbers.

    Args:
        threads: for the physics; 0 takes every core.
        progress: called with the number of steps done.
    """
    most = _MOST_COPIES if envs.is_batched(environment) else _MOST_SINGLES
    longest = envs.time_limit(environment) or 1
    wanted = sum(max(stage.episodes, -(-stage.steps // longest)) for stage in stages)
    count, done = max(1, min(most, wanted)), 0
    with contextlib.closing(envs.make(environment, count, threads)) as simulator:
        rollout = _Rollout(simulator, count, stages)
        while len(running := np.flatnonzero(rollout.stage >= 0)):
            rollout.step(running)
            done += len(running)
            if progress is not None:
                progress(done)
    return rollout.episodes


def evaluate(
    environment: str, actors: Sequence[Actor], episodes: int, seed: int, noisy: bool = False
) -> NDArray[np.float64]:
    """The returns of each policy, [policy, episode]; all of them start from the same states."""
    stages = [Stage(actor, (seed,), episodes, noisy=noisy) for actor in actors]
    collected = collect(environment, stages)
    return np.array([[episode.rewards.sum(dtype=np.float64) for episode in own] for own in collected])


class _Rollout:
    """Copies of the environment, each of which runs one episode after another."""

    def __init__(self, simulator: Simulator, count: int, stages: Sequence[Stage]) -> None:
        self._simulator, self._stages = simulator, stages
        sizes = (count, simulator.horizon)
        # Pages that are never written to take no memory, so a long horizon costs nothing.
        self._observations = np.empty((*sizes, simulator.observation_size), np.float32)
        self._actions = np.empty((*sizes, simulator.action_size), np.float32)
        self._rewards = np.empty(sizes, np.float32)
        self._noise = np.empty((count, _BLOCK, simulator.action_size))
        self._now = np.empty((count, simulator.observation_size))  # what each copy observes
        self._elapsed = np.zeros(count, np.int64)
        self.stage = np.full(count, -1)  # of the episode that each copy runs; -1 runs none
        self._number = np.zeros(count, np.int64)  # of that episode in its stage
        self._generators = [np.random.default_rng(0)] * count
        self.episodes: list[list[Any]] = [[] for _ in stages]  # None while one runs
        self._steps = [0] * len(stages)  # of finished episodes
        self._begin(np.arange(count))

    def _next_stage(self) -> int:
        """The first stage that needs more episodes than run now, however long these are; -1 if none does."""
        for index, stage in enumerate(self._stages):
            most = self._steps[index] + np.count_nonzero(self.stage == index) * self._simulator.horizon
            if len(self.episodes[index]) < stage.episodes or most < stage.steps:
                return index
        return -1

    def _begin(self, copies: NDArray[np.integer[Any]]) -> None:
        """Start the next episodes in free copies, as far as any are wanted."""
        self.stage[copies], self._elapsed[copies] = -1, 0
        seeds = []
        for copy in copies:
            if (index := self._next_stage()) < 0:
                break
            self.stage[copy], self._number[copy] = index, len(self.episodes[index])
            generator = np.random.default_rng((*self._stages[index].seed, len(self.episodes[index])))
            self._generators[copy] = generator
            self.episodes[index].append(None)
            seeds.append(int(generator.integers(2**31)))
        if seeds:
            self._now[copies[: len(seeds)]] = self._simulator.reset(copies[: len(seeds)], seeds)

    def step(self, running: NDArray[np.integer[Any]]) -> None:
        """Advance the running copies; those whose episodes finish start the next ones."""
        elapsed, stages = self._elapsed[running], self.stage[running]
        for copy in running[elapsed % _BLOCK == 0]:
            actor = self._stages[self.stage[copy]].actor
            self._noise[copy] = actor.noise(self._generators[copy], _BLOCK)
        noise = self._noise[running, elapsed % _BLOCK]
        actions = np.empty((len(running), self._simulator.action_size), np.float32)
        for index in np.unique(stages):
            own, stage = stages == index, self._stages[index]
            actions[own] = stage.actor.act(self._now[running[own]], noise[own] if stage.noisy else None)
        outcome = self._simulator.step(running, actions)
        self._observations[running, elapsed] = self._now[running]
        self._actions[running, elapsed] = actions
        self._rewards[running, elapsed] = outcome.rewards
        self._now[running] = outcome.observations
        self._elapsed[running] += 1
        over = outcome.terminated | outcome.truncated
        for copy, terminated in zip(running[over], outcome.terminated[over], strict=True):
            index, length = self.stage[copy], self._elapsed[copy]
            observations, actions, rewards = (
                column[copy, :length].copy() for column in (self._observations, self._actions, self._rewards)
            )
            episode = Episode(observations, actions, rewards, bool(terminated))
            self.episodes[index][self._number[copy]] = episode
            self._steps[index] += length
        if over.any():
            self._begin(running[over])
