"""Reads folders of Google's DQN-replay files: one gzip-compressed NumPy array per column and checkpoint."""

from __future__ import annotations

import dataclasses
import gzip
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.data.checks import Recording
from cwbc.data.dqn_replay import Part, ReplayOptions, files
from cwbc.data.formats.arrays import ArrayHeader, read_header
from cwbc.data.formats.protection import check_regular, check_size, decoding
from cwbc.data.issues import Issue, Origin
from cwbc.data.store import contained
from cwbc.system.errors import InputError
from cwbc.system.progress import Progress

_FORMAT = "a gzip-compressed NumPy array"
_AT_ONCE = 1 << 24  # bytes between two reports of progress
# Dimensions, possible kinds of the type, and both in words.
_EXPECTED: dict[Part, tuple[int, str, str]] = {
    "observation": (3, "u", "uint8 [step, height, width]"),
    "action": (1, "iu", "integers [step]"),
    "reward": (1, "fiu", "numbers [step]"),
    "terminal": (1, "iub", "0 or 1 [step]"),
}
_Report = Callable[[int], None]


def read(path: Path, options: ReplayOptions, progress: Progress | None = None) -> Recording:
    """The finished episodes of each checkpoint, cut at its terminals."""
    checkpoints = [
        _Checkpoint.of(number, parts, options.checkpoint_steps)
        for number, parts in files(path, options).items()
    ]
    _check_alike(checkpoints)
    stored = sum(array.path.stat().st_size for each in checkpoints for array in each.arrays.values())
    check_size(path, sum(each.nbytes for each in checkpoints), stored)
    lasts = [each.last_steps() for each in checkpoints]
    finished = [int(last[-1]) + 1 if last.size else 0 for last in lasts]
    total, shape = sum(finished), checkpoints[0].arrays["observation"].header.shape[1:]
    if not total:
        raise InputError(f"{path}: no episode ends in the steps that are read; terminals mark the last steps")
    observations = np.empty((total, *shape, 1), np.uint8)
    done, kept = 0, sum(each.steps for each in checkpoints) * math.prod(shape)

    def report(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, kept)

    ends = np.cumsum(finished)
    for each, end, count in zip(checkpoints, ends, finished, strict=True):
        each.arrays["observation"].read_into(observations[end - count : end], each.steps, report)
    rewards = _joined(checkpoints, finished, "reward").astype(np.float32)
    lengths = np.concatenate([np.diff(last, prepend=-1) for last in lasts])
    data = Trajectories(
        name=contained(path.resolve().name),
        observations=observations,
        actions=_joined(checkpoints, finished, "action").clip(-1, 2**31 - 1).astype(np.int32),
        rewards=rewards,
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        terminated=np.ones(len(lengths), bool),
        unfinished_steps=sum(each.steps for each in checkpoints) - total,
        clipped_rewards=bool((np.abs(rewards) <= 1).all()),  # as DQN stores them
    )
    labels = [
        f"{episode} of checkpoint {each.number}"
        for each, last in zip(checkpoints, lasts, strict=True)
        for episode in range(len(last))
    ]
    rows = np.concatenate([np.arange(count) for count in finished])
    origin = Origin(str(path), rows=rows, episodes=labels, in_order=True)
    return Recording(data, origin, tuple(_unfinished(checkpoints, finished)))


@dataclasses.dataclass(frozen=True)
class _PackedArray:
    """An array in a file of its own, whose rows are decompressed when they are needed."""

    path: Path
    header: ArrayHeader

    @classmethod
    def of(cls, path: Path) -> _PackedArray:
        check_regular(path)
        with decoding(path, _FORMAT), gzip.open(path) as file:
            return cls(path, read_header(file))

    def read_into(self, rows: NDArray[Any], steps: int, report: _Report = lambda count: None) -> None:
        """Read the first rows; of `steps` rows, the others are only checked."""
        with decoding(self.path, _FORMAT), gzip.open(self.path) as file:
            file.read(self.header.size)
            place = rows.reshape(-1).view(np.uint8)
            left = steps * self.header.row_size - place.size
            while place.size:
                if not (count := file.readinto(place[:_AT_ONCE].data)):
                    raise EOFError("it ends before its last row")
                place = place[count:]
                report(count)
            while left:
                if not (count := len(file.read(min(left, _AT_ONCE)))):
                    raise EOFError("it ends before its last row")
                left -= count
                report(count)
            # At its end, a file is compared with its checksum.
            if steps == self.header.shape[0] and file.read(1):
                raise ValueError("it goes on after its last row")


