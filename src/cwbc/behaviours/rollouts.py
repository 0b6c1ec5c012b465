"""Whole episodes of several policies, side by side in one batch; each depends on its own seed alone."""

from __future__ import annotations

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
    count = max(1, min(most, wanted))
    simulator = envs.make(environment, count, threads)
    try:
        return _Rollout(simulator, count, stages).run(progress or (lambda steps: None))
    finally:
        simulator.close()


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
        self._stage = np.full(count, -1)  # of the episode that each copy runs; -1 runs none
        self._number = np.zeros(count, np.int64)
        self._generators: list[np.random.Generator] = [np.random.default_rng(0)] * count
        self._begun = [0] * len(stages)
        self._finished: list[dict[int, Episode]] = [{} for _ in stages]  # by number
        self._steps = [0] * len(stages)  # of finished episodes

    def run(self, progress: Callable[[int], None]) -> list[list[Episode]]:
        done = 0
        self._begin(np.arange(len(self._stage)))
        while len(running := np.flatnonzero(self._stage >= 0)):
            finished = self._step(running)
            done += len(running)
            if len(finished):
                self._begin(finished)
            progress(done)
        return [[own[number] for number in sorted(own)] for own in self._finished]

    def _next_stage(self) -> int:
        """The first stage that needs more episodes than run now, however long these are; -1 if none does."""
        for index, stage in enumerate(self._stages):
            running = self._begun[index] - len(self._finished[index])
            most = self._steps[index] + running * self._simulator.horizon
            if self._begun[index] < stage.episodes or most < stage.steps:
                return index
        return -1

    def _begin(self, copies: NDArray[np.integer[Any]]) -> None:
        """Start the next episodes in free copies, as far as any are wanted."""
        seeds = []
        for copy in copies:
            self._stage[copy] = index = self._next_stage()
            if index < 0:
                continue
            self._number[copy], self._elapsed[copy] = self._begun[index], 0
            self._generators[copy] = np.random.default_rng((*self._stages[index].seed, self._begun[index]))
            self._begun[index] += 1
            seeds.append(int(self._generators[copy].integers(2**31)))
        if seeds:
            started = copies[self._stage[copies] >= 0]
            self._now[started] = self._simulator.reset(started, seeds)

    def _step(self, running: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
        """Advance the running copies; returns those whose episodes are finished."""
        elapsed = self._elapsed[running]
        for copy in running[elapsed % _BLOCK == 0]:
            actor = self._stages[self._stage[copy]].actor
            self._noise[copy] = actor.noise(self._generators[copy], _BLOCK)
        actions = self._act(running)
        outcome = self._simulator.step(running, actions)
        self._observations[running, elapsed] = self._now[running]
        self._actions[running, elapsed] = actions
        self._rewards[running, elapsed] = outcome.rewards
        self._now[running] = outcome.observations
        self._elapsed[running] += 1
        over = outcome.terminated | outcome.truncated
        for copy, terminated in zip(running[over], outcome.terminated[over], strict=True):
            index, length = self._stage[copy], int(self._elapsed[copy])
            observations, actions, rewards = (
                column[copy, :length].copy() for column in (self._observations, self._actions, self._rewards)
            )
            episode = Episode(observations, actions, rewards, bool(terminated))
            self._finished[index][int(self._number[copy])] = episode
            self._steps[index] += length
        return running[over]

    def _act(self, running: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        noise = self._noise[running, self._elapsed[running] % _BLOCK]
        actions = np.empty((len(running), self._simulator.action_size), np.float32)
        for index in np.unique(self._stage[running]):
            own, stage = self._stage[running] == index, self._stages[index]
            actions[own] = stage.actor.act(self._now[running[own]], noise[own] if stage.noisy else None)
        return actions
