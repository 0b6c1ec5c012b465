"""The two halves of a transformer's block, in the precision of its weights but for norms and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from cwbc.core import kernels
from cwbc.core.layers import Parameters, dense, dropout, for_rows, relu, standardized

Stream = tuple[jax.Array, jax.Array]  # tokens, and the same standardized. [window, token, width]
Wanted = Callable[[jax.Array], jax.Array]  # the tokens of an array that are of use. [window, token, ...]


def every_token(tokens: jax.Array) -> jax.Array:
    return tokens


def attend(
    block: Parameters,
    x: jax.Array,
    normal: jax.Array,
    heads: int,
    rate: float,
    keys: list[jax.Array | None],
    wanted: Wanted = every_token,
) -> Stream:
    """The wanted tokens after each looked at itself and at those before it."""
    attention_key, out_key = keys
    qkv, bias = normal @ block["qkv"]["weight"], block["qkv"]["bias"]
    if kernels.do_attention(qkv, heads):
        from cwbc.core.kernels.attention import attention as attention_on_chip

        mixed = wanted(attention_on_chip(qkv, bias, heads, rate, attention_key))
    else:
        mixed = attention(qkv, bias, heads, rate, attention_key, wanted)
    return join(wanted(x), mixed @ block["out"]["weight"], block["out"]["bias"], rate, out_key)


def attention(
    qkv: jax.Array,  # [window, token, 3 * width] without bias
    bias: jax.Array,  # [3 * width]
    heads: int,
    rate: float,
    key: jax.Array | None,
    wanted: Wanted = every_token,
) -> jax.Array:  # [window, token, width]
    """Causal attention of the wanted tokens, with dropout."""
    windows, tokens, width = qkv.shape
    q, k, v = jnp.moveaxis((qkv + bias).reshape(windows, tokens, 3, heads, -1), 2, 0)
    q = wanted(q)
    scores = jnp.einsum("wqhd,wkhd->whqk", q, k) / math.sqrt(q.shape[-1])
    order = jnp.arange(tokens)
    visible = order <= wanted(order[None])[0][:, None]
    scores = jnp.where(visible, scores.astype(jnp.float32), -jnp.inf)
    attended = dropout(key, rate, jax.nn.softmax(scores, axis=-1))
    return jnp.einsum("whqk,wkhd->wqhd", attended.astype(v.dtype), v).reshape(windows, -1, width // 3)


def mix(block: Parameters, x: jax.Array, normal: jax.Array, rate: float, key: jax.Array | None) -> Stream:
    """Every token by itself goes through a wider layer."""
    hidden = relu(dense(block["up"], normal))
    return join(x, hidden @ block["down"]["weight"], block["down"]["bias"], rate, key)


def join(x: jax.Array, product: jax.Array, bias: jax.Array, rate: float, key: jax.Array | None) -> Stream:
    """The stream plus a layer's output, with dropout."""
    if kernels.do_join(x, product):
        from cwbc.core.kernels.joining import join as join_on_chip

        return join_on_chip(x, product, bias, rate, key)
    x = x + dropout(key, rate, product + for_rows(bias, product))
    return x, standardized(x).astype(product.dtype)
