"""An MLP and its gradient in bfloat16, with kernels for the work around the large matrix products.

The first and the last layer are thin: their products are a few multiplications for every hidden unit. Here
those are done in float32 where the unit is written or read anyway, together with ReLU, its mask and the sums
for biases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from cwbc.core.device import on_cpu
from cwbc.core.kernels import COLUMNS
from cwbc.core.kernels.products import dot, halves, padded_size, product
from cwbc.core.layers import Parameters, dense, relu

ROWS = 64  # that a program takes
FEWER_ROWS = 32  # for the last layer's gradient, where larger programs wait longer for memory
SPLITS = 4  # parts of the rows, whose gradients of the first layer are summed apart


@jax.custom_vjp
def mlp(layers: list[Parameters], x: jax.Array) -> jax.Array:
    """Dense layers with ReLU between them, on inputs that need no gradient. [window, step, size]"""
    return _forward(layers, x)[0]


def _forward(layers: list[Parameters], x: jax.Array) -> tuple[jax.Array, Any]:
    first, *middle, last = layers
    hidden = [_first(x.reshape(-1, x.shape[2]), first["weight"], first["bias"])]
    for layer in middle:
        # Without the barrier, XLA computes it once for every reader.
        hidden.append(jax.lax.optimization_barrier(relu(dense(layer, hidden[-1]))))  # type: ignore[no-untyped-call]
    return dense(last, hidden[-1]).reshape(*x.shape[:2], -1), (layers, x, hidden)


def _backward(residuals: Any, gradient: jax.Array) -> tuple[list[Parameters], None]:
    layers, x, hidden = residuals
    _, *middle, last = layers
    # In two steps: as one, the sum of so few columns would occupy a corner of the GPU.
    sums = jax.lax.optimization_barrier(gradient.sum(axis=1)).sum(axis=0)  # type: ignore[no-untyped-call]
    gradient, x = gradient.reshape(-1, gradient.shape[2]), x.reshape(-1, x.shape[2])
    gradients = [{"weight": hidden[-1].astype(jnp.float32).T @ gradient, "bias": sums}]
    inner, sums = _last_back(gradient, last["weight"], hidden[-1])
    for i in reversed(range(len(middle))):
        weight, bias = middle[i]["weight"], middle[i]["bias"]
        gradients.append({"weight": hidden[i].T @ inner, "bias": sums.astype(bias.dtype)})
        inner = inner @ weight.T
        if i > 0:
            inner = jnp.where(hidden[i] > 0, inner, jnp.zeros((), inner.dtype))
            sums = inner.sum(axis=0, dtype=jnp.float32)
    weight_and_bias = _first_back(x, inner, hidden[0])
    gradients.append({"weight": weight_and_bias[:-1], "bias": weight_and_bias[-1]})
    return gradients[::-1], None


mlp.defvjp(_forward, _backward)


def _first(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    """ReLU(x W + b) in bfloat16. [row, unit]"""
    (rows, inputs), units = x.shape, len(bias)
    padded = padded_size(inputs)

    def first(x_ref: Any, weight_ref: Any, bias_ref: Any, out_ref: Any) -> None:
        inside = _inside(rows, pl.program_id(0))
        values = _thin(x_ref, inside, inputs)
        known = jax.lax.broadcasted_iota(jnp.int32, (padded, COLUMNS), 0) < inputs
        weights = triton.load(weight_ref.at[...], mask=known, other=0.0)
        sums = dot(values, weights, (1, 0)) + bias_ref[...][None, :]
        triton.store(out_ref.at[...], jnp.maximum(sums, 0.0).astype(out_ref.dtype), mask=_wide(inside))

    return _call(
        first,
        grid=(pl.cdiv(rows, ROWS), units // COLUMNS),
        inputs=[
            (x, (ROWS, padded), lambda row, column: (row, 0)),
            (weight, (padded, COLUMNS), lambda row, column: (0, column)),
            (bias, (COLUMNS,), lambda row, column: (column,)),
        ],
        outputs=[((rows, units), jnp.bfloat16, (ROWS, COLUMNS), lambda row, column: (row, column))],
    )[0]


def _last_back(gradient: jax.Array, weight: jax.Array, hidden: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The gradient before the last ReLU, and its sums over rows. [row, unit] [unit]"""
    (rows, outputs), units = gradient.shape, len(weight)
    blocks, padded = pl.cdiv(rows, FEWER_ROWS), padded_size(outputs)

    def last_back(gradient_ref: Any, weight_ref: Any, hidden_ref: Any, out_ref: Any, sums_ref: Any) -> None:
        inside = _inside(rows, pl.program_id(0), FEWER_ROWS)
        values = _thin(gradient_ref, inside, outputs)
        weights = _thin(weight_ref, jnp.ones(COLUMNS, bool), outputs)
        active = triton.load(hidden_ref.at[...], mask=_wide(inside), other=0.0) > 0
        inner = jnp.where(active, dot(values, weights, (1, 1)), 0.0)
        sums_ref[...] = jnp.sum(inner, axis=0)
        triton.store(out_ref.at[...], inner.astype(out_ref.dtype), mask=_wide(inside))

    inner, sums = _call(
        last_back,
        grid=(blocks, units // COLUMNS),
        inputs=[
            (gradient, (FEWER_ROWS, padded), lambda row, column: (row, 0)),
            (weight, (COLUMNS, padded), lambda row, column: (column, 0)),
            (hidden, (FEWER_ROWS, COLUMNS), lambda row, column: (row, column)),
        ],
        outputs=[
            ((rows, units), hidden.dtype, (FEWER_ROWS, COLUMNS), lambda row, column: (row, column)),
            ((blocks, units), jnp.float32, (None, COLUMNS), lambda row, column: (row, column)),
        ],
    )
    return inner, sums.sum(axis=0)


def _first_back(x: jax.Array, gradient: jax.Array, hidden: jax.Array) -> jax.Array:
    """The first layer's gradient from the one after its ReLU: weights, then bias. [input + 1, unit]"""
    (rows, inputs), units = x.shape, gradient.shape[1]
    padded = padded_size(inputs + 1)
    steps = pl.cdiv(pl.cdiv(rows, ROWS), SPLITS)

    def first_back(x_ref: Any, gradient_ref: Any, hidden_ref: Any, out_ref: Any) -> None:
        first_block = pl.program_id(0) * steps
        number = jax.lax.broadcasted_iota(jnp.int32, (ROWS, padded), 1)

        def add(step: Any, sums: jax.Array) -> jax.Array:
            part, inside = pl.ds((first_block + step) * ROWS, ROWS), _inside(rows, first_block + step)
            active = triton.load(hidden_ref.at[part, :], mask=_wide(inside), other=0.0) > 0
            inner = triton.load(gradient_ref.at[part, :], mask=_wide(inside), other=0.0)
            inner = jnp.where(active, inner, jnp.zeros((), inner.dtype))
            known = inside[:, None] & (number < inputs)
            values = triton.load(x_ref.at[part, :], mask=known, other=0.0)
            values = jnp.where(number == inputs, 1.0, values)  # for the bias
            high, low = halves(values)
            return sums + product(high, inner, (0, 0)) + product(low, inner, (0, 0))

        out_ref[...] = jax.lax.fori_loop(0, steps, add, jnp.zeros((padded, COLUMNS), jnp.float32))

    whole = SPLITS * steps * ROWS
    parts = _call(
        first_back,
        grid=(SPLITS, units // COLUMNS),
        inputs=[
            (x, (whole, padded), lambda split, column: (0, 0)),
            (gradient, (whole, COLUMNS), lambda split, column: (0, column)),
            (hidden, (whole, COLUMNS), lambda split, column: (0, column)),
        ],
        outputs=[
            (
                (SPLITS, padded, units),
                jnp.float32,
                (None, padded, COLUMNS),
                lambda split, column: (split, 0, column),
            )
        ],
    )[0]
    return parts.sum(axis=0)[: inputs + 1]


def _thin(ref: Any, inside: jax.Array, columns: int) -> jax.Array:
    """A part of an array of few columns, with zeros where there is nothing. [row, padded column]"""
    known = inside[:, None] & (jax.lax.broadcasted_iota(jnp.int32, ref.shape, 1) < columns)
    return triton.load(ref.at[...], mask=known, other=0.0)


def _inside(rows: int, block: Any, size: int = ROWS) -> jax.Array:
    """Which rows of a block there are."""
    return block * size + jnp.arange(size) < rows


def _wide(inside: jax.Array) -> jax.Array:
    return jnp.broadcast_to(inside[:, None], (len(inside), COLUMNS))


Place = Callable[[Any, Any], tuple[Any, ...]]


def _call(
    kernel: Callable[..., None],
    grid: tuple[int, int],
    inputs: list[tuple[jax.Array, tuple[int, ...], Place]],
    outputs: list[tuple[tuple[int, ...], Any, tuple[int | None, ...], Place]],
) -> list[jax.Array]:
    return pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[pl.BlockSpec(block, place) for _, block, place in inputs],
        out_specs=[pl.BlockSpec(block, place) for _, _, block, place in outputs],
        out_shape=[jax.ShapeDtypeStruct(shape, dtype) for shape, dtype, _, _ in outputs],  # type: ignore[no-untyped-call]
        interpret=on_cpu(),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=1),
    )(*[array for array, _, _ in inputs])
