"""Models of logged dynamics, and the simulator made of them."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drifting import EDGE, STEPS, drifting_data
from numpy.typing import NDArray

from cwbc.core import training_loop
from cwbc.core.dynamics import LOG_STD, Dynamics, DynamicsBatch
from cwbc.core.learned_simulator import DynamicsModel, LearnedSimulator
from cwbc.core.methods import Method, Training
from cwbc.core.networks import MLP
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.training_loop import Trainee
from cwbc.core.weighting import ByLength

SEEDS, TRAINING = (0, 1), Training(1_000, batch_size=64)


@functools.cache
def trained() -> tuple[PolicySpec, Any, DynamicsModel]:
    """Two models of the walk."""
    data = drifting_data()
    spec = PolicySpec.fit(Method("dynamics", Dynamics(MLP(32, 2), 3e-3), ByLength()), data, TRAINING)
    state = training_loop.initialize(spec, SEEDS)
    trainee = Trainee(data, spec, spec.method, SEEDS, state)
    training_loop.train([trainee], TRAINING)
    return spec, trainee.state, DynamicsModel.of(spec, trainee.state.parameters, data)


def stepped(places: list[float], actions: list[float]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Observations, rewards and ends after a later step from given places, means over many."""
    _, _, model = trained()
    often = 100
    simulator = LearnedSimulator(model, often * len(places))
    rows = np.arange(often * len(places))
    simulator.reset(rows, rows.tolist())
    given = np.repeat(np.array(places, np.float32), often)[:, None]
    simulator._observations[:] = model.spec.observations.received(given)
    simulator._timesteps[:] = 3
    outcome = simulator.step(rows, np.repeat(np.array(actions, np.float32), often)[:, None])
    parts = (outcome.observations[:, 0], outcome.rewards, outcome.terminated)
    return tuple(part.reshape(len(places), often).mean(axis=1) for part in parts)


def test_the_dynamics_are_learned() -> None:
    after, rewards, ends = stepped([0.0, 0.5, 0.9], [0.8, -0.4, 0.9])
    np.testing.assert_allclose(after[:2], [0.4, 0.3], atol=0.1)
    np.testing.assert_allclose(rewards, [0.36, 0.84, 0.19], atol=0.15)
    assert ends[:2].max() < 0.1
    assert ends[2] > 0.7  # 1.35 is beyond the edge


def test_the_loss_is_that_of_gaussians_and_of_a_coin() -> None:
    spec, state, _ = trained()
    parameters = jax.tree.map(lambda x: x[0], state.parameters)
    random = np.random.default_rng(1)
    inputs = np.stack([random.normal(size=4), np.arange(4.0)], axis=1).astype(np.float32)
    actions, outcomes = random.uniform(-1, 1, (4, 1)), random.normal(size=(4, 2))
    known, terminated = np.array([[0.5, 0.25], [0.5, 0.25], [0, 0.25], [0, 0.25]]), np.array([0, 0, 1, 0])
    arrays = (jnp.asarray(x, jnp.float32) for x in (inputs, actions, outcomes, known, terminated))
    learner = spec.method.learner
    assert isinstance(learner, Dynamics)
    loss, metrics = learner.loss(parameters, spec, DynamicsBatch(*arrays))
    low, high = np.array(spec.actions.lowest), np.array(spec.actions.highest)  # type: ignore[union-attr]
    encoded = (actions - (low + high) / 2) / ((high - low) / 2)
    x = np.concatenate([inputs[:, :1], inputs[:, 1:] / STEPS, encoded], axis=1)
    layers = [parameters[f"layer{number}"] for number in range(3)]
    for layer in layers[:-1]:
        x = np.maximum(x @ np.asarray(layer["weight"]) + np.asarray(layer["bias"]), 0)
    y = x @ np.asarray(layers[-1]["weight"]) + np.asarray(layers[-1]["bias"])
    bottom, top = LOG_STD
    log_std = top - np.log1p(np.exp(top - y[:, 2:4]))
    log_std = bottom + np.log1p(np.exp(log_std - bottom))
    negative = (outcomes - y[:, :2]) ** 2 / np.exp(2 * log_std) / 2 + log_std
    chance = 1 / (1 + np.exp(-y[:, 4]))
    coin = -np.log(np.where(terminated == 1, chance, 1 - chance))
    expected = (negative * np.exp(log_std) * known).sum() + coin.mean()
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    np.testing.assert_allclose(metrics["ends"], coin.mean(), rtol=1e-4)


def test_episodes_of_one_seed_are_alike_and_end_at_the_horizon() -> None:
    _, _, model = trained()
    simulator = LearnedSimulator(model, 4)
    rows, still = np.arange(4), np.zeros((4, 1), np.float32)
    first = simulator.reset(rows, [7, 8, 7, 9])
    np.testing.assert_array_equal(first[0], first[2])
    assert np.abs(model.first - first[0]).min() < 1e-5
    for step in range(STEPS):
        outcome = simulator.step(rows, still)
        np.testing.assert_array_equal(outcome.observations[0], outcome.observations[2])
        assert not np.array_equal(outcome.observations[0], outcome.observations[1])
        assert outcome.truncated.all() == (step == STEPS - 1)
    assert simulator.horizon == STEPS


def test_simulated_values_stay_near_the_logged_ones() -> None:
    _, _, model = trained()
    simulator = LearnedSimulator(model, 1)
    row = np.arange(1)
    simulator.reset(row, [0])
    for _ in range(50):  # far beyond the data, always in one direction
        outcome = simulator.step(row, np.ones((1, 1), np.float32))
    assert abs(outcome.observations[0, 0]) < 1.1 * EDGE
    low, high = model.rewards
    assert low <= outcome.rewards[0] <= high


def test_support_is_that_of_logged_pairs() -> None:
    spec, _, model = trained()
    data = drifting_data()
    logged = spec.observations.received(data.observations)
    near = model.support.is_near(logged, np.asarray(spec.actions.encode(jnp.asarray(data.actions))))
    assert near.mean() > 0.95
    far = model.support.is_near(logged + 5, np.zeros((len(logged), 1), np.float32))
    assert not far.any()


def test_a_model_refuses_images() -> None:
    from cwbc.data.formats.arrays import from_arrays
    from cwbc.system.errors import InputError

    images, nothing = np.zeros((4, 5, 5, 1), np.uint8), np.zeros(4, bool)
    data = from_arrays("film", images, np.zeros(4, np.int32), np.ones(4), nothing, np.arange(4) == 3)
    with pytest.raises(InputError, match="film has images"):
        Dynamics().fit(data)
