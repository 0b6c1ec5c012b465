"""The kernel of attention, run by Pallas' interpreter, against attention in plain operations."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cwbc.core import blocks
from cwbc.core.kernels import attention as kernels


@pytest.mark.parametrize(("tokens", "width", "heads", "rate"), [(60, 128, 1, 0.1), (13, 32, 2, 0.3)])
def test_outputs_and_gradients_are_those_of_plain_operations(
    tokens: int, width: int, heads: int, rate: float
) -> None:
    generator = np.random.default_rng(0)
    qkv = jnp.asarray(generator.normal(size=(3, tokens, 3 * width)), jnp.bfloat16)
    bias = jnp.asarray(generator.normal(size=3 * width), jnp.bfloat16)
    weights = jnp.asarray(generator.normal(size=(3, tokens, width)), jnp.float32)

    def total(function: Callable[..., jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        def score(qkv: jax.Array, bias: jax.Array) -> tuple[jax.Array, jax.Array]:
            mixed = function(qkv, bias, heads, rate, jax.random.key(3))
            return jnp.sum(mixed * weights), mixed

        (dqkv, dbias), mixed = jax.jit(jax.grad(score, argnums=(0, 1), has_aux=True))(qkv, bias)
        return mixed, dqkv, dbias

    # Equal masks, or the outputs would differ by tens of percent.
    for value, expected in zip(total(kernels.attention), total(blocks.attention), strict=True):
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        difference = np.asarray(value, np.float32) - np.asarray(expected, np.float32)
        assert np.linalg.norm(difference) < 0.02 * np.linalg.norm(np.asarray(expected, np.float32))


def test_nothing_is_dropped_without_a_key() -> None:
    qkv = jnp.asarray(np.random.default_rng(0).normal(size=(2, 16, 48)), jnp.bfloat16)
    bias = jnp.zeros(48, jnp.bfloat16)
    with_rate, without = (kernels.attention(qkv, bias, 1, rate, None) for rate in (0.5, 0.0))
    np.testing.assert_array_equal(with_rate, without)
