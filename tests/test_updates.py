"""The loss and the update: hand-computed masks, the regularizer's effect, seeds alone and in a stack."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import toy_data

from cwbc.design import Design
from cwbc.methods import Training, parse, small
from cwbc.sampling import Window, to_device
from cwbc.trajectories import Trajectories
from cwbc.updates import State, initialize, losses, masked_mean, run_chunk

TRAINING = Training(steps=40, batch_size=8, context=5)


def tiny(name: str) -> Design:
    method = small(parse(name))
    network = dataclasses.replace(method.network, width=16, layers=1)
    return Design.fit(dataclasses.replace(method, network=network), toy_data(), TRAINING.context)


def window(data: Trajectories, episodes: list[int], context: int = 5) -> Window:
    """The first steps of the given episodes, by plain Python."""
    rows = [[data.starts[e] + min(k, data.lengths[e] - 1) for k in range(context)] for e in episodes]
    mask = [[k < data.lengths[e] for k in range(context)] for e in episodes]
    threshold = np.percentile(data.returns, 95)
    mean, deviation = data.observation_statistics
    return Window(
        observations=jnp.asarray((data.observations[np.array(rows)] - mean) / deviation),
        actions=jnp.asarray(data.actions[np.array(rows)]),
        returns_to_go=jnp.asarray(data.returns_to_go[np.array(rows)], jnp.float32),
        timesteps=jnp.asarray([[k if m else 0 for k, m in enumerate(row)] for row in mask]),
        mask=jnp.asarray(mask),
        shortfalls=jnp.asarray(data.best - data.returns[np.array(episodes)], jnp.float32),
        selected=jnp.asarray(data.returns[np.array(episodes)] >= threshold),
    )


def test_masked_mean() -> None:
    values = jnp.asarray([[1.0, 2.0], [3.0, jnp.nan]])
    assert float(masked_mean(values, jnp.asarray([[True, False], [True, False]]))) == 2.0
    assert float(masked_mean(values, jnp.zeros((2, 2), bool))) == 0.0


def test_the_prediction_loss_is_the_mean_over_unmasked_steps() -> None:
    data, design = toy_data(), tiny("rvs")
    parameters = design.initialize(jax.random.key(0))
    batch = window(data, [0, 1])
    key = jax.random.key(1)
    total, parts = losses(design, TRAINING, parameters, batch, key, key)
    errors = []
    for row in range(2):
        for k in range(5):
            if batch.mask[row, k]:
                omega = batch.returns_to_go[row, k] / (data.horizon - k)
                x = np.append(batch.observations[row, k], omega)
                x = np.maximum(x @ parameters["layer0"]["weight"] + parameters["layer0"]["bias"], 0)
                predicted = np.tanh(x @ parameters["layer1"]["weight"] + parameters["layer1"]["bias"])
                errors.append(np.mean((predicted - batch.actions[row, k]) ** 2))
    np.testing.assert_allclose(float(total), np.mean(errors), rtol=1e-5)
    assert set(parts) == {"loss"}


def test_the_conservative_loss_averages_over_the_selected_windows_alone() -> None:
    data, design = toy_data(), tiny("rvs+c")
    parameters = design.initialize(jax.random.key(0))
    key = jax.random.key(1)
    best = int(np.argmax(data.returns))
    others = window(data, [best, 0, 1])
    assert others.selected.tolist() == [True, False, False]
    together = losses(design, TRAINING, parameters, others, key, key)[1]
    # By hand: the best trajectory, raised by the amount drawn for it, as plain RvS would be scored on it.
    assert design.method.regularizer is not None
    amount = design.method.regularizer.width * jax.random.uniform(key, (3,))[0]
    alone = window(data, [best])
    raised = dataclasses.replace(alone, returns_to_go=alone.returns_to_go + amount)
    expected = losses(tiny("rvs"), TRAINING, parameters, raised, key, key)[1]["loss"]
    np.testing.assert_allclose(float(together["conservative"]), float(expected), rtol=1e-5)
    np.testing.assert_allclose(
        float(together["loss"]), float(together["prediction"] + together["conservative"]), rtol=1e-6
    )


def test_no_selected_window_costs_nothing() -> None:
    data, design = toy_data(), tiny("rvs+c")
    key = jax.random.key(1)
    parts = losses(design, TRAINING, design.initialize(key), window(data, [0, 1]), key, key)[1]
    assert float(parts["conservative"]) == 0.0
    assert float(parts["loss"]) == float(parts["prediction"])


def test_what_lies_past_the_end_is_never_trained_on() -> None:
    data, design = toy_data(), tiny("dt+c")
    parameters = design.initialize(jax.random.key(0))
    short = int(np.argmin(data.lengths))
    batch = window(data, [short])
    assert not batch.mask.all()
    key = jax.random.key(1)
    garbage = dataclasses.replace(
        batch,
        observations=jnp.where(batch.mask[..., None], batch.observations, 1e3),
        actions=jnp.where(batch.mask[..., None], batch.actions, -0.5),
        returns_to_go=jnp.where(batch.mask, batch.returns_to_go, 1e6),
    )
    clean = losses(design, TRAINING, parameters, batch, key, key)[0]
    np.testing.assert_allclose(
        float(losses(design, TRAINING, parameters, garbage, key, key)[0]), float(clean)
    )


def train_state(design: Design, seeds: tuple[int, ...], cuts: list[int]) -> State:
    data = to_device(toy_data(), design.method)
    state, step = initialize(design, TRAINING, seeds), 0
    for length in cuts:
        state, _ = run_chunk(design, TRAINING, state, data, seeds, step, length)
        step += length
    return state


@pytest.mark.parametrize("name", ["rvs+w+c", "dt"])
def test_a_seed_alone_equals_that_seed_in_a_stack(name: str) -> None:
    stack = train_state(tiny(name), (0, 5, 7), [10]).parameters
    alone = train_state(tiny(name), (5,), [10]).parameters
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[1], b[0]), stack, alone)
    differs = jax.tree.map(lambda a: bool((a[0] != a[1]).any()), stack)
    assert any(jax.tree.leaves(differs))


def test_the_learning_rate_warms_up_over_a_tenth_of_the_training() -> None:
    design = tiny("rvs")
    before = initialize(design, TRAINING, (0,)).parameters["layer0"]["weight"]
    changes = []
    for steps in range(1, 6):
        after = train_state(design, (0,), [1] * steps).parameters["layer0"]["weight"]
        changes.append(float(jnp.abs(after - before).max()))
        before = after
    # Adam's first step has the size of the learning rate: a quarter of it, as 4 steps of 40 warm up.
    np.testing.assert_allclose(changes[0], design.method.optimizer.learning_rate / 4, rtol=0.02)
    assert max(changes) <= 1.2 * design.method.optimizer.learning_rate
