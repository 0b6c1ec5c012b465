"""Causal attention with dropout as one GPU kernel, and its gradient as another: the scores stay on the chip.

`cwbc.core.blocks.attention` says what is computed, to the bits that dropout draws.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from cwbc.core.device import on_cpu
from cwbc.core.layers import hashed, kept_from


def attention(
    qkv: jax.Array,  # [window, token, 3 * width] without bias
    bias: jax.Array,  # [3 * width]
    heads: int,
    rate: float,
    key: jax.Array | None,
) -> jax.Array:  # [window, token, width]
    """`cwbc.core.blocks.attention`."""
    bits = jnp.zeros(2, jnp.uint32) if key is None else jax.random.key_data(key)
    return _attention(heads, 0.0 if key is None else rate, qkv, bias, bits)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attention(heads: int, rate: float, qkv: jax.Array, bias: jax.Array, bits: jax.Array) -> jax.Array:
    windows, tokens, width = qkv.shape

    def attend(qkv_ref: Any, bias_ref: Any, bits_ref: Any, out_ref: Any) -> None:
        for head in range(heads):
            attention, _, _, v = _of_head(head, heads, tokens, qkv_ref, bias_ref)
            lossy = _dropped(attention, head, heads, tokens, bits_ref, rate).astype(v.dtype)
            mixed = _dot(lossy, v, (1, 0)).astype(v.dtype)
            _write(out_ref, mixed, tokens, _columns(0, head, heads, v.shape[1]))

    return _for_windows(attend, [qkv], [bias, bits], [((windows, tokens, width // 3), qkv.dtype)])[0]


def _forward(heads: int, rate: float, *inputs: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    return _attention(heads, rate, *inputs), inputs


def _backward(
    heads: int, rate: float, inputs: tuple[jax.Array, ...], gradient: jax.Array
) -> tuple[jax.Array, jax.Array, None]:
    qkv, bias, bits = inputs
    windows, tokens, width = qkv.shape

    def attend_back(
        qkv_ref: Any, dmixed_ref: Any, bias_ref: Any, bits_ref: Any, dqkv_ref: Any, sums_ref: Any
    ) -> None:
        for head in range(heads):
            attention, q, k, v = _of_head(head, heads, tokens, qkv_ref, bias_ref)
            low, size = v.dtype, v.shape[1]
            lossy = _dropped(attention, head, heads, tokens, bits_ref, rate).astype(low)
            dmixed = _read(dmixed_ref, tokens, _columns(0, head, heads, size))
            dattention = _dropped(_dot(dmixed, v, (1, 1)), head, heads, tokens, bits_ref, rate)
            dscores = attention * (dattention - jnp.sum(attention * dattention, axis=1)[:, None])
            dscores = (dscores / math.sqrt(size)).astype(low)
            parts = (_dot(dscores, k, (1, 0)), _dot(dscores, q, (0, 0)), _dot(lossy, dmixed, (0, 0)))
            for number, part in enumerate(parts):
                columns = _columns(number, head, heads, size)
                sums_ref[columns] = jnp.sum(part, axis=0)
                _write(dqkv_ref, part.astype(low), tokens, columns)

    results = [(qkv.shape, qkv.dtype), ((windows, width), jnp.float32)]
    dqkv, sums = _for_windows(attend_back, [qkv, gradient], [bias, bits], results)
    return dqkv, sums.sum(axis=0).astype(bias.dtype), None


_attention.defvjp(_forward, _backward)


def _of_head(
    head: int, heads: int, tokens: int, qkv_ref: Any, bias_ref: Any
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Who attends to whom in a head, and its queries, keys and values. [token, token] [token, size]"""
    size = qkv_ref.shape[1] // (3 * heads)
    parts = []
    for number in range(3):
        columns = _columns(number, head, heads, size)
        bias = bias_ref[columns].astype(jnp.float32)[None, :]
        parts.append((_read(qkv_ref, tokens, columns).astype(jnp.float32) + bias).astype(qkv_ref.dtype))
    q, k, v = parts
    scores = _dot(q, k, (1, 1)) / math.sqrt(size)
    row, column = _places(scores.shape)
    scores = jnp.where(column <= row, scores, -jnp.inf)
    powers = jnp.exp(scores - jnp.max(scores, axis=1)[:, None])
    return powers / jnp.sum(powers, axis=1)[:, None], q, k, v


def _columns(number: int, head: int, heads: int, size: int) -> slice:
    first = (number * heads + head) * size
    return slice(first, first + size)


def _dropped(x: jax.Array, head: int, heads: int, tokens: int, bits_ref: Any, rate: float) -> jax.Array:
    """Dropout of a head's attention, or of its gradient."""
    if rate == 0:
        return x
    row, column = _places(x.shape)
    first_row = (pl.program_id(0) * heads + head) * tokens
    numbers = ((first_row + row) * tokens + column).astype(jnp.uint32)
    kept = hashed(numbers, bits_ref[0], bits_ref[1]) >= kept_from(rate)
    return jnp.where(kept, x / (1 - rate), 0.0)


def _dot(a: jax.Array, b: jax.Array, over: tuple[int, int]) -> jax.Array:
    """A matrix product over the given axis of either factor, summed in float32."""
    dimensions = (((over[0],), (over[1],)), ((), ()))
    return jax.lax.dot_general(a, b, dimensions, preferred_element_type=jnp.float32)


def _places(shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Row and column of every element."""
    return jax.lax.broadcasted_iota(jnp.int32, shape, 0), jax.lax.broadcasted_iota(jnp.int32, shape, 1)


def _read(ref: Any, tokens: int, columns: slice) -> jax.Array:
    part = ref.at[:, columns]
    return triton.load(part, mask=_places(part.shape)[0] < tokens, other=0.0)


def _write(ref: Any, values: jax.Array, tokens: int, columns: slice) -> None:
    triton.store(ref.at[:, columns], values, mask=_places(values.shape)[0] < tokens)


def _for_windows(
    kernel: Callable[..., None],
    windows: list[jax.Array],
    whole: list[jax.Array],
    results: list[tuple[tuple[int, ...], Any]],
) -> list[jax.Array]:
    """A program for each window, which sees rows up to a power of two: those past the last are not there."""
    count, tokens, _ = windows[0].shape
    rows = max(16, pl.next_power_of_2(tokens))

    def part(shape: tuple[int, ...]) -> pl.BlockSpec:
        if len(shape) == 2:
            return pl.BlockSpec((None, shape[1]), lambda window: (window, 0))
        return pl.BlockSpec((None, rows, shape[2]), lambda window: (window, 0, 0))

    def all_of(array: jax.Array) -> pl.BlockSpec:
        return pl.BlockSpec(array.shape, lambda window: (0,))

    return pl.pallas_call(
        kernel,
        grid=(count,),
        in_specs=[*[part(array.shape) for array in windows], *map(all_of, whole)],
        out_specs=[part(shape) for shape, _ in results],
        out_shape=[jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in results],  # type: ignore[no-untyped-call]
        interpret=on_cpu(),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=1),
    )(*windows, *whole)
