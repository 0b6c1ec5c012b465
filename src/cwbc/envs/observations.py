"""Observations of any space as vectors, with the same layout in logged data and in a live environment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.system.errors import InputError

Space = spaces.Space[Any]


def size(space: Space) -> int:
    """The dimensions of an observation."""
    return sum(spaces.flatdim(part) for _, part, _ in _parts(space))


def is_image(space: Space) -> bool:
    """Whether observations are images: bytes of two dimensions, or of three with channels last."""
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)


def dtype(space: Space) -> np.dtype[np.floating[Any]]:
    """The type that represents a floating-point space exactly; float32 for integers."""
    kinds = {part.dtype for _, part, _ in _parts(space)}
    return np.result_type(*(k if k is not None and k.kind == "f" else np.float32 for k in kinds))


def names(space: Space) -> tuple[str, ...]:
    """The name of each dimension: `position[3]` is an entry of an array, `door=2` one of several values."""
    found: list[str] = []
    for name, part, _ in _parts(space):
        places = np.ndindex(part.shape or ())
        entries = [f"{name}[{','.join(map(str, place))}]" if place else name for place in places]
        if isinstance(part, spaces.Discrete | spaces.MultiDiscrete):
            choices = zip(entries, *_choices(part), strict=True)
            entries = [f"{entry}={start + i}" for entry, count, start in choices for i in range(count)]
        found += entries
    return tuple(found)


def flatten(space: Space, observation: Any) -> NDArray[np.floating[Any]]:
    """One observation of a live environment. [size]"""
    parts: list[Any] = [spaces.flatten(part, values) for _, part, values in _parts(space, observation)]
    return np.concatenate(parts, dtype=dtype(space), casting="same_kind")


def flatten_batch(space: Space, observations: Any, count: int) -> NDArray[np.floating[Any]]:
    """Logged observations: an array, or a dictionary or tuple of arrays, with one row each. [count, size]"""
    rows = np.empty((count, size(space)), dtype(space))
    column = 0
    for name, part, logged in _parts(space, observations):
        block = rows[:, column : column + spaces.flatdim(part)]
        column += block.shape[1]
        values, shape = np.asarray(logged), (count, *(part.shape or ()))
        if values.shape[:1] != (count,) or values.size != math.prod(shape):
            raise InputError(f"'{name}' has values of shape {values.shape}; expected {shape}")
        if isinstance(part, spaces.Discrete | spaces.MultiDiscrete):
            _one_hot(block, name, part, values)
        else:
            block[:] = values.reshape(block.shape)
    return rows


def _parts(space: Space, values: Any = None, name: str = "") -> Iterator[tuple[str, Space, Any]]:
    """The arrays of an observation: the name, space and values of each; without values, None."""
    if isinstance(space, spaces.Dict):
        # Gymnasium sorts some keys, Minari sorts them all: only sorted ones have the same layout in the data
        # and in its environment.
        for key, inner in sorted(space.spaces.items(), key=lambda item: str(item[0])):
            path = f"{name}.{key}" if name else str(key)
            yield from _parts(inner, _at(values, key, path), path)
    elif isinstance(space, spaces.Tuple):
        for place, inner in enumerate(space.spaces):
            path = f"{name or 'observation'}[{place}]"
            yield from _parts(inner, _at(values, place, path), path)
    elif isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiBinary | spaces.MultiDiscrete):
        yield name or "observation", space, values
    else:
        raise InputError(
            f"'{name or 'observation'}' is in a {type(space).__name__} space, which has no fixed "
            "dimensions; Box, Discrete, MultiBinary, MultiDiscrete, and Dict and Tuple of these have"
        )


def _at(values: Any, key: Any, path: str) -> Any:
    if values is None:
        return None
    try:
        return values[key]
    except (KeyError, IndexError, TypeError) as error:
        raise InputError(f"'{path}' is in the observation space, but not among the observations") from error


def _one_hot(block: NDArray[np.floating[Any]], name: str, space: Space, values: NDArray[Any]) -> None:
    """Write the one-hot encoding of every discrete value."""
    counts, starts = _choices(space)
    chosen = values.reshape(len(block), len(counts))
    if chosen.dtype.kind not in "iub":
        raise InputError(f"'{name}' holds {chosen.dtype}; {space} has integers")
    places = chosen.astype(np.int64) - starts
    if ((places < 0) | (places >= counts)).any():
        found = f"from {chosen.min()} to {chosen.max()}"
        raise InputError(f"'{name}' has values {found}, not all of which are in {space}")
    block[:] = 0
    block[np.arange(len(block))[:, None], np.cumsum(counts) - counts + places] = 1


def _choices(space: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of values of every discrete variable, and the first of them. [variable]"""
    counts = space.n if isinstance(space, spaces.Discrete) else space.nvec
    return np.ravel(counts).astype(np.int64), np.ravel(space.start).astype(np.int64)
