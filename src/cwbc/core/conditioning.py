"""Conditions of a policy: the return-to-go, or its average per remaining step.

Unless the paper's scale is chosen, compiled programs do not depend on the unit of the rewards: `standardized`
divides it out in float64 on the host, and calling the condition computes the network's input from that.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, get_args

import numpy as np

from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import require, unknown

ConditionScale = Literal["paper", "standardized", "bounded"]
SCALES: tuple[ConditionScale, ...] = get_args(ConditionScale)
DEFAULT_SCALE: ConditionScale = "bounded"
BOUND = 3.0  # standard deviations that a bounded condition never exceeds

# Fields that files of earlier versions do not have; at their defaults, new files do not have them either.
_ADDED = {"added": True}


@dataclasses.dataclass(frozen=True)
class ReturnToGo:
    """g_t divided by a constant, as in Decision Transformer.

    The scale "paper" divides g_t by the task's published constant, or by the largest |g_t|. "standardized"
    first subtracts the mean reward times the remaining steps and divides by the standard deviation, so that
    the unit of the rewards and a constant added to each do not matter. "bounded" also limits it to +-3.

    Args:
        return_scale: divisor of DT's returns-to-go (paper: 1000 for locomotion; default: their std).
        condition_scale: scale of the condition: the paper's, standardized or bounded (default: bounded).
        center: mean reward per step, which the condition subtracts (default: fitted to the data).
    """

    return_scale: float | None = None
    condition_scale: ConditionScale = dataclasses.field(default="paper", metadata=_ADDED)
    center: float | None = dataclasses.field(default=None, metadata=_ADDED)

    def __post_init__(self) -> None:
        _check(self.condition_scale)
        scale = self.return_scale
        require(scale is None or scale > 0, "return_scale", scale, "positive")

    def fit(self, data: Trajectories) -> ReturnToGo:
        """The same with every value that depends on the data filled in."""
        if self.condition_scale == "paper":
            largest = float(np.abs(data.returns_to_go).max()) or 1.0
            scale = self.return_scale or data.task.return_scale or largest
            return dataclasses.replace(self, return_scale=scale)
        center = _mean_reward(data) if self.center is None else self.center
        centered = data.returns_to_go - center * _left(data.timesteps, data.horizon)
        spread = float(centered.std()) or abs(center) * data.horizon or 1.0
        return dataclasses.replace(self, center=center, return_scale=self.return_scale or spread)

    @property
    def is_fitted(self) -> bool:
        """Whether every value that depends on the data is filled in."""
        return self.return_scale is not None and (self.condition_scale == "paper" or self.center is not None)

    @property
    def form(self) -> ReturnToGo:
        """The static part of a compiled program."""
        return self if self.condition_scale == "paper" else ReturnToGo(None, self.condition_scale)

    @property
    def unit(self) -> float:
        """The return that is 1 when standardized."""
        return 1.0 if self.condition_scale == "paper" else _fitted(self.return_scale)

    def __call__(self, returns_to_go: Any, timesteps: Any, horizon: int) -> Any:
        """The network's input, given standardized returns-to-go."""
        if self.condition_scale == "paper":
            return returns_to_go / self.return_scale
        return _bounded(returns_to_go) if self.condition_scale == "bounded" else returns_to_go


@dataclasses.dataclass(frozen=True)
class AverageReturnToGo:
    """omega_t = g_t / (H - t) for zero-based t, as in RvS.

    The scale "paper" takes omega_t as it is. "standardized" gives it zero mean and unit variance over the
    dataset's steps, each weighted by the remaining steps, so that the unit of the rewards and a constant
    added to each do not matter. "bounded" also limits it to +-3: in the last steps of an episode, omega_t
    may be far from all others.

    Args:
        condition_scale: scale of the condition: the paper's, standardized or bounded (default: bounded).
        center: mean reward per step, which the condition subtracts (default: fitted to the data).
        spread: standard deviation of RvS's average return-to-go (default: fitted to the data).
    """

    condition_scale: ConditionScale = dataclasses.field(default="paper", metadata=_ADDED)
    center: float | None = dataclasses.field(default=None, metadata=_ADDED)
    spread: float | None = dataclasses.field(default=None, metadata=_ADDED)

    def __post_init__(self) -> None:
        _check(self.condition_scale)
        require(self.spread is None or self.spread > 0, "spread", self.spread, "positive")

    def fit(self, data: Trajectories) -> AverageReturnToGo:
        """The same with every value that depends on the data filled in."""
        if self.condition_scale == "paper":
            return self
        center = _mean_reward(data) if self.center is None else self.center
        left = _left(data.timesteps, data.horizon)
        squares = np.square(data.returns_to_go / left - center)
        spread = float(np.sqrt((left * squares).sum() / left.sum())) or abs(center) or 1.0
        return dataclasses.replace(self, center=center, spread=self.spread or spread)

    @property
    def is_fitted(self) -> bool:
        """Whether every value that depends on the data is filled in."""
        return self.condition_scale == "paper" or None not in (self.center, self.spread)

    @property
    def form(self) -> AverageReturnToGo:
        """The static part of a compiled program."""
        return AverageReturnToGo(self.condition_scale)

    @property
    def unit(self) -> float:
        """The return that is 1 when standardized."""
        return 1.0 if self.condition_scale == "paper" else _fitted(self.spread)

    def __call__(self, returns_to_go: Any, timesteps: Any, horizon: int) -> Any:
        """The network's input, given standardized returns-to-go."""
        averages = returns_to_go / _left(timesteps, horizon)
        return _bounded(averages) if self.condition_scale == "bounded" else averages


Condition = ReturnToGo | AverageReturnToGo


def standardized(condition: Condition | None, returns_to_go: Any, timesteps: Any, horizon: int) -> Any:
    """Returns-to-go in the unit of the rewards, as programs take them."""
    if condition is None or condition.condition_scale == "paper":
        return returns_to_go
    return (returns_to_go - _fitted(condition.center) * _left(timesteps, horizon)) / condition.unit


def _left(timesteps: Any, horizon: int) -> Any:
    # The clip is for policies that act beyond H; no logged step does.
    return (horizon - timesteps).clip(1)


def _mean_reward(data: Trajectories) -> float:
    """The mean of omega_t over the dataset's steps, each weighted by the H - t steps that it is about.

    Unweighted, the last steps of an episode, whose average is over a few rewards only, would dominate.
    """
    return float(data.returns_to_go.sum() / _left(data.timesteps, data.horizon).sum())


def _bounded(conditions: Any) -> Any:
    if isinstance(conditions, np.ndarray):  # without jax, for statistics of datasets
        return BOUND * np.tanh(conditions / BOUND)
    import jax.numpy as jnp

    return BOUND * jnp.tanh(conditions / BOUND)


def _fitted(value: float | None) -> float:
    if value is None:
        raise ValueError("the scale of the condition is not known before fit(data)")
    return value


def _check(scale: str) -> None:
    if scale not in SCALES:
        raise unknown("condition_scale", scale, SCALES)
