"""Discrete CQL: against NumPy, on problems with a known optimum, in any unit."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pixels import BEST, HORIZON, Pixels, pixel_data
from toys import random_arrays
from value_problems import close, differences, in_float64, numpy_mlp

from cwbc.core import critics
from cwbc.core.critics import TransitionBatch
from cwbc.core.discrete_cql import DiscreteConservativeQ
from cwbc.core.encoders import Convolutions
from cwbc.core.methods import parse, sized, with_all_options
from cwbc.core.networks import MLP
from cwbc.core.trajectories import Trajectories
from cwbc.data.formats.arrays import from_arrays
from cwbc.runs.evaluating import evaluate
from cwbc.runs.policies import Policies
from cwbc.runs.training import train
from cwbc.system.errors import InputError

ROWS, SIZE, ACTIONS = 6, 4, 3


def chain(unit: float = 1.0, clipped: bool = False) -> Trajectories:
    """Walks of random steps on five states; the reward is for reaching the last, which ends the episode."""
    random = np.random.default_rng(0)
    rows: list[tuple[Any, ...]] = []
    for _ in range(60):
        state = int(random.integers(4))
        for step in range(6):
            action = int(random.integers(2))
            now, state = state, max(state + (1 if action else -1), 0)
            rows.append((np.eye(5)[now], action, unit * (state == 4), state == 4, step == 5 and state < 4))
            if state == 4:
                break
    columns: Any = [np.array(column) for column in zip(*rows, strict=True)]
    observations, actions, rewards, terminated, truncated = columns
    data = from_arrays("chain", observations, actions, rewards, terminated, truncated, time_limit=12)
    return data.with_clipped_rewards() if clipped else data


def trained(data: Trajectories, **options: Any) -> Policies:
    rates = {"critic_learning_rate": 3e-3, "target_rate": 0.05, "discount": 0.9}
    sizes = {"width": 32, "batch_size": 32, "steps": 400, "frame_stack": 2}
    method, training = with_all_options(*sized("discrete-cql", "small"), {**sizes, **rates, **options})
    return train(data, method, training, (0, 1))


def test_an_update_is_that_of_numpy() -> None:
    random = np.random.default_rng(0)
    arrays: list[Any] = [
        random.standard_normal((ROWS, SIZE)),
        random.integers(ACTIONS, size=ROWS),
        random.standard_normal(ROWS),
        random.standard_normal((ROWS, SIZE)),
        np.zeros(ROWS, np.int64),
        [1.0, 0.0, 1.0, 1.0, 0.0, 1.0],  # whether the episode continues
        [0.2, 0.2, 0.2, 0.2, 0.2, 0.0],  # weights
    ]
    now = TransitionBatch(*map(jnp.asarray, arrays))
    learner = DiscreteConservativeQ(MLP(4, 2), discount=0.9, conservative_weight=0.7)
    parameters, slow = (
        random_arrays(lambda key: critics.initial_mlp(learner.network, key, SIZE, ACTIONS), seed)
        for seed in (0, 1)
    )
    numbers, n = learner.numbers, in_float64(now)
    best = [int(np.argmax(row)) for row in numpy_mlp(in_float64(parameters), n.next_observations)]
    later = numpy_mlp(in_float64(slow), n.next_observations)
    goals = np.array([n.rewards[i] + 0.9 * n.continues[i] * later[i, best[i]] for i in range(ROWS)])
    close(jax.jit(learner.goals)(parameters, slow, now, numbers), goals)

    def loss(parameters: Any) -> float:
        total = 0.0
        for values, action, goal, weight in zip(
            numpy_mlp(parameters, n.observations), now.actions, goals, n.weights, strict=True
        ):
            gap = np.log(np.exp(values).sum()) - values[action]
            total += weight * (0.5 * (values[action] - goal) ** 2 + 0.7 * gap)
        return float(total)

    grad = jax.jit(jax.value_and_grad(learner.loss, has_aux=True))
    (value, metrics), gradients = grad(parameters, now, goals.astype(np.float32), numbers)
    close(value, loss(in_float64(parameters)))
    close(gradients, differences(loss, in_float64(parameters)))
    wrong = numpy_mlp(in_float64(parameters), n.observations).argmax(axis=1) != now.actions
    close(metrics["prediction"], wrong[:5].mean())


def test_it_learns_what_only_several_frames_show() -> None:
    policies = trained(pixel_data(), conservative_weight=0.1)
    sweep = evaluate(policies, lambda: gymnasium.wrappers.TimeLimit(Pixels(), HORIZON), [0.0], episodes=10)
    assert not sweep.takes_target
    np.testing.assert_array_equal(sweep.returns, BEST)


def test_it_learns_from_random_walks_whatever_the_unit_of_the_rewards() -> None:
    one, other = (trained(chain(unit), conservative_weight=0.1) for unit in (1.0, 1000.0))
    for policies in (one, other):
        for seed in (0, 1):
            policy = policies.policy(seed)
            policy.begin([0.0] * 4)
            np.testing.assert_array_equal(policy.act(np.eye(5)[:4]), 1)  # towards the reward
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4), one.parameters, other.parameters
    )


def test_clipped_rewards_are_taken_as_they_are() -> None:
    learner = DiscreteConservativeQ(MLP())
    assert learner.fit(chain(7.0, clipped=True)).reward_scale == 1.0
    scaled = learner.fit(chain(7.0))
    assert scaled.reward_scale == pytest.approx(12 / 7)  # H / range
    given = dataclasses.replace(scaled, reward_scale=0.3)
    assert given.fit(chain(7.0)).reward_scale == 0.3


def test_data_that_it_does_not_take_is_refused() -> None:
    ends = np.ones(4, bool)
    continuous = from_arrays(
        "torques", np.ones((4, 2)), np.linspace(-1, 1, 4)[:, None], np.ones(4), ends, ~ends
    )
    with pytest.raises(InputError, match="discrete-cql takes discrete actions, torques has continuous ones"):
        parse("discrete-cql").fit(continuous)
    choices = np.array([0, 1, 0, 1])
    single = from_arrays("single", np.ones((4, 2)), choices, np.ones(4), ~ends, ends)
    with pytest.raises(InputError, match="single has no transitions"):
        parse("discrete-cql").fit(single)
    with pytest.raises(InputError, match="takes no parts"):
        parse("discrete-cql+w")
    with pytest.raises(InputError, match="options for image observations only"):
        DiscreteConservativeQ(MLP(), encoder=Convolutions((4,), (3,), (1,))).fit(chain())
