"""Tables that are arrays already: in memory, in an NPZ file, or in an HDF5 file of D4RL's layout."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.datasets import limits
from cwbc.datasets.source import Column, Kind
from cwbc.datasets.tables import assemble
from cwbc.errors import InputError
from cwbc.trajectories import Trajectories

_KINDS: dict[str, Kind] = {
    "f": "real", "i": "whole", "u": "whole", "b": "truth", "U": "text", "S": "text", "M": "time", "m": "time"
}  # fmt: skip


_Described = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]  # the shape and type of arrays by name


class ArrayTable:
    """Arrays with one row per step: each is a column, and one of two dimensions is a column of lists."""

    unit: str = "row"
    first_row: int = 0

    def __init__(
        self,
        source: str,
        described: _Described,
        fetch: Callable[[str, type | None], NDArray[Any]],
        stored: int | None = None,
    ) -> None:
        """Nothing is read yet.

        Args:
            stored: the bytes of the file that the arrays are in; None where they are in memory.
        """
        self.source, self._fetch = source, fetch
        _check_flat(source, described)
        self.rows = _rows(described)
        self.columns: dict[str, Column] = {
            name: _column(name, *what, self.rows) for name, what in described.items()
        }
        if stored is not None:
            used = [what for name, what in described.items() if self.columns[name].kind != "other"]
            # Of what is kept, every number takes four bytes, also of an image that has one for it.
            size = sum(math.prod(shape) * max(dtype.itemsize, 4) for shape, dtype in used)
            in_file = sum(math.prod(shape) * dtype.itemsize for shape, dtype in used)
            limits.check(source, size, stored, size / max(in_file, 1))

    def read(self, names: Sequence[str], dtype: type | None = None) -> Iterator[list[NDArray[Any]]]:
        """These columns, all rows at once."""
        yield [self._fetch(name, dtype) for name in names]


def from_arrays(
    name: str,
    observations: NDArray[Any],
    actions: NDArray[Any],
    rewards: NDArray[Any],
    terminals: NDArray[Any],
    timeouts: NDArray[Any],
    environment: str | None = None,
    time_limit: int | None = None,
    action_count: int | None = None,
) -> Trajectories:
    """Trajectories from step arrays in which `terminals` or `timeouts` mark each episode's last step.

    Args:
        observations: [step, dimension].
        actions: [step, dimension] of real numbers, or [step] of whole ones: then they are discrete.
        terminals: [step] the environment ended the episode here.
        timeouts: [step] a time limit, or the end of the log, cut it off here.
        environment: a Gymnasium id, where one fits.
        time_limit: H, the longest that an episode can be; without it, the longest one here.
        action_count: the number of discrete actions; without it, as many as are seen.
    """
    arrays = {
        "observations": observations,
        "actions": actions,
        "rewards": rewards,
        "terminals": terminals,
        "timeouts": timeouts,
    }
    arrays = {key: np.asarray(array) for key, array in arrays.items()}
    table = ArrayTable(
        name, {key: (array.shape, array.dtype) for key, array in arrays.items()}, lambda key, _: arrays[key]
    )
    recording = assemble(table, name)
    data = dataclasses.replace(
        recording.data,
        name=name,
        environment=environment,
        time_limit=time_limit,
        action_count=action_count,
    )
    return dataclasses.replace(recording, data=data).trusted()


def _column(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], rows: int) -> Column:
    if dtype.kind == "O" and not dtype.metadata:  # HDF5's texts have some
        remedy = "save plain arrays of numbers: objects would need pickle, which is never read"
        return Column(name, "other", spelled="Python objects", remedy=remedy)
    if len(shape) not in (1, 2) or shape[0] != rows or 0 in shape:
        there = f", where there are {rows:,} rows" if shape[:1] != (rows,) else ""
        return Column(name, "other", spelled=f"an array of shape {shape}{there}")
    return Column(name, _KINDS.get(dtype.kind, "other"), shape[1] if len(shape) == 2 else None, str(dtype))


def _check_flat(source: str, described: _Described) -> None:
    """Refuse arrays with a row for each episode instead of each step."""
    per_step = _reward_shape(described)
    for name, (shape, _) in described.items():
        if len(per_step) == 2 and len(shape) == 3 and shape[:2] == per_step:
            count = shape[0] * shape[1]
            raise InputError(
                f"{source}: {name} has the shape {shape}, a row for each episode; lay the episodes end to "
                f"end, as ({count}, {shape[2]}) and the rewards as ({count},), and mark the last step of each"
            )


def _rows(described: _Described) -> int:
    if per_step := _reward_shape(described):
        return per_step[0]
    return max((shape[0] for shape, _ in described.values() if shape), default=0)


def _reward_shape(described: _Described) -> tuple[int, ...]:
    """The shape of the rewards, whose count is the surest: one per step. Empty where there are none."""
    for name in ("rewards", "reward"):
        if name in described and (shape := described[name][0]):
            return shape
    return ()
