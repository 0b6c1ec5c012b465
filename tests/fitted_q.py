"""A second learner: one-step fitted Q on a chain where the optimum is a stitch of two logged trajectories."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.core import methods, optimizers
from cwbc.core.acting import History
from cwbc.core.layers import Parameters
from cwbc.core.learners import Learner, Metrics, Update
from cwbc.core.methods import Method, Training
from cwbc.core.networks import MLP
from cwbc.core.optimizers import Optimizer
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.sampling import RandomNumbers, Window
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByLength
from cwbc.data.formats.arrays import from_arrays

CHAIN = "cwbc-chain-v0"
STATES, LEFT, RIGHT = 7, 0, 1
EXIT, GOAL = 0.2, 1.0  # rewards for leaving the chain to the left of state 0, and for reaching the last state
TIME_LIMIT = 12


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FittedQNumbers:
    """Hyper-parameters that are only numbers."""

    learning_rate: jax.Array  # []
    weight_decay: jax.Array  # []
    warmup_steps: jax.Array  # []
    discount: jax.Array  # [] gamma
    tau: jax.Array  # []


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FittedQState:
    """The action values, their slow copy, and the optimizer's state."""

    parameters: Parameters  # [seed, ...]
    target: Parameters  # [seed, ...]
    optimizer: Any  # [seed, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Transitions:
    """Single steps and the observations after them."""

    observations: jax.Array  # [window, dimension]
    actions: jax.Array  # [window]
    rewards: jax.Array  # [window]
    next_observations: jax.Array  # [window, dimension]
    terminated: jax.Array  # [window]
    weights: jax.Array  # [window] 0 where the next observation was not logged


@dataclasses.dataclass(frozen=True)
class FittedQ(Learner):
    """Q-learning on logged transitions with discrete actions; greedy acting.

    Args:
        discount: gamma, discount of later rewards.
        tau: fraction by which the target approaches the parameters in each step.
    """

    network: MLP
    optimizer: Optimizer
    discount: float = 0.9
    tau: float = 0.05

    @property
    def form(self) -> FittedQ:
        return FittedQ(self.network, Optimizer(clip_norm=self.optimizer.clip_norm))

    @property
    def numbers(self) -> FittedQNumbers:
        own = self.optimizer
        values = (own.learning_rate, own.weight_decay, own.warmup_steps, self.discount, self.tau)
        return FittedQNumbers(*(jnp.asarray(value, jnp.float32) for value in values))

    @property
    def reads(self) -> Hashable:
        return "transitions"

    def fit(self, data: Trajectories) -> FittedQ:
        return self

    def window(self, training: Training) -> int:
        return 2

    def step_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        terminated = np.zeros(data.steps, bool)
        terminated[data.starts + data.lengths - 1] = data.terminated
        return {"rewards": data.rewards, "terminated": terminated}

    def initialize(self, spec: PolicySpec, key: jax.Array) -> FittedQState:
        sizes = (spec.observations.shape[0], spec.actions.size, False, spec.horizon)
        parameters = self.network.initialize(key, *sizes)
        optimizer = self._transformation(self.numbers).init(parameters)
        return FittedQState(parameters, parameters, optimizer)

    def batch(self, window: Window, random: RandomNumbers, numbers: FittedQNumbers) -> Transitions:
        columns = window.columns
        terminated = columns.extra["terminated"][:, 0]
        return Transitions(
            observations=columns.observations[:, 0],
            actions=columns.actions[:, 0],
            rewards=columns.extra["rewards"][:, 0],
            next_observations=columns.observations[:, 1],
            terminated=terminated,
            weights=(window.mask[:, 1] | terminated).astype(jnp.float32),
        )

    def update(self, spec: PolicySpec, training: Training, numbers: FittedQNumbers) -> Update:
        transform = self._transformation(numbers)

        def loss(parameters: Parameters, target: Parameters, batch: Transitions) -> tuple[jax.Array, Metrics]:
            values = self._values(parameters, batch.observations)
            chosen = jnp.take_along_axis(values, batch.actions[:, None], axis=-1)[:, 0]
            later = self._values(target, batch.next_observations).max(axis=-1)
            goals = batch.rewards + numbers.discount * jnp.where(batch.terminated, 0.0, later)
            errors = jnp.square(chosen - goals) * batch.weights
            total = jnp.sum(errors) / jnp.maximum(jnp.sum(batch.weights), 1)
            return total, {"loss": total, "value": jnp.mean(values.max(axis=-1))}

        def step(state: FittedQState, batch: Transitions) -> tuple[FittedQState, Metrics]:
            gradients, metrics = jax.grad(loss, has_aux=True)(state.parameters, state.target, batch)
            updates, optimizer = transform.update(gradients, state.optimizer, state.parameters)
            parameters = optax.apply_updates(state.parameters, updates)
            target = jax.tree.map(lambda old, new: old + numbers.tau * (new - old), state.target, parameters)
            return FittedQState(parameters, target, optimizer), metrics

        return (lambda state: state), step, (lambda state: state)

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        return spec.actions.choose(self._values(parameters, history.observations[:, step]))

    def operations(self, spec: PolicySpec, training: Training, parameters: int) -> float:
        return 8 * parameters * training.batch_size

    def activations(self, spec: PolicySpec, training: Training) -> int:
        return training.batch_size * self.network.layers * self.network.width

    def _values(self, parameters: Parameters, observations: jax.Array) -> jax.Array:
        """The value of every action. [window, action]"""
        none = jnp.zeros((len(observations), 1))
        return self.network(parameters, observations[:, None], None, none, none)[:, 0]

    def _transformation(self, numbers: FittedQNumbers) -> optax.GradientTransformation:
        schedule = (numbers.learning_rate, numbers.weight_decay, numbers.warmup_steps)
        return optimizers.transformation(self.optimizer.clip_norm, *schedule)


