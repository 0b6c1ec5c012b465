"""Observation and action spaces: how observations and actions enter a network, and how actions come out."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from cwbc.core.trajectories import ActionBounds, Trajectories
from cwbc.system.errors import InputError, require

WIDEST = 4.0  # times the range of the logged actions: wider bounds are ignored
Arrays = tuple[Any, ...]  # the numbers of a space, which programs take as arguments


@dataclasses.dataclass(frozen=True)
class Vector:
    """Vector observations, normalized by the dataset's mean and standard deviation."""

    mean: tuple[float, ...]  # [dimension], float32
    std: tuple[float, ...]  # [dimension], float32, above 0
    # What the data is known by, which changes no computation; files of earlier versions lack it.
    names: tuple[str, ...] = dataclasses.field(default=(), compare=False, metadata={"added": True})
    lowest: tuple[float, ...] = dataclasses.field(default=(), compare=False, metadata={"added": True})
    highest: tuple[float, ...] = dataclasses.field(default=(), compare=False, metadata={"added": True})

    dtype, stack, is_stacked, values = np.float32, 1, False, "finite numbers"

    def __post_init__(self) -> None:
        if not 0 < len(self.mean) == len(self.std) or min(self.std) <= 0:
            sizes = f"{len(self.mean)} means and {len(self.std)} stds from {min(self.std, default=0)}"
            raise InputError(f"{sizes}; expected as many, at least one, and stds above 0")
        for name in ("names", "lowest", "highest"):
            if (count := len(getattr(self, name))) not in (0, len(self.mean)):
                raise InputError(f"{name} has {count} values, where there are {len(self.mean)} dimensions")
        if len(self.lowest) != len(self.highest):
            raise InputError("there is only one of lowest and highest; expected both")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation."""
        return (len(self.mean),)

    @property
    def encoded_shape(self) -> tuple[int, ...]:
        """Of one observation as a network reads it."""
        return self.shape

    @property
    def form(self) -> Vector:
        """The static part of a compiled program."""
        size = len(self.mean)
        return Vector((0.0,) * size, (1.0,) * size)

    @functools.cached_property
    def arrays(self) -> Arrays:
        """Mean and standard deviation. [dimension]"""
        return np.array(self.mean, np.float32), np.array(self.std, np.float32)

    def is_valid(self, observations: NDArray[Any]) -> NDArray[np.bool_]:
        """Which numbers can be in an observation."""
        return np.isfinite(observations)

    def far_outside(self, observations: NDArray[Any]) -> NDArray[np.bool_]:
        """Which numbers are beyond the data by more than a tenth of its range."""
        lowest, highest = np.array(self.lowest), np.array(self.highest)
        room = np.maximum(0.1 * (highest - lowest), 1e-6 * np.maximum(np.abs(lowest), np.abs(highest)))
        return (observations < lowest - room) | (observations > highest + room)

    def received(self, observations: Any) -> Any:
        """Observations while acting, normalized."""
        mean, std = self.arrays
        return (observations.astype(np.float32) - mean) / std

    def sampled(self, observations: jax.Array, arrays: Arrays) -> jax.Array:
        """Sampled observations [..., dimension] as a network reads them: `received`, to the last bit."""
        # By one row for all, the compiler would not divide but multiply with the reciprocal, which rounds
        # differently; a divisor that seems to depend on the observations prevents that.
        mean, std = arrays
        divisors = jnp.where(jnp.isnan(observations), jnp.nan, std)
        return (observations.astype(np.float32) - mean) / divisors

    def rows_read(self, rows: Any, first_rows: Any) -> Any:
        """The rows whose observations a step reads: its own."""
        return rows


@dataclasses.dataclass(frozen=True)
class Image:
    """Images of bytes; a network reads the last `stack` frames, which are stacked as they are sampled."""

    height: int
    width: int
    channels: int
    stack: int = 1

    dtype, is_stacked, values = np.uint8, True, "bytes, 0 to 255"

    def __post_init__(self) -> None:
        for name, size in dataclasses.asdict(self).items():
            require(1 <= size < 2**31, name, size, f"1 to {2**31 - 1:,}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation."""
        return self.height, self.width, self.channels

    @property
    def encoded_shape(self) -> tuple[int, ...]:
        """Of one observation as a network reads it: the frames are channels of one image."""
        return self.height, self.width, self.channels * self.stack

    @property
    def form(self) -> Image:
        """The static part of a compiled program."""
        return self

    @property
    def arrays(self) -> Arrays:
        """None: bytes need no statistics."""
        return ()

    def is_valid(self, observations: NDArray[Any]) -> NDArray[np.bool_]:
        """Which numbers can be in an observation."""
        return (observations >= 0) & (observations <= 255) & (observations % 1 == 0)

    def received(self, observations: Any) -> Any:
        """Observations while acting, unchanged."""
        return observations.astype(np.uint8)

    def sampled(self, frames: jax.Array, arrays: Arrays = ()) -> jax.Array:
        """Frames [..., frame, height, width, channel] as a network reads them: as channels of one image."""
        return jnp.moveaxis(frames, -4, -2).reshape(*frames.shape[:-4], *self.encoded_shape)

    def rows_read(self, rows: Any, first_rows: Any) -> Any:
        """The rows whose observations a step reads [..., frame]; the first of an episode is repeated.

        Args:
            first_rows: the first row of each step's episode.
        """
        return (rows[..., None] - np.arange(self.stack)[::-1]).clip(first_rows[..., None])


