"""Conservative Q-learning for discrete actions: one network values all of them, so none has to be sampled."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp

from cwbc.core import critics
from cwbc.core.critics import Adam, TransitionBatch, ValueBased
from cwbc.core.encoders import Convolutions
from cwbc.core.layers import Parameters
from cwbc.core.learners import Metrics, Update
from cwbc.core.networks import MLP
from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import InputError

if TYPE_CHECKING:
    from cwbc.core.acting import History
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec
    from cwbc.core.sampling import RandomNumbers, Window


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DiscreteQState:
    """The values of actions with a slow copy, and the optimizer's state."""

    parameters: Parameters  # [seed, ...]
    target: Parameters  # [seed, ...]
    optimizer: Adam  # [seed, ...]


@dataclasses.dataclass(frozen=True)
class DiscreteConservativeQ(ValueBased):
    """Double Q-learning with the log-sum-exp of all actions, on vectors or images [CQL].

    Args:
        critic_learning_rate: learning rate of the critics (TD3+BC, IQL, CQL: 3e-4; discrete-cql: 1e-4).
        discount: gamma, discount of later rewards (default: 0.99).
        target_rate: tau, rate at which slow copies follow their networks (default: 0.005).
        conservative_weight: weight of log-sum-exp Q minus Q of logged actions (CQL: 10; discrete-cql: 4).
        reward_scale: factor of the rewards (default: H / (best - lowest return), 1 for clipped ones).
    """

    network: MLP
    critic_learning_rate: float = 1e-4
    discount: float = 0.99
    target_rate: float = 0.005
    conservative_weight: float = 4.0
    reward_scale: float | None = None
    encoder: Convolutions = dataclasses.field(default=Convolutions())

    def fit(self, data: Trajectories) -> Self:
        if not data.discrete:
            raise InputError(
                f"discrete-cql takes discrete actions, {data.name} has continuous ones; cql takes those"
            )
        critics.check_transitions(data)
        default = 1.0 if data.clipped_rewards else critics.reward_scale(data)
        encoder = self.encoder.fit(data.observations.shape[1:])
        return self._with(reward_scale=self.reward_scale or default, encoder=encoder)

    def initialize(self, spec: PolicySpec, key: jax.Array) -> DiscreteQState:
        shape, (network_key, encoder_key) = spec.observations.encoded_shape, jax.random.split(key)
        is_image = len(shape) > 1
        inputs = self.encoder.features(shape) if is_image else shape[0]
        parameters = critics.initial_mlp(self.network, network_key, inputs, spec.actions.size)
        if is_image:
            parameters["encoder"] = self.encoder.initialize(encoder_key, shape)
        return DiscreteQState(parameters, parameters, Adam.of(parameters))

    def batch(self, window: Window, random: RandomNumbers, numbers: Any) -> TransitionBatch:
        return TransitionBatch.of(window)

    def update(self, spec: PolicySpec, training: Training, numbers: Any) -> Update:
        def rounded(parameters: Parameters) -> Parameters:
            return critics.hidden_in(training.precision, parameters)

        def total(
            parameters: Parameters, batch: TransitionBatch, goals: jax.Array
        ) -> tuple[jax.Array, Metrics]:
            return self.loss(rounded(parameters), batch, goals, numbers)

        def step(state: DiscreteQState, batch: TransitionBatch) -> tuple[DiscreteQState, Metrics]:
            goals = self.goals(rounded(state.parameters), rounded(state.target), batch, numbers)
            (loss, metrics), gradients = jax.value_and_grad(total, has_aux=True)(
                state.parameters, batch, goals
            )
            rate = numbers["critic_learning_rate"]
            moved, optimizer = state.optimizer.apply(gradients, state.parameters, rate)
            target = critics.toward(state.target, moved, numbers["target_rate"])
            return DiscreteQState(moved, target, optimizer), {"loss": loss, **metrics}

        return (lambda state: state), step, (lambda state: state)

    def goals(
        self, parameters: Parameters, target: Parameters, batch: TransitionBatch, numbers: Any
    ) -> jax.Array:
        """The values to learn: the slow copy's of the action that has the highest value. [row]"""
        best = jnp.argmax(self.values(parameters, batch.next_observations), axis=-1)
        later = _of(self.values(target, batch.next_observations), best)
        return batch.rewards + numbers["discount"] * batch.continues * later

    def loss(
        self, parameters: Parameters, batch: TransitionBatch, goals: jax.Array, numbers: Any
    ) -> tuple[jax.Array, Metrics]:
        """Half the squared errors, and how far the soft maximum of Q exceeds Q of logged actions."""
        values = self.values(parameters, batch.observations)
        logged = _of(values, batch.actions)
        gaps = jnp.sum((jax.nn.logsumexp(values, axis=-1) - logged) * batch.weights)
        errors = jnp.sum(jnp.square(logged - goals) * batch.weights) / 2
        chosen = jnp.argmax(values, axis=-1) == batch.actions
        metrics = {
            "prediction": jnp.sum(~chosen * batch.weights),  # the fraction of other actions than logged
            "value": jnp.sum(logged * batch.weights),
            "conservative": gaps,
        }
        return errors + numbers["conservative_weight"] * gaps, metrics

    def values(self, parameters: Parameters, observations: jax.Array) -> jax.Array:
        """Q of every action. [row, action]"""
        if "encoder" in parameters:
            observations = self.encoder(parameters["encoder"], observations)
        return critics.mlp(parameters, observations)

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        return spec.actions.choose(self.values(parameters, history.observations[:, step]))

    def operations(self, spec: PolicySpec, training: Training, parameters: int) -> float:
        # Forward and backward here, and twice forward at the next observation.
        shape = spec.observations.encoded_shape
        products = parameters + (self.encoder.products(shape) if len(shape) > 1 else 0)
        return 10 * products * training.batch_size

    def activations(self, spec: PolicySpec, training: Training) -> int:
        shape = spec.observations.encoded_shape
        outputs = self.encoder.outputs(shape) if len(shape) > 1 else 0
        return 3 * training.batch_size * (outputs + self.network.layers * self.network.width)


def _of(values: jax.Array, actions: jax.Array) -> jax.Array:
    """The values [row, action] of one action of each row."""
    return jnp.take_along_axis(values, actions[:, None], axis=-1)[:, 0]
