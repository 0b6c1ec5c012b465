"""The conservative regularizer (+C): for out-of-distribution targets, imitate the best trajectories."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import require


@dataclasses.dataclass(frozen=True)
class Conservative:
    """Return noise that takes the returns-to-go of high-return trajectories beyond the best return.

    Args:
        percentile: q, trajectories from this percentile of returns on are regularized (paper: 95).
        noise: sigma, std of the return noise (paper: 1000 for locomotion; default: range / sqrt(12)).
        coefficient: alpha, weight of the conservative loss (paper: 1).
    """

    percentile: float = 95.0
    noise: float | None = None
    coefficient: float = 1.0

    def __post_init__(self) -> None:
        require(0 <= self.percentile <= 100, "percentile", self.percentile, "between 0 and 100")
        require(self.noise is None or self.noise >= 0, "noise", self.noise, "at least 0")
        require(self.coefficient >= 0, "coefficient", self.coefficient, "at least 0")

    def fit(self, data: Trajectories) -> Conservative:
        """The same with every value that depends on the data filled in."""
        if self.noise is not None:
            return self
        default = data.task.noise or (data.best - data.lowest) / math.sqrt(12)
        return dataclasses.replace(self, noise=default)

    def selected(self, data: Trajectories) -> NDArray[np.bool_]:
        """Which trajectories are regularized. [episode]"""
        # "At least", not the paper's "above": when the top ties at one return, "above" selects nothing.
        # "higher" is a return of the data, and selects the same as an interpolation, but in every unit.
        threshold = np.percentile(data.returns, self.percentile, method="higher")
        if self.percentile > 0 and threshold <= data.lowest + data.tolerance < data.best:
            # Most trajectories tie at the bottom (rare successes): "at least" would select the failures too.
            return data.returns > threshold + data.tolerance
        return data.returns >= threshold - data.tolerance

    @property
    def width(self) -> float:
        """sqrt(12) sigma, the width of the uniform distribution with standard deviation sigma."""
        if self.noise is None:
            raise ValueError("the noise is not known before fit(data)")
        return math.sqrt(12) * self.noise
