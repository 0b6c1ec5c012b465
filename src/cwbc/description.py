"""A dataset as one wants to see it before training: ranges, returns, and what +w and +c make of them."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cwbc.checks import action_names, are_equal, ends_at_longest, observation_names
from cwbc.conditioning import DEFAULT_SCALE, AverageReturnToGo, ConditionScale, standardized
from cwbc.regularizers import Conservative
from cwbc.trajectories import Trajectories
from cwbc.weighting import ByLength, ByReturn

PERCENTS = (0, 5, 25, 50, 75, 90, 95, 100)
TOP = 0.1  # the part of the return range, counted from the best, that is called the top
_CELLS = 1 << 19  # values looked at together: few enough for the cache, however many columns there are


@dataclasses.dataclass(frozen=True)
class Column:
    """One dimension over all steps."""

    name: str
    lowest: float
    highest: float
    mean: float
    deviation: float


@dataclasses.dataclass(frozen=True)
class Lengths:
    """How long the episodes are, and how they ended."""

    shortest: int
    median: float
    longest: int
    terminated: int  # episodes ended by the environment
    cut_off: int  # episodes ended by a limit
    terminated_at_longest: int  # episodes ended by the environment that are as long as the longest


@dataclasses.dataclass(frozen=True)
class Returns:
    """How the episodes' returns are spread; each episode counts the same."""

    lowest: float
    mean: float
    best: float
    percentiles: tuple[tuple[int, float], ...]  # (percent, return) at PERCENTS
    distinct: int
    at_best: int  # episodes that tie at the best
    next_best: float | None  # the highest return below the best
    top: int  # episodes in the TOP part of the range

    @property
    def equal(self) -> bool:
        """Whether there is no more than rounding between the returns."""
        return are_equal(self.lowest, self.best)


@dataclasses.dataclass(frozen=True)
class Scores:
    """The returns on the published scale: 0 is a random policy, 100 the expert."""

    lowest: float
    mean: float
    best: float
    expert_return: float


@dataclasses.dataclass(frozen=True)
class Draws:
    """What training sees when it draws episodes in one way."""

    mean_return: float
    effective_episodes: float  # 1 / sum p^2: so many equally likely episodes would vary as much
    top_share: float  # of the draws
    masses: tuple[float, ...]  # [bin]


@dataclasses.dataclass(frozen=True)
class Conditions:
    """What RvS is conditioned on, omega_t = g_t / (H - t), in its default scale."""

    scale: ConditionScale
    mean: float  # of omega over all steps, each weighted by the steps left
    deviation: float
    at_lowest: float  # what the network reads at the start of an episode with the lowest return as target
    at_best: float


@dataclasses.dataclass(frozen=True)
class Raise:
    """What the conservative regularizer does: R becomes R + eps, from the best up to `highest`."""

    threshold: float  # the q-th percentile of returns
    episodes: int  # how many are raised
    lowest_return: float  # of those that are raised
    noise: float  # sigma
    noise_source: Literal["given", "published", "return range"]
    lowest: float
    highest: float  # best + sqrt(12) sigma