ObservationSpace = Vector | Image


def observation_space(data: Trajectories, frame_stack: int) -> ObservationSpace:
    """The space of a dataset's observations; only images are stacked."""
    if data.has_images:
        height, width, channels = data.observations.shape[1:]
        return Image(height, width, channels, frame_stack)
    numbers = (tuple(each.tolist()) for each in (*data.observation_statistics, *data.observation_range))
    mean, std, lowest, highest = numbers
    return Vector(mean, std, data.observation_names, lowest, highest)


@dataclasses.dataclass(frozen=True)
class Continuous:
    """Continuous actions between two bounds: the environment's where they are known, else the data's own."""

    lowest: tuple[float, ...]  # [dimension]
    highest: tuple[float, ...]  # [dimension]

    @classmethod
    def of(cls, actions: NDArray[Any], bounds: ActionBounds | None = None) -> Continuous:
        """The bounds of logged actions [step, dimension], and of their environment."""
        lowest, highest = actions.min(axis=0).astype(np.float64), actions.max(axis=0).astype(np.float64)
        if bounds is not None:
            low, high = np.minimum(lowest, bounds[0]), np.maximum(highest, bounds[1])
            # With very wide bounds, such as the largest float, the data would be a tiny part of the range.
            near = high - low <= WIDEST * (highest - lowest)
            lowest, highest = np.where(near, low, lowest), np.where(near, high, highest)
        constant = lowest == highest  # an action that is always 5 has the bounds 0 and 10
        room = constant * np.where(lowest == 0, 1.0, np.abs(lowest))
        return cls(tuple((lowest - room).tolist()), tuple((highest + room).tolist()))

    def __post_init__(self) -> None:
        if not self.lowest or len(self.lowest) != len(self.highest):
            sizes = f"{len(self.lowest)} and {len(self.highest)}"
            raise InputError(f"lowest and highest have {sizes} dimensions; expected as many, at least 1")
        for number, (low, high) in enumerate(zip(self.lowest, self.highest, strict=True)):
            if not low < high:
                raise InputError(f"dimension {number} is from {low} to {high}; expected the lower first")

    @property
    def size(self) -> int:
        """Dimensions of an action."""
        return len(self.lowest)

    def encode(self, actions: jax.Array) -> jax.Array:
        """Logged actions as a network reads them, from -1 to 1. [..., size]"""
        middle, half = self._middle_and_half(actions.dtype)
        return (actions - middle) / half

    def loss(self, outputs: jax.Array, actions: jax.Array) -> jax.Array:
        """Squared error per step, averaged over the action's dimensions."""
        return jnp.mean(jnp.square(jnp.tanh(outputs) - self.encode(actions)), axis=-1)

    def choose(self, outputs: jax.Array) -> jax.Array:
        """The action that a network's outputs mean."""
        middle, half = self._middle_and_half(outputs.dtype)
        return middle + jnp.tanh(outputs) * half

    def _middle_and_half(self, dtype: Any) -> tuple[jax.Array, jax.Array]:
        lowest, highest = np.asarray(self.lowest), np.asarray(self.highest)
        return jnp.asarray((lowest + highest) / 2, dtype), jnp.asarray((highest - lowest) / 2, dtype)


@dataclasses.dataclass(frozen=True)
class Discrete:
    """One of `size` actions, numbered from 0."""

    size: int

    def __post_init__(self) -> None:
        require(1 <= self.size < 2**31, "size", self.size, f"1 to {2**31 - 1:,}")

    def encode(self, actions: jax.Array) -> jax.Array:
        """Logged actions as a network reads them. [..., size]"""
        return jax.nn.one_hot(actions, self.size)

    def loss(self, outputs: jax.Array, actions: jax.Array) -> jax.Array:
        """Cross-entropy per step."""
        return optax.softmax_cross_entropy_with_integer_labels(outputs, actions)

    def choose(self, outputs: jax.Array) -> jax.Array:
        """The most likely action."""
        return jnp.argmax(outputs, axis=-1).astype(jnp.int32)

    def sample(self, outputs: jax.Array, keys: jax.Array) -> jax.Array:
        """An action of each row, sampled with a key of its own by the probabilities that outputs mean."""
        return jax.vmap(jax.random.categorical)(keys, outputs).astype(jnp.int32)


ActionSpace = Continuous | Discrete


def action_space(data: Trajectories) -> ActionSpace:
    """The space of a dataset's actions."""
    return Discrete(data.action_size) if data.discrete else Continuous.of(data.actions, data.action_bounds)
