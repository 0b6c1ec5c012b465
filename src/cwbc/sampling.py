"""The dataset as it is sampled, and windows drawn from it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.conditioning import standardized
from cwbc.hyperparameters import Numbers
from cwbc.methods import Method
from cwbc.trajectories import Trajectories

DRAWN_TOGETHER = 50  # steps whose batches are drawn at once: a few large kernels instead of many small ones


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Episodes:
    """What choosing windows reads, and the statistics that normalize them; always on the device."""

    starts: jax.Array  # [episode]
    lengths: jax.Array  # [episode]
    thresholds: jax.Array  # [kind, episode] uint32: cumulative probabilities in units of 2^-32
    shortfalls: jax.Array  # [episode] best - R, in the condition's unit
    selected: jax.Array  # [episode] raised by the regularizer
    observation_mean: jax.Array  # [dimension]
    observation_deviation: jax.Array  # [dimension]
    raised_share: (
        jax.Array
    )  # [] of the draws; where there are both kinds, each is drawn by its own thresholds
    most_raised: float = dataclasses.field(metadata={"static": True})  # raised_share is not above it


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Rows:
    """Steps as they were logged, but for the unit of the rewards, in device arrays or in host memory.

    The axes [...] are [step] for a whole dataset, and [window, step] for windows of it.
    """

    observations: Any  # [..., dimension]
    actions: Any  # [..., dimension] or [...]
    returns_to_go: Any  # [...] standardized

    def at(self, numbers: jax.Array | NDArray[np.integer[Any]] | int) -> Rows:
        """The rows with these numbers."""
        return jax.tree.map(lambda array: array[numbers], self)


@dataclasses.dataclass(frozen=True)
class Source:
    """A dataset as a method samples it, or as several do that are trained side by side."""

    episodes: Episodes  # of several methods: [method, ...]
    rows: Rows
    numbers: Numbers  # of several methods: [method]
    methods: int = 1

    @property
    def streamed(self) -> bool:
        """Whether the rows stay in host memory, so that windows are sent to the device as they are needed."""
        return isinstance(self.rows.observations, np.ndarray)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Choice:
    """Which steps a batch of windows is of."""

    episodes: jax.Array  # [window]
    row_numbers: jax.Array  # [window, step] the episode's last row past its end
    timesteps: jax.Array  # [window, step] 0 past the episode's end
    mask: jax.Array  # [window, step] False past the episode's end


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


def normalized(observations: Any, mean: Any, deviation: Any) -> Any:
    """Observations as the network sees them, in training and in acting alike."""
    return (observations.astype(np.float32) - mean) / deviation


def to_device(data: Trajectories, *methods: Method) -> Source:
    """A dataset whose rows lie on the device, as these methods sample it."""
    return _source(data, jax.tree.map(jnp.asarray, _rows(data, methods[0])), methods)


def in_host_memory(data: Trajectories, method: Method) -> Source:
    """A dataset whose rows stay where they are, for one that is too large for the device."""
    return _source(data, jax.tree.map(np.ascontiguousarray, _rows(data, method)), (method,))


def _source(data: Trajectories, rows: Rows, methods: Sequence[Method]) -> Source:
    episodes = [_episodes(data, method) for method in methods]
    numbers = [Numbers.of(method.fit(data)) for method in methods]
    if len(methods) == 1:
        return Source(episodes[0], rows, numbers[0])
    most = max(each.most_raised for each in episodes)
    alike = [dataclasses.replace(each, most_raised=most) for each in episodes]
    return Source(_stacked(alike), rows, _stacked(numbers), len(methods))


def _stacked(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *trees)


def _rows(data: Trajectories, method: Method) -> Rows:
    condition = method.condition and method.condition.fit(data)
    returns_to_go = standardized(condition, data.returns_to_go, data.timesteps, data.horizon)
    return Rows(data.observations, data.actions, returns_to_go.astype(np.float32))


def raised_share(data: Trajectories, method: Method) -> float:
    """The part of a method's draws that its regularizer raises."""
    if method.regularizer is None:
        return 0.0
    probabilities = method.weighting.probabilities(data)
    # Rounded: 4.000000000000001 windows would else be five.
    return round(float(probabilities[method.regularizer.selected(data)].sum() / probabilities.sum()), 9)


