"""Fitted Q evaluation of trained policies: expected returns at all targets, from logged transitions."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.core import critics
from cwbc.core.acting import History, act
from cwbc.core.cloning import mean_weights
from cwbc.core.critics import Adam
from cwbc.core.layers import Parameters
from cwbc.core.learners import Learner, Metrics, Update
from cwbc.core.networks import MLP
from cwbc.core.trajectories import Trajectories

if TYPE_CHECKING:
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec
    from cwbc.core.sampling import RandomNumbers, Window

_LOGGED = 0.25  # of the training, in which values are those of the logged returns, before any bootstrapping


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EvaluationState:
    """The value of actions, its slow copy, the evaluated policy, which stays, and the optimizer's state."""

    parameters: Parameters  # [seed, ...]
    slow: Parameters  # [seed, ...]
    policy: Parameters  # [seed, ...]
    optimizer: Adam  # [seed, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Situation:
    """States of the evaluated policy, whose remaining return-to-go is part of them."""

    observations: jax.Array  # [row, dimension]
    remaining: jax.Array  # [row] centered, in units of the range of returns
    targets: jax.Array  # [row] from 0 to 1
    timesteps: jax.Array  # [row]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EvaluationBatch:
    """Logged transitions, each as if its episode had begun with another target return."""

    now: Situation
    later: Situation
    history: History  # of the policy, up to the later step
    step: jax.Array  # [] the later step's place in the history
    actions: jax.Array  # [row, ...] as logged
    rewards: jax.Array  # [row] in units of the range of returns
    returns_to_go: jax.Array  # [row] logged, in the same units
    continues: jax.Array  # [row] 0 where the episode ends
    weights: jax.Array  # [row] in the mean of the loss; 0 where nothing is known


