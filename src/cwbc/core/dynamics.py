"""A model of logged dynamics: the next observation, the reward, and whether the episode terminates."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.core import critics
from cwbc.core.cloning import mean_weights
from cwbc.core.critics import Adam
from cwbc.core.layers import Parameters
from cwbc.core.learners import Learner, Metrics, Update
from cwbc.core.networks import MLP
from cwbc.core.trajectories import Trajectories, blocks
from cwbc.system.errors import InputError

if TYPE_CHECKING:
    from cwbc.core.acting import History
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec
    from cwbc.core.sampling import RandomNumbers, Window

LOG_STD = (-6.0, 1.0)  # min and max of predicted log stds, in units of the std of what is predicted


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DynamicsState:
    """Parameters and the optimizer's state."""

    parameters: Parameters  # [seed, ...]
    optimizer: Adam  # [seed, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DynamicsBatch:
    """Single steps, and what followed."""

    inputs: jax.Array  # [row, size] without the action
    actions: jax.Array  # [row, ...] as logged
    outcomes: jax.Array  # [row, dimension + 1] standardized changes of the observation, then the reward
    known: jax.Array  # [row, dimension + 1] weights in the loss; 0 where an outcome was not logged
    terminated: jax.Array  # [row]


@dataclasses.dataclass(frozen=True)
class Dynamics(Learner):
    """A Gaussian of the next observation and reward, and the probability that the episode terminates.

    Args:
        learning_rate: initial learning rate, which decays to zero.
        change: standard deviation of each dimension's change in one step (default: fitted to the data).
        reward: mean and standard deviation of the rewards (default: fitted to the data).
    """

    network: MLP = MLP(256, 2)  # noqa: RUF009 (frozen)
    learning_rate: float = 1e-3
    change: tuple[float, ...] = ()
    reward: tuple[float, float] | None = None

    @property
    def is_fitted(self) -> bool:
        return self.reward is not None

    @property
    def form(self) -> Dynamics:
        return Dynamics(self.network, 0.0, (1.0,) * len(self.change))

    @property
    def numbers(self) -> dict[str, jax.Array]:
        return {
            "learning_rate": jnp.asarray(self.learning_rate, jnp.float32),
            "change": jnp.asarray(self.change, jnp.float32),
        }

    @property
    def reads(self) -> Hashable:
        return "dynamics"

    def fit(self, data: Trajectories) -> Dynamics:
        if data.has_images:
            raise InputError(f"{data.name} has images; a model of the dynamics takes vector observations")
        spread = float(np.std(data.rewards, dtype=np.float64))
        reward = (float(np.mean(data.rewards, dtype=np.float64)), spread or 1.0)
        return dataclasses.replace(self, change=_changes(data), reward=reward)

    def window(self, training: Training) -> int:
        return 2

    def step_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        mean, std = self.reward or (0.0, 1.0)
        rewards = ((data.rewards.astype(np.float64) - mean) / std).astype(np.float32)
        return critics.transition_columns(data, 1.0) | {"rewards": rewards}

    def initialize(self, spec: PolicySpec, key: jax.Array) -> DynamicsState:
        size = spec.observations.shape[0]
        inputs, outputs = size + 1 + spec.actions.size, 2 * (size + 1) + 1
        parameters = critics.initial_mlp(self.network, key, inputs, outputs)
        return DynamicsState(parameters, Adam.of(parameters))

    def batch(self, window: Window, random: RandomNumbers, numbers: Any) -> DynamicsBatch:
        columns, first, second = window.columns, window.mask[:, 0], window.mask[:, 1]
        now, later = columns.observations[:, 0], columns.observations[:, 1]
        rewards, terminated = columns.extra["rewards"][:, 0], columns.extra["terminated"][:, 0]
        changes = (later - now) / numbers["change"]
        weights = jnp.broadcast_to(mean_weights(second)[:, None], changes.shape)
        return DynamicsBatch(
            inputs=jnp.concatenate([now, window.timesteps[:, :1]], axis=-1),
            actions=columns.actions[:, 0],
            outcomes=jnp.concatenate([changes, rewards[:, None]], axis=-1),
            known=jnp.concatenate([weights, mean_weights(first)[:, None]], axis=-1),
            terminated=terminated.astype(jnp.float32),
        )

    def update(self, spec: PolicySpec, training: Training, numbers: Any) -> Update:
        def step(state: DynamicsState, batch: DynamicsBatch) -> tuple[DynamicsState, Metrics]:
            grad = jax.grad(self.loss, has_aux=True)
            gradients, metrics = grad(state.parameters, spec, batch)
            rate = critics.cosine(numbers["learning_rate"], state.optimizer.count, training.steps)
            return DynamicsState(*state.optimizer.apply(gradients, state.parameters, rate)), metrics

        return (lambda state: state), step, (lambda state: state)

    def loss(
        self, parameters: Parameters, spec: PolicySpec, batch: DynamicsBatch
    ) -> tuple[jax.Array, Metrics]:
        """Minus the log-likelihood of what followed."""
        means, log_stds, logits = self.outputs(parameters, spec, batch.inputs, batch.actions)
        squares = jnp.square(batch.outcomes - means)
        negative = squares * jnp.exp(-2 * log_stds) / 2 + log_stds
        # Weighted by the predicted std (beta-NLL): otherwise means are learned badly where the std is large.
        weighted = negative * jax.lax.stop_gradient(jnp.exp(log_stds))
        ends = jax.nn.softplus(logits) - batch.terminated * logits
        of_ends = jnp.sum(ends * batch.known[:, -1])
        total = jnp.sum(weighted * batch.known) + of_ends
        size = means.shape[-1]
        return total, {"loss": total, "error": jnp.sum(squares * batch.known) / size, "ends": of_ends}

    def outputs(
        self, parameters: Parameters, spec: PolicySpec, inputs: jax.Array, actions: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Means and log stds of standardized outcomes [row, dimension + 1], and logits of the end [row]."""
        observations, timesteps = inputs[:, :-1], inputs[:, -1:]
        encoded = spec.actions.encode(actions)
        x = jnp.concatenate([observations, timesteps / spec.horizon, encoded], axis=-1)
        y = critics.mlp(parameters, x)
        means, log_stds = jnp.split(y[:, :-1], 2, axis=-1)
        low, high = LOG_STD
        log_stds = high - jax.nn.softplus(high - log_stds)
        return means, low + jax.nn.softplus(log_stds - low), y[:, -1]

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        raise NotImplementedError("a model of the dynamics does not act")

    def operations(self, spec: PolicySpec, training: Training, parameters: int) -> float:
        return 6 * parameters * training.batch_size

    def activations(self, spec: PolicySpec, training: Training) -> int:
        return training.batch_size * self.network.layers * self.network.width


def _changes(data: Trajectories) -> tuple[float, ...]:
    """The root mean square of each normalized dimension's change in one step; 1 where it is constant."""
    _, std = data.observation_statistics
    within = np.ones(data.steps - 1, bool)
    within[data.starts[1:] - 1] = False
    total = np.zeros(data.observations.shape[1])
    for first, block in blocks(data.observations[1:]):
        changes = (block.astype(np.float64) - data.observations[first : first + len(block)]) / std
        total += (np.square(changes) * within[first : first + len(block), None]).sum(axis=0)
    sizes = np.sqrt(total / max(int(within.sum()), 1))
    return tuple(np.where(sizes > 0, sizes, 1.0).tolist())
