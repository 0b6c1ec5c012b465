"""A method fitted to a dataset: the one computation that training and acting share."""

from __future__ import annotations

import dataclasses
from typing import Any, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.conditioning import standardized
from cwbc.errors import InputError
from cwbc.hyperparameters import form
from cwbc.json_values import decode
from cwbc.layers import Parameters
from cwbc.methods import Method, to_json
from cwbc.networks import ALL, Steps
from cwbc.spaces import ActionSpace, Continuous, Discrete
from cwbc.trajectories import Trajectories

_LARGEST_SIZE = 2**31 - 1  # what timesteps and indices fit into


@dataclasses.dataclass(frozen=True)
class Design:
    """All that shapes a policy's computation: the method and the sizes that it must fit."""

    method: Method
    observation_size: int
    actions: ActionSpace
    horizon: int  # H
    context: int  # K

    @classmethod
    def fit(cls, method: Method, data: Trajectories, context: int) -> Design:
        """The design of a method on a dataset."""
        actions = (
            Discrete(data.action_size) if data.discrete else Continuous.of(data.actions, data.action_bounds)
        )
        return cls(method.fit(data), data.observations.shape[1], actions, data.horizon, context)

    @property
    def form(self) -> Design:
        """What programs depend on: the same for methods and data that differ in numbers alone."""
        return dataclasses.replace(self, method=form(self.method))

    @property
    def memory(self) -> int:
        """How many steps acting must remember."""
        return self.context if self.method.network.looks_back else 1

    def initialize(self, key: jax.Array) -> Parameters:
        """Fresh parameters."""
        conditioned = self.method.condition is not None
        return self.method.network.initialize(
            key, self.observation_size, self.actions.size, conditioned, self.horizon
        )

    def prepared(self, parameters: Parameters, precision: str = "float32") -> Parameters:
        """What `outputs` reads instead of the parameters of the same names."""
        return self.method.network.prepared(parameters, jnp.dtype(precision))

    def standardized(self, returns_to_go: NDArray[np.float64], timestep: int) -> NDArray[np.float32]:
        """Remaining returns-to-go while acting, as `outputs` takes them."""
        standard = standardized(self.method.condition, returns_to_go, np.asarray(timestep), self.horizon)
        return np.asarray(standard, np.float32)

    def outputs(
        self,
        parameters: Parameters,  # with those that are prepared
        observations: jax.Array,  # [window, step, dimension], normalized
        returns_to_go: jax.Array,  # [window, step], standardized
        actions: jax.Array,  # [window, step, size], encoded
        timesteps: jax.Array,  # [window, step]
        dropout_key: jax.Array | None = None,
        asked: Steps = ALL,
    ) -> jax.Array:  # [window, asked step, size]
        """The network's outputs at the steps that are asked for, in training and in acting alike."""
        condition = self.method.condition
        conditions = None if condition is None else condition(returns_to_go, timesteps, self.horizon)
        inputs = (observations, conditions, actions, timesteps)
        return self.method.network(parameters, *inputs, dropout_key, asked)

    def to_json(self) -> dict[str, Any]:
        if isinstance(self.actions, Discrete):
            actions: dict[str, Any] = {"count": self.actions.size}
        else:
            actions = {"lowest": self.actions.lowest, "highest": self.actions.highest}
        return {
            "method": to_json(self.method),
            "observation_size": self.observation_size,
            "actions": actions,
            "horizon": self.horizon,
            "context": self.context,
        }

    @classmethod
    def from_json(cls, value: Any, place: str = "design") -> Design:
        """The design that to_json wrote; what is wrong with it is told with its place."""
        fields = decode(_Fields, value, place)
        method = decode(Method, fields["method"], f"{place}.method")
        for name in ("observation_size", "horizon", "context"):
            count = fields[name]
            if not 1 <= count <= _LARGEST_SIZE:
                raise InputError(f"{place}.{name} is {count}; expected 1 to {_LARGEST_SIZE:,}")
        if method.condition is not None and not method.condition.is_fitted:
            raise InputError(f"{place}.method.condition lacks numbers that are fitted to the data")
        actions = _actions(fields["actions"], f"{place}.actions")
        return cls(method, fields["observation_size"], actions, fields["horizon"], fields["context"])


class _Fields(TypedDict):
    """A design as to_json writes it."""

    method: dict[str, Any]
    observation_size: int
    actions: dict[str, Any]
    horizon: int
    context: int


class _Count(TypedDict):
    count: int


def _actions(value: dict[str, Any], place: str) -> ActionSpace:
    if "count" in value:
        count = decode(_Count, value, place)["count"]
        if not 1 <= count <= _LARGEST_SIZE:
            raise InputError(f"{place}.count is {count}; expected 1 to {_LARGEST_SIZE:,}")
        return Discrete(count)
    space: Continuous = decode(Continuous, value, place)
    if not space.lowest or len(space.lowest) != len(space.highest):
        sizes = f"{len(space.lowest)} and {len(space.highest)}"
        raise InputError(f"{place}: lowest and highest have {sizes} dimensions; expected as many, at least 1")
    for number, (low, high) in enumerate(zip(space.lowest, space.highest, strict=True)):
        if not low < high:
            raise InputError(f"{place}: dimension {number} is from {low} to {high}; expected the lower first")
    return space
