"""Common to value-based learners: transitions, ensembles of critics, slow copies, numbers as arguments."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.core import kernels
from cwbc.core.cloning import mean_weights
from cwbc.core.layers import Parameters, cast, dense, linear, normed_relu, relu
from cwbc.core.learners import Learner
from cwbc.core.networks import MLP
from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import InputError, require

if TYPE_CHECKING:
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec
    from cwbc.core.sampling import Window

CRITICS = 2
Value = TypeVar("Value")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TransitionBatch:
    """Single steps and what was logged after them."""

    observations: jax.Array  # [row, dimension]
    actions: jax.Array  # [row, dimension] as logged
    rewards: jax.Array  # [row] scaled
    next_observations: jax.Array  # [row, dimension]
    next_actions: jax.Array  # [row, dimension] as logged
    continues: jax.Array  # [row] 0 where the episode terminated, else 1
    weights: jax.Array  # [row] in the mean of a loss; 0 past the end and where the next step is unknown

    @classmethod
    def of(cls, window: Window, every: int = 1) -> TransitionBatch:
        """The transitions between neighbouring steps of windows, or every so many of them."""
        columns, mask = window.columns, window.mask

        def first(x: jax.Array) -> jax.Array:
            return x[:, :-1:every].reshape(-1, *x.shape[2:])

        def second(x: jax.Array) -> jax.Array:
            return x[:, 1::every].reshape(-1, *x.shape[2:])

        terminated = first(columns.extra["terminated"])
        return cls(
            observations=first(columns.observations),
            actions=first(columns.actions),
            rewards=first(columns.extra["rewards"]),
            next_observations=second(columns.observations),
            next_actions=second(columns.actions),
            continues=1.0 - terminated,
            weights=mean_weights(first(mask) & (second(mask) | terminated)),
        )


class ValueBased(Learner, Protocol):
    """A learner of transitions that is not conditioned; its fields of type float are numbers of programs."""

    network: MLP
    discount: float
    target_rate: float
    reward_scale: float | None

    # The range of returns in scaled rewards, per step of an episode of H steps.
    return_per_step: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        for name, value in self._numeric().items():
            require(value >= 0, name, value, "at least 0")
        require(self.network.dropout == 0, "dropout", self.network.dropout, "0 for value-based methods")
        require(self.discount <= 1, "discount", self.discount, "at most 1")
        check_scale(self.reward_scale)
        require(0 < self.target_rate <= 1, "target_rate", self.target_rate, "above 0 and at most 1")

    @property
    def is_fitted(self) -> bool:
        return self.reward_scale is not None

    @property
    def form(self) -> Self:
        return self._with(reward_scale=None, **dict.fromkeys(self._numeric(), 0.5))

    @property
    def numbers(self) -> dict[str, Any]:
        return {name: np.asarray(value, np.float32) for name, value in self._numeric().items()}

    @property
    def reads(self) -> Hashable:
        return "transitions", self.reward_scale

    def fit(self, data: Trajectories) -> Self:
        check_data(data)
        return self if self.is_fitted else self._with(reward_scale=self.return_per_step * reward_scale(data))

    def window(self, training: Training) -> int:
        return 2

    def step_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        return transition_columns(data, self.reward_scale or 1.0)

    def activations(self, spec: PolicySpec, training: Training) -> int:
        return 2 * CRITICS * training.batch_size * self.network.layers * self.network.width

    def _numeric(self) -> dict[str, float]:
        """The hyper-parameters that are real numbers; the factor of the rewards is in the columns already."""
        fields: Any = self
        own = (field.name for field in dataclasses.fields(fields) if field.type in (float, "float"))
        return {name: float(getattr(self, name)) for name in own}

    def _with(self, **changes: Any) -> Self:
        fields: Any = self
        return dataclasses.replace(fields, **changes)


def check_scale(reward_scale: float | None) -> None:
    """Refuse a factor of the rewards that would change what is good."""
    require(reward_scale is None or reward_scale > 0, "reward_scale", reward_scale, "above 0")


def check_data(data: Trajectories) -> None:
    """Refuse data that critics do not take."""
    both = f"{data.name} has {{}}; bc, rvs, dt and dt-concat take both"
    if data.discrete:
        other = f"{both.format('discrete ones')}, and discrete-cql takes those"
        raise InputError(f"value-based methods take continuous actions, {other}")
    if data.has_images:
        raise InputError(f"value-based methods take vector observations, {both.format('images')}")
    check_transitions(data)


def check_transitions(data: Trajectories) -> None:
    """Refuse data in which no step is known to be followed by another, or by the end."""
    if data.lengths.max() == 1 and not data.terminated.any():
        raise InputError(f"{data.name} has no transitions: every episode is truncated after one step")


def transition_columns(data: Trajectories, scale: float) -> dict[str, NDArray[Any]]:
    """Scaled rewards, and where episodes terminated. [step]"""
    terminated = np.zeros(data.steps, bool)
    terminated[data.starts + data.lengths - 1] = data.terminated
    return {"rewards": (data.rewards.astype(np.float64) * scale).astype(np.float32), "terminated": terminated}


def reward_scale(data: Trajectories) -> float:
    """The factor with which the returns of episodes of full length span one unit per step.

    For locomotion, whose episodes have 1,000 steps, it is that of IQL's authors. It makes the result
    independent of the unit of the rewards.
    """
    spread, size = data.best - data.lowest, float(np.abs(data.rewards).mean()) * data.horizon
    if spread <= 1e-6 * size:  # equal returns, up to rounding
        spread = size
    return data.horizon / spread if spread else 1.0


def initial_mlp(network: MLP, key: jax.Array, inputs: int, outputs: int) -> Parameters:
    """Fresh parameters of an MLP."""
    sizes = [inputs, *[network.width] * network.layers, outputs]
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = enumerate(itertools.pairwise(sizes))
    return {f"layer{i}": linear(keys[i], *pair) for i, pair in pairs}


def hidden_in(precision: str, parameters: Parameters) -> Parameters:
    """The same parameters with hidden layers in a precision; the first and the last stay in float32."""
    names = [f"layer{i}" for i in range(1, _layers(parameters) - 1)]
    return parameters | {name: cast(parameters[name], jnp.dtype(precision)) for name in names}


def mlp(parameters: Parameters, x: jax.Array, layer_norm: bool = False) -> jax.Array:
    """Dense layers with ReLU between them, and a layer norm after it. [..., size]"""
    layers = [parameters[f"layer{i}"] for i in range(_layers(parameters))]
    if kernels.do_narrow_mlp(layers, x):
        from cwbc.core.kernels.narrow_mlp import mlp as mlp_on_chip

        return mlp_on_chip(layers, x, layer_norm)
    *hidden, last = layers
    stored = hidden[-1]["weight"].dtype  # of hidden units: they are most of what a step reads and writes
    for layer in hidden:
        x = dense(layer, x).astype(stored)
        x = normed_relu(x) if layer_norm else relu(x)
    return dense(last, x)


def _layers(parameters: Parameters) -> int:
    return sum(name.startswith("layer") for name in parameters)


def initial_critics(network: MLP, key: jax.Array, spec: PolicySpec, count: int = CRITICS) -> Parameters:
    """Fresh parameters of an ensemble. [critic, ...]"""
    inputs = spec.observations.shape[0] + spec.actions.size
    return jax.vmap(lambda key: initial_mlp(network, key, inputs, 1))(jax.random.split(key, count))


def action_values(
    critics: Parameters, observations: jax.Array, actions: jax.Array, layer_norm: bool = False
) -> jax.Array:
    """Q of each critic for encoded actions. [critic, row]"""
    x = jnp.concatenate([observations, actions], axis=-1)
    return jax.vmap(mlp, in_axes=(0, None, None))(critics, x, layer_norm)[..., 0]


def relative(values: jax.Array, weights: jax.Array) -> jax.Array:
    """The mean of Q in units of the mean of |Q|, for which there is no gradient."""
    size = jax.lax.stop_gradient(jnp.sum(jnp.abs(values) * weights))
    return jnp.sum(values * weights) / jnp.maximum(size, np.finfo(np.float32).tiny)


def toward(target: Value, parameters: Value, rate: jax.Array) -> Value:
    """A slow copy after a step towards the parameters that it follows."""
    return jax.tree.map(lambda old, new: old + rate * (new - old), target, parameters)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Adam:
    """The state of Adam; written out, since a critic's step is short and every kernel counts."""

    count: jax.Array  # []
    mean: Any  # of the gradients
    square: Any  # mean of the squared gradients

    @classmethod
    def of(cls, parameters: Any) -> Adam:
        """The state before the first step."""
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        return cls(jnp.zeros((), jnp.int32), zeros, zeros)

    def apply(self, gradients: Value, parameters: Value, rate: jax.Array) -> tuple[Value, Adam]:
        """The parameters after a step, and the next state."""
        count = self.count + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, self.mean, gradients)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, self.square, gradients)
        size, scale = rate / (1 - 0.9**count), 1 / (1 - 0.999**count)
        moved = jax.tree.map(
            lambda p, m, s: p - size * m / (jnp.sqrt(s * scale) + 1e-8), parameters, mean, square
        )
        return moved, Adam(count, mean, square)


def cosine(rate: jax.Array, step: jax.Array, steps: int) -> jax.Array:
    """A learning rate that decays to zero over all steps."""
    return rate * (1 + jnp.cos(np.pi * step / steps)) / 2
