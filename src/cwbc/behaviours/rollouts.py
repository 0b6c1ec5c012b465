"""Whole episodes of several actors, side by side in one batch; each depends on its own seed alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc import simulators
from cwbc.behaviours.behaviour import Actor

_MOST_COPIES = 256  # of a robot whose physics run in one batch
_MOST_SINGLES = 32  # of an environment that is stepped copy by copy
_BLOCK = 250  # steps whose noise is drawn at once


@dataclasses.dataclass(frozen=True)
class Stage:
    """Episodes wanted of one actor: at least so many, and at least so many steps."""

    actor: Actor
    seed: tuple[int, ...]  # the number of an episode is added to it
    episodes: int = 0
    steps: int = 0
    sampled: bool = True  # whether actions are drawn, or the middle of their distribution is taken


@dataclasses.dataclass(frozen=True)
class Episode:
    """What was seen, done and earned."""

    observations: NDArray[np.float32]  # [step, dimension]
    actions: NDArray[np.float32]  # [step, action]
    rewards: NDArray[np.float32]  # [step]
    terminated: bool  # by the environment, not by a time limit


def play(
    environment: str,
    stages: Sequence[Stage],
    threads: int = 0,
    progress: Callable[[int], None] | None = None,
) -> list[list[Episode]]:
    """The episodes of each stage, in the order of their numbers.

    Args:
        threads: for the physics; 0 takes every core.
        progress: told how many steps are done.
    """
    count = _copies(environment, stages)
    simulator = simulators.make(environment, count, threads)
    try:
        return _Pool(simulator, count, stages).run(progress)
    finally:
        simulator.close()


def measure(
    environment: str,
    actors: Sequence[Actor],
    episodes: int,
    seed: int,
    sampled: bool = False,
    threads: int = 0,
) -> NDArray[np.float64]:
    """The returns of each actor, [actor, episode]; all of them start from the same states."""
    stages = [Stage(actor, (seed,), episodes, sampled=sampled) for actor in actors]
    played = play(environment, stages, threads)
    return np.array([[episode.rewards.sum(dtype=np.float64) for episode in own] for own in played])


def _copies(environment: str, stages: Sequence[Stage]) -> int:
    most = _MOST_COPIES if simulators.is_batched(environment) else _MOST_SINGLES
    longest = simulators.time_limit(environment) or 1
    return max(1, min(most, sum(max(stage.episodes, -(-stage.steps // longest)) for stage in stages)))


class _Pool:
    """Copies of the environment, each of which plays one episode after another."""

    def __init__(self, simulator: simulators.Simulator, count: int, stages: Sequence[Stage]) -> None:
        self._simulator, self._stages = simulator, stages
        sizes = (count, simulator.horizon)
        # Pages that are never written to take no memory, so a long horizon costs nothing.
        self._observations = np.empty((*sizes, simulator.observation_size), np.float32)
        self._actions = np.empty((*sizes, simulator.action_size), np.float32)
        self._rewards = np.empty(sizes, np.float32)
        self._noise = np.empty((count, _BLOCK, simulator.action_size))
        self._now = np.empty((count, simulator.observation_size))  # what each copy observes
        self._elapsed = np.zeros(count, np.int64)
        self._stage = np.full(count, -1)  # of the episode that each copy plays; -1 plays none
        self._number = np.zeros(count, np.int64)
        self._generators: list[np.random.Generator] = [np.random.default_rng(0)] * count
        self._begun = [0] * len(stages)
        self._played: list[dict[int, Episode]] = [{} for _ in stages]
        self._steps = [0] * len(stages)  # of the episodes that are over

    def run(self, progress: Callable[[int], None] | None) -> list[list[Episode]]:
        done = 0
        self._begin(np.arange(len(self._stage)))
        while len(running := np.flatnonzero(self._stage >= 0)):
            finished = self._step(running)
            done += len(running)
            if len(finished):
                self._begin(finished)
            if progress is not None:
                progress(done)
        return [[own[number] for number in sorted(own)] for own in self._played]

    def _wanting(self) -> int | None:
        """The first stage that needs another episode, were those that run now as long as can be."""
        for index, stage in enumerate(self._stages):
            running = self._begun[index] - len(self._played[index])
            longest = self._steps[index] + running * self._simulator.horizon
            if self._begun[index] < stage.episodes or longest < stage.steps:
                return index
        return None

    def _begin(self, copies: NDArray[np.integer[Any]]) -> None:
        """Give free copies their next episodes, as far as any are wanted."""
        busy, seeds = [], []
        for copy in copies:
            self._stage[copy] = -1
            if (index := self._wanting()) is None:
                continue
            number = self._begun[index]
            generator = np.random.default_rng((*self._stages[index].seed, number))
            self._stage[copy], self._number[copy], self._elapsed[copy] = index, number, 0
            self._generators[copy] = generator
            self._begun[index] += 1
            busy.append(copy)
            seeds.append(int(generator.integers(2**31)))
        if busy:
            rows = np.array(busy)
            self._now[rows] = self._simulator.reset(rows, seeds)

    def _step(self, running: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
        """Advance the running copies; those whose episodes are over."""
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
            self._keep(int(copy), bool(terminated))
        return running[over]

    def _act(self, running: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        noise = self._noise[running, self._elapsed[running] % _BLOCK]
        actions = np.empty((len(running), self._simulator.action_size), np.float32)
        playing = self._stage[running]
        for index in np.unique(playing):
            own = playing == index
            stage = self._stages[index]
            actions[own] = stage.actor.act(self._now[running[own]], noise[own] if stage.sampled else None)
        return actions

    def _keep(self, copy: int, terminated: bool) -> None:
        index, length = int(self._stage[copy]), int(self._elapsed[copy])
        self._played[index][int(self._number[copy])] = Episode(
            self._observations[copy, :length].copy(),
            self._actions[copy, :length].copy(),
            self._rewards[copy, :length].copy(),
            terminated,
        )
        self._steps[index] += length
