"""Trajectory weighting: sample by length, by return (+W), or only the best trajectories (+F)."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import require

_MOST_BINS = 1_000_000


class Weighting(Protocol):
    """A way to sample trajectories: a frozen value."""

    def probabilities(self, data: Trajectories) -> NDArray[np.float64]:
        """How likely each episode is sampled. [episode]"""
        ...


@dataclasses.dataclass(frozen=True)
class ByLength:
    """Every logged step is as likely as any other to be the first of a window.

    So all count the same but for the first K - 1 of an episode: step t is in t + 1 windows instead of K.
    """

    def probabilities(self, data: Trajectories) -> NDArray[np.float64]:
        return data.lengths / data.lengths.sum()


@dataclasses.dataclass(frozen=True)
class ByReturn:
    """The paper's trajectory weighting: returns in bins of equal width, high and populated bins preferred.

    Args:
        bins: B, bins of the returns (paper: 20).
        smoothing: lambda, larger stays closer to the data's distribution (paper: 0.01).
        temperature: kappa, smaller prefers high returns more (paper: best return - z-th percentile).
        temperature_percentile: z, the percentile that sets kappa (paper: 90).
    """

    bins: int = 20
    smoothing: float = 0.01
    temperature: float | None = None
    temperature_percentile: float = 90.0

    def __post_init__(self) -> None:
        require(self.bins >= 1, "bins", self.bins, "at least 1")
        require(self.bins <= _MOST_BINS, "bins", self.bins, f"at most {_MOST_BINS:,}")
        require(self.smoothing >= 0, "smoothing", self.smoothing, "at least 0")
        require(self.temperature is None or self.temperature > 0, "temperature", self.temperature, "positive")
        z = self.temperature_percentile
        require(0 <= z <= 100, "temperature_percentile", z, "between 0 and 100")

    def probabilities(self, data: Trajectories) -> NDArray[np.float64]:
        returns = data.returns
        lowest, best = data.lowest, data.best
        if lowest == best:
            return np.full(len(returns), 1 / len(returns))
        member = self.members(data)
        counts = np.bincount(member, minlength=self.bins)
        occupied = counts > 0
        means = np.bincount(member, weights=returns, minlength=self.bins) / np.maximum(counts, 1)
        fractions = counts / len(returns)
        temperature = self.resolved_temperature(returns)
        # Only distances from the best bin matter: a tiny temperature must not underflow every weight.
        distances = np.where(occupied, np.abs(means - best), np.inf)
        with np.errstate(over="ignore"):
            preferences = np.exp(-(distances - distances.min()) / temperature)
        weights = fractions / np.where(occupied, fractions + self.smoothing, 1) * preferences
        return (weights / weights.sum())[member] / counts[member]

    def members(self, data: Trajectories) -> NDArray[np.intp]:
        """The bin of each episode. [episode]"""
        if data.lowest == data.best:
            return np.zeros(data.episodes, np.intp)
        positions = (data.returns - data.lowest) / (data.best - data.lowest) * self.bins
        # Rounded: in another unit, a return on an edge would otherwise lie on its other side.
        return np.minimum(np.floor(np.round(positions, 6)), self.bins - 1).astype(np.intp)

    def resolved_temperature(self, returns: NDArray[np.float64]) -> float:
        """kappa = best - z-th percentile; a tenth of the range when the top ties."""
        if self.temperature is not None:
            return self.temperature
        best = float(returns.max())
        # "higher" is a return of the data: between 90 zeros and 10 ones, a percentile of 0.1 hides the tie.
        gap = best - float(np.percentile(returns, self.temperature_percentile, method="higher"))
        spread = best - float(returns.min())
        return gap if gap > 1e-6 * spread else 0.1 * spread


@dataclasses.dataclass(frozen=True)
class TopFraction:
    """Hard filtering: only the best trajectories and those that tie with the last of them, by length.

    Args:
        top_fraction: fraction of the trajectories that hard filtering samples from (paper: 0.1).
    """

    top_fraction: float = 0.1

    def __post_init__(self) -> None:
        require(0 < self.top_fraction <= 1, "top_fraction", self.top_fraction, "above 0 and at most 1")

    def probabilities(self, data: Trajectories) -> NDArray[np.float64]:
        count = max(1, round(self.top_fraction * data.episodes))
        threshold = np.partition(data.returns, -count)[-count]
        lengths = np.where(data.returns >= threshold - data.tolerance, data.lengths, 0)
        return lengths / lengths.sum()


StoredWeighting = ByLength | ByReturn | TopFraction  # what files can name
