"""The statistics of a dataset that `cwbc data show` shows, including the effect of +w and +c on training."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cwbc.core.conditioning import DEFAULT_SCALE, AverageReturnToGo, ConditionScale, standardized
from cwbc.core.regularizers import Conservative
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByLength, ByReturn
from cwbc.data.checks import LengthStatistics, are_equal, dimension_names

PERCENTS = (0, 5, 25, 50, 75, 90, 95, 100)
TOP = 0.1  # the fraction of the return range below the best that is called the top
_CELLS = 1 << 19  # values processed together: few enough for the cache, however many dimensions there are


@dataclasses.dataclass(frozen=True)
class DimensionStatistics:
    """One dimension over all steps; of images, all pixels are one dimension."""

    name: str
    min: float
    max: float
    mean: float
    std: float

    @property
    def constant(self) -> bool:
        return self.min == self.max


@dataclasses.dataclass(frozen=True)
class ReturnStatistics:
    """The distribution of the episodes' returns; each episode counts the same."""

    min: float
    mean: float
    best: float
    percentiles: tuple[tuple[int, float], ...]  # (percent, return) at PERCENTS
    distinct: int
    at_best: int  # episodes that tie at the best
    next_best: float | None  # the highest return below the best
    top: int  # episodes in the TOP of the range

    @classmethod
    def of(cls, data: Trajectories) -> ReturnStatistics:
        distinct = np.unique(data.returns)
        return cls(
            min=data.lowest,
            mean=float(data.returns.mean()),
            best=data.best,
            percentiles=tuple(zip(PERCENTS, np.percentile(data.returns, PERCENTS).tolist(), strict=True)),
            distinct=len(distinct),
            at_best=int((data.returns == data.best).sum()),
            next_best=float(distinct[-2]) if len(distinct) > 1 else None,
            top=int(_in_top(data).sum()),
        )

    @property
    def equal(self) -> bool:
        """Whether the returns differ by rounding at most."""
        return are_equal(self.min, self.best)

    @property
    def range(self) -> float:
        return self.best - self.min

    @property
    def counts_successes(self) -> bool:
        """Whether every return is 0 or 1, so that their mean is a success rate."""
        return self.distinct == 2 and (self.min, self.best) == (0, 1)


@dataclasses.dataclass(frozen=True)
class ScoreStatistics:
    """The returns as normalized scores: 0 is a random policy, 100 the expert."""

    min: float
    mean: float
    best: float
    expert_return: float


@dataclasses.dataclass(frozen=True)
class SamplingStatistics:
    """The trajectories that training samples with one weighting."""

    mean_return: float
    effective_sample_size: float  # 1 / sum p^2: as many equally likely episodes vary as much
    top_fraction: float  # of the samples
    probabilities: tuple[float, ...]  # [bin]


@dataclasses.dataclass(frozen=True)
class ConditionStatistics:
    """The condition of RvS, omega_t = g_t / (H - t), in its default scale."""

    scale: ConditionScale
    mean: float  # of omega over all steps, each weighted by the remaining steps
    std: float
    at_min: float  # the network's input at the start of an episode with the min return as target
    at_best: float

    @classmethod
    def of(cls, data: Trajectories) -> ConditionStatistics:
        condition = AverageReturnToGo(DEFAULT_SCALE).fit(data)
        assert condition.center is not None  # fit sets it
        targets = standardized(condition, np.array([data.lowest, data.best]), np.asarray(0), data.horizon)
        inputs = condition(targets, np.asarray(0), data.horizon).tolist()
        return cls(DEFAULT_SCALE, condition.center, condition.unit, *inputs)


@dataclasses.dataclass(frozen=True)
class NoiseStatistics:
    """The return noise of the conservative regularizer: R becomes R + eps, from the best to `max_target`."""

    threshold: float  # the q-th percentile of returns
    episodes: int  # that noise is added to
    min_return: float  # of those
    noise: float  # sigma
    noise_source: Literal["given", "published", "return range"]
    max_target: float  # best + sqrt(12) sigma

    @classmethod
    def of(cls, data: Trajectories, regularizer: Conservative) -> NoiseStatistics:
        fitted, selected = regularizer.fit(data), regularizer.selected(data)
        assert fitted.noise is not None  # fit sets it
        published, given = bool(data.task.noise), regularizer.noise is not None
        return cls(
            threshold=float(np.percentile(data.returns, regularizer.percentile)),
            episodes=int(selected.sum()),
            min_return=float(data.returns[selected].min()),
            noise=fitted.noise,
            noise_source="given" if given else "published" if published else "return range",
            max_target=data.best + fitted.width,
        )