@dataclasses.dataclass(frozen=True)
class Description:
    """What can be said about a dataset before training, all of it in plain values."""

    name: str
    environment: str | None
    episodes: int
    steps: int
    unfinished_steps: int  # steps of a trailing episode without an end, kept out
    horizon: int  # H
    time_limit: int | None  # the environment's, where known; else H is the longest episode
    lengths: Lengths
    discrete: bool
    observations: tuple[Column, ...]
    actions: tuple[Column, ...]  # none when discrete
    action_counts: tuple[int, ...]  # how often each discrete action was taken; none when continuous
    rewards: Column
    returns: Returns
    scores: Scores | None  # where the task is published
    conditions: Conditions
    weighting: ByReturn
    temperature: float  # kappa; 0 when all returns are equal, as it is not used then
    temperature_source: Literal["given", "percentile", "return range"]
    bin_edges: tuple[float, ...]  # [bin + 1]
    bin_episodes: tuple[int, ...]  # [bin]
    by_length: Draws  # without +w
    by_return: Draws  # with +w
    regularizer: Conservative
    raised: Raise  # with +c

    @classmethod
    def of(cls, data: Trajectories, weighting: ByReturn, regularizer: Conservative) -> Description:
        """The description of a dataset, and of what these two choices would make of it."""
        edges, member = _bins(data, weighting)
        probabilities = weighting.probabilities(data)
        discrete = data.discrete
        return cls(
            name=data.name,
            environment=data.environment,
            episodes=data.episodes,
            steps=data.steps,
            unfinished_steps=data.unfinished_steps,
            horizon=data.horizon,
            time_limit=data.time_limit,
            lengths=_lengths(data),
            discrete=discrete,
            observations=_columns(data.observations, observation_names(data)),
            actions=() if discrete else _columns(data.actions, action_names(data)),
            action_counts=_counts(data.actions, data.action_size) if discrete else (),
            rewards=_columns(data.rewards[:, None], ("rewards",))[0],
            returns=_returns(data),
            scores=_scores(data),
            conditions=_conditions(data),
            weighting=weighting,
            temperature=float(weighting.resolved_temperature(data.returns)),
            temperature_source=_temperature_source(data, weighting),
            bin_edges=tuple(edges.tolist()),
            bin_episodes=tuple(np.bincount(member, minlength=len(edges) - 1).tolist()),
            by_length=_draws(data, ByLength().probabilities(data), member, len(edges) - 1),
            by_return=_draws(data, probabilities, member, len(edges) - 1),
            regularizer=regularizer,
            raised=_raise(data, regularizer),
        )

    def to_json(self) -> dict[str, Any]:
        """Every value with lists for tuples, as JSON would hand them back."""
        return {name: _plain(value) for name, value in dataclasses.asdict(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _bins(data: Trajectories, weighting: ByReturn) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The weighting's bins: their edges, and the bin of each episode; one bin when all returns are equal."""
    if data.lowest == data.best:
        return np.array([data.lowest, data.best]), weighting.members(data)
    return np.linspace(data.lowest, data.best, weighting.bins + 1), weighting.members(data)


def _lengths(data: Trajectories) -> Lengths:
    terminated = int(data.terminated.sum())
    return Lengths(
        shortest=int(data.lengths.min()),
        median=float(np.median(data.lengths)),
        longest=int(data.lengths.max()),
        terminated=terminated,
        cut_off=data.episodes - terminated,
        terminated_at_longest=ends_at_longest(data),
    )


def _columns(values: NDArray[Any], names: tuple[str, ...]) -> tuple[Column, ...]:
    size = values.shape[1]
    lowest, highest = np.full(size, np.inf), np.full(size, -np.inf)
    mean, squares = np.zeros(size), np.zeros(size)
    rows = max(1, _CELLS // max(size, 1))
    for done in range(0, len(values), rows):
        # Dimensions first: sums along rows that lie together in memory are several times as fast.
        block = values[done : done + rows].T.astype(np.float64, order="C")
        count = block.shape[1]
        np.minimum(lowest, block.min(axis=1), out=lowest)
        np.maximum(highest, block.max(axis=1), out=highest)
        # Deviations from each block's own mean, then joined: exact for any offset, in one pass.
        centre = block.mean(axis=1)
        block -= centre[:, None]
        shift = centre - mean
        squares += np.einsum("ij,ij->i", block, block) + shift**2 * (done * count / (done + count))
        mean += shift * (count / (done + count))
    deviation = np.sqrt(squares / len(values))
    numbers = np.stack([lowest, highest, mean, deviation], axis=1).tolist()
    return tuple(Column(name, *row) for name, row in zip(names, numbers, strict=True))


def _counts(actions: NDArray[Any], size: int) -> tuple[int, ...]:
    counts = np.zeros(size, np.int64)
    for first in range(0, len(actions), _CELLS):
        counts += np.bincount(actions[first : first + _CELLS], minlength=size)
    return tuple(counts.tolist())


def _returns(data: Trajectories) -> Returns:
    returns, lowest, best = data.returns, data.lowest, data.best
    distinct = np.unique(returns)
    return Returns(
        lowest=lowest,
        mean=float(returns.mean()),
        best=best,
        percentiles=tuple(zip(PERCENTS, np.percentile(returns, PERCENTS).tolist(), strict=True)),
        distinct=len(distinct),
        at_best=int((returns == best).sum()),
        next_best=float(distinct[-2]) if len(distinct) > 1 else None,
        top=int(_in_top(data).sum()),
    )


def _in_top(data: Trajectories) -> NDArray[np.bool_]:
    return data.returns >= data.best - TOP * (data.best - data.lowest)


def _scores(data: Trajectories) -> Scores | None:
    task = data.task
    if not task.published:
        return None
    lowest, mean, best = task.normalize(np.array([data.lowest, data.returns.mean(), data.best])).tolist()
    return Scores(lowest, mean, best, task.expert_return)


def _conditions(data: Trajectories) -> Conditions:
    condition = AverageReturnToGo(DEFAULT_SCALE).fit(data)
    assert condition.center is not None  # that is what fit is for
    targets = standardized(condition, np.array([data.lowest, data.best]), np.asarray(0), data.horizon)
    ends = condition(targets, np.asarray(0), data.horizon).tolist()
    return Conditions(DEFAULT_SCALE, condition.center, condition.unit, *ends)


def _temperature_source(
    data: Trajectories, weighting: ByReturn
) -> Literal["given", "percentile", "return range"]:
    if weighting.temperature is not None:
        return "given"
    percentile = np.percentile(data.returns, weighting.temperature_percentile, method="higher")
    return "percentile" if percentile < data.best else "return range"


def _draws(
    data: Trajectories, probabilities: NDArray[np.float64], member: NDArray[np.intp], bins: int
) -> Draws:
    return Draws(
        mean_return=float(probabilities @ data.returns),
        effective_episodes=float(1 / np.square(probabilities).sum()),
        top_share=float(probabilities[_in_top(data)].sum()),
        masses=tuple(np.bincount(member, weights=probabilities, minlength=bins).tolist()),
    )


def _raise(data: Trajectories, regularizer: Conservative) -> Raise:
    fitted, selected = regularizer.fit(data), regularizer.selected(data)
    assert fitted.noise is not None  # that is what fit is for
    source: Literal["given", "published", "return range"] = "given"
    if regularizer.noise is None:
        source = "published" if data.task.noise else "return range"
    return Raise(
        threshold=float(np.percentile(data.returns, regularizer.percentile)),
        episodes=int(selected.sum()),
        lowest_return=float(data.returns[selected].min()),
        noise=fitted.noise,
        noise_source=source,
        lowest=data.best,
        highest=data.best + fitted.width,
    )
