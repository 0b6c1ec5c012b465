"""Networks: independent references, causality by gradients, asking for some steps, dropout's statistics."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from toys import random_arrays

from cwbc.core.layers import after_norm, dense, dropout, layer_norm, linear, norm, standardized
from cwbc.core.networks import MLP, Network, Transformer

WINDOWS, STEPS, OBSERVATION, ACTION, HORIZON = 2, 5, 4, 3, 9
NETWORKS: dict[str, Network] = {
    "mlp": MLP(width=16),
    "transformer": Transformer(width=16, layers=2, heads=2),
    "concatenated": Transformer(width=16, layers=2, tokens="concatenated"),
}


@functools.cache
def initial(name: str) -> dict[str, Any]:
    """Parameters that are larger than fresh ones, with which attention would be all but even."""
    network = NETWORKS[name]
    found: dict[str, Any] = random_arrays(
        lambda key: network.initialize(key, OBSERVATION, ACTION, True, HORIZON), 0
    )
    return found


def inputs() -> dict[str, Any]:
    generator = np.random.default_rng(1)
    shapes = {"observations": (OBSERVATION,), "conditions": (), "actions": (ACTION,)}
    return {
        **{
            name: generator.normal(size=(WINDOWS, STEPS, *shape)).astype(np.float32)
            for name, shape in shapes.items()
        },
        "timesteps": np.broadcast_to(np.arange(3, 3 + STEPS, dtype=np.int32), (WINDOWS, STEPS)),
    }


def influences(name: str) -> dict[str, NDArray[np.bool_]]:
    """Which steps of each input change the output at each step. [output step, input step]"""
    network, parameters, values = NETWORKS[name], initial(name), inputs()
    timesteps = values.pop("timesteps")

    def output(changed: dict[str, jax.Array]) -> jax.Array:
        read = parameters | network.prepared(parameters, jnp.dtype("float32"))
        return jnp.sum(network(read, **changed, timesteps=timesteps) ** 2, axis=(0, 2))

    gradients = jax.jit(jax.jacrev(output))(values)
    return {
        name: np.abs(np.asarray(gradient)).reshape(STEPS, WINDOWS, STEPS, -1).sum(axis=(1, 3)) > 0
        for name, gradient in gradients.items()
    }


@pytest.mark.parametrize("name", ["transformer", "concatenated"])
def test_a_transformer_sees_the_past_and_not_its_own_action(name: str) -> None:
    seen = influences(name)
    up_to_now = np.tril(np.ones((STEPS, STEPS), bool))
    np.testing.assert_array_equal(seen["observations"], up_to_now)
    np.testing.assert_array_equal(seen["conditions"], up_to_now)
    np.testing.assert_array_equal(seen["actions"], up_to_now & ~np.eye(STEPS, dtype=bool))


def test_an_mlp_sees_one_step_and_no_action() -> None:
    seen = influences("mlp")
    np.testing.assert_array_equal(seen["observations"], np.eye(STEPS, dtype=bool))
    np.testing.assert_array_equal(seen["conditions"], np.eye(STEPS, dtype=bool))
    assert not seen["actions"].any()


def test_an_mlp_by_hand() -> None:
    network, parameters, values = NETWORKS["mlp"], initial("mlp"), inputs()
    x = np.concatenate([values["observations"], values["conditions"][..., None]], axis=-1).astype(np.float64)
    for name in ("layer0", "layer1"):
        x = np.maximum(x @ np.asarray(parameters[name]["weight"]) + np.asarray(parameters[name]["bias"]), 0)
    expected = x @ np.asarray(parameters["layer2"]["weight"]) + np.asarray(parameters["layer2"]["bias"])
    np.testing.assert_allclose(jax.jit(network)(parameters, **values), expected, rtol=1e-5, atol=1e-6)


def transformer_by_hand(
    network: Transformer, parameters: dict[str, Any], values: dict[str, Any]
) -> NDArray[np.float64]:
    """Every block at every token, one head at a time, in float64; then the outputs are read off."""
    p = jax.tree.map(lambda x: np.asarray(x, np.float64), parameters)
    observations, conditions, actions = (
        np.asarray(values[name], np.float64) for name in ("observations", "conditions", "actions")
    )

    def dense(layer: dict[str, Any], x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(x @ layer["weight"] + layer["bias"])

    def normed(layer: dict[str, Any], x: NDArray[np.float64]) -> NDArray[np.float64]:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return np.asarray(x * layer["scale"] + layer["bias"])

    returns = {"return": conditions[..., None]} if network.tokens == "separate" else {}
    if not returns:
        observations = np.concatenate([observations, conditions[..., None]], axis=-1)
    kinds = {**returns, "observation": observations, "action": actions}
    time = p["time"][np.asarray(values["timesteps"])]
    x = np.stack([dense(p["embed"][kind], kinds[kind]) + time for kind in kinds], axis=2)
    x = normed(p["embed_norm"], x.reshape(WINDOWS, -1, network.width))
    future = np.triu(np.full((x.shape[1], x.shape[1]), -np.inf), 1)
    for block in (p[f"block{i}"] for i in range(network.layers)):
        query, key, value = np.split(dense(block["qkv"], normed(block["norm1"], x)), 3, axis=-1)
        size, mixed = network.width // network.heads, np.empty_like(x)
        for own in (slice(i * size, (i + 1) * size) for i in range(network.heads)):
            scores = query[..., own] @ key[..., own].swapaxes(1, 2) / np.sqrt(size) + future
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            mixed[..., own] = weights / weights.sum(-1, keepdims=True) @ value[..., own]
        x = x + dense(block["out"], mixed)
        x = x + dense(block["down"], np.maximum(dense(block["up"], normed(block["norm2"], x)), 0))
    read = x.reshape(WINDOWS, STEPS, len(kinds), -1)[:, :, list(kinds).index("observation")]
    return dense(p["head"], normed(p["final_norm"], read))


@pytest.mark.parametrize("name", ["transformer", "concatenated"])
def test_a_transformer_by_hand(name: str) -> None:
    network = NETWORKS[name]
    assert isinstance(network, Transformer)
    expected = transformer_by_hand(network, initial(name), inputs())

    @jax.jit
    def outputs(parameters: Any, values: Any) -> jax.Array:
        return network(parameters | network.prepared(parameters, jnp.dtype("float32")), **values)

    np.testing.assert_allclose(outputs(initial(name), inputs()), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_at_some_steps_are_those_of_all_steps(name: str) -> None:
    run, parameters = jax.jit(NETWORKS[name]), initial(name)
    every = run(parameters, **inputs())
    for steps in ([0], [3], [STEPS - 1]):
        some = run(parameters, **inputs(), steps=np.array(steps))
        np.testing.assert_allclose(some, every[:, np.array(steps)], rtol=1e-5, atol=1e-6)


def test_no_condition_takes_no_input() -> None:
    network = MLP(width=16)
    sizes = (OBSERVATION, ACTION, False, HORIZON)
    parameters = jax.eval_shape(lambda key: network.initialize(key, *sizes), jax.random.key(0))
    assert parameters["layer0"]["weight"].shape == (OBSERVATION, 16)
    outputs = jax.eval_shape(lambda p: network(p, **{**inputs(), "conditions": None}), parameters)
    assert outputs.shape == (WINDOWS, STEPS, ACTION)


@pytest.mark.parametrize("name", NETWORKS)
def test_lower_precision_is_close_and_touches_only_hidden_products(name: str) -> None:
    network = NETWORKS[name]

    def outputs(parameters: Any, values: Any) -> list[jax.Array]:
        prepared = (network.prepared(parameters, jnp.dtype(dtype)) for dtype in ("float32", "bfloat16"))
        return [network(parameters | each, **values) for each in prepared]

    exact, rounded = map(np.asarray, jax.jit(outputs)(initial(name), inputs()))
    assert rounded.dtype == np.float32
    difference = float(np.linalg.norm(exact - rounded) / np.linalg.norm(exact))
    assert 0 < difference < 2e-2


def test_a_layer_takes_over_the_norm_before_it() -> None:
    generator = np.random.default_rng(0)
    before = {name: jnp.asarray(generator.normal(size=8), jnp.float32) for name in ("scale", "bias")}
    layer, x = linear(jax.random.key(2), 8, 5), jnp.asarray(generator.normal(size=(7, 8)), jnp.float32)
    expected = dense(layer, layer_norm(before, x))
    np.testing.assert_allclose(
        dense(after_norm(before, layer), standardized(x)), expected, rtol=1e-4, atol=1e-5
    )


def test_layer_norm_has_zero_mean_and_unit_variance() -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(5, 3, (7, 64)), jnp.float32)
    y = np.asarray(layer_norm(norm(64), x))
    np.testing.assert_allclose(y.mean(axis=-1), 0, atol=1e-5)
    np.testing.assert_allclose(y.var(axis=-1), 1, atol=1e-4)


def test_dropout_keeps_the_mean_and_the_rate() -> None:
    dropped = np.asarray(dropout(jax.random.key(3), 0.1, jnp.ones((1000, 500))))
    passed = dropped > 0
    # Five standard deviations of the mean of half a million samples.
    assert abs(passed.mean() - 0.9) < 5 * np.sqrt(0.09 / passed.size)
    np.testing.assert_allclose(dropped[passed], 1 / 0.9, rtol=1e-6)
    # Neighbours, rows and keys are independent: each pair agrees to drop about one time in a hundred.
    other = np.asarray(dropout(jax.random.key(4), 0.1, jnp.ones((1000, 500)))) > 0
    for one, two in ((passed[:, 1:], passed[:, :-1]), (passed[1:], passed[:-1]), (passed, other)):
        assert abs((~one & ~two).mean() - 0.01) < 0.001


def test_dropout_without_a_key_is_nothing() -> None:
    x = jnp.arange(6.0)
    assert dropout(None, 0.5, x) is x


@pytest.mark.parametrize("name", ["transformer", "concatenated"])
def test_dropout_acts_in_training_only(name: str) -> None:
    run, parameters = jax.jit(NETWORKS[name]), initial(name)
    plain = np.asarray(run(parameters, **inputs()))
    np.testing.assert_array_equal(plain, run(parameters, **inputs()))
    noisy = run(parameters, **inputs(), dropout_key=jax.random.key(5))
    assert np.abs(plain - np.asarray(noisy)).max() > 1e-4


def test_timesteps_matter_and_stop_at_the_horizon() -> None:
    run, parameters, values = jax.jit(NETWORKS["transformer"]), initial("transformer"), inputs()
    at_end = run(parameters, **{**values, "timesteps": values["timesteps"] * 0 + HORIZON - 1})
    beyond = run(parameters, **{**values, "timesteps": values["timesteps"] * 0 + HORIZON + 50})
    np.testing.assert_array_equal(at_end, beyond)
    assert np.abs(np.asarray(at_end) - np.asarray(run(parameters, **values))).max() > 1e-6
