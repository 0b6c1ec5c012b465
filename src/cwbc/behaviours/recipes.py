"""Which snapshots of a learner generate a dataset of a quality, and how much of it each; most as in D4RL."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cwbc.behaviours import REPLAY
from cwbc.behaviours.policies import Actor
from cwbc.behaviours.rollouts import Acting, Episode, Progress, Stage, collect
from cwbc.behaviours.snapshots import Series
from cwbc.behaviours.value_policies import ValuePolicy
from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import InputError

_LEAST_EPSILON = 0.01  # with which DQN filled its replay

Collect = Callable[[Sequence[Stage], Progress], Sequence[Sequence[Episode]]]


class Recipe(Protocol):
    """How a dataset is generated."""

    @property
    def environment(self) -> str: ...

    def generate(self, name: str, size: int, progress: Progress | None = None) -> Trajectories:
        """A dataset of as many whole episodes as fit into `size` steps."""
        ...


@dataclasses.dataclass(frozen=True)
class SnapshotRecipe:
    """A dataset of a quality, by the snapshots of one learner."""

    series: Series
    quality: str

    @property
    def environment(self) -> str:
        return self.series.environment

    def generate(self, name: str, size: int, progress: Progress | None = None) -> Trajectories:
        """A dataset of as many whole episodes as fit into `size` steps.

        The same name and size give the same data, with the same versions of MuJoCo, Gymnasium and numpy.
        """
        actors = mixture(self.series, self.quality)
        collected_by = functools.partial(collect, self.environment)
        data = dataset_of(actors, collected_by, self.environment, name, size, progress)
        # As in DQN-replay: the replay of a game has the rewards that its learner learned from.
        return data.with_clipped_rewards() if self.quality == REPLAY and data.has_images else data


def mixture(series: Series, quality: str) -> list[tuple[Actor, float]]:
    """The policies that generate a dataset, in their order, each with its fraction of the steps."""
    if quality != "random" and not series.learned:
        raise InputError(f"{series.folder}: no snapshot is better than the untrained one; train for longer")
    medium, expert = series.policy(series.medium), series.policy(series.expert)
    uniform = expert.uniform
    recipes: dict[str, list[tuple[Actor, float]]] = {
        "random": [(uniform, 1.0)],
        "medium": [(medium, 1.0)],
        "medium-expert": [(medium, 0.5), (expert, 0.5)],
        "expert": [(expert, 1.0)],
    }
    if quality in recipes:
        return recipes[quality]
    if quality == REPLAY:
        # The whole training: as many steps of uniform actions as of each snapshot up to expert.
        replayed = (uniform, *(_exploring(series.policy(one)) for one in series.until_expert[1:]))
        return [(actor, 1 / len(replayed)) for actor in replayed]
    # medium-replay, the learner up to medium: uniform actions first, then snapshot after snapshot. A learner
    # acts much as the nearest of its snapshots does.
    last = series.medium.steps
    passed = [one for one in series.snapshots if series.warmup < one.steps <= last]
    steps = np.array([one.steps for one in passed])
    edges = [0, series.warmup, *((steps[1:] + steps[:-1]) / 2), last]
    actors: list[Actor] = [uniform, *map(series.policy, passed)]
    return list(zip(actors, (np.diff(edges) / last).tolist(), strict=True))


def _exploring(actor: Actor) -> Actor:
    """The same policy with a least epsilon: where games differ by their start alone, episodes are alike."""
    if not isinstance(actor, ValuePolicy):
        return actor
    return dataclasses.replace(actor, epsilon=max(actor.epsilon, _LEAST_EPSILON))


def dataset_of(
    actors_and_fractions: Sequence[tuple[Acting, float]],
    collected_by: Collect,
    environment: str,
    name: str,
    size: int,
    progress: Callable[[int], None] | None = None,
) -> Trajectories:
    """A dataset by these actors in their order, each for its fraction of the steps."""
    actors, fractions = zip(*actors_and_fractions, strict=True)
    ends = np.cumsum(fractions) * size
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    stages = [
        Stage(actor, (key, number), steps=max(1, int(np.ceil(steps))))
        for number, (actor, steps) in enumerate(zip(actors, np.diff(ends, prepend=0), strict=True))
    ]
    collected = collected_by(stages, progress or (lambda steps: None))
    if not (episodes := _in_order(collected, ends.tolist(), size)):
        raise InputError(f"--size {size} is shorter than the first episode of {environment}")
    lengths = np.array([len(episode.rewards) for episode in episodes])
    terminated = np.array([episode.terminated for episode in episodes])
    columns = [[getattr(one, name) for one in episodes] for name in ("observations", "actions", "rewards")]
    del collected, episodes  # so that images are not in memory twice
    observations, actions, rewards = map(_joined, columns)
    return Trajectories(
        name=name,
        observations=observations,
        actions=actions,
        rewards=rewards,
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        terminated=terminated,
        environment=environment,
        action_count=actors[-1].action_count,
    )


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Arrays end to end, each of which is dropped as soon as it is copied."""
    end = sum(map(len, parts))
    whole = np.empty((end, *parts[0].shape[1:]), parts[0].dtype)
    while parts:
        part = parts.pop()
        whole[end - len(part) : end] = part
        end -= len(part)
    return whole


def _in_order(collected: Sequence[Sequence[Episode]], ends: Sequence[float], size: int) -> list[Episode]:
    """Each stage's episodes until the steps reach its end; what exceeds the size is left out."""
    chosen: list[Episode] = []
    total = 0
    for episodes, end in zip(collected, ends, strict=True):
        for episode in episodes:
            if total + len(episode.rewards) > size:
                return chosen
            if total >= end:
                break
            chosen.append(episode)
            total += len(episode.rewards)
    return chosen