def _episodes(data: Trajectories, method: Method) -> Episodes:
    probabilities = method.weighting.probabilities(data)
    none = np.zeros(data.episodes, bool)
    selected = method.regularizer.selected(data) if method.regularizer else none
    share = raised_share(data, method)
    kinds = (selected, ~selected) if 0 < share < 1 else (~none,)
    mean, deviation = data.observation_statistics
    unit = method.condition.fit(data).unit if method.condition else 1.0
    return Episodes(
        starts=jnp.asarray(data.starts, jnp.int32),
        lengths=jnp.asarray(data.lengths, jnp.int32),
        thresholds=jnp.asarray(np.stack([thresholds(probabilities * kind) for kind in kinds])),
        shortfalls=jnp.asarray((data.best - data.returns) / unit, jnp.float32),
        selected=jnp.asarray(selected),
        observation_mean=jnp.asarray(mean),
        observation_deviation=jnp.asarray(deviation),
        raised_share=jnp.asarray(share, jnp.float32),
        most_raised=share,
    )


def thresholds(probabilities: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Cumulative probabilities for 32 random bits: exact to 2^-32 however many episodes there are."""
    top = 2**32 - 1
    cumulative = np.floor(np.cumsum(probabilities / probabilities.sum()) * 2.0**32)
    last = int(np.flatnonzero(probabilities)[-1])
    cumulative[last:] = top
    return np.minimum(cumulative, top).astype(np.uint32)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Draws:
    """All that is random about a step of training."""

    episodes: jax.Array  # [window] 32 bits
    starts: jax.Array  # [window] 32 bits
    raises: jax.Array  # [window] from 0 to 1
    rounding: jax.Array  # [] from 0 to 1
    dropout_key: jax.Array

    @classmethod
    def of(cls, seed: jax.Array, number: jax.Array, batch_size: int) -> Draws:
        """Those of step `number` of a seed, however the run is cut into chunks or resumed."""
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 1), number)
        # At once: threefry for each kind alone would be a large part of what there is to compile.
        bits = jax.random.bits(key, (3 * batch_size + 3,), jnp.uint32)
        episodes, starts, raises, rest = jnp.split(bits, [batch_size, 2 * batch_size, 3 * batch_size])
        return cls(
            episodes=episodes,
            starts=starts,
            raises=_unit(raises),
            rounding=_unit(rest[0]),
            dropout_key=jax.random.wrap_key_data(rest[1:]),
        )


def _unit(bits: jax.Array) -> jax.Array:
    return (bits >> 8) * jnp.float32(2**-24)


def choose(draws: Draws, data: Episodes, context: int) -> Choice:
    """Draw trajectories by their probability, then a start step of each, uniformly.

    Windows that the regularizer raises come first, as many as are expected: a fraction is rounded up or
    down by chance, so that each window is as likely as if all were drawn alike. The others need no second
    pass through the network.
    """
    episodes = _episodes_drawn(draws, data)
    lengths = data.lengths[episodes]
    # No step is more likely than another by more than its episode's length in 2^32.
    first = (draws.starts % lengths.astype(jnp.uint32)).astype(jnp.int32)
    timesteps = first[:, None] + jnp.arange(context)
    mask = timesteps < lengths[:, None]
    return Choice(
        episodes=episodes,
        row_numbers=data.starts[episodes][:, None] + jnp.minimum(timesteps, lengths[:, None] - 1),
        timesteps=jnp.where(mask, timesteps, 0),
        mask=mask,
    )


def _episodes_drawn(draws: Draws, data: Episodes) -> jax.Array:
    # 2^32 - 1 lies on the last threshold, not below it.
    bits = jnp.minimum(draws.episodes, jnp.uint32(2**32 - 2))
    kinds = [jnp.searchsorted(thresholds, bits, side="right") for thresholds in data.thresholds]
    if len(kinds) == 1:
        return kinds[0]
    expected = len(bits) * data.raised_share
    count = jnp.floor(expected) + (draws.rounding < expected % 1)
    count = jnp.minimum(count, _most(data, len(bits)))
    return jnp.where(jnp.arange(len(bits)) < count, kinds[0], kinds[1])


def windows(choice: Choice, rows: Rows, data: Episodes) -> Window:
    """The windows that were chosen, from the rows that they are of."""
    # By one row for all, the compiler would not divide but multiply with the reciprocal, which rounds
    # otherwise than acting does; a divisor that seems to depend on the observations keeps it from that.
    undefined = jnp.isnan(rows.observations)
    deviations = jnp.where(undefined, jnp.nan, data.observation_deviation)
    return Window(
        observations=normalized(rows.observations, data.observation_mean, deviations),
        actions=rows.actions,
        returns_to_go=rows.returns_to_go,
        timesteps=choice.timesteps,
        mask=choice.mask,
        shortfalls=data.shortfalls[choice.episodes],
        selected=data.selected[choice.episodes],
        raised=_most(data, len(choice.episodes)),
    )


def _most(data: Episodes, windows: int) -> int:
    """How many of a batch's windows may be raised."""
    return math.ceil(windows * data.most_raised)
