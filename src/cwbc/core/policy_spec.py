"""A method fitted to a dataset: the sizes and numbers that training and acting need."""

from __future__ import annotations

import dataclasses
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from cwbc.core.methods import Method, Training, method_from_json, to_json
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
from cwbc.system.errors import InputError
from cwbc.system.typed_json import decode

_LARGEST_SIZE = 2**31 - 1  # what timesteps and indices fit into
_LARGEST_VECTOR = 10_000_000  # dimensions


@dataclasses.dataclass(frozen=True)
class PolicySpec:
    """Everything that defines a policy's computation: a method, its spaces, horizon and context."""

    method: Method  # fitted to the data
    observations: ObservationSpace
    actions: ActionSpace
    horizon: int  # H
    context: int  # K

    @classmethod
    def fit(cls, method: Method, data: Trajectories, training: Training) -> PolicySpec:
        """The specification of a method on a dataset."""
        space = observation_space(data, training.frame_stack)
        fitted = method.fit(data)
        return cls(fitted, space, action_space(data), data.horizon, training.context)

    @property
    def form(self) -> PolicySpec:
        """The static part of a compiled program, in which numbers of method and data do not matter."""
        return dataclasses.replace(self, method=self.method.form, observations=self.observations.form)

    @property
    def memory(self) -> int:
        """How many steps acting has to remember."""
        return self.context if self.method.learner.looks_back else 1

    def standardized(self, returns_to_go: NDArray[np.float64], timestep: int) -> NDArray[np.float32]:
        """Remaining returns-to-go while acting, as the learner takes them."""
        now = np.asarray(timestep)
        return np.asarray(self.method.learner.standardized(returns_to_go, now, self.horizon), np.float32)

    def to_json(self) -> dict[str, Any]:
        if isinstance(self.observations, Image):
            observations: dict[str, Any] = {"observations": dataclasses.asdict(self.observations)}
        else:
            observations = {"observation_size": len(self.observations.mean)}
        actions = {"count": self.actions.size}
        if isinstance(self.actions, Continuous):
            actions = dataclasses.asdict(self.actions)
        return {
            "method": to_json(self.method),
            **observations,
            "actions": actions,
            "horizon": self.horizon,
            "context": self.context,
        }

    @classmethod
    def from_json(cls, value: Any, place: str = "design") -> PolicySpec:
        """The specification that to_json wrote; the statistics of vectors are not in it."""
        fields = decode(_Fields, value, place)
        method = method_from_json(fields["method"], f"{place}.method")
        if not method.learner.is_fitted:
            raise InputError(f"{place}.method.condition lacks numbers that are fitted to the data")
        for name in ("horizon", "context"):
            _check_size(fields[name], f"{place}.{name}")
        if "observations" in fields:
            image = decode(Image, fields["observations"], f"{place}.observations")
            for name, size in dataclasses.asdict(image).items():
                _check_size(size, f"{place}.observations.{name}")
            observations: ObservationSpace = image
        elif "observation_size" in fields:
            _check_size(fields["observation_size"], f"{place}.observation_size", _LARGEST_VECTOR)
            size = fields["observation_size"]
            observations = Vector((0.0,) * size, (1.0,) * size)
        else:
            raise InputError(f"{place} lacks observation_size")
        actions = _actions(fields["actions"], f"{place}.actions")
        return cls(method, observations, actions, fields["horizon"], fields["context"])


class _Sizes(TypedDict, total=False):
    observation_size: int  # of a vector
    observations: dict[str, Any]  # of an image


class _Fields(_Sizes):
    """A specification as to_json writes it."""

    method: dict[str, Any]
    actions: dict[str, Any]
    horizon: int
    context: int


class _Count(TypedDict):
    count: int


def _check_size(size: int, place: str, largest: int = _LARGEST_SIZE) -> None:
    if not 1 <= size <= largest:
        raise InputError(f"{place} is {size}; expected 1 to {largest:,}")


def _actions(value: dict[str, Any], place: str) -> ActionSpace:
    if "count" in value:
        count = decode(_Count, value, place)["count"]
        _check_size(count, f"{place}.count")
        return Discrete(count)
    return decode(Continuous, value, place)
