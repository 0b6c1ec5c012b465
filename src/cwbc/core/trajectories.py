"""Logged episodes as flat read-only arrays: every reader returns them, and every method trains on them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.tasks import Task, task_for

ActionBounds = tuple[tuple[float, ...], tuple[float, ...]]  # min and max, [dimension] each, may be infinite
_BLOCK = 1 << 16  # rows that are read together, so that no check needs a second copy of the data
_IMAGES = 1 << 22  # bytes of images that are read together


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """Episodes laid end to end; episode e owns the steps starts[e] .. starts[e] + lengths[e] - 1."""

    name: str
    observations: NDArray[Any]  # [step, dimension] float32, or [step, height, width, channel] uint8
    actions: NDArray[np.float32] | NDArray[np.int32]  # [step, dimension], or [step] when discrete
    rewards: NDArray[np.float32]  # [step]
    starts: NDArray[np.int64]  # [episode]
    lengths: NDArray[np.int64]  # [episode]
    terminated: NDArray[np.bool_]  # [episode] ended by the environment, not by a time limit
    environment: str | None = None  # a Gymnasium id, where one fits
    time_limit: int | None = None  # the environment's longest episode, where known
    action_count: int | None = None  # the number of discrete actions
    action_bounds: ActionBounds | None = None  # the environment's, where known
    unfinished_steps: int = 0  # steps of a trailing episode without an end, which are left out
    observation_names: tuple[str, ...] = ()  # [dimension], where the source names them
    action_names: tuple[str, ...] = ()  # [dimension], where the source names them
    clipped_rewards: bool = False  # to [-1, 1]; then a policy clips those that it receives, too
    first_images: NDArray[np.int64] | None = None  # [episode] rows of its first observation, if not `starts`

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, field.name, _read_only(value.view()))

    def __repr__(self) -> str:
        return f"Trajectories({self.name!r}, episodes={self.episodes}, steps={self.steps})"

    def described(self, **facts: Any) -> Trajectories:
        """The same arrays with other facts about them; values computed from the arrays stay cached."""
        copy = dataclasses.replace(self, **facts)
        cached = ["returns", "returns_to_go", "observation_statistics", "observation_range"]
        cached += ["content_hash"] if copy.clipped_rewards == self.clipped_rewards else []
        copy.__dict__.update({name: self.__dict__[name] for name in cached if name in self.__dict__})
        return copy

    def with_clipped_rewards(self) -> Trajectories:
        """The same with rewards from -1 to 1, and so with other returns."""
        # What is not finite stays, for the checks to report.
        rewards = np.where(np.isfinite(self.rewards), self.rewards.clip(-1, 1), self.rewards)
        return dataclasses.replace(self, rewards=rewards, clipped_rewards=True)

    @property
    def discrete(self) -> bool:
        return self.actions.ndim == 1

    @property
    def has_images(self) -> bool:
        return self.observations.ndim > 2

    @property
    def is_mapped(self) -> bool:
        """Whether observations are a file that is mapped rather than read, as they exceed the memory."""
        return isinstance(self.observations, np.memmap)

    @property
    def observation_starts(self) -> NDArray[np.int64]:
        """The row of each episode's first observation. [episode]"""
        return self.starts if self.first_images is None else self.first_images

    @property
    def action_size(self) -> int:
        """Dimensions of a continuous action, or the number of discrete ones."""
        if not self.discrete:
            return self.actions.shape[1]
        return self.action_count or int(self.actions.max()) + 1

    @property
    def episodes(self) -> int:
        return len(self.starts)

    @property
    def steps(self) -> int:
        return len(self.rewards)

    @property
    def nbytes(self) -> int:
        """The size of the arrays of all steps."""
        return self.observations.nbytes + self.actions.nbytes + self.rewards.nbytes

    @property
    def horizon(self) -> int:
        """H, the longest an episode can be: the environment's limit, or the longest one logged."""
        return max(self.time_limit or 0, int(self.lengths.max()))

    @functools.cached_property
    def returns(self) -> NDArray[np.float64]:
        """R, the sum of an episode's rewards. [episode]"""
        return _read_only(np.add.reduceat(self.rewards, self.starts, dtype=np.float64))

    @property
    def tolerance(self) -> float:
        """Returns that are no further apart tie: in whatever unit, that much may be rounding."""
        return 1e-6 * (self.best - self.lowest)

    @functools.cached_property
    def returns_to_go(self) -> NDArray[np.float64]:
        """g_t, the sum of an episode's rewards from step t on. [step]"""
        # One running sum needs float64: in float32, a million rewards of 5.3 are off by up to 200.
        before = np.cumsum(self.rewards, dtype=np.float64)
        np.subtract(before, self.rewards, out=before)
        ends = before[self.starts] + self.returns
        return _read_only(np.subtract(np.repeat(ends, self.lengths), before, out=before))

    @property
    def timesteps(self) -> NDArray[np.int64]:
        """t, counted from 0 in every episode. [step]"""
        return np.arange(self.steps) - np.repeat(self.starts, self.lengths)

    @property
    def lowest(self) -> float:
        return float(self.returns.min())

    @property
    def best(self) -> float:
        """r*, the highest return in the dataset."""
        return float(self.returns.max())

    @property
    def task(self) -> Task:
        """The reference returns for this data: published ones of its environment, or the data's own."""
        return task_for(self.environment, self.lowest, self.best)

    @functools.cached_property
    def observation_statistics(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Mean and std of each dimension of vector observations; for a constant one, its size is the std."""
        # Two passes in float64 blocks: exact enough for any range, without a float64 copy of the data.
        total = np.zeros(self.observations.shape[1])
        for _, block in blocks(self.observations):
            total += block.sum(axis=0, dtype=np.float64)
        mean = total / self.steps
        squares = np.zeros_like(mean)
        for _, block in blocks(self.observations):
            squares += np.square(block - mean).sum(axis=0)
        std = np.sqrt(squares / self.steps)
        # No epsilon is added, as it would be in the observation's unit. A dimension that varies by no more
        # than rounding is constant: divided by that std, a small change while acting would be a huge one.
        size = np.sqrt(np.square(mean) + np.square(std))
        std = np.where(std <= 1e-6 * size, np.where(size > 0, size, 1.0), std)
        return mean.astype(np.float32), std.astype(np.float32)

    @functools.cached_property
    def observation_range(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Min and max of each dimension of vector observations."""
        return self.observations.min(axis=0), self.observations.max(axis=0)

    @functools.cached_property
    def content_hash(self) -> str:
        """SHA-256 over every array, which identifies the data wherever it is stored."""
        digest = hashlib.sha256()
        for array in (
            self.observations, self.actions, self.rewards, self.starts, self.lengths, self.terminated
        ):  # fmt: skip
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        if self.clipped_rewards:  # with which the same arrays make another policy
            digest.update(b"clipped rewards")
        return digest.hexdigest()


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def blocks(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """The rows of an array, many at a time, each block with the number of its first row."""
    rows = _BLOCK if array.ndim < 3 else images_together(array[:1].nbytes)
    for first in range(0, len(array), rows):
        yield first, array[first : first + rows]


def images_together(size: int) -> int:
    """How many images of so many bytes are read together."""
    return max(1, _IMAGES // max(1, size))
