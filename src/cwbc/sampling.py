"""The dataset on the device, and windows drawn from it there."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.methods import Method
from cwbc.trajectories import Trajectories


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DeviceData:
    """What sampling reads, as device arrays."""

    observations: jax.Array  # [step, dimension], normalized
    actions: jax.Array  # [step, dimension] or [step]
    returns_to_go: jax.Array  # [step]
    starts: jax.Array  # [episode]
    lengths: jax.Array  # [episode]
    thresholds: jax.Array  # [kind, episode] uint32: cumulative probabilities in units of 2^-32
    shortfalls: jax.Array  # [episode] best - R
    selected: jax.Array  # [episode] raised by the regularizer
    # The part of the draws that is raised; where there are both kinds, each is drawn by its own thresholds.
    raised_share: float = dataclasses.field(metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Window:
    """K consecutive steps of each of several episodes."""

    observations: jax.Array  # [window, step, dimension]
    actions: jax.Array  # [window, step, dimension] or [window, step]
    returns_to_go: jax.Array  # [window, step]
    timesteps: jax.Array  # [window, step]
    mask: jax.Array  # [window, step] False past the episode's end
    shortfalls: jax.Array  # [window]
    selected: jax.Array  # [window]
    raised: int = dataclasses.field(
        metadata={"static": True}
    )  # only so many, from the first, may be selected


def normalized(
    observations: NDArray[Any], mean: NDArray[np.float32], deviation: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Observations as the network sees them, in training and in acting alike."""
    return (np.asarray(observations, np.float32) - mean) / deviation


def to_device(data: Trajectories, method: Method) -> DeviceData:
    """The dataset as a method samples it."""
    probabilities = method.weighting.probabilities(data)
    none = np.zeros(data.episodes, bool)
    selected = method.regularizer.selected(data) if method.regularizer else none
    # Rounded: 4.000000000000001 windows would else be five.
    share = round(float(probabilities[selected].sum() / probabilities.sum()), 9)
    kinds = (selected, ~selected) if 0 < share < 1 else (~none,)
    return DeviceData(
        observations=jnp.asarray(normalized(data.observations, *data.observation_statistics)),
        actions=jnp.asarray(data.actions),
        returns_to_go=jnp.asarray(data.returns_to_go, jnp.float32),
        starts=jnp.asarray(data.starts, jnp.int32),
        lengths=jnp.asarray(data.lengths, jnp.int32),
        thresholds=jnp.asarray(np.stack([thresholds(probabilities * kind) for kind in kinds])),
        shortfalls=jnp.asarray(data.best - data.returns, jnp.float32),
        selected=jnp.asarray(selected),
        raised_share=share,
    )


def thresholds(probabilities: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Cumulative probabilities for 32 random bits: exact to 2^-32 however many episodes there are."""
    top = 2**32 - 1
    cumulative = np.floor(np.cumsum(probabilities / probabilities.sum()) * 2.0**32)
    last = int(np.flatnonzero(probabilities)[-1])
    cumulative[last:] = top
    return np.minimum(cumulative, top).astype(np.uint32)


def sample(key: jax.Array, data: DeviceData, batch_size: int, context: int) -> Window:
    """Draw trajectories by their probability, then a start step of each, uniformly.

    Windows that the regularizer raises come first, as many as are expected: a fraction is rounded up or
    down by chance, so that each window is as likely as if all were drawn alike. The others need no second
    pass through the network.
    """
    episode_key, start_key = jax.random.split(key)
    episodes = _draw_episodes(episode_key, data, batch_size)
    lengths = data.lengths[episodes]
    first = jax.random.randint(start_key, (batch_size,), 0, lengths)
    timesteps = first[:, None] + jnp.arange(context)
    mask = timesteps < lengths[:, None]
    rows = data.starts[episodes][:, None] + jnp.minimum(timesteps, lengths[:, None] - 1)
    return Window(
        observations=data.observations[rows],
        actions=data.actions[rows],
        returns_to_go=data.returns_to_go[rows],
        timesteps=jnp.where(mask, timesteps, 0),
        mask=mask,
        shortfalls=data.shortfalls[episodes],
        selected=data.selected[episodes],
        raised=math.ceil(batch_size * data.raised_share),
    )


def _draw_episodes(key: jax.Array, data: DeviceData, batch_size: int) -> jax.Array:
    bits_key, count_key = jax.random.split(key)
    bits = jax.random.bits(bits_key, (batch_size,), jnp.uint32)
    # 2^32 - 1 lies on the last threshold, not below it.
    bits = jnp.minimum(bits, jnp.uint32(2**32 - 2))
    kinds = [jnp.searchsorted(thresholds, bits, side="right") for thresholds in data.thresholds]
    if len(kinds) == 1:
        return kinds[0]
    whole, part = divmod(batch_size * data.raised_share, 1)
    count = whole + (jax.random.uniform(count_key) < part)
    return jnp.where(jnp.arange(batch_size) < count, kinds[0], kinds[1])