@dataclasses.dataclass(frozen=True)
class DatasetStatistics:
    """The statistics of a dataset before training, in plain values."""

    name: str
    environment: str | None
    episodes: int
    steps: int
    unfinished_steps: int  # of a trailing episode without an end, which is excluded
    horizon: int  # H
    time_limit: int | None  # the environment's, where known; else H is the longest episode
    discrete: bool
    lengths: LengthStatistics
    image_shape: tuple[int, ...]  # (height, width, channels); empty where observations are vectors
    observations: tuple[DimensionStatistics, ...]
    actions: tuple[DimensionStatistics, ...]  # none when discrete
    action_counts: tuple[int, ...]  # how often each discrete action was taken; none when continuous
    rewards: DimensionStatistics
    clipped_rewards: bool  # to [-1, 1]: returns are sums of these
    returns: ReturnStatistics
    scores: ScoreStatistics | None  # where the task has published reference returns
    condition: ConditionStatistics
    weighting: ByReturn
    temperature: float  # kappa; 0 when all returns are equal, as it is not used then
    temperature_source: Literal["given", "percentile", "return range"]
    bin_edges: tuple[float, ...]  # [bin + 1]
    bin_episodes: tuple[int, ...]  # [bin]
    by_length: SamplingStatistics  # without +w
    by_return: SamplingStatistics  # with +w
    regularizer: Conservative
    noise: NoiseStatistics  # with +c

    @classmethod
    def of(cls, data: Trajectories, weighting: ByReturn, regularizer: Conservative) -> DatasetStatistics:
        """The statistics of a dataset, with the effect of these two choices."""
        bins = weighting.bins if data.lowest < data.best else 1  # one when all returns are equal
        member, images = weighting.members(data), data.has_images
        vectors = data.observations.reshape(-1, 1) if images else data.observations

        def sampling(p: NDArray[np.float64]) -> SamplingStatistics:
            in_bins = np.bincount(member, weights=p, minlength=bins).tolist()
            mean, size = float(p @ data.returns), float(1 / np.square(p).sum())
            return SamplingStatistics(mean, size, float(p[_in_top(data)].sum()), tuple(in_bins))

        top = np.percentile(data.returns, weighting.temperature_percentile, method="higher")
        ties = data.best - top <= data.tolerance
        task = data.task
        low, mean, best = task.normalize(np.array([data.lowest, data.returns.mean(), data.best])).tolist()
        facts = "name environment episodes steps unfinished_steps horizon time_limit discrete"
        return cls(
            **{name: getattr(data, name) for name in facts.split()},
            lengths=LengthStatistics.of(data),
            image_shape=data.observations.shape[1:] if images else (),
            observations=_dimensions(vectors, dimension_names(data, "observation")),
            actions=() if data.discrete else _dimensions(data.actions, dimension_names(data, "action")),
            action_counts=_counts(data.actions, data.action_size) if data.discrete else (),
            clipped_rewards=data.clipped_rewards,
            rewards=_dimensions(data.rewards[:, None], ("rewards",))[0],
            returns=ReturnStatistics.of(data),
            scores=ScoreStatistics(low, mean, best, task.expert_return) if task.published else None,
            condition=ConditionStatistics.of(data),
            weighting=weighting,
            temperature=float(weighting.resolved_temperature(data.returns)),
            temperature_source="given" if weighting.temperature else "return range" if ties else "percentile",
            bin_edges=tuple(np.linspace(data.lowest, data.best, bins + 1).tolist()),
            bin_episodes=_counts(member, bins),
            by_length=sampling(ByLength().probabilities(data)),
            by_return=sampling(weighting.probabilities(data)),
            regularizer=regularizer,
            noise=NoiseStatistics.of(data, regularizer),
        )


def _dimensions(values: NDArray[Any], names: tuple[str, ...]) -> tuple[DimensionStatistics, ...]:
    rows = max(1, _CELLS // max(values.shape[1], 1))
    found = []  # [block] min, max, mean and variance, [dimension] each
    for first in range(0, len(values), rows):
        # Dimensions first: sums along contiguous rows are several times as fast.
        block = values[first : first + rows].T.astype(np.float64, order="C")
        found.append((block.min(axis=1), block.max(axis=1), block.mean(axis=1), block.var(axis=1)))
    low, high, means, variances = map(np.array, zip(*found, strict=True))
    # The variance within the blocks and between them: exact for any offset, in one pass.
    fractions = np.diff(np.minimum(np.arange(len(found) + 1) * rows, len(values))) / len(values)
    mean = fractions @ means
    std = np.sqrt(fractions @ (variances + (means - mean) ** 2))
    numbers = np.stack([low.min(axis=0), high.max(axis=0), mean, std], axis=1).tolist()
    return tuple(DimensionStatistics(name, *row) for name, row in zip(names, numbers, strict=True))


def _counts(values: NDArray[Any], size: int) -> tuple[int, ...]:
    return tuple(np.bincount(values, minlength=size).tolist())


def _in_top(data: Trajectories) -> NDArray[np.bool_]:
    return data.returns >= data.best - TOP * (data.best - data.lowest)
