"""Conservative Q-learning: critics that are low where no action was logged, and a stochastic actor."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from cwbc.core import critics
from cwbc.core.critics import Adam, TransitionBatch, ValueBased, action_values, mlp
from cwbc.core.layers import Parameters, squashed
from cwbc.core.learners import Metrics, Update
from cwbc.core.networks import MLP
from cwbc.system.errors import require

if TYPE_CHECKING:
    from cwbc.core.acting import History
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec
    from cwbc.core.sampling import RandomNumbers, Window

LOG_STD = (-20.0, 2.0)  # min and max of the actor's log std


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ConservativeQState:
    """The actor with its temperature, critics with a slow copy, and the optimizers' states."""

    parameters: Parameters  # [seed, ...] the actor
    critics: Parameters  # [seed, critic, ...]
    target_critics: Parameters  # [seed, critic, ...]
    log_temperature: jax.Array  # [seed]
    optimizer: Adam  # [seed, ...] of the critics
    actor_optimizer: Adam  # [seed, ...]
    temperature_optimizer: Adam  # [seed, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ConservativeQBatch:
    """Transitions, and the random numbers of the actions that are sampled for them."""

    transitions: TransitionBatch
    now: jax.Array  # [row, 1 + sampled, dimension] standard normal: the actor's, then the penalty's
    later: jax.Array  # [row, 1 + sampled, dimension] standard normal: the target's, then the penalty's
    uniform: jax.Array  # [row, sampled, dimension] from -1 to 1