@dataclasses.dataclass(frozen=True)
class FittedEvaluation(Learner):
    """The expected return of a policy from every state, action and remaining return-to-go.

    Logged steps are evaluated under all targets: with target G, after logged rewards that sum to C, the
    policy would be conditioned on G - C. Values begin as logged returns-to-go, so that steps which no
    bootstrapping has reached yet count as the behaviour policy's.
    """

    policy: Learner  # fitted
    targets: tuple[float, ...]  # ascending
    network: MLP = MLP(256, 2)  # noqa: RUF009 (frozen)
    learning_rate: float = 1e-3
    slow_rate: float = 0.02
    center: float = 0.0  # mean reward per step, fitted to the data
    range: float = 0.0  # of returns, fitted to the data
    rewards: tuple[float, float] = (0.0, 0.0)  # min and max, fitted to the data

    @property
    def looks_back(self) -> bool:
        return self.policy.looks_back

    @property
    def is_fitted(self) -> bool:
        return self.range > 0

    @property
    def form(self) -> FittedEvaluation:
        return FittedEvaluation(self.policy.form, (0.0,) * len(self.targets), self.network, 0.0, 0.0)

    @property
    def numbers(self) -> dict[str, jax.Array]:
        low, high = self.targets[0], self.targets[-1]
        spread = (high - low) or 1.0
        values = {
            "learning_rate": self.learning_rate,
            "slow_rate": self.slow_rate,
            "targets": [target / self.range for target in self.targets],
            "places": [(target - low) / spread for target in self.targets],
            "center": self.center / self.range,
            "lowest": min(self.rewards[0], 0.0) / self.range,
            "highest": max(self.rewards[1], 0.0) / self.range,
        }
        return {name: jnp.asarray(value, jnp.float32) for name, value in values.items()}

    @property
    def reads(self) -> Hashable:
        return "evaluation", self.policy.reads

    def fit(self, data: Trajectories) -> FittedEvaluation:
        spread = (data.best - data.lowest) or abs(data.best) or 1.0
        center = float(data.rewards.mean(dtype=np.float64))
        rewards = float(data.rewards.min()), float(data.rewards.max())
        return dataclasses.replace(self, center=center, range=spread, rewards=rewards)

    def window(self, training: Training) -> int:
        return max(2, training.context) if self.looks_back else 2

    def step_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        logged = (data.returns_to_go / self.range).astype(np.float32)
        own = critics.transition_columns(data, 1 / self.range) | {"logged": logged}
        # After the last step of the horizon there is nothing to earn, even where it was not logged as an end.
        ends = own.pop("terminated") | (data.timesteps == data.horizon - 1)
        return self.policy.step_columns(data) | own | {"ends": ends}

    def episode_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        zero = np.zeros((), np.int64)
        first = self.policy.standardized(data.returns, zero, data.horizon)
        # For every target, by how much it shifts the standardized returns-to-go of the episode.
        aims = self.policy.standardized(np.array(self.targets), zero, data.horizon)
        shifts = aims[None, :] - first[:, None]
        return {
            "shifts": shifts.astype(np.float32),
            "returns": (data.returns / self.range).astype(np.float32),
        }

    def initialize(self, spec: PolicySpec, key: jax.Array) -> EvaluationState:
        policy = self.policy.initialize(spec, key).parameters  # to be replaced by the trained one
        inputs = spec.observations.shape[0] + spec.actions.size + 4
        values = critics.initial_mlp(self.network, key, inputs, 1)
        return EvaluationState(values, values, policy, Adam.of(values))

    def batch(self, window: Window, random: RandomNumbers, numbers: Any) -> EvaluationBatch:
        columns, mask = window.columns, window.mask
        target_key, step_key = jax.random.split(random.key)
        count, length = mask.shape
        which = jax.random.randint(target_key, (count,), 0, len(self.targets))
        step = jax.random.randint(step_key, (), 0, length - 1)
        shifts = jnp.take_along_axis(window.episodes["shifts"], which[:, None], axis=1)
        target, logged = numbers["targets"][which], columns.extra["logged"]

        def situation(at: jax.Array) -> Situation:
            timesteps, left = window.timesteps[:, at], logged[:, at]
            remaining = left + target - window.episodes["returns"]
            return Situation(columns.observations[:, at], remaining, numbers["places"][which], timesteps)

        history = History(
            observations=columns.observations,
            actions=columns.actions,  # encoded below, where the spaces are known
            returns_to_go=columns.extra.get("returns_to_go", jnp.zeros(mask.shape)) + shifts,
            timesteps=window.timesteps,
            frames=None,
        )
        if not self.looks_back:
            history = jax.tree.map(lambda x: x[:, 1:], history)
        ends, valid = columns.extra["ends"][:, step], mask[:, step]
        return EvaluationBatch(
            now=situation(step),
            later=situation(step + 1),
            history=history,
            step=step + 1 if self.looks_back else jnp.zeros((), jnp.int32),
            actions=columns.actions[:, step],
            rewards=columns.extra["rewards"][:, step],
            returns_to_go=logged[:, step],
            continues=1.0 - ends,
            weights=mean_weights(valid & (mask[:, step + 1] | ends)),
        )

    def update(self, spec: PolicySpec, training: Training, numbers: Any) -> Update:
        def step(state: EvaluationState, batch: EvaluationBatch) -> tuple[EvaluationState, Metrics]:
            goals = self.goals(spec, state, batch, numbers)
            is_late = state.optimizer.count >= _LOGGED * training.steps
            goals = jnp.where(is_late, goals, batch.returns_to_go)
            # With its own target, the remaining return-to-go would reveal the logged return.
            others = jax.tree.map(lambda x: jnp.where(is_late, x, jnp.roll(x, 1, axis=0)), batch.now)
            now = dataclasses.replace(batch.now, remaining=others.remaining, targets=others.targets)
            batch = dataclasses.replace(batch, now=now)
            loss, gradients = jax.value_and_grad(self.loss)(state.parameters, spec, batch, goals, numbers)
            rate = critics.cosine(numbers["learning_rate"], state.optimizer.count, training.steps)
            values, optimizer = state.optimizer.apply(gradients, state.parameters, rate)
            slow = critics.toward(state.slow, values, numbers["slow_rate"])
            return EvaluationState(values, slow, state.policy, optimizer), {"loss": loss}

        return (lambda state: state), step, (lambda state: state)

    def goals(
        self, spec: PolicySpec, state: EvaluationState, batch: EvaluationBatch, numbers: Any
    ) -> jax.Array:
        """The reward, and the value of what the policy does next. [row]"""
        history = batch.history
        history = dataclasses.replace(history, actions=spec.actions.encode(history.actions))
        actions = self.policy.act(spec, state.policy, history, batch.step)
        later = self.values(state.slow, spec, batch.later, actions, numbers)
        goals = batch.rewards + batch.continues * later
        left = spec.horizon - batch.now.timesteps
        return jnp.clip(goals, left * numbers["lowest"], left * numbers["highest"])

    def loss(
        self,
        parameters: Parameters,
        spec: PolicySpec,
        batch: EvaluationBatch,
        goals: jax.Array,
        numbers: Any,
    ) -> jax.Array:
        """The squared error of the values."""
        values = self.values(parameters, spec, batch.now, batch.actions, numbers)
        return jnp.sum(jnp.square(values - goals) * batch.weights)

    def values(
        self, parameters: Parameters, spec: PolicySpec, now: Situation, actions: jax.Array, numbers: Any
    ) -> jax.Array:
        """The expected sum of the rewards to come, in units of the range of returns. [row]"""
        left = (spec.horizon - now.timesteps) / spec.horizon
        centered = now.remaining - numbers["center"] * left * spec.horizon
        extra = [jnp.tanh(centered), jnp.tanh(centered / jnp.maximum(left, 0.05)), now.targets, left]
        x = jnp.concatenate(
            [now.observations, spec.actions.encode(actions), jnp.stack(extra, axis=-1)], axis=-1
        )
        return critics.mlp(parameters, x, layer_norm=True)[:, 0]

    def initial_values(
        self, spec: PolicySpec, state: EvaluationState, first: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """The mean over first observations [row, dimension], in units of the range. [seed, target]

        Args:
            spec: of the evaluated policy.
        """
        count, numbers = len(first), self.numbers
        observations = jnp.asarray(spec.observations.received(first))

        def value(state: EvaluationState, target: jax.Array, place: jax.Array, aim: jax.Array) -> jax.Array:
            history = jax.tree.map(jnp.asarray, History.empty(spec, count))
            every = jnp.ones(count)
            zero = jnp.zeros((), jnp.int32)
            _, actions = act(spec, state.policy, history, zero, observations, every * aim)
            now = Situation(observations, every * target, every * place, jnp.zeros(count, jnp.int32))
            return self.values(state.parameters, spec, now, actions, numbers).mean()

        aims = spec.standardized(np.array(self.targets), 0)
        of_targets = jax.vmap(value, in_axes=(None, 0, 0, 0))
        both = jax.jit(jax.vmap(of_targets, in_axes=(0, None, None, None)))
        found = both(state, numbers["targets"], numbers["places"], jnp.asarray(aims))
        return np.asarray(found, np.float64)

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        raise NotImplementedError("an evaluation does not act")

    def operations(self, spec: PolicySpec, training: Training, parameters: int) -> float:
        return 10 * parameters * training.batch_size * self.window(training)

    def activations(self, spec: PolicySpec, training: Training) -> int:
        return training.batch_size * self.network.layers * self.network.width
