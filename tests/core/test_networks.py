"""Networks: independent references, causality by gradients, asking for some steps, dropout's statistics."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from cwbc.core.layers import after_norm, dense, dropout, layer_norm, linear, norm, standardized
from cwbc.core.networks import MLP, Network, Transformer

WINDOWS, STEPS, OBSERVATION, ACTION, HORIZON = 2, 5, 4, 3, 9
NETWORKS: dict[str, Network] = {
    "mlp": MLP(width=16),
    "transformer": Transformer(width=16, layers=2, heads=2),
    "concatenated": Transformer(width=16, layers=2, tokens="concatenated"),
}


def inputs() -> dict[str, jax.Array]:
    generator = np.random.default_rng(1)
    shapes = {"observations": (OBSERVATION,), "conditions": (), "actions": (ACTION,)}
    return {
        **{
            name: jnp.asarray(generator.normal(size=(WINDOWS, STEPS, *shape)), jnp.float32)
            for name, shape in shapes.items()
        },
        "timesteps": jnp.broadcast_to(jnp.arange(3, 3 + STEPS), (WINDOWS, STEPS)),
    }


def influences(network: Network) -> dict[str, NDArray[np.bool_]]:
    """Which steps of each input change the output at each step. [output step, input step]"""
    parameters = network.initialize(jax.random.key(0), OBSERVATION, ACTION, True, HORIZON)
    parameters |= network.prepared(parameters, jnp.dtype("float32"))
    values = inputs()
    timesteps = values.pop("timesteps")

    def output(changed: dict[str, jax.Array]) -> jax.Array:
        return jnp.sum(network(parameters, **changed, timesteps=timesteps) ** 2, axis=(0, 2))

    gradients = jax.jit(jax.jacrev(output))(values)
    return {
        name: np.abs(np.asarray(gradient)).reshape(STEPS, WINDOWS, STEPS, -1).sum(axis=(1, 3)) > 0
        for name, gradient in gradients.items()
    }


@pytest.mark.parametrize("name", ["transformer", "concatenated"])
def test_a_transformer_sees_the_past_and_not_its_own_action(name: str) -> None:
    seen = influences(NETWORKS[name])
    up_to_now = np.tril(np.ones((STEPS, STEPS), bool))
    np.testing.assert_array_equal(seen["observations"], up_to_now)
    np.testing.assert_array_equal(seen["conditions"], up_to_now)
    np.testing.assert_array_equal(seen["actions"], up_to_now & ~np.eye(STEPS, dtype=bool))


def test_an_mlp_sees_one_step_and_no_action() -> None:
    seen = influences(NETWORKS["mlp"])
    np.testing.assert_array_equal(seen["observations"], np.eye(STEPS, dtype=bool))
    np.testing.assert_array_equal(seen["conditions"], np.eye(STEPS, dtype=bool))
    assert not seen["actions"].any()


def test_an_mlp_by_hand() -> None:
    network = MLP(width=16)
    parameters = network.initialize(jax.random.key(0), OBSERVATION, ACTION, True, HORIZON)
    values = inputs()
    x = np.concatenate([values["observations"], values["conditions"][..., None]], axis=-1).astype(np.float64)
    for name in ("layer0", "layer1"):
        x = np.maximum(x @ np.asarray(parameters[name]["weight"]) + np.asarray(parameters[name]["bias"]), 0)
    expected = x @ np.asarray(parameters["layer2"]["weight"]) + np.asarray(parameters["layer2"]["bias"])
    np.testing.assert_allclose(network(parameters, **values), expected, rtol=1e-5, atol=1e-6)


def transformer_by_hand(
    network: Transformer, parameters: dict[str, Any], values: dict[str, jax.Array]
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
    parameters = network.initialize(jax.random.key(0), OBSERVATION, ACTION, True, HORIZON)
    # Fresh weights are so small that attention is all but even; these are not.
    parameters = jax.tree.map(lambda x: 3 * x, parameters)
    expected = transformer_by_hand(network, parameters, inputs())
    read = parameters | network.prepared(parameters, jnp.dtype("float32"))
    np.testing.assert_allclose(jax.jit(network)(read, **inputs()), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_at_some_steps_are_those_of_all_steps(name: str) -> None:
    network = NETWORKS[name]
    parameters = network.initialize(jax.random.key(0), OBSERVATION, ACTION, True, HORIZON)
    run = jax.jit(network)
    every = run(parameters, **inputs())
    for steps in ([0], [3], [STEPS - 1]):
        some = run(parameters, **inputs(), steps=jnp.array(steps))
        np.testing.assert_allclose(some, every[:, np.array(steps)], rtol=1e-5, atol=1e-6)


def test_no_condition_takes_no_input() -> None:
    network = MLP(width=16)
    parameters = network.initialize(jax.random.key(0), OBSERVATION, ACTION, False, HORIZON)
    assert parameters["layer0"]["weight"].shape == (OBSERVATION, 16)
    assert network(parameters, **{**inputs(), "conditions": None}).shape == (WINDOWS, STEPS, ACTION)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NETWORKS)
def test_lower_precision_is_close_and_touches_only_hidden_products(name: str) -> None:
    network = NETWORKS[name]
    parameters = network.initialize(jax.random.key(0), OBSERVATION, ACTION, True, HORIZON)
    exact, rounded = (
        jax.jit(network)(parameters | network.prepared(parameters, jnp.dtype(dtype)), **inputs())
        for dtype in ("float32", "bfloat16")
    )
    assert rounded.dtype == jnp.float32
    difference = float(jnp.linalg.norm(exact - rounded) / jnp.linalg.norm(exact))
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
    network = NETWORKS[name]
    parameters = network.initialize(jax.random.key(0), OBSERVATION, ACTION, True, HORIZON)
    run = jax.jit(network)
    plain = run(parameters, **inputs())
    np.testing.assert_array_equal(plain, run(parameters, **inputs()))
    noisy = run(parameters, **inputs(), dropout_key=jax.random.key(5))
    assert float(jnp.abs(plain - noisy).max()) > 1e-4


def test_timesteps_matter_and_stop_at_the_horizon() -> None:
    network = NETWORKS["transformer"]
    parameters = network.initialize(jax.random.key(0), OBSERVATION, ACTION, True, HORIZON)
    values = inputs()
    run = jax.jit(network)
    at_end = run(parameters, **{**values, "timesteps": values["timesteps"] * 0 + HORIZON - 1})
    beyond = run(parameters, **{**values, "timesteps": values["timesteps"] * 0 + HORIZON + 50})
    np.testing.assert_array_equal(at_end, beyond)
    assert float(jnp.abs(at_end - run(parameters, **values)).max()) > 1e-6
