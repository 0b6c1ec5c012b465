"""95 % intervals over seeds: one rule for means, maxima and ratios of a few independent trainings."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ends = tuple[Array, Array, Array]  # a statistic and the ends of its interval; NaN where there is none

NORMAL = 1.959964  # the 97.5 % point of the normal distribution
_OF_MODEL = " and the model's error on held-out episodes"
LEAST = 3  # seeds for an interval: that of two seeds is twelve times as wide as their difference


class Estimate(NamedTuple):
    """A number with its 95 % interval over seeds; NaN where it is not known, or has none."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def of(cls, ends: Iterable[Array]) -> Estimate:
        """The number of a statistic without axes."""
        return cls(*(float(end) if np.isfinite(end) else math.nan for end in ends))

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.value)

    def unless_equal(self) -> Estimate:
        """The same without an interval of no width: seeds that agree do not show how others would differ."""
        return Estimate(self.value) if self.low == self.high else self

    def overlaps(self, other: Estimate) -> bool:
        """Whether both have an interval, and these overlap."""
        return self.low <= other.high and other.low <= self.high

    def to_json(self) -> dict[str, float | None]:
        """For summary.json."""
        return {name: finite(number) for name, number in self._asdict().items()}


def finite(number: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return number if math.isfinite(number) else None


@functools.cache
def student_t(degrees: int) -> float:
    """The 97.5 % point of Student's t distribution."""
    # Imported here, as few commands need it; scipy.stats has it as well, and takes a second to import.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


def interval(samples: Array, statistic: Callable[[Array], Array] = lambda some: some.mean(axis=0)) -> Ends:
    """A statistic of samples [seed, ...] and the low and high ends of its interval; NaN ends of few seeds.

    Jackknife error times Student's t: for a mean exactly the textbook interval, and unlike a bootstrap
    it needs no random numbers and is not far too narrow with the three to ten seeds people can afford.

    A maximum or a distance is biased where chance decides it: the best point of a flat curve is the
    luckiest. Such bias falls with the root of the seeds, so leaving one out shows it, and the interval
    reaches around both the value and what it would be without. A mean has none.
    """
    samples = np.where(np.isfinite(samples), samples, np.nan)  # inf - inf would warn on the way to NaN
    value = statistic(samples)
    seeds = len(samples)
    if seeds < LEAST:
        return value, np.full_like(value, np.nan), np.full_like(value, np.nan)
    without = np.stack([statistic(np.delete(samples, seed, axis=0)) for seed in range(seeds)])
    reach = student_t(seeds - 1) * (without.std(axis=0) * math.sqrt(seeds - 1))
    bias = (without.mean(axis=0) - value) / (math.sqrt(seeds / (seeds - 1)) - 1)
    return value, np.minimum(value, value - bias) - reach, np.maximum(value, value - bias) + reach


def success_interval(rates: Array, episodes: int) -> Ends:
    """The mean of success rates [seed, ...] over so many episodes each, and its interval within 0 and 1.

    Wilson's interval with Student's t for the normal point, and with as many independent episodes as would
    give the variance between seeds. There are at most as many as were evaluated: seeds that all succeed in
    every episode differ by nothing, and yet do not show that all others would succeed.
    """
    rates = np.where(np.isfinite(rates), rates, np.nan)
    value, seeds = rates.mean(axis=0), len(rates)
    if seeds < LEAST:
        return value, np.full_like(value, np.nan), np.full_like(value, np.nan)
    mean = np.clip(value, 0.0, 1.0)  # returns that a model estimates may lie outside
    spread, every = mean * (1 - mean), seeds * episodes
    variance = np.maximum(rates.var(axis=0, ddof=1) / seeds, spread / every)
    number = np.divide(spread, variance, out=np.full_like(mean, every), where=variance > 0)
    square = student_t(seeds - 1) ** 2 / np.maximum(number, 1.0)
    middle = mean + square / 2
    reach = np.sqrt(square * spread + square**2 / 4)
    low, high = (middle - reach) / (1 + square), (middle + reach) / (1 + square)
    return value, np.clip(low, 0.0, mean), np.clip(high, mean, 1.0)  # which rounding might leave


def wider(ends: Ends, reach: Array) -> Ends:
    """A statistic with an independent error besides, half of whose 95 % interval is `reach`."""
    value, low, high = ends
    return value, value - np.hypot(value - low, reach), value + np.hypot(high - value, reach)


def within(ends: Ends, low: float, high: float) -> Ends:
    """A statistic with an interval that does not leave a range."""
    value, lower, upper = ends
    return value, np.clip(lower, low, high), np.clip(upper, low, high)


def band(samples: Array, episodes: int | None = None) -> Ends:
    """The mean over seeds and the band of a chart: the interval, or the range of two seeds.

    Args:
        episodes: of each seed, where samples are success rates.
    """
    if len(samples) != 2:
        return interval(samples) if episodes is None else success_interval(samples, episodes)
    return samples.mean(axis=0), samples.min(axis=0), samples.max(axis=0)


def meaning(seeds: Collection[int], of_model: bool = False) -> str:
    """The kind of interval around means over these numbers of seeds, in words.

    Args:
        of_model: they include the error of a model.
    """
    few = sorted(count for count in set(seeds) if count < LEAST)
    if max(seeds) < LEAST:
        return "too few seeds for an interval"
    kind = f"95 % intervals over seeds{_OF_MODEL * of_model}"
    return f"{kind}; {' or '.join(map(str, few))} are too few for an interval" if few else kind


def bands(seeds: Collection[int], of_model: bool = False) -> str:
    """What the lines and bands of a chart are, in sentences."""
    if max(seeds) < 2:
        return "One seed: too few seeds for an interval."
    kind = f"95 % intervals over seeds{_OF_MODEL * of_model}"
    drawn = f"are {kind}{'; of two seeds, they span both' * (2 in seeds)}"
    if max(seeds) == 2:
        drawn = f"span both seeds{_OF_MODEL * of_model}: too few seeds for an interval"
    return f"Means over {' or '.join(map(str, sorted(set(seeds))))} seeds. Bands {drawn}."
