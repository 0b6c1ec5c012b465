"""The kernel of `join`, run by Pallas' interpreter, against plain operations."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cwbc.core import blocks
from cwbc.core.kernels import joining


@pytest.mark.parametrize(("width", "rate"), [(128, 0.1), (16, 0.0)])
def test_outputs_and_gradients_are_those_of_plain_operations(width: int, rate: float) -> None:
    generator = np.random.default_rng(0)
    shape = (3, 13, width)  # 39 rows: not a whole number of programs
    x, product = (jnp.asarray(3 * generator.normal(size=shape), jnp.bfloat16) for _ in range(2))
    bias = jnp.asarray(generator.normal(size=width), jnp.bfloat16)
    weights = [jnp.asarray(generator.normal(size=shape), jnp.float32) for _ in range(2)]

    def total(function: Callable[..., tuple[jax.Array, jax.Array]]) -> list[jax.Array]:
        def score(*inputs: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            outputs = function(*inputs, rate, jax.random.key(5))
            return jnp.sum(outputs[0] * weights[0]) + jnp.sum(outputs[1] * weights[1]), outputs

        gradients, outputs = jax.jit(jax.grad(score, argnums=(0, 1, 2), has_aux=True))(x, product, bias)
        return [*outputs, *gradients]

    for value, expected in zip(total(joining.join), total(blocks.join), strict=True):
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        difference = np.asarray(value, np.float32) - np.asarray(expected, np.float32)
        assert np.linalg.norm(difference) < 0.02 * np.linalg.norm(np.asarray(expected, np.float32))
