"""The dataset as it is sampled: trajectories by their probability, then windows of consecutive steps."""

from __future__ import annotations

import dataclasses
import math
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.core.learners import Columns
from cwbc.core.methods import Method, Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.spaces import Arrays, ObservationSpace
from cwbc.core.trajectories import Trajectories

SAMPLED_TOGETHER = 50  # steps whose batches are sampled at once: a few large kernels instead of many small


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Episodes:
    """The arrays of episodes that sampling needs, always on the device."""

    starts: Any  # [episode]
    observation_starts: Any  # [episode] the same, but for images of which some episodes are held out
    lengths: Any  # [episode]
    thresholds: Any  # [stratum, episode] uint32: cumulative probabilities in units of 2^-32
    selected: Any  # [episode] those of the first stratum
    columns: dict[str, Any]  # [episode] by name: those of the learner
    observations: Arrays  # the numbers of the observation space
    selected_fraction: Any  # [] of the samples, where there are two strata
    most_selected: float = dataclasses.field(metadata={"static": True})  # selected_fraction is not above it


@dataclasses.dataclass(frozen=True)
class Source:
    """A dataset as a method samples it, or datasets as several do that are trained side by side."""

    episodes: Episodes  # of several methods: [method, ...]
    columns: Columns  # [step, ...] of all datasets
    numbers: Any  # of the learner; of several methods: [method]
    methods: int = 1

    @property
    def streamed(self) -> bool:
        """Whether the steps stay in host memory, from where windows are copied to the device."""
        return isinstance(self.columns.observations, np.ndarray)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Choice:
    """Which steps a batch of windows consists of."""

    episodes: jax.Array  # [window]
    rows: jax.Array  # [window, step] the episode's last row past its end
    frames: jax.Array  # [window, step] or [window, step, frame]: the rows of the observations
    timesteps: jax.Array  # [window, step] 0 past the episode's end
    mask: jax.Array  # [window, step] False past the episode's end


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Window:
    """Consecutive steps of each of several episodes."""

    columns: Columns  # [window, step, ...]
    timesteps: jax.Array  # [window, step]
    mask: jax.Array  # [window, step] False past the episode's end
    selected: jax.Array  # [window]
    episodes: dict[str, jax.Array]  # [window] by name: the learner's columns of its episode
    most_selected: int = dataclasses.field(metadata={"static": True})  # no more are selected, the first ones


def to_device(data: Trajectories, *methods: Method) -> Source:
    """A dataset whose steps are in the device's memory, as these methods sample it."""
    return side_by_side([(data, method) for method in methods])


def in_host_memory(data: Trajectories, method: Method) -> Source:
    """A dataset whose steps stay in host memory, or on disk where they are mapped from there."""
    if data.is_mapped and hasattr(mmap, "MADV_RANDOM"):
        # Else the system would read megabytes around every window.
        data.observations._mmap.madvise(mmap.MADV_RANDOM)  # type: ignore[attr-defined]
    columns = jax.tree.map(np.ascontiguousarray, _columns(data, method))
    episodes, numbers = jax.device_put((_episodes(data, method), method.fit(data).learner.numbers))
    return Source(episodes, columns, numbers)


def side_by_side(lanes: Sequence[tuple[Trajectories, Method]]) -> Source:
    """Methods as one program trains them, on one dataset or on several of equal shapes.

    The steps of all datasets are one array; each is in it once for all methods that read it alike.
    """
    fitted = [(data, method.fit(data)) for data, method in lanes]
    copies = {(id(data), method.learner.reads): (data, method) for data, method in fitted}
    parts = [_columns(*copy) for copy in copies.values()]
    columns = jax.tree.map(lambda *x: x[0] if len(x) == 1 else np.concatenate(x), *parts)
    episodes = [_episodes(*lane) for lane in fitted]
    numbers = [method.learner.numbers for _, method in fitted]
    if len(lanes) == 1:
        return Source(*jax.device_put((episodes[0], columns, numbers[0])))
    sizes = [(data.steps, len(data.observations)) for data, _ in copies.values()]
    firsts = dict(zip(copies, [(0, 0), *np.cumsum(sizes, axis=0)[:-1].tolist()], strict=True))
    count, most = max(data.episodes for data, _ in lanes), max(each.most_selected for each in episodes)
    alike = [
        _padded(each, count, firsts[id(data), method.learner.reads], most)
        for each, (data, method) in zip(episodes, fitted, strict=True)
    ]
    together = jax.device_put((_stacked(alike), columns, _stacked(numbers)))
    return Source(together[0], together[1], together[2], len(lanes))


def _padded(episodes: Episodes, count: int, firsts: Sequence[int], most_selected: float) -> Episodes:
    """The same with `count` episodes, of which the last are never sampled, in larger arrays.

    Args:
        firsts: the rows there of the first step and of the first observation.
    """

    def longer(array: Any) -> Any:
        missing = count - array.shape[-1]
        return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)], mode="edge")

    return dataclasses.replace(
        episodes,
        starts=longer(episodes.starts + firsts[0]),
        observation_starts=longer(episodes.observation_starts + firsts[1]),
        lengths=longer(episodes.lengths),
        thresholds=longer(episodes.thresholds),
        selected=longer(episodes.selected),
        columns={name: longer(column) for name, column in episodes.columns.items()},
        most_selected=most_selected,
    )


def _stacked(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: np.stack(x), *trees)


def _columns(data: Trajectories, method: Method) -> Columns:
    return Columns(data.observations, data.actions, method.fit(data).learner.step_columns(data))


