"""Whole episodes of several policies, side by side in one batch; each depends on its own seed alone."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cwbc import envs
from cwbc.behaviours.policies import Floats
from cwbc.core.simulation import Simulator

_MOST_COPIES = 256  # of a robot whose physics run in one batch
_MOST_SINGLES = 32  # of an environment that is stepped copy by copy
_BLOCK = 250  # steps whose noise is sampled at once
# Steps without a reward that truncate an episode of images: a policy that does not launch the ball
# of Breakout would wait for the time limit, 27,000 steps.
_PATIENCE = 1000

Progress = Callable[[int], None]


class Acting(Protocol):
    """A policy that generates episodes."""

    @property
    def stack(self) -> int:
        """How many frames of images it reads."""
        ...

    @property
    def action_count(self) -> int | None:
        """How many discrete actions there are."""
        ...

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """The random numbers of so many steps of one episode, [step, ...]."""
        ...

    def act(self, observations: NDArray[Any], noise: Floats | None = None) -> NDArray[Any]:
        """Actions for observations [episode, number], with the noise of a step or without any."""
        ...


@dataclasses.dataclass(frozen=True)
class Stage:
    """Episodes wanted of one policy: at least so many, and at least so many steps."""

    actor: Acting
    seed: tuple[int, ...]  # to which the number of an episode is added
    episodes: int = 0
    steps: int = 0
    noisy: bool = True  # whether actions are sampled, or deterministic
    keeps_observations: bool = True  # in memory, of which images take much


@dataclasses.dataclass(frozen=True)
class Episode:
    """The steps of one episode."""

    observations: NDArray[Any]  # [step, dimension] float32, or [step, height, width, channel] uint8
    actions: NDArray[Any]  # [step, action] float32, or [step] int32 where they are discrete
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
    stages = [Stage(actor, (seed,), episodes, noisy=noisy, keeps_observations=False) for actor in actors]
    collected = collect(environment, stages)
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
    owners = np.array([index for index, _ in batch])
    log = _Log(simulator, np.array([stages[owner].keeps_observations for owner in owners]))
    generators = [np.random.default_rng((*stages[index].seed, number)) for index, number in batch]
    noise: list[Any] = [None] * len(batch)  # [episode][step of a block, ...]
    terminated, lengths = np.zeros(len(batch), np.bool_), np.zeros(len(batch), np.int64)
    idle = np.zeros(len(batch), np.int64)  # steps since the last reward
    patience = simulator.horizon if simulator.image_shape is None else _PATIENCE
    running, step = np.arange(len(batch)), 0
    now = simulator.reset(running, [int(generator.integers(2**31)) for generator in generators])
    depth = max(stage.actor.stack for stage in stages)
    # The last observations; the first of an episode is repeated.
    recent = np.repeat(now.reshape(len(batch), 1, -1), depth, axis=1)  # [episode, frame, number]
    while len(running):
        if step % _BLOCK == 0:
            for row in running:
                noise[row] = stages[owners[row]].actor.noise(generators[row], _BLOCK)
        actions = np.empty((len(running), *log.action_shape), log.action_dtype)
        for index in np.unique(owners[running]):
            own, stage = owners[running] == index, stages[index]
            rows = running[own]
            sampled = np.stack([noise[row][step % _BLOCK] for row in rows]) if stage.noisy else None
            seen = recent[rows, -stage.actor.stack :].reshape(len(rows), -1)
            actions[own] = stage.actor.act(seen, sampled)
        outcome = simulator.step(running, actions)
        log.add(step, running, recent[running, -1], actions, outcome.rewards)
        lengths[running], terminated[running] = step + 1, outcome.terminated
        progress(done + int(lengths.sum()))
        idle[running] = np.where(outcome.rewards == 0, idle[running] + 1, 0)
        goes_on = ~(outcome.terminated | outcome.truncated | (idle[running] >= patience))
        running, now, step = running[goes_on], outcome.observations[goes_on], step + 1
        recent[running, :-1] = recent[running, 1:]
        recent[running, -1] = now.reshape(len(running), recent.shape[-1])
    return [
        log.episode(row, *facts)
        for row, facts in enumerate(zip(lengths.tolist(), terminated.tolist(), strict=True))
    ]


class _Log:
    """The steps of several episodes, in blocks: episodes of games can be long, and most are not."""

    def __init__(self, simulator: Simulator, keeps: NDArray[np.bool_]) -> None:
        size, shape = simulator.action_size, simulator.image_shape
        observation = ((simulator.observation_size,), np.float32) if shape is None else (shape, np.uint8)
        action = ((), np.int32) if simulator.discrete else ((size,), np.float32)
        self._kinds: list[tuple[tuple[int, ...], Any]] = [observation, action, ((), np.float32)]
        self.action_shape, self.action_dtype = self._kinds[1]
        self._keeps = keeps  # [episode], the observations
        # Of each block: the episodes in it, and their columns.
        self._blocks: list[tuple[NDArray[Any], list[NDArray[Any]]]] = []

    def add(self, step: int, running: Any, observations: Any, actions: Any, rewards: Any) -> None:
        """Record a step of the episodes that are running."""
        if step % _BLOCK == 0:
            # Pages that are never written to take no memory.
            columns = [np.empty((len(running), _BLOCK, *shape), kind) for shape, kind in self._kinds]
            self._blocks.append((running, columns))
        rows, (seen, taken, gained) = self._blocks[-1]
        row, place, keeps = np.searchsorted(rows, running), step % _BLOCK, self._keeps[running]
        seen[row[keeps], place] = observations[keeps].reshape(-1, *seen.shape[2:])
        taken[row, place], gained[row, place] = actions, rewards

    def episode(self, number: int, length: int, terminated: bool) -> Episode:
        """The steps of one episode."""
        blocks = []
        for first, (rows, columns) in zip(range(0, length, _BLOCK), self._blocks, strict=False):
            row, count = np.searchsorted(rows, number), min(_BLOCK, length - first)
            seen, *others = (column[row, :count] for column in columns)
            blocks.append([seen if self._keeps[number] else seen[:0], *others])
        seen, taken, gained = map(np.concatenate, zip(*blocks, strict=True))
        return Episode(seen, taken, gained, terminated)