@dataclasses.dataclass(frozen=True)
class ConservativeQ(ValueBased):
    """Conservative Q-learning with sampled actions, CQL(H) [CQL].

    Args:
        learning_rate: learning rate of the actor (TD3+BC, IQL: 3e-4; ReBRAC: 1e-3; CQL: 3e-5).
        critic_learning_rate: learning rate of the critics (TD3+BC, IQL, CQL: 3e-4; ReBRAC: 1e-3).
        discount: gamma, discount of later rewards (default: 0.99).
        target_rate: tau, rate at which slow copies follow their networks (default: 0.005).
        conservative_weight: weight of log-sum-exp Q minus Q of logged actions (CQL: 10; discrete-cql: 4).
        sampled_actions: actions from each of three proposals in the log-sum-exp (CQL: 10).
        reward_scale: factor of the rewards (default: H / (best - lowest return), times 5 for CQL).
    """

    network: MLP
    learning_rate: float = 3e-5
    critic_learning_rate: float = 3e-4
    discount: float = 0.99
    target_rate: float = 0.005
    conservative_weight: float = 10.0
    sampled_actions: int = 10
    reward_scale: float | None = None

    # The weight is relative to Q. Published ones are for raw rewards: about five per step of good locomotion.
    return_per_step: ClassVar[float] = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.sampled_actions <= 1000, "sampled_actions", self.sampled_actions, "from 1 to 1000")

    def activations(self, spec: PolicySpec, training: Training) -> int:
        # Of a logged action and three kinds of sampled ones, which are in the batch as noise.
        actions = 1 + 3 * self.sampled_actions
        return actions * (super().activations(spec, training) + training.batch_size * spec.actions.size)

    def initialize(self, spec: PolicySpec, key: jax.Array) -> ConservativeQState:
        actor_key, critic_key = jax.random.split(key)
        sizes = (spec.observations.shape[0], 2 * spec.actions.size)
        actor = critics.initial_mlp(self.network, actor_key, *sizes)
        ensemble = critics.initial_critics(self.network, critic_key, spec)
        temperature = jnp.zeros(())
        optimizers = map(Adam.of, (ensemble, actor, temperature))
        return ConservativeQState(actor, ensemble, ensemble, temperature, *optimizers)

    def batch(self, window: Window, random: RandomNumbers, numbers: Any) -> ConservativeQBatch:
        transitions = TransitionBatch.of(window)
        rows, size = transitions.actions.shape
        now_key, later_key, uniform_key = jax.random.split(random.key, 3)
        several = (rows, 1 + self.sampled_actions, size)
        return ConservativeQBatch(
            transitions=transitions,
            now=jax.random.normal(now_key, several),
            later=jax.random.normal(later_key, several),
            uniform=jax.random.uniform(
                uniform_key, (rows, self.sampled_actions, size), minval=-1.0, maxval=1.0
            ),
        )

    def update(self, spec: PolicySpec, training: Training, numbers: Any) -> Update:
        def rounded(parameters: Parameters) -> Parameters:
            return critics.hidden_in(training.precision, parameters)

        def actor_loss(
            actor: Parameters, ensemble: Parameters, temperature: jax.Array, batch: ConservativeQBatch
        ) -> tuple[jax.Array, Metrics]:
            return self.actor_loss(rounded(actor), spec, ensemble, temperature, batch)

        def critic_loss(
            ensemble: Parameters, actor: Parameters, batch: ConservativeQBatch, goals: jax.Array
        ) -> tuple[jax.Array, Metrics]:
            return self.critic_loss(rounded(ensemble), spec, actor, batch, goals, numbers)

        def step(state: ConservativeQState, batch: ConservativeQBatch) -> tuple[ConservativeQState, Metrics]:
            actor, ensemble = rounded(state.parameters), rounded(state.critics)
            temperature = jnp.exp(state.log_temperature)
            grad = jax.grad(actor_loss, has_aux=True)
            actor_gradients, of_actor = grad(state.parameters, ensemble, temperature, batch)
            goals = self.goals(actor, rounded(state.target_critics), batch, numbers)
            value_and_grad = jax.value_and_grad(critic_loss, has_aux=True)
            (loss, of_critics), gradients = value_and_grad(state.critics, actor, batch, goals)
            # The entropy is kept at minus the number of dimensions.
            surplus = -of_actor.pop("log_likelihood") + spec.actions.size

            rate, actor_rate = numbers["critic_learning_rate"], numbers["learning_rate"]
            moved, optimizer = state.optimizer.apply(gradients, state.critics, rate)
            parameters, actor_optimizer = state.actor_optimizer.apply(
                actor_gradients, state.parameters, actor_rate
            )
            log_temperature, temperature_optimizer = state.temperature_optimizer.apply(
                surplus, state.log_temperature, actor_rate
            )
            state = ConservativeQState(
                parameters,
                moved,
                critics.toward(state.target_critics, moved, numbers["target_rate"]),
                log_temperature,
                optimizer,
                actor_optimizer,
                temperature_optimizer,
            )
            return state, {"loss": loss, **of_actor, **of_critics}

        return (lambda state: state), step, (lambda state: state)

    def goals(
        self, actor: Parameters, ensemble: Parameters, batch: ConservativeQBatch, numbers: Any
    ) -> jax.Array:
        """The values that the critics learn; without the entropy of later actions. [row]"""
        now = batch.transitions
        actions, _ = sampled(actor, now.next_observations, batch.later[:, :1])
        values = self.values(ensemble, now.next_observations, actions[:, 0]).min(axis=0)
        return now.rewards + numbers["discount"] * now.continues * values

    def critic_loss(
        self,
        ensemble: Parameters,
        spec: PolicySpec,
        actor: Parameters,
        batch: ConservativeQBatch,
        goals: jax.Array,
        numbers: Any,
    ) -> tuple[jax.Array, Metrics]:
        """Squared errors, and how far Q of sampled actions exceeds that of logged ones; of all critics."""
        now = batch.transitions
        logged = spec.actions.encode(now.actions)[:, None]
        here, here_density = sampled(actor, now.observations, batch.now[:, 1:])
        there, there_density = sampled(actor, now.next_observations, batch.later[:, 1:])
        # Those of the actor are proposals, whose density is divided out: no gradient reaches it.
        actions = jax.lax.stop_gradient(jnp.concatenate([logged, batch.uniform, here, there], axis=1))
        densities = jnp.concatenate(
            [jnp.full(batch.uniform.shape[:2], self._uniform(spec)), here_density, there_density], axis=1
        )
        count = actions.shape[1]
        rows = jnp.repeat(now.observations, count, axis=0)
        values = self.values(ensemble, rows, actions.reshape(len(rows), -1)).reshape(-1, len(goals), count)
        of_logged, of_sampled = values[..., 0], values[..., 1:]
        highest = jax.nn.logsumexp(of_sampled - jax.lax.stop_gradient(densities), axis=-1)
        gaps = jnp.sum((highest - of_logged) * now.weights)
        errors = jnp.sum(jnp.square(of_logged - goals) * now.weights)
        metrics = {"value": jnp.sum(of_logged.mean(axis=0) * now.weights), "conservative": gaps}
        return errors + numbers["conservative_weight"] * gaps, metrics

    def _uniform(self, spec: PolicySpec) -> float:
        """The log density of uniform actions."""
        return -spec.actions.size * float(np.log(2.0))

    def actor_loss(
        self,
        actor: Parameters,
        spec: PolicySpec,
        ensemble: Parameters,
        temperature: jax.Array,
        batch: ConservativeQBatch,
    ) -> tuple[jax.Array, Metrics]:
        """Minus the value of sampled actions and their entropy, as in SAC."""
        now = batch.transitions
        actions, densities = sampled(actor, now.observations, batch.now[:, :1])
        values = self.values(ensemble, now.observations, actions[:, 0]).min(axis=0)
        log_likelihood = jnp.sum(densities[:, 0] * now.weights)
        loss = temperature * log_likelihood - jnp.sum(values * now.weights)
        squares = jnp.square(actions[:, 0] - spec.actions.encode(now.actions)).mean(axis=-1)
        return loss, {"log_likelihood": log_likelihood, "prediction": jnp.sum(squares * now.weights)}

    def values(self, ensemble: Parameters, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """Q of each critic for encoded actions. [critic, row]"""
        return action_values(ensemble, observations, actions)

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        outputs = mlp(parameters, history.observations[:, step])
        return spec.actions.choose(outputs[:, : spec.actions.size])

    def operations(self, spec: PolicySpec, training: Training, parameters: int) -> float:
        return (24 + 12 * 3 * self.sampled_actions) * parameters * training.batch_size


def sampled(
    actor: Parameters,
    observations: jax.Array,  # [row, dimension]
    noise: jax.Array,  # [row, action, dimension]
) -> tuple[jax.Array, jax.Array]:
    """Encoded actions of a tanh-Gaussian actor [row, action, dimension], and log densities [row, action]."""
    means, log_std = jnp.split(mlp(actor, observations)[:, None], 2, axis=-1)
    return squashed(means, jnp.clip(log_std, *LOG_STD), noise)
