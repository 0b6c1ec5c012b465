"""Products inside of kernels: bfloat16 factors, or float32 ones as two halves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def dot(a: jax.Array, b: jax.Array, contract: tuple[int, int]) -> jax.Array:
    """A product of float32 factors, each the sum of two halves; that of the two low ones is too small."""
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    small = product(a_low, b_high, contract) + product(a_high, b_low, contract)
    return product(a_high, b_high, contract) + small


def halves(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    high = x.astype(jnp.bfloat16)
    return high, (x - high.astype(jnp.float32)).astype(jnp.bfloat16)


def product(a: jax.Array, b: jax.Array, contract: tuple[int, int]) -> jax.Array:
    dimensions = (((contract[0],), (contract[1],)), ((), ()))
    return jax.lax.dot_general(a, b, dimensions, preferred_element_type=jnp.float32)


def padded_size(size: int) -> int:
    return max(16, pl.next_power_of_2(size))
