"""How a function of one seed becomes one of all seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


def over_seeds(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function over a leading seed axis: side by side on a GPU, in turn on a CPU.

    In turn, one seed's matrix products already fill the cores, and its result is bit for bit the same alone
    and among others.
    """
    if jax.default_backend() == "cpu":
        return lambda *arguments: jax.lax.map(lambda seed: function(*seed), arguments)
    return jax.vmap(function)
