"""`cwbc.core.blocks.join` as one GPU kernel, and its gradient as another: the stream is read once.

`cwbc.core.blocks.join` says what is computed, to the bits that dropout draws.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from cwbc.core.device import on_cpu
from cwbc.core.layers import EPSILON, hashed, kept_from

ROWS = 16  # that a program takes


def join(
    x: jax.Array,  # [window, token, width]
    product: jax.Array,  # [window, token, width] without bias
    bias: jax.Array,  # [width]
    rate: float,
    key: jax.Array | None,
) -> tuple[jax.Array, jax.Array]:
    """`cwbc.core.blocks.join`."""
    bits = jnp.zeros(2, jnp.uint32) if key is None else jax.random.key_data(key)
    rows = (-1, x.shape[-1])
    stream, normal = _join(0.0 if key is None else rate, x.reshape(rows), product.reshape(rows), bias, bits)
    return stream.reshape(x.shape), normal.reshape(x.shape)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _join(
    rate: float, x: jax.Array, product: jax.Array, bias: jax.Array, bits: jax.Array
) -> tuple[jax.Array, jax.Array]:
    rows = len(x)

    def joined(
        x_ref: Any, product_ref: Any, bias_ref: Any, bits_ref: Any, stream_ref: Any, normal_ref: Any
    ) -> None:
        addend = _read(product_ref, rows) + bias_ref[...].astype(jnp.float32)[None, :]
        stream = (_read(x_ref, rows) + _dropped(addend, bits_ref, rate)).astype(stream_ref.dtype)
        _write(stream_ref, stream, rows)
        _write(normal_ref, _standardized(stream)[0].astype(normal_ref.dtype), rows)

    stream, normal = _for_rows(joined, [x, product], [bias, bits], [x.dtype, product.dtype])
    return stream, normal


def _forward(rate: float, *inputs: jax.Array) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, ...]]:
    stream, normal = _join(rate, *inputs)
    _, _, bias, bits = inputs
    return (stream, normal), (stream, bias, bits)


def _backward(
    rate: float, kept: tuple[jax.Array, ...], gradients: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array, jax.Array, None]:
    stream, bias, bits = kept
    rows, width = stream.shape

    def joined_back(
        stream_ref: Any,
        dstream_ref: Any,
        dnormal_ref: Any,
        bits_ref: Any,
        dx_ref: Any,
        dproduct_ref: Any,
        sums_ref: Any,
    ) -> None:
        normal, inverse = _standardized(_read(stream_ref, rows))
        dnormal = _read(dnormal_ref, rows)
        along = jnp.sum(dnormal * normal, axis=1)[:, None] / width
        through = (dnormal - jnp.sum(dnormal, axis=1)[:, None] / width - along * normal) * inverse
        dx = _read(dstream_ref, rows) + through
        dproduct = _dropped(dx, bits_ref, rate)
        _write(dx_ref, dx.astype(dx_ref.dtype), rows)
        _write(dproduct_ref, dproduct.astype(dproduct_ref.dtype), rows)
        sums_ref[...] = jnp.sum(dproduct, axis=0)

    dstream, dnormal = gradients
    dtypes = [dstream.dtype, dnormal.dtype]
    dx, dproduct, sums = _for_rows(joined_back, [stream, dstream, dnormal], [bits], dtypes, sums=True)
    return dx, dproduct, sums.sum(axis=0).astype(bias.dtype), None


_join.defvjp(_forward, _backward)


def _standardized(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Zero mean and unit variance in every row, and what the distance from the mean was multiplied with."""
    x = x.astype(jnp.float32)
    centered = x - jnp.sum(x, axis=1)[:, None] / x.shape[1]
    variance = jnp.sum(centered * centered, axis=1)[:, None] / x.shape[1]
    inverse = jax.lax.rsqrt(variance + EPSILON)
    return centered * inverse, inverse


def _dropped(x: jax.Array, bits_ref: Any, rate: float) -> jax.Array:
    if rate == 0:
        return x
    row, column = _places(x.shape)
    numbers = ((pl.program_id(0) * ROWS + row) * x.shape[1] + column).astype(jnp.uint32)
    return jnp.where(hashed(numbers, bits_ref[0], bits_ref[1]) >= kept_from(rate), x / (1 - rate), 0.0)


def _places(shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Row and column of every element."""
    return jax.lax.broadcasted_iota(jnp.int32, shape, 0), jax.lax.broadcasted_iota(jnp.int32, shape, 1)


def _inside(shape: tuple[int, ...], rows: int) -> jax.Array:
    return pl.program_id(0) * ROWS + _places(shape)[0] < rows


def _read(ref: Any, rows: int) -> jax.Array:
    return triton.load(ref.at[...], mask=_inside(ref.shape, rows), other=0.0).astype(jnp.float32)


def _write(ref: Any, values: jax.Array, rows: int) -> None:
    triton.store(ref.at[...], values, mask=_inside(values.shape, rows))


def _for_rows(
    kernel: Any, tables: list[jax.Array], whole: list[jax.Array], dtypes: list[Any], sums: bool = False
) -> list[jax.Array]:
    """A program for every few rows; with `sums`, each leaves a float32 row of its own as well."""
    rows, width = tables[0].shape
    programs = pl.cdiv(rows, ROWS)
    part = pl.BlockSpec((ROWS, width), lambda program: (program, 0))
    row = pl.BlockSpec((None, width), lambda program: (program, 0))
    results = [jax.ShapeDtypeStruct((rows, width), dtype) for dtype in dtypes]  # type: ignore[no-untyped-call]
    if sums:
        results.append(jax.ShapeDtypeStruct((programs, width), jnp.float32))  # type: ignore[no-untyped-call]
    return pl.pallas_call(
        kernel,
        grid=(programs,),
        in_specs=[part] * len(tables) + [pl.BlockSpec(array.shape, lambda program: (0,)) for array in whole],
        out_specs=[part] * len(dtypes) + [row] * sums,
        out_shape=results,
        interpret=on_cpu(),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=1),
    )(*tables, *whole)
