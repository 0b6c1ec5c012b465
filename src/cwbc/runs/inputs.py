"""What callers give a policy: numbers, and observations by name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.system.errors import InputError


def numbers(values: Any) -> NDArray[np.float64] | None:
    """Values as an array, or None where they are no numbers: NumPy would take the text "600" for one."""
    try:
        array = np.asarray(values)
        return None if array.dtype.kind in "USMmcO" else array.astype(np.float64)
    except (TypeError, ValueError):  # such as lists of lists of several lengths
        return None


def fit(values: NDArray[np.float64]) -> bool:
    """Whether numbers are finite in float32, too, which networks compute in."""
    return bool((np.abs(values) <= np.finfo(np.float32).max).all())


def is_named(observation: Any) -> bool:
    """Whether an observation is given by name: a mapping, a row of a table or a table, or a list of them."""
    if isinstance(observation, list | tuple):
        return any(map(is_named, observation))
    return hasattr(observation, "keys") and any(isinstance(name, str) for name in observation.keys())  # noqa: SIM118


def in_order(observation: Any, names: Sequence[str], episodes: tuple[int, ...]) -> NDArray[np.float64]:
    """An observation given by name, in the order of the names. [*episodes, dimension]"""
    if isinstance(observation, list | tuple):
        if (len(observation),) != episodes or not all(map(is_named, observation)):
            wanted = f"{episodes[0]}, one for each episode" if episodes else "one, not a list"
            raise InputError(f"observations by name: expected {wanted}; got {observation!r:.60}")
        return np.stack([in_order(each, names, ()) for each in observation])
    given = list(observation.keys())
    if missing := [name for name in names if name not in given]:
        near = {
            name: difflib.get_close_matches(name, [str(key) for key in given if key not in names], 1)
            for name in missing
        }
        hints = [f"{found[0]!r} may be meant for {name!r}" for name, found in near.items() if found]
        raise InputError("; ".join([f"the observation lacks {', '.join(missing)}", *hints]))
    columns = []
    for name in names:
        values = numbers(observation[name])
        if values is None or values.shape != episodes:
            wanted = f"numbers of shape {episodes}" if episodes else "a number"
            raise InputError(f"the observation's {name} is {wanted}; got {observation[name]!r:.60}")
        columns.append(values)
    return np.stack(columns, axis=-1)
