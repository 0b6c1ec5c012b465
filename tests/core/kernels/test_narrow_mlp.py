"""The kernels of a narrow MLP, run by Pallas' interpreter, against the same layers in float32."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cwbc.core import critics, kernels
from cwbc.core.kernels.narrow_mlp import mlp
from cwbc.core.networks import MLP

CRITICS, ROWS = 2, 100  # not a whole number of programs


def on_chip(parameters: Any, x: jax.Array, layer_norm: bool) -> jax.Array:
    rounded = critics.hidden_in("bfloat16", parameters)
    return mlp([rounded[f"layer{i}"] for i in range(len(rounded))], x, layer_norm)


@pytest.mark.parametrize(("hidden", "layer_norm", "outputs"), [(2, False, 1), (3, True, 6)])
def test_outputs_and_gradients_are_those_of_float32_but_for_rounding(
    hidden: int, layer_norm: bool, outputs: int
) -> None:
    inputs = 17

    def initial(key: jax.Array) -> Any:
        keys = jax.random.split(key, CRITICS)
        return jax.vmap(lambda key: critics.initial_mlp(MLP(64, hidden), key, inputs, outputs))(keys)

    parameters, random = jax.jit(initial)(jax.random.key(0)), np.random.default_rng(1)
    x = random.standard_normal((ROWS, inputs)).astype(np.float32)
    # Around 1: gradients that all but cancel would be no more than what is rounded.
    weights = 1 + random.standard_normal((CRITICS, ROWS, outputs)).astype(np.float32)

    def total(function: Any) -> Any:
        def score(parameters: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            values = jax.vmap(lambda each: function(each, x, layer_norm))(parameters)
            return jnp.sum(values * weights), values

        (_, values), gradients = jax.jit(jax.value_and_grad(score, (0, 1), has_aux=True))(parameters, x)
        return values, gradients

    def check(value: jax.Array, reference: jax.Array, tolerance: float) -> None:
        assert value.dtype == reference.dtype
        assert np.linalg.norm(value - reference) < tolerance * np.linalg.norm(reference)

    (values, gradients), (expected, expected_gradients) = total(on_chip), total(critics.mlp)
    check(values, expected, 0.01)
    jax.tree.map(lambda value, reference: check(value, reference, 0.1), gradients, expected_gradients)


def test_few_rows_of_narrow_networks_in_bfloat16_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(width: int = 256, rows: int = 256, precision: str = "bfloat16") -> bool:
        def initial(key: jax.Array) -> Any:
            return critics.hidden_in(precision, critics.initial_mlp(MLP(width, 2), key, 17, 6))

        shapes = jax.eval_shape(initial, jax.random.key(0))
        rounded: Any = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
        x: Any = np.zeros((rows, 17), np.float32)
        return kernels.do_narrow_mlp([rounded[f"layer{i}"] for i in range(3)], x)

    assert not chosen()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert chosen()
    assert not chosen(width=100)
    assert chosen(rows=7_936)  # of CQL's losses
    assert not chosen(rows=100_000)
    assert not chosen(precision="float32")
