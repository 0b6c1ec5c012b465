"""The MLP's kernels, run by Pallas' interpreter, against the same layers in plain operations."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cwbc.core.kernels.mlp import mlp
from cwbc.core.layers import Parameters

WINDOWS, STEPS = 5, 20  # 100 rows: not a whole number of programs


def layers(inputs: int, outputs: int, hidden: int) -> list[Parameters]:
    generator, sizes = np.random.default_rng(0), [inputs, *[128] * (hidden + 1), outputs]

    def layer(fan_in: int, fan_out: int) -> Parameters:
        dtype = jnp.bfloat16 if fan_in == fan_out else jnp.float32
        weight, bias = (generator.uniform(-1, 1, (rows, fan_out)) / fan_in**0.5 for rows in (fan_in, 1))
        return {"weight": jnp.asarray(weight, dtype), "bias": jnp.asarray(bias[0], dtype)}

    return [layer(*pair) for pair in itertools.pairwise(sizes)]


def plain(layers: list[Parameters], x: jax.Array) -> jax.Array:
    """Rounded where the kernels round: hidden units, and what is summed over them."""
    first, *middle, last = layers
    units = jnp.maximum(x @ first["weight"] + first["bias"], 0).astype(jnp.bfloat16)
    for layer in middle:
        units = jnp.maximum(units @ layer["weight"] + layer["bias"], 0)
    return units.astype(jnp.float32) @ last["weight"] + last["bias"]


@pytest.mark.parametrize(("inputs", "outputs", "hidden"), [(18, 6, 1), (3, 1, 2)])
def test_outputs_and_gradients_are_those_of_plain_operations(inputs: int, outputs: int, hidden: int) -> None:
    parameters = layers(inputs, outputs, hidden)
    generator = np.random.default_rng(7)
    x = jnp.asarray(generator.normal(size=(WINDOWS, STEPS, inputs)), jnp.float32)
    # Around 1: gradients that all but cancel would be no more than what is rounded.
    weights = jnp.asarray(generator.normal(1, 1, (WINDOWS, STEPS, outputs)), jnp.float32)

    def total(function: object) -> tuple[jax.Array, list[Parameters]]:
        score = jax.jit(jax.value_and_grad(lambda p: jnp.sum(function(p, x) * weights)))  # type: ignore[operator]
        return score(parameters)

    (value, gradients), (expected, expected_gradients) = total(mlp), total(plain)
    np.testing.assert_allclose(value, expected, rtol=2e-3)
    for gradient, reference in zip(
        jax.tree.leaves(gradients), jax.tree.leaves(expected_gradients), strict=True
    ):
        difference = np.asarray(gradient, np.float32) - np.asarray(reference, np.float32)
        assert gradient.dtype == reference.dtype
        assert np.linalg.norm(difference) < 0.03 * np.linalg.norm(np.asarray(reference, np.float32))


def test_inputs_keep_the_precision_of_float32() -> None:
    """A condition of 5.0 and one of 5.01 are one number in bfloat16."""
    parameters = layers(4, 1, 1)
    x = jnp.stack([jnp.full((1, STEPS, 4), 5.0), jnp.full((1, STEPS, 4), 5.01)])
    low, high = (np.asarray(mlp(parameters, part))[0, 0, 0] for part in x)
    assert low != high
