"""What depends on the device: how seeds share it, and the precision that pays there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax


def over_seeds(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function over a leading seed axis: side by side on a GPU, in turn on a CPU.

    In turn, one seed's matrix products already fill the cores, and its result is bit for bit the same alone
    and among others.
    """
    if jax.default_backend() == "cpu":
        return lambda *arguments: jax.lax.map(lambda seed: function(*seed), arguments)
    return jax.vmap(function)


def default_precision() -> Literal["float32", "bfloat16"]:
    """bfloat16 products are a third faster or more on a GPU, and slower on a CPU."""
    return "float32" if jax.default_backend() == "cpu" else "bfloat16"
