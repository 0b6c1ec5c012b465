"""A narrow MLP and its gradient in bfloat16: all layers of a block of rows in one program.

For the networks of value-based methods. A batch is so small that every kernel takes no more than a few
microseconds, and their number decides. Hidden layers are square and fit into the memory of one processor; the
first and the last layer are thin and computed in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from cwbc.core.device import on_cpu
from cwbc.core.kernels.products import dot, halves, padded_size, product
from cwbc.core.layers import EPSILON, Parameters

ROWS = 64  # that a program sums over at a time
COLUMNS = 64  # hidden units of a program that sums over rows
SPLITS = 8  # at most, of the rows that such programs sum apart

Norms = list[jax.Array]  # of each hidden layer, where it has a layer norm: what 0 became, and the scale


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def mlp(layers: list[Parameters], x: jax.Array, layer_norm: bool) -> jax.Array:
    """Dense layers with ReLU between them, and a layer norm after it. [row, size]"""
    return _rows_forward(layers, x, layer_norm, keep=False)[0]


def _forward(layers: list[Parameters], x: jax.Array, layer_norm: bool) -> tuple[jax.Array, Any]:
    out, hidden, norms = _rows_forward(layers, x, layer_norm, keep=True)
    return out, (layers, x, hidden, norms)


def _backward(layer_norm: bool, residuals: Any, gradient: jax.Array) -> tuple[list[Parameters], jax.Array]:
    layers, x, hidden, norms = residuals
    first, *middle, _ = layers
    inner = _rows_backward(layers, gradient, hidden, norms)  # before each ReLU
    of_first, of_last, sums = _thin_gradients(x, gradient, hidden[-1], inner)
    gradients = [{"weight": of_first[: x.shape[1]], "bias": of_first[x.shape[1]]}]
    for i, layer in enumerate(middle):
        dtype = layer["weight"].dtype
        gradients.append({"weight": hidden[i].T @ inner[i + 1], "bias": sums[i].astype(dtype)})
    gradients.append({"weight": of_last, "bias": gradient.sum(axis=0)})
    of_inputs = inner[0].astype(jnp.float32) @ first["weight"].T  # dropped where nothing needs it
    return gradients, of_inputs


mlp.defvjp(_forward, _backward)


def _rows_forward(
    layers: list[Parameters], x: jax.Array, layer_norm: bool, keep: bool
) -> tuple[jax.Array, list[jax.Array], list[Norms]]:
    """The outputs, and what the gradient needs: hidden units and their norms."""
    (rows, inputs), (width, outputs) = x.shape, layers[-1]["weight"].shape
    depth, (padded_in, padded_out) = len(layers) - 1, map(padded_size, (inputs, outputs))
    size = _rows_of_a_program(rows)

    def forward(x_ref: Any, *refs: Any) -> None:
        parameters, results = refs[: 2 * len(layers)], list(refs[2 * len(layers) :])
        out_ref = results.pop(0)
        inside = pl.program_id(0) * size + jnp.arange(size) < rows
        values = _known(x_ref, inside, inputs)
        first = _rows_of(parameters[0], inputs)
        units = dot(values, first, (1, 0)) + parameters[1][...][None, :]
        for i in range(depth):
            units = jnp.maximum(units, 0.0)
            if layer_norm:
                mean = jnp.sum(units, axis=1, keepdims=True) / width
                centered = units - mean
                scale = jax.lax.rsqrt(jnp.sum(centered * centered, axis=1, keepdims=True) / width + EPSILON)
                units = centered * scale
                if keep:
                    zero_ref, scale_ref = results[depth + 2 * i : depth + 2 * i + 2]
                    zero = (-mean * scale).astype(jnp.bfloat16).astype(jnp.float32)
                    triton.store(zero_ref.at[...], zero, mask=inside[:, None])
                    triton.store(scale_ref.at[...], scale, mask=inside[:, None])
            stored = units.astype(jnp.bfloat16)
            if keep:
                triton.store(results[i].at[...], stored, mask=_wide(inside, width))
            if i + 1 < depth:
                bias = parameters[2 * i + 3][...].astype(jnp.float32)
                units = product(stored, parameters[2 * i + 2][...], (1, 0)) + bias[None, :]
        high, low = halves(_known(parameters[-2], jnp.ones(width, bool), outputs))
        bias = triton.load(parameters[-1].at[...], mask=jnp.arange(padded_out) < outputs, other=0.0)
        out = product(stored, high, (1, 0)) + product(stored, low, (1, 0)) + bias[None, :]
        triton.store(out_ref.at[...], out, mask=_mask(inside, padded_out, outputs))

    kept = [((rows, width), jnp.bfloat16, (size, width), _of_row)] * depth
    norms = [((rows, 1), jnp.float32, (size, 1), _of_row)] * (2 * depth if layer_norm else 0)
    out, *results = _call(
        forward,
        grid=(pl.cdiv(rows, size),),
        inputs=[(x, (size, padded_in), _of_row), *_whole(layers, padded_in, padded_out)],
        outputs=[
            ((rows, outputs), jnp.float32, (size, padded_out), _of_row),
            *((kept + norms) if keep else ()),
        ],
    )
    pairs = [results[depth + 2 * i : depth + 2 * i + 2] for i in range(depth)] if layer_norm and keep else []
    return out, results[:depth], pairs


def _rows_backward(
    layers: list[Parameters], gradient: jax.Array, hidden: list[jax.Array], norms: list[Norms]
) -> list[jax.Array]:
    """The gradients before each ReLU. [row, unit]"""
    (rows, outputs), (width, _) = gradient.shape, layers[-1]["weight"].shape
    depth, padded, size = len(hidden), padded_size(outputs), _rows_of_a_program(rows)
    weights = [layer["weight"] for layer in layers[1:-1]]

    def backward(gradient_ref: Any, last_ref: Any, *refs: Any) -> None:
        weight_refs, hidden_refs = refs[: depth - 1], refs[depth - 1 : 2 * depth - 1]
        norm_refs, out_refs = refs[2 * depth - 1 : -depth], refs[-depth:]
        inside = pl.program_id(0) * size + jnp.arange(size) < rows
        wide = _wide(inside, width)
        values = _known(gradient_ref, inside, outputs)
        inner = dot(values, _known(last_ref, jnp.ones(width, bool), outputs), (1, 1))
        for i in reversed(range(depth)):
            units = triton.load(hidden_refs[i].at[...], mask=wide, other=0.0)
            if norms:
                zero = triton.load(norm_refs[2 * i].at[...], mask=inside[:, None], other=0.0)
                scale = triton.load(norm_refs[2 * i + 1].at[...], mask=inside[:, None], other=0.0)
                normal = units.astype(jnp.float32)
                mean = jnp.sum(inner, axis=1, keepdims=True) / width
                along = jnp.sum(inner * normal, axis=1, keepdims=True) / width
                inner = scale * (inner - mean - normal * along)
                inner = jnp.where(normal > zero, inner, 0.0)
            else:
                inner = jnp.where(units > 0, inner, 0.0)
            rounded = inner.astype(jnp.bfloat16)
            triton.store(out_refs[i].at[...], rounded, mask=wide)
            if i > 0:
                inner = product(rounded, weight_refs[i - 1][...], (1, 1))

    return _call(
        backward,
        grid=(pl.cdiv(rows, size),),
        inputs=[
            (gradient, (size, padded), _of_row),
            (layers[-1]["weight"], (width, padded), _for_all),
            *((weight, (width, width), _for_all) for weight in weights),
            *((units, (size, width), _of_row) for units in hidden),
            *((norm, (size, 1), _of_row) for pair in norms for norm in pair),
        ],
        outputs=[((rows, width), jnp.bfloat16, (size, width), _of_row)] * depth,
    )


def _thin_gradients(
    x: jax.Array, gradient: jax.Array, last_hidden: jax.Array, inner: list[jax.Array]
) -> tuple[jax.Array, jax.Array, list[jax.Array]]:
    """The gradients of the first layer (weights, then bias), of the last one's weights, of other biases."""
    (rows, inputs), (outputs, width) = x.shape, (gradient.shape[1], last_hidden.shape[1])
    padded_in, padded_out = padded_size(inputs + 1), padded_size(outputs)
    blocks = pl.cdiv(rows, ROWS)
    splits = min(SPLITS, pl.cdiv(blocks, 4))
    steps = pl.cdiv(blocks, splits)

    def thin(x_ref: Any, gradient_ref: Any, hidden_ref: Any, *refs: Any) -> None:
        inner_refs, (first_ref, last_ref, *sums_refs) = refs[: len(inner)], refs[len(inner) :]
        begin = pl.program_id(0) * steps
        number = jax.lax.broadcasted_iota(jnp.int32, (ROWS, padded_in), 1)

        def add(step: Any, carry: Any) -> Any:
            first, last, *sums = carry
            part = pl.ds((begin + step) * ROWS, ROWS)
            inside = (begin + step) * ROWS + jnp.arange(ROWS) < rows
            wide = _wide(inside, COLUMNS)
            inners = [triton.load(ref.at[part, :], mask=wide, other=0.0) for ref in inner_refs]
            known = inside[:, None] & (number < inputs)
            values = triton.load(x_ref.at[part, :], mask=known, other=0.0)
            high, low = halves(jnp.where(number == inputs, 1.0, values))  # a column for the bias
            first += product(high, inners[0], (0, 0)) + product(low, inners[0], (0, 0))
            units = triton.load(hidden_ref.at[part, :], mask=wide, other=0.0)
            mask = _mask(inside, padded_out, outputs)
            high, low = halves(triton.load(gradient_ref.at[part, :], mask=mask, other=0.0))
            last += product(units, high, (0, 0)) + product(units, low, (0, 0))
            sums = [
                total + jnp.sum(each.astype(jnp.float32), axis=0)
                for total, each in zip(sums, inners[1:], strict=True)
            ]
            return first, last, *sums

        start = (
            jnp.zeros((padded_in, COLUMNS), jnp.float32),
            jnp.zeros((COLUMNS, padded_out), jnp.float32),
            *[jnp.zeros(COLUMNS, jnp.float32)] * (len(inner) - 1),
        )
        first, last, *sums = jax.lax.fori_loop(0, steps, add, start)
        first_ref[...] = first
        last_ref[...] = last
        for ref, total in zip(sums_refs, sums, strict=True):
            ref[...] = total

    whole = splits * steps * ROWS
    first, last, *sums = _call(
        thin,
        grid=(splits, width // COLUMNS),
        inputs=[
            (x, (whole, padded_in), lambda split, column: (0, 0)),
            (gradient, (whole, padded_out), lambda split, column: (0, 0)),
            *(
                (units, (whole, COLUMNS), lambda split, column: (0, column))
                for units in (last_hidden, *inner)
            ),
        ],
        outputs=[
            (
                (splits, padded_in, width),
                jnp.float32,
                (None, padded_in, COLUMNS),
                lambda split, column: (split, 0, column),
            ),
            (
                (splits, width, padded_out),
                jnp.float32,
                (None, COLUMNS, padded_out),
                lambda split, column: (split, column, 0),
            ),
            *[((splits, width), jnp.float32, (None, COLUMNS), lambda split, column: (split, column))]
            * (len(inner) - 1),
        ],
        warps=4,
    )
    return first.sum(axis=0), last.sum(axis=0)[:, :outputs], [total.sum(axis=0) for total in sums]


def _rows_of_a_program(rows: int) -> int:
    """More where there are enough for all processors: each program reads all weights."""
    return 64 if rows < 1024 else 128


def _mask(inside: jax.Array, padded: int, columns: int) -> jax.Array:
    return inside[:, None] & (jax.lax.broadcasted_iota(jnp.int32, (len(inside), padded), 1) < columns)


def _known(ref: Any, inside: jax.Array, columns: int) -> jax.Array:
    """A block of few columns, with zeros where there is nothing. [row, padded column]"""
    return triton.load(ref.at[...], mask=_mask(inside, ref.shape[1], columns), other=0.0)


def _rows_of(ref: Any, rows: int) -> jax.Array:
    """A block of few rows, with zeros below them. [padded row, column]"""
    return triton.load(ref.at[...], mask=jax.lax.broadcasted_iota(jnp.int32, ref.shape, 0) < rows, other=0.0)


def _wide(inside: jax.Array, width: int) -> jax.Array:
    return jnp.broadcast_to(inside[:, None], (len(inside), width))


def _of_row(row: Any) -> tuple[Any, int]:
    return row, 0


def _for_all(row: Any) -> tuple[int, int]:
    return 0, 0


Place = Callable[..., tuple[Any, ...]]
Block = tuple[int | None, ...]


def _whole(layers: list[Parameters], padded_in: int, padded_out: int) -> list[tuple[jax.Array, Block, Place]]:
    """All parameters, for every program."""
    width = len(layers[-1]["weight"])
    first, last = (padded_in, width), (width, padded_out)
    shapes = [first, *[(width, width)] * (len(layers) - 2), last]
    return [
        each
        for layer, shape in zip(layers, shapes, strict=True)
        for each in (
            (layer["weight"], shape, _for_all),
            (layer["bias"], shape[1:], lambda row: (0,)),
        )
    ]


def _call(
    kernel: Callable[..., None],
    grid: tuple[int, ...],
    inputs: Sequence[tuple[jax.Array, Block, Place]],
    outputs: Sequence[tuple[tuple[int, ...], Any, Block, Place]],
    warps: int = 8,
) -> list[jax.Array]:
    return pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[pl.BlockSpec(block, place) for _, block, place in inputs],
        out_specs=[pl.BlockSpec(block, place) for _, _, block, place in outputs],
        out_shape=[jax.ShapeDtypeStruct(shape, dtype) for shape, dtype, _, _ in outputs],  # type: ignore[no-untyped-call]
        interpret=on_cpu(),
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
    )(*[array for array, _, _ in inputs])