def selected_fraction(data: Trajectories, method: Method) -> float:
    """The fraction of a method's samples that are of trajectories which its learner selects."""
    selected = method.learner.selected(data)
    if selected is None:
        return 0.0
    probabilities = method.weighting.probabilities(data)
    # Rounded: 4.000000000000001 windows would else be five.
    return round(float(probabilities[selected].sum() / probabilities.sum()), 9)


def _episodes(data: Trajectories, method: Method) -> Episodes:
    """What sampling needs, as NumPy's arrays."""
    probabilities, learner = method.weighting.probabilities(data), method.fit(data).learner
    none = np.zeros(data.episodes, bool)
    found = learner.selected(data)
    selected = none if found is None else found
    fraction = selected_fraction(data, method)
    strata = (selected, ~selected) if 0 < fraction < 1 else (~none,)
    statistics = data.observation_statistics if data.observations.ndim == 2 else ()
    return Episodes(
        starts=np.asarray(data.starts, np.int32),
        observation_starts=np.asarray(data.observation_starts, np.int32),
        lengths=np.asarray(data.lengths, np.int32),
        thresholds=np.stack([thresholds(probabilities * stratum) for stratum in strata]),
        selected=selected,
        columns=learner.episode_columns(data),
        observations=tuple(statistics),
        selected_fraction=np.asarray(fraction, np.float32),
        most_selected=fraction,
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
class RandomNumbers:
    """Those of one step of training."""

    episodes: jax.Array  # [window] 32 bits
    starts: jax.Array  # [window] 32 bits
    noise: jax.Array  # [window] from 0 to 1, for the learner
    rounding: jax.Array  # [] from 0 to 1
    key: jax.Array  # for all else that the learner needs

    @classmethod
    def of(cls, seed: jax.Array, number: jax.Array, batch_size: int) -> RandomNumbers:
        """Those of step `number` of a seed, however the run is cut into chunks or resumed."""
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 1), number)
        # At once: to compile threefry for each kind alone would take long.
        bits = jax.random.bits(key, (3 * batch_size + 3,), jnp.uint32)
        episodes, starts, noise, rest = jnp.split(bits, [batch_size, 2 * batch_size, 3 * batch_size])
        return cls(
            episodes=episodes,
            starts=starts,
            noise=_unit(noise),
            rounding=_unit(rest[0]),
            key=jax.random.wrap_key_data(rest[1:]),
        )


def _unit(bits: jax.Array) -> jax.Array:
    return (bits >> 8) * jnp.float32(2**-24)


def choose(random: RandomNumbers, data: Episodes, space: ObservationSpace, length: int) -> Choice:
    """Sample trajectories by their probability, then a start step of each, uniformly.

    Windows of selected trajectories come first, as many as their probability says: a fraction is rounded up
    or down at random, so that every window has the same probability as without strata. The others need no
    second pass through the network.
    """
    episodes = _sampled_episodes(random, data)
    lengths, starts = data.lengths[episodes], data.starts[episodes]
    # No step is more likely than another by more than its episode's length in 2^32.
    first = (random.starts % lengths.astype(jnp.uint32)).astype(jnp.int32)
    timesteps = first[:, None] + jnp.arange(length)
    mask = timesteps < lengths[:, None]
    places = jnp.minimum(timesteps, lengths[:, None] - 1)
    observed = data.observation_starts[episodes][:, None]
    return Choice(
        episodes=episodes,
        rows=starts[:, None] + places,
        frames=space.rows_read(observed + places, jnp.broadcast_to(observed, places.shape)),
        timesteps=jnp.where(mask, timesteps, 0),
        mask=mask,
    )


def _sampled_episodes(random: RandomNumbers, data: Episodes) -> jax.Array:
    # 2^32 - 1 is the last threshold, not below it.
    bits = jnp.minimum(random.episodes, jnp.uint32(2**32 - 2))
    strata = [jnp.searchsorted(thresholds, bits, side="right") for thresholds in data.thresholds]
    if len(strata) == 1:
        return strata[0]
    expected = len(bits) * data.selected_fraction
    count = jnp.floor(expected) + (random.rounding < expected % 1)
    count = jnp.minimum(count, _most_selected(data, len(bits)))
    return jnp.where(jnp.arange(len(bits)) < count, strata[0], strata[1])


def _most_selected(data: Episodes, windows: int) -> int:
    return math.ceil(windows * data.most_selected)


def gathered(columns: Columns, choice: Choice) -> Columns:
    """The chosen steps of a dataset that is in the device's memory."""
    actions, extra = jax.tree.map(lambda array: array[choice.rows], (columns.actions, columns.extra))
    return Columns(columns.observations[choice.frames], actions, extra)


def sample(
    spec: PolicySpec,
    training: Training,
    data: Episodes,
    seed: jax.Array,
    number: jax.Array,
    gather: Callable[[Choice], Columns],
) -> tuple[Window, RandomNumbers]:
    """The windows that step `number` of a seed trains on, and the random numbers left for the learner."""
    random = RandomNumbers.of(seed, number, training.batch_size)
    choice = choose(random, data, spec.observations, spec.method.learner.window(training))
    columns = gather(choice)
    observations = spec.observations.sampled(columns.observations, data.observations)
    window = Window(
        columns=dataclasses.replace(columns, observations=observations),
        timesteps=choice.timesteps,
        mask=choice.mask,
        selected=data.selected[choice.episodes],
        episodes={name: column[choice.episodes] for name, column in data.columns.items()},
        most_selected=_most_selected(data, training.batch_size),
    )
    return window, random
