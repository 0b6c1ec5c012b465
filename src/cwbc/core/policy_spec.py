"""A method fitted to a dataset: the sizes and numbers that training and acting need."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from cwbc.core.holdout import split
from cwbc.core.methods import Method, Training, method_from_json, to_json_fields
from cwbc.core.spaces import (
    ActionSpace,
    Continuous,
    Discrete,
    Image,
    ObservationSpace,
    Vector,
    action_space,
    observation_space,
)  # fmt: skip
from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import InputError, require, unknown
from cwbc.system.typed_json import decode

_ADDED = {"added": True}  # fields that files of earlier versions do not have
ActionChoice = Literal["sampled", "greedy"]  # of discrete actions


@dataclasses.dataclass(frozen=True)
class PolicySpec:
    """Everything that defines a policy's computation: a method, its spaces, horizon and context."""

    method: Method  # fitted to the data
    observations: ObservationSpace
    actions: ActionSpace
    horizon: int  # H
    context: int  # K
    clipped_rewards: bool = dataclasses.field(default=False, metadata=_ADDED)  # those of the data
    sampled: bool = dataclasses.field(default=False, metadata=_ADDED)  # actions, which else are greedy

    def __post_init__(self) -> None:
        if self.sampled and not self.can_sample:
            only = "only cloned policies of discrete actions have"
            raise InputError(f"{self.method.name} has no distribution to sample actions from; {only}")

    @property
    def can_sample(self) -> bool:
        """Whether there is a distribution of actions to sample from."""
        return isinstance(self.actions, Discrete) and self.method.learner.can_sample

    @classmethod
    def fit(cls, method: Method, data: Trajectories, training: Training) -> PolicySpec:
        """The specification of a method on a dataset, without its held-out episodes."""
        steps, period = training.steps, method.learner.period
        require(steps % period == 0, "steps", steps, f"a multiple of {period}, the batches of an update")
        data = split(data, training.holdout).training
        space = observation_space(data, training.frame_stack)
        fitted = method.fit(data)
        sizes = data.horizon, training.context
        spec = cls(fitted, space, action_space(data), *sizes, data.clipped_rewards)
        return dataclasses.replace(spec, sampled=data.has_images and spec.can_sample)  # as in the paper

    def acting(self, actions: ActionChoice | None) -> PolicySpec:
        """The same with sampled or greedy actions; None leaves them as they are."""
        if actions is None:
            return self
        if actions not in get_args(ActionChoice):
            raise unknown("choice of actions", str(actions), get_args(ActionChoice))
        return dataclasses.replace(self, sampled=actions == "sampled")

    @property
    def form(self) -> PolicySpec:
        """The static part of a compiled program, in which numbers of method and data do not matter."""
        method, observations = self.method.form, self.observations.form
        return dataclasses.replace(self, method=method, observations=observations, clipped_rewards=False)

    @property
    def memory(self) -> int:
        """How many steps acting has to remember."""
        return self.context if self.method.learner.looks_back else 1

    def remaining_after(self, remaining: Any, rewards: Any) -> Any:
        """The return-to-go that remains of targets after rewards, which are clipped where the data's are."""
        return remaining - (rewards.clip(-1, 1) if self.clipped_rewards else rewards)

    def standardized(
        self, returns_to_go: NDArray[np.float64], timesteps: int | NDArray[np.integer[Any]]
    ) -> NDArray[np.float32]:
        """Remaining returns-to-go while acting, as the learner takes them; at one timestep, or at several."""
        now = np.asarray(timesteps)
        return np.asarray(self.method.learner.standardized(returns_to_go, now, self.horizon), np.float32)

    def to_json(self) -> dict[str, Any]:
        return to_json_fields(self)

    @classmethod
    def from_json(cls, value: Any, place: str = "design") -> PolicySpec:
        """The specification that to_json wrote; an error names the place of what is wrong."""
        fields = decode(_Fields, value, place)
        method = method_from_json(fields["method"], f"{place}.method")
        if not method.learner.is_fitted:
            raise InputError(f"{place}.method.condition lacks numbers that are fitted to the data")
        for name in ("horizon", "context"):  # timesteps and indices have 32 bits
            require(1 <= fields[name] < 2**31, f"{place}.{name}", fields[name], f"1 to {2**31 - 1:,}")
        known = {field.name: fields[field.name] for field in dataclasses.fields(cls) if field.name in fields}
        try:
            return cls(**{**known, "method": method})
        except InputError as error:
            raise InputError(f"{place}: {error}") from error


class _AddedFields(TypedDict, total=False):
    clipped_rewards: bool
    sampled: bool


class _Fields(_AddedFields):
    """A specification as to_json writes it."""

    method: dict[str, Any]
    observations: Vector | Image
    actions: Continuous | Discrete
    horizon: int
    context: int