methods.LEARNERS[FittedQ.__name__] = FittedQ  # as JSON calls it
METHOD = Method("fitted-q", FittedQ(MLP(width=32, layers=1), Optimizer(learning_rate=0.01)), ByLength())


def observed(state: int) -> NDArray[np.float32]:
    """A state as an observation: one-hot."""
    return np.eye(STATES, dtype=np.float32)[state]


class Chain(gymnasium.Env[NDArray[np.float32], Any]):
    """Steps to the left and right from state 0; the optimum is to go right to the goal."""

    observation_space = spaces.Box(0, 1, (STATES,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._state = 0
        return observed(0), {}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self._state += 1 if action == RIGHT else -1
        reward = EXIT if self._state < 0 else GOAL if self._state == STATES - 1 else 0.0
        return observed(max(self._state, 0)), reward, reward > 0, False, {}


gymnasium.register(CHAIN, entry_point=Chain, max_episode_steps=TIME_LIMIT)  # type: ignore[arg-type]

# Where each logged trajectory begins, and what it does: none that begins at state 0 reaches the goal.
LOGGED = (
    (0, (RIGHT, RIGHT, RIGHT, LEFT, LEFT, LEFT, LEFT)),  # terminated by the exit
    (3, (RIGHT, RIGHT, RIGHT)),  # terminated by the goal
    (2, (RIGHT, LEFT)),  # truncated
    (0, (LEFT,)),  # terminated by the exit
)


def chain_data() -> Trajectories:
    """The logged trajectories, each several times."""
    rows: list[tuple[NDArray[np.float32], int, float, bool, bool]] = []
    for first, actions in LOGGED * 5:
        state = first
        for number, action in enumerate(actions):
            now, state = state, state + (1 if action == RIGHT else -1)
            reward = EXIT if state < 0 else GOAL if state == STATES - 1 else 0.0
            is_last = number == len(actions) - 1
            rows.append((observed(now), action, reward, reward > 0, is_last and reward == 0))
    columns: Any = [np.array(column) for column in zip(*rows, strict=True)]
    observations, actions, rewards, terminated, truncated = columns
    return from_arrays(
        "chain",
        observations,
        actions,
        rewards,
        terminated,
        truncated,
        environment=CHAIN,
        time_limit=TIME_LIMIT,
    )