@dataclasses.dataclass(frozen=True)
class _Checkpoint:
    """The arrays of one checkpoint, and how many of its steps are read."""

    number: int
    arrays: dict[Part, _PackedArray]
    steps: int

    @classmethod
    def of(cls, number: int, paths: dict[Part, Path], most: int | None) -> _Checkpoint:
        """A checkpoint whose arrays are as they should be."""
        arrays = {part: _PackedArray.of(path) for part, path in paths.items()}
        for part, array in arrays.items():
            _check_array(array, part)
        count = arrays["observation"].header.shape[0]
        for array in arrays.values():
            if (other := array.header.shape[0]) != count:
                first = arrays["observation"].path.name
                raise InputError(f"{array.path} has {other:,} steps, but {first} has {count:,}")
        return cls(number, arrays, count if most is None else min(most, count))

    @property
    def nbytes(self) -> int:
        """The size of the steps that are read."""
        return self.steps * sum(array.header.row_size for array in self.arrays.values())

    def column(self, part: Part) -> NDArray[Any]:
        """One number per step."""
        array = self.arrays[part]
        values = np.empty(self.steps, array.header.dtype)
        array.read_into(values, self.steps)
        return values

    def last_steps(self) -> NDArray[np.int64]:
        """The last step of each episode. [episode]"""
        terminals = self.column("terminal")
        if (wrong := np.flatnonzero((terminals != 0) & (terminals != 1))).size:
            where = f"{terminals[wrong[0]]} at step {wrong[0]}"
            raise InputError(f"{self.arrays['terminal'].path} holds {where}; expected 0, or 1 at last steps")
        return np.flatnonzero(terminals)


def _check_array(array: _PackedArray, part: Part) -> None:
    header, (dimensions, kinds, words) = array.header, _EXPECTED[part]
    is_image = part == "observation"
    if (
        len(header.shape) != dimensions
        or header.dtype.kind not in kinds
        or (is_image and header.dtype != np.uint8)
        or (is_image and header.fortran_order)
        or 0 in header.shape
    ):
        order = " in Fortran order" * header.fortran_order
        found = f"{header.dtype} of shape {header.shape}{order}"
        raise InputError(f"{array.path} holds {found}; expected {words}")


def _check_alike(checkpoints: list[_Checkpoint]) -> None:
    first, *others = (each.arrays["observation"] for each in checkpoints)
    for other in others:
        if (found := other.header.shape[1:]) != (expected := first.header.shape[1:]):
            raise InputError(
                f"{other.path} has images of {found[0]} x {found[1]} pixels, but {first.path.name} of "
                f"{expected[0]} x {expected[1]}; choose checkpoints of one size with --checkpoints"
            )


def _joined(checkpoints: Iterable[_Checkpoint], finished: list[int], part: Part) -> NDArray[Any]:
    """A column of the finished episodes of all checkpoints. [step]"""
    columns = zip(checkpoints, finished, strict=True)
    return np.concatenate([each.column(part)[:count] for each, count in columns])


def _unfinished(checkpoints: list[_Checkpoint], finished: list[int]) -> Iterable[Issue]:
    """A warning of the steps after the last terminal of each checkpoint."""
    left = {each.number: each.steps - count for each, count in zip(checkpoints, finished, strict=True)}
    if steps := sum(left.values()):
        numbers = [str(number) for number, count in left.items() if count]
        which = ", ".join(numbers[:5]) + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
        what = f"the last {steps:,} steps of checkpoints {which} are episodes without an end"
        yield Issue("warning", what, "they are excluded", count=steps)
