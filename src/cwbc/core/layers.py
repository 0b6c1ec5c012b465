"""The layers of networks, as pure functions of their parameters."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from cwbc.system.errors import require

Parameters = dict[str, Any]
_WIDEST, _MOST_LAYERS = 65_536, 100  # more fit into no memory, or take hours to compile
EPSILON = 1e-5  # beside the variance that a layer norm divides by


def check_sizes(width: int, layers: int, dropout: float) -> None:
    """Refuse sizes that no network has."""
    require(1 <= width <= _WIDEST, "width", width, f"at least 1 and at most {_WIDEST:,}")
    require(1 <= layers <= _MOST_LAYERS, "layers", layers, f"at least 1 and at most {_MOST_LAYERS:,}")
    require(0 <= dropout < 1, "dropout", dropout, "at least 0 and below 1")


def linear(key: jax.Array, fan_in: int, fan_out: int) -> Parameters:
    """Fresh parameters of a dense layer, uniform within 1 / sqrt(fan_in)."""
    weight_key, bias_key = jax.random.split(key)
    limit = 1 / math.sqrt(fan_in)
    return {
        "weight": jax.random.uniform(weight_key, (fan_in, fan_out), minval=-limit, maxval=limit),
        "bias": jax.random.uniform(bias_key, (fan_out,), minval=-limit, maxval=limit),
    }


def dense(parameters: Parameters, x: jax.Array) -> jax.Array:
    """x W + b, in the precision of W."""
    weight = parameters["weight"]
    return x.astype(weight.dtype) @ weight + for_rows(parameters["bias"], x)


def for_rows(vector: jax.Array, x: jax.Array) -> jax.Array:
    """A vector to combine with every row of x, as a copy for each window of rows.

    The vector's gradient is then a sum over a window's rows, and one over windows. As a single sum down the
    columns of x it would occupy a tenth of a GPU.
    """
    if x.ndim <= 2:
        return vector
    copies = jnp.broadcast_to(vector, (len(x), *[1] * (x.ndim - 2), len(vector)))
    barred: jax.Array = jax.lax.optimization_barrier(copies)  # type: ignore[no-untyped-call]
    return barred


@jax.custom_vjp
def relu(x: jax.Array) -> jax.Array:
    """max(x, 0), whose gradient needs the result alone, so that x is never stored."""
    return jnp.maximum(x, 0)


def _relu_forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    y = relu(x)
    return y, y


def _relu_backward(y: jax.Array, gradient: jax.Array) -> tuple[jax.Array]:
    return (jnp.where(y > 0, gradient, jnp.zeros((), gradient.dtype)),)


relu.defvjp(_relu_forward, _relu_backward)


@jax.custom_vjp
def normed_relu(x: jax.Array) -> jax.Array:
    """max(x, 0) with zero mean and unit variance over the last axis; its gradient does not store x either."""
    return _normed_relu_forward(x)[0]


def _normed_relu_forward(x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
    y = jnp.maximum(x.astype(jnp.float32), 0)
    mean = y.mean(axis=-1, keepdims=True)
    scale = jax.lax.rsqrt(jnp.mean(jnp.square(y - mean), axis=-1, keepdims=True) + EPSILON)
    normal = ((y - mean) * scale).astype(x.dtype)
    return normal, (normal, (-mean * scale).astype(x.dtype), scale)


def _normed_relu_backward(
    stored: tuple[jax.Array, jax.Array, jax.Array], gradient: jax.Array
) -> tuple[jax.Array]:
    normal, zero, scale = stored  # `zero` is what 0 became
    y, g = normal.astype(jnp.float32), gradient.astype(jnp.float32)
    g = scale * (g - g.mean(axis=-1, keepdims=True) - y * jnp.mean(g * y, axis=-1, keepdims=True))
    return (jnp.where(normal > zero, g, 0).astype(gradient.dtype),)


normed_relu.defvjp(_normed_relu_forward, _normed_relu_backward)


def cast(parameters: Parameters, dtype: jnp.dtype) -> Parameters:
    """The same parameters in another precision."""
    return jax.tree.map(lambda x: x.astype(dtype), parameters)


def norm(width: int) -> Parameters:
    """Fresh parameters of a layer norm."""
    return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}


def standardized(x: jax.Array) -> jax.Array:
    """Zero mean and unit variance over the last axis."""
    x = x.astype(jnp.float32)
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(centered), axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt(variance + EPSILON)


def layer_norm(parameters: Parameters, x: jax.Array) -> jax.Array:
    """Zero mean and unit variance over the last axis, then scale and bias."""
    return standardized(x) * for_rows(parameters["scale"], x) + for_rows(parameters["bias"], x)


def after_norm(norm: Parameters, linear: Parameters) -> Parameters:
    """The dense layer that does with standardized inputs what `linear` does with those of a layer norm."""
    weight = linear["weight"]
    return {"weight": norm["scale"][:, None] * weight, "bias": norm["bias"] @ weight + linear["bias"]}


def squashed(means: jax.Array, log_stds: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Actions of a tanh-Gaussian within (-1, 1) for standard normal noise, and their log densities [...]."""
    before = means + jnp.exp(log_stds) * noise
    gaussian = -jnp.square(noise) / 2 - log_stds - math.log(2 * math.pi) / 2
    # log(1 - tanh^2), which would be the log of zero where tanh is saturated.
    slope = 2 * (math.log(2) - before - jax.nn.softplus(-2 * before))
    return jnp.tanh(before), jnp.sum(gaussian - slope, axis=-1)


def dropout_keys(key: jax.Array | None, rate: float, count: int) -> list[jax.Array | None]:
    """A key for each of several dropouts, or none where nothing is dropped."""
    if key is None or rate == 0:
        return [None] * count
    return list(jax.random.split(key, count))


def dropout(key: jax.Array | None, rate: float, x: jax.Array) -> jax.Array:
    """x with a random fraction of its elements zero and the others scaled up; without a key, x itself."""
    if key is None or rate == 0:
        return x
    first, second = jax.random.key_data(key)
    numbers = jax.lax.iota(jnp.uint32, x.size).reshape(x.shape)
    return jnp.where(
        hashed(numbers, first, second) >= kept_from(rate), x / (1 - rate), jnp.zeros((), x.dtype)
    )


def kept_from(rate: float) -> jax.Array:
    """The smallest random number whose element is not dropped."""
    return jnp.uint32(round(rate * 2**32))


def hashed(numbers: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
    """32 random bits for each number under a key: a tenth of threefry's work, enough for masks."""
    return _mixed(_mixed(numbers ^ first) + second)


def _mixed(x: jax.Array) -> jax.Array:
    # Multiply and xor-shift rounds: each input bit flips about half of the output's.
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)
