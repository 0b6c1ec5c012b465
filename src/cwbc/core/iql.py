"""Implicit Q-learning: values of logged actions alone, and an actor that clones by advantage."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from cwbc.core import critics
from cwbc.core.critics import Adam, TransitionBatch, ValueBased, action_values, mlp
from cwbc.core.layers import Parameters
from cwbc.core.learners import Metrics, Update
from cwbc.core.networks import MLP
from cwbc.system.errors import require

if TYPE_CHECKING:
    from cwbc.core.acting import History
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec
    from cwbc.core.sampling import RandomNumbers, Window

LARGEST_WEIGHT = 100.0  # of a logged action in the actor's loss
LOG_STD = (-5.0, 2.0)  # min and max of the actor's log std


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ImplicitQState:
    """The actor, critics with a slow copy, the state's value, and the optimizers' states."""

    parameters: Parameters  # [seed, ...] the actor
    critics: Parameters  # [seed, critic, ...]
    value: Parameters  # [seed, ...]
    target_critics: Parameters  # [seed, critic, ...]
    optimizer: Adam  # [seed, ...] of the critics
    value_optimizer: Adam  # [seed, ...]
    actor_optimizer: Adam  # [seed, ...]


@dataclasses.dataclass(frozen=True)
class ImplicitQ(ValueBased):
    """Implicit Q-learning [IQL].

    Args:
        learning_rate: learning rate of the actor (TD3+BC, IQL: 3e-4; ReBRAC: 1e-3).
        critic_learning_rate: learning rate of the critics and of the state's value (IQL: 3e-4).
        discount: gamma, discount of later rewards (default: 0.99).
        target_rate: tau, rate at which slow copies follow their networks (default: 0.005).
        expectile: of the values of logged actions that a state's value is (IQL: 0.7).
        advantage_temperature: beta, inverse temperature of the weights exp(beta advantage) (IQL: 3).
        reward_scale: factor of the rewards (default: H / (best - lowest return)).
    """

    network: MLP
    learning_rate: float = 3e-4
    critic_learning_rate: float = 3e-4
    discount: float = 0.99
    target_rate: float = 0.005
    expectile: float = 0.7
    advantage_temperature: float = 3.0
    reward_scale: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.expectile < 1, "expectile", self.expectile, "above 0 and below 1")

    def initialize(self, spec: PolicySpec, key: jax.Array) -> ImplicitQState:
        actor_key, critic_key, value_key = jax.random.split(key, 3)
        size = spec.observations.shape[0]
        actor = critics.initial_mlp(self.network, actor_key, size, spec.actions.size)
        actor = {**actor, "log_std": jnp.zeros(spec.actions.size)}
        ensemble = critics.initial_critics(self.network, critic_key, spec)
        value = critics.initial_mlp(self.network, value_key, size, 1)
        return ImplicitQState(actor, ensemble, value, ensemble, *map(Adam.of, (ensemble, value, actor)))

    def batch(self, window: Window, random: RandomNumbers, numbers: Any) -> TransitionBatch:
        return TransitionBatch.of(window)

    def update(self, spec: PolicySpec, training: Training, numbers: Any) -> Update:
        rate = numbers["critic_learning_rate"]

        def rounded(parameters: Parameters) -> Parameters:
            return critics.hidden_in(training.precision, parameters)

        def value_loss(value: Parameters, batch: TransitionBatch, values: jax.Array) -> jax.Array:
            return self.value_loss(rounded(value), batch, values, numbers)

        def actor_loss(
            actor: Parameters, batch: TransitionBatch, actions: jax.Array, advantages: jax.Array
        ) -> tuple[jax.Array, jax.Array]:
            return self.actor_loss(rounded(actor), batch, actions, advantages, numbers)

        def critic_loss(
            ensemble: Parameters, batch: TransitionBatch, actions: jax.Array, goals: jax.Array
        ) -> jax.Array:
            return self.critic_loss(rounded(ensemble), batch, actions, goals)

        def step(state: ImplicitQState, batch: TransitionBatch) -> tuple[ImplicitQState, Metrics]:
            actions = spec.actions.encode(batch.actions)
            values = action_values(rounded(state.target_critics), batch.observations, actions).min(axis=0)
            gradients = jax.grad(value_loss)(state.value, batch, values)
            value, value_optimizer = state.value_optimizer.apply(gradients, state.value, rate)
            both = jnp.concatenate([batch.observations, batch.next_observations])
            now, later = jnp.split(mlp(rounded(value), both)[:, 0], 2)

            grad = jax.grad(actor_loss, has_aux=True)
            gradients, prediction = grad(state.parameters, batch, actions, values - now)
            actor_rate = critics.cosine(numbers["learning_rate"], state.actor_optimizer.count, training.steps)
            actor, actor_optimizer = state.actor_optimizer.apply(gradients, state.parameters, actor_rate)

            goals = batch.rewards + numbers["discount"] * batch.continues * later
            loss, gradients = jax.value_and_grad(critic_loss)(state.critics, batch, actions, goals)
            ensemble, optimizer = state.optimizer.apply(gradients, state.critics, rate)
            target = critics.toward(state.target_critics, ensemble, numbers["target_rate"])
            metrics = {"loss": loss, "prediction": prediction, "value": jnp.sum(values * batch.weights)}
            state = ImplicitQState(
                actor, ensemble, value, target, optimizer, value_optimizer, actor_optimizer
            )
            return state, metrics

        return (lambda state: state), step, (lambda state: state)

    def value_loss(
        self, value: Parameters, batch: TransitionBatch, values: jax.Array, numbers: Any
    ) -> jax.Array:
        """The asymmetric squared error whose minimum is an expectile of the actions' values."""
        errors = values - mlp(value, batch.observations)[:, 0]
        sides = jnp.where(errors > 0, numbers["expectile"], 1 - numbers["expectile"])
        return jnp.sum(sides * jnp.square(errors) * batch.weights)

    def actor_loss(
        self,
        actor: Parameters,
        batch: TransitionBatch,
        actions: jax.Array,
        advantages: jax.Array,
        numbers: Any,
    ) -> tuple[jax.Array, jax.Array]:
        """Minus the log-likelihood of logged actions, weighted by their advantage."""
        weights = jnp.minimum(jnp.exp(numbers["advantage_temperature"] * advantages), LARGEST_WEIGHT)
        means, log_std = jnp.tanh(mlp(actor, batch.observations)), jnp.clip(actor["log_std"], *LOG_STD)
        squares = jnp.square(means - actions)
        negative = jnp.sum(squares * jnp.exp(-2 * log_std) / 2 + log_std, axis=-1)
        loss = jnp.sum(weights * negative * batch.weights)
        return loss, jnp.sum(squares.mean(axis=-1) * batch.weights)

    def critic_loss(
        self, ensemble: Parameters, batch: TransitionBatch, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """The squared errors of all critics, summed."""
        values = self.values(ensemble, batch.observations, actions)
        return jnp.sum(jnp.square(values - goals) * batch.weights)

    def values(self, ensemble: Parameters, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """Q of each critic for encoded actions. [critic, row]"""
        return action_values(ensemble, observations, actions)

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        return spec.actions.choose(mlp(parameters, history.observations[:, step]))

    def operations(self, spec: PolicySpec, training: Training, parameters: int) -> float:
        return 26 * parameters * training.batch_size
