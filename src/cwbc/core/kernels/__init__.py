"""Parts of networks as GPU kernels, for what XLA computes far below the speed of the machine.

They are written in Pallas for Triton, which jax may drop some day; without it, plain operations do the same.
"""

from __future__ import annotations

import importlib.util

import jax
import jax.numpy as jnp

from cwbc.core.layers import Parameters

COLUMNS = 128  # hidden units that a program of the MLP takes
NARROW = (64, 128, 256)  # widths of an MLP whose hidden layers a program can hold
FEW_ROWS = 8192  # CQL's 7,936 are 1.2 times as fast as by plain matrix products; more were not measured
THIN = 64  # inputs and outputs of an MLP are fewer
MOST_TOKENS = 128  # of a window whose attention a program can hold


def do_mlp(layers: list[Parameters]) -> bool:
    """Whether there are kernels for an MLP: bfloat16, thin at both ends."""
    first, *middle, last = layers
    return (
        bool(middle)
        and _here(middle[0]["weight"])
        and len(middle[0]["weight"]) % COLUMNS == 0
        and len(first["weight"]) < THIN
        and len(last["bias"]) < THIN
    )


def do_narrow_mlp(layers: list[Parameters], x: jax.Array) -> bool:
    """Whether there are kernels for all layers of an MLP at once: bfloat16, a width that fits, few rows."""
    first, *middle, last = layers
    return (
        bool(middle)
        and x.ndim == 2
        and len(x) <= FEW_ROWS
        and _here(middle[0]["weight"])
        and len(middle[0]["weight"]) in NARROW
        and len(first["weight"]) < THIN
        and len(last["bias"]) < THIN
    )


def do_attention(qkv: jax.Array, heads: int) -> bool:
    """Whether there are kernels for attention: bfloat16, in sizes that one program can hold."""
    _, tokens, width = qkv.shape
    size = width // (3 * heads)
    return _here(qkv) and tokens <= MOST_TOKENS and 16 <= size <= 128 and size & (size - 1) == 0


def do_join(x: jax.Array, product: jax.Array) -> bool:
    """Whether there are kernels for `blocks.join`: bfloat16, in rows that a program can hold."""
    width = x.shape[-1]
    return _here(x) and _here(product) and 16 <= width <= 512 and width & (width - 1) == 0


def _here(x: jax.Array) -> bool:
    if jax.default_backend() != "gpu" or x.dtype != jnp.bfloat16:
        return False
    try:
        return importlib.util.find_spec("jax.experimental.pallas.triton") is not None
    except ImportError:  # of a package above it
        return False
