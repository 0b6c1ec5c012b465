"""Deterministic actors that maximize a critic and stay close to the logged actions: TD3+BC and ReBRAC."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

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


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ActorCriticState:
    """An actor and its critics, their slow copies, and the optimizers' states."""

    parameters: Parameters  # [seed, ...] the actor
    critics: Parameters  # [seed, critic, ...]
    target_actor: Parameters  # [seed, ...]
    target_critics: Parameters  # [seed, critic, ...]
    optimizer: Adam  # [seed, ...] of the critics
    actor_optimizer: Adam  # [seed, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ActorCriticBatch:
    """TransitionBatch, and the noise of the target actions."""

    transitions: TransitionBatch
    noise: jax.Array  # [row, dimension], standard normal


@dataclasses.dataclass(frozen=True)
class ActorCritic(ValueBased):
    """Deterministic policy gradient with a penalty on the distance from logged actions [TD3+BC, ReBRAC].

    Args:
        learning_rate: learning rate of the actor (TD3+BC, IQL: 3e-4; ReBRAC: 1e-3).
        critic_learning_rate: learning rate of the critics (TD3+BC: 3e-4; ReBRAC: 1e-3).
        discount: gamma, discount of later rewards (default: 0.99).
        target_rate: tau, rate at which slow copies follow their networks (default: 0.005).
        target_noise: std of the noise on target actions (default: 0.2).
        target_noise_clip: largest noise on target actions (default: 0.5).
        policy_delay: critic updates per update of the actor (default: 2).
        value_coefficient: weight of Q / mean |Q| in the actor's loss (TD3+BC: alpha, 2.5; ReBRAC: 1).
        actor_penalty: weight of the squared distance from logged actions in the actor's loss (TD3+BC: 1).
        critic_penalty: weight of the squared distance of the next action in the critics' target (TD3+BC: 0).
        penalty_over: the squared distance is a mean or a sum over dimensions (TD3+BC: mean; ReBRAC: sum).
        actor_critics: critics that the actor maximizes (TD3+BC: first; ReBRAC: min).
        critic_norm: layer norm in the critics (TD3+BC: none; ReBRAC: layer).
        reward_scale: factor of the rewards (default: H / (best - lowest return)).
    """

    network: MLP
    learning_rate: float = 3e-4
    critic_learning_rate: float = 3e-4
    discount: float = 0.99
    target_rate: float = 0.005
    target_noise: float = 0.2
    target_noise_clip: float = 0.5
    policy_delay: int = 2
    value_coefficient: float = 2.5
    actor_penalty: float = 1.0
    critic_penalty: float = 0.0
    penalty_over: Literal["mean", "sum"] = "mean"
    actor_critics: Literal["first", "min"] = "first"
    critic_norm: Literal["none", "layer"] = "none"
    reward_scale: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.policy_delay <= 50, "policy_delay", self.policy_delay, "from 1 to 50")

    @property
    def period(self) -> int:
        return self.policy_delay

    def initialize(self, spec: PolicySpec, key: jax.Array) -> ActorCriticState:
        actor_key, critic_key = jax.random.split(key)
        actor = critics.initial_mlp(self.network, actor_key, spec.observations.shape[0], spec.actions.size)
        ensemble = critics.initial_critics(self.network, critic_key, spec)
        return ActorCriticState(actor, ensemble, actor, ensemble, Adam.of(ensemble), Adam.of(actor))

    def batch(self, window: Window, random: RandomNumbers, numbers: Any) -> ActorCriticBatch:
        transitions = TransitionBatch.of(window)
        return ActorCriticBatch(transitions, jax.random.normal(random.key, transitions.actions.shape))

    def update(self, spec: PolicySpec, training: Training, numbers: Any) -> Update:
        def rounded(parameters: Parameters) -> Parameters:
            return critics.hidden_in(training.precision, parameters)

        def critic_loss(ensemble: Parameters, batch: ActorCriticBatch, goals: jax.Array) -> jax.Array:
            return self.critic_loss(rounded(ensemble), spec, batch, goals)

        def actor_loss(
            actor: Parameters, ensemble: Parameters, batch: ActorCriticBatch
        ) -> tuple[jax.Array, Metrics]:
            return self.actor_loss(rounded(actor), spec, rounded(ensemble), batch, numbers)

        def critic_step(
            state: ActorCriticState, batch: ActorCriticBatch
        ) -> tuple[ActorCriticState, jax.Array]:
            goals = self.goals(
                spec, rounded(state.target_actor), rounded(state.target_critics), batch, numbers
            )
            loss, gradients = jax.value_and_grad(critic_loss)(state.critics, batch, goals)
            rate = numbers["critic_learning_rate"]
            ensemble, optimizer = state.optimizer.apply(gradients, state.critics, rate)
            return dataclasses.replace(state, critics=ensemble, optimizer=optimizer), loss

        def step(state: ActorCriticState, batches: ActorCriticBatch) -> tuple[ActorCriticState, Metrics]:
            """As many updates of the critics as there are batches, then one of the actor."""
            batches = batches if self.period > 1 else jax.tree.map(lambda x: x[None], batches)
            losses = []
            for number in range(self.period):
                batch = jax.tree.map(lambda x, number=number: x[number], batches)
                state, loss = critic_step(state, batch)
                losses.append(loss)
            grad = jax.grad(actor_loss, has_aux=True)
            gradients, metrics = grad(state.parameters, state.critics, batch)
            actor, actor_optimizer = state.actor_optimizer.apply(
                gradients, state.parameters, numbers["learning_rate"]
            )
            state = dataclasses.replace(
                state,
                parameters=actor,
                actor_optimizer=actor_optimizer,
                target_actor=critics.toward(state.target_actor, actor, numbers["target_rate"]),
                target_critics=critics.toward(state.target_critics, state.critics, numbers["target_rate"]),
            )
            repeated = {name: jnp.broadcast_to(value, (self.period,)) for name, value in metrics.items()}
            return state, {"loss": jnp.stack(losses), **repeated}

        return (lambda state: state), step, (lambda state: state)

    def goals(
        self,
        spec: PolicySpec,
        actor: Parameters,
        ensemble: Parameters,
        batch: ActorCriticBatch,
        numbers: Any,
    ) -> jax.Array:
        """The values that the critics learn. [row]"""
        now, limit = batch.transitions, numbers["target_noise_clip"]
        noise = jnp.clip(numbers["target_noise"] * batch.noise, -limit, limit)
        actions = jnp.tanh(mlp(actor, now.next_observations)) + noise
        actions = jnp.clip(actions, -1, 1)
        values = self.values(ensemble, now.next_observations, actions).min(axis=0)
        values -= numbers["critic_penalty"] * self._distance(actions, spec.actions.encode(now.next_actions))
        return now.rewards + numbers["discount"] * now.continues * values

    def critic_loss(
        self, ensemble: Parameters, spec: PolicySpec, batch: ActorCriticBatch, goals: jax.Array
    ) -> jax.Array:
        """The squared errors of all critics, summed."""
        now = batch.transitions
        values = self.values(ensemble, now.observations, spec.actions.encode(now.actions))
        return jnp.sum(jnp.square(values - goals) * now.weights)

    def actor_loss(
        self,
        actor: Parameters,
        spec: PolicySpec,
        ensemble: Parameters,
        batch: ActorCriticBatch,
        numbers: Any,
    ) -> tuple[jax.Array, Metrics]:
        """The value of the actor's actions and their distance from those logged, weighted."""
        now = batch.transitions
        actions, logged = jnp.tanh(mlp(actor, now.observations)), spec.actions.encode(now.actions)
        if self.actor_critics == "first":
            ensemble = jax.tree.map(lambda x: x[:1], ensemble)
        values = self.values(ensemble, now.observations, actions).min(axis=0)
        value = critics.relative(values, now.weights)
        distance = jnp.sum(self._distance(actions, logged) * now.weights)
        loss = numbers["actor_penalty"] * distance - numbers["value_coefficient"] * value
        return loss, {"prediction": distance, "value": jnp.sum(values * now.weights)}

    def values(self, ensemble: Parameters, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """Q of each critic for encoded actions. [critic, row]"""
        return action_values(ensemble, observations, actions, self.critic_norm == "layer")

    def _distance(self, actions: jax.Array, logged: jax.Array) -> jax.Array:
        squares = jnp.square(actions - logged)
        return squares.mean(axis=-1) if self.penalty_over == "mean" else squares.sum(axis=-1)

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        return spec.actions.choose(mlp(parameters, history.observations[:, step]))

    def operations(self, spec: PolicySpec, training: Training, parameters: int) -> float:
        return 24 * parameters * training.batch_size
