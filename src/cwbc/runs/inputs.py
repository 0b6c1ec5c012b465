"""What callers give a policy: numbers, and observations by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.spaces import Image, ObservationSpace, Vector
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


def read(space: ObservationSpace, observation: Any, episodes: tuple[int, ...]) -> NDArray[np.float32]:
    """An observation of a space as an array, checked. [*episodes, ...]"""
    expected, names = (*episodes, *space.shape), names_of(space)
    named = is_named(observation)
    given = in_order(observation, names, episodes) if named and names else numbers(observation)
    if given is None or (named and not names):
        why = "; by name it cannot be given, as the policy's data had no names" * named
        raise InputError(f"an observation is numbers of shape {expected}; got {observation!r:.60}{why}")
    with np.errstate(over="ignore"):
        observations = given.astype(np.float32)
    if isinstance(space, Image) and space.channels == 1 and observations.shape == expected[:-1]:
        observations = observations[..., None]  # as data without channels is read
    if observations.shape != expected:
        raise InputError(f"the observation has shape {observations.shape}; expected {expected}")
    valid = space.is_valid(observations)
    if not valid.all():
        place = np.argwhere(~valid)[0].tolist()
        name = f" ({names[place[-1]]})" if names else ""
        raise InputError(
            f"an observation is {space.values}; got {observations[tuple(place)]} at {place}{name}"
        )
    return observations


def names_of(space: ObservationSpace) -> tuple[str, ...]:
    """The names of the dimensions; none where the data had none."""
    return space.names if isinstance(space, Vector) else ()


def far_outside(
    space: ObservationSpace,
    observations: NDArray[Any],  # [episode, dimension]
    warned: NDArray[np.bool_],  # [episode, dimension] of which there was a warning: updated in place
    several: bool,
) -> Iterator[str]:
    """Warnings of values far outside of the data, once for each dimension of an episode."""
    if not (isinstance(space, Vector) and space.lowest):
        raise InputError("warn_outside needs the ranges of the data, and this policy's file has none")
    outside = space.far_outside(observations) & ~warned
    warned |= outside
    for episode, place in np.argwhere(outside).tolist():
        name = space.names[place] if space.names else f"dimension {place}"
        which = f" in episode {episode}" if several else ""
        value = f"the observation's {name} is {observations[episode, place]:g}{which}"
        known = f"{space.lowest[place]:g} to {space.highest[place]:g}"
        yield f"{value}, far outside of the data ({known})"


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
    observation = _with_entries(observation, names, episodes)
    given = list(observation)
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


def _with_entries(observation: Any, names: Sequence[str], episodes: tuple[int, ...]) -> dict[Any, Any]:
    """The observation, with `goal[0]`, `goal[1]`, ... for an array `goal`, as goal environments have."""
    found = {name: observation[name] for name in observation.keys()}  # noqa: SIM118
    for part in [name for name in found if name not in names]:
        if (
            any(name.startswith(f"{part}[") for name in names)
            and (values := numbers(found[part])) is not None
        ):
            for place in np.ndindex(values.shape[len(episodes) :]):
                found[f"{part}[{','.join(map(str, place))}]"] = values[(..., *place)]
    return found
