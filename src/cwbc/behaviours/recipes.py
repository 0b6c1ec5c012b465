"""D4RL's recipes: which snapshots of a learner make up a dataset of a given quality, and how much of each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from cwbc.behaviours.behaviour import Actor, Uniform
from cwbc.behaviours.rollouts import Episode, Stage, play
from cwbc.behaviours.series import Series
from cwbc.errors import InputError
from cwbc.trajectories import Trajectories


def mixture(series: Series, quality: str) -> list[tuple[Actor, float]]:
    """The actors that a dataset is made of, in their order, each with its share of the steps."""
    if quality != "random" and not series.learned:
        raise InputError(f"{series.folder}: the learner never got better than it began; train it for longer")
    medium, expert = series.behaviour(series.medium), series.behaviour(series.expert)
    uniform = Uniform(medium.low, medium.high)
    match quality:
        case "random":
            return [(uniform, 1.0)]
        case "medium":
            return [(medium, 1.0)]
        case "expert":
            return [(expert, 1.0)]
        case "medium-expert":
            return [(medium, 0.5), (expert, 0.5)]
        case _:
            return _replay(series, uniform)


def make(
    series: Series,
    name: str,
    quality: str,
    size: int,
    progress: Callable[[int], None] | None = None,
) -> Trajectories:
    """A dataset of as many whole episodes as fit into `size` steps.

    The same name and size give the same data, with the same versions of MuJoCo, Gymnasium and numpy.
    """
    shares = mixture(series, quality)
    ends = np.cumsum([share for _, share in shares]) * size
    steps = np.diff(ends, prepend=0)
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    stages = [
        Stage(actor, (key, number), steps=max(1, int(np.ceil(own))))
        for number, ((actor, _), own) in enumerate(zip(shares, steps, strict=True))
    ]
    played = play(series.environment, stages, progress=progress)
    if not (episodes := _in_order(played, ends.tolist(), size)):
        raise InputError(f"--size {size} is shorter than the first episode of {series.environment}")
    return _joined(name, series.environment, episodes)


def _replay(series: Series, uniform: Uniform) -> list[tuple[Actor, float]]:
    """What a learner goes through up to medium: uniform actions first, then snapshot after snapshot."""
    last = series.medium.steps
    passed = [one for one in series.snapshots if series.warmup < one.steps <= last]
    steps = np.array([one.steps for one in passed])
    # A learner acts much as the nearest of its snapshots does.
    edges = [0, series.warmup, *((steps[1:] + steps[:-1]) / 2), last]
    shares = np.diff(edges) / last
    actors: list[Actor] = [uniform, *map(series.behaviour, passed)]
    return list(zip(actors, shares.tolist(), strict=True))


def _in_order(played: Sequence[Sequence[Episode]], ends: Sequence[float], size: int) -> list[Episode]:
    """Each stage's episodes until the steps reach its end; what goes beyond the size is left out."""
    kept: list[Episode] = []
    total = 0
    for episodes, end in zip(played, ends, strict=True):
        for episode in episodes:
            if total + len(episode.rewards) > size:
                return kept
            if total >= end:
                break
            kept.append(episode)
            total += len(episode.rewards)
    return kept


def _joined(name: str, environment: str, episodes: Sequence[Episode]) -> Trajectories:
    lengths = np.array([len(episode.rewards) for episode in episodes])
    return Trajectories(
        name=name,
        observations=np.concatenate([episode.observations for episode in episodes]),
        actions=np.concatenate([episode.actions for episode in episodes]),
        rewards=np.concatenate([episode.rewards for episode in episodes]),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        terminated=np.array([episode.terminated for episode in episodes]),
        environment=environment,
    )
