"""Sampling windows: frequencies, masks, and every value against its source row."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import d4rl_arrays, logged, with_returns
from numpy.typing import NDArray
from toys import as_in_the_paper, with_cloning

from cwbc.core.learners import Columns
from cwbc.core.methods import Method, Training, parse
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.regularizers import Conservative
from cwbc.core.sampling import (
    Episodes,
    RandomNumbers,
    Source,
    Window,
    choose,
    gathered,
    in_host_memory,
    sample,
    thresholds,
    to_device,
)
from cwbc.core.spaces import observation_space
from cwbc.core.trajectories import Trajectories
from cwbc.data.formats.arrays import from_arrays

SAMPLES, CONTEXT = 100_000, 4
LENGTHS = (3, 1, 8, 5, 2, 6)
DATA = logged(*np.split(np.random.default_rng(0).normal(size=sum(LENGTHS)) * 9, np.cumsum(LENGTHS)[:-1]))
UNEVEN = np.array([0.0, 0.02, 0.4, 0.0, 0.58, 0.0])
SPACE = observation_space(DATA, 1)


def windows(
    spec: PolicySpec, batch_size: int, context: int, key: jax.Array, episodes: Episodes, columns: Columns
) -> Window:
    """The windows of the step of training whose seed and number a key stands for."""
    training, (seed, number) = Training(batch_size=batch_size, context=context), jax.random.key_data(key)
    return sample(spec, training, episodes, seed, number, lambda choice: gathered(columns, choice))[0]


compiled_windows = jax.jit(windows, static_argnums=(0, 1, 2))


@dataclasses.dataclass(frozen=True)
class Sampler:
    """A dataset as a method samples it."""

    spec: PolicySpec
    source: Source

    @classmethod
    def of(cls, method: Method, data: Trajectories = DATA) -> Sampler:
        return cls(PolicySpec.fit(method, data, Training()), to_device(data, method))

    @classmethod
    def with_probabilities(cls, probabilities: NDArray[np.float64]) -> Sampler:
        plain = cls.of(as_in_the_paper("rvs"))
        bounds = jnp.asarray(thresholds(probabilities)[None])
        episodes = dataclasses.replace(plain.source.episodes, thresholds=bounds)
        return cls(plain.spec, dataclasses.replace(plain.source, episodes=episodes))

    def at(self, number: int, batch_size: int = SAMPLES, context: int = CONTEXT) -> Window:
        key = jax.random.key(number)
        return compiled_windows(
            self.spec, batch_size, context, key, self.source.episodes, self.source.columns
        )

    def many(self, count: int, batch_size: int) -> Window:
        """Windows of several steps of training, with a leading axis as in training."""

        def one(key: jax.Array, episodes: Episodes, columns: Columns) -> Window:
            return windows(self.spec, batch_size, CONTEXT, key, episodes, columns)

        keys = jax.random.split(jax.random.key(0), count)
        together = jax.jit(jax.vmap(one, in_axes=(0, None, None)))
        return together(keys, self.source.episodes, self.source.columns)


@functools.cache
def plain() -> Sampler:
    return Sampler.of(as_in_the_paper("rvs+c"))


def rows_of(window: Window) -> NDArray[np.int64]:
    """The source row of every step, which logged() writes into the actions."""
    return np.rint(np.asarray(window.columns.actions)[..., 0] * DATA.steps).astype(np.int64)


def episodes_of(window: Window) -> NDArray[np.int64]:
    return np.searchsorted(DATA.starts, rows_of(window)[:, 0], side="right") - 1


def assert_frequencies(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> None:
    """A chi-square test: the statistic has mean n and variance 2n; six of its std are out of reach."""
    assert (counts[probabilities == 0] == 0).all()
    expected = (counts.sum() * probabilities)[probabilities > 0]
    statistic = (np.square(counts[probabilities > 0] - expected) / expected).sum()
    freedom = len(expected) - 1
    assert statistic <= freedom + 6 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("probabilities", [UNEVEN, UNEVEN[::-1], np.full(6, 1 / 6)])
def test_episodes_are_sampled_by_their_probability(probabilities: NDArray[np.float64]) -> None:
    window = Sampler.with_probabilities(probabilities).at(0)
    assert_frequencies(np.bincount(episodes_of(window), minlength=6), probabilities)


@pytest.mark.parametrize("name", ["rvs", "rvs+w", "rvs+f", "rvs+c", "rvs+w+c", "rvs+f+c"])
def test_the_methods_weighting_decides(name: str) -> None:
    method = parse(name)
    window = Sampler.of(method).at(1)
    assert_frequencies(np.bincount(episodes_of(window), minlength=6), method.weighting.probabilities(DATA))


@pytest.mark.parametrize(("name", "percentile"), [("rvs+c", 50.0), ("rvs+w+c", 95.0), ("rvs+c", 0.0)])
def test_a_batch_begins_with_as_many_selected_windows_as_expected(name: str, percentile: float) -> None:
    regularizer = Conservative(percentile)
    method = with_cloning(parse(name), regularizer=regularizer)
    selected = regularizer.selected(DATA)
    expected = 10 * method.weighting.probabilities(DATA)[selected].sum()
    sampled = Sampler.of(method).many(4000, 10)
    found = np.asarray(sampled.selected)
    assert sampled.most_selected == np.ceil(expected - 1e-9)
    assert not found[:, sampled.most_selected :].any()
    counts = found.sum(axis=1)
    assert set(counts) <= {np.floor(expected + 1e-9), np.ceil(expected - 1e-9)}
    assert counts.mean() == pytest.approx(expected, abs=0.05)


def test_start_steps_are_uniform_within_the_episode() -> None:
    window = plain().at(2)
    episodes, first = episodes_of(window), np.asarray(window.timesteps)[:, 0]
    for episode, length in enumerate(LENGTHS):
        counts = np.bincount(first[episodes == episode], minlength=length)
        assert len(counts) == length
        if length > 1:
            assert_frequencies(counts, np.full(length, 1 / length))


def test_the_first_steps_of_an_episode_are_in_fewer_windows_than_the_others() -> None:
    length, context = 50, 20
    source = to_device(logged([1.0] * length), parse("rvs"))
    random = RandomNumbers.of(jnp.uint32(0), jnp.int32(0), length)
    every_start = dataclasses.replace(random, starts=jnp.arange(length, dtype=jnp.uint32))
    choice = choose(every_start, source.episodes, SPACE, context)
    counts = np.bincount(np.asarray(choice.timesteps)[np.asarray(choice.mask)], minlength=length)
    np.testing.assert_array_equal(counts, np.minimum(np.arange(length) + 1, context))


@pytest.mark.parametrize(("batch_size", "more"), [(64, "3.9"), (32, "24.0")])
def test_every_batch_has_a_regularized_window_as_the_docs_say(batch_size: int, more: str) -> None:
    data = with_returns(*range(100))  # of one length: the top five are 5 % of all samples
    episodes = to_device(data, parse("rvs+c")).episodes
    for number in range(20):
        choice = choose(RandomNumbers.of(jnp.uint32(0), jnp.int32(number), batch_size), episodes, SPACE, 2)
        assert np.asarray(episodes.selected)[np.asarray(choice.episodes)].any()
    without = (1 - 0.05) ** batch_size  # if each window were sampled from all
    assert f"{100 * (1 / (1 - without) - 1):.1f}" == more
    stated = f"{more} % stronger at batch size {batch_size}"
    assert stated in (Path(__file__).parents[2] / "docs" / "differences.md").read_text()


def test_windows_are_their_source_rows() -> None:
    window = plain().at(3)
    episodes, first = episodes_of(window), np.asarray(window.timesteps)[:, 0]
    steps = first[:, None] + np.arange(CONTEXT)
    lengths = DATA.lengths[episodes][:, None]
    np.testing.assert_array_equal(window.mask, steps < lengths)
    mask = np.asarray(window.mask)
    assert mask[:, 0].all()
    assert 0 < mask.mean() < 1
    rows = (DATA.starts[episodes][:, None] + steps)[mask]
    np.testing.assert_array_equal(rows_of(window)[mask], rows)
    np.testing.assert_array_equal(np.asarray(window.timesteps)[mask], steps[mask])
    observations = DATA.observations.astype(np.float64)
    expected = (observations - observations.mean(axis=0)) / observations.std(axis=0)
    np.testing.assert_allclose(np.asarray(window.columns.observations)[mask], expected[rows], atol=1e-5)
    returns_to_go = np.asarray(window.columns.extra["returns_to_go"])
    np.testing.assert_allclose(returns_to_go[mask], DATA.returns_to_go[rows], rtol=1e-6)
    shortfalls = np.asarray(window.episodes["shortfalls"])
    np.testing.assert_allclose(shortfalls, (DATA.best - DATA.returns)[episodes], rtol=1e-6)
    np.testing.assert_array_equal(window.selected, (DATA.returns == DATA.best)[episodes])


def test_past_its_end_an_episode_repeats_its_last_step() -> None:
    window = plain().at(4)
    past = ~np.asarray(window.mask)
    assert (np.asarray(window.timesteps)[past] == 0).all()
    last = (DATA.starts + DATA.lengths - 1)[episodes_of(window)][:, None]
    np.testing.assert_array_equal(rows_of(window)[past], np.broadcast_to(last, past.shape)[past])


def test_seed_and_step_determine_a_batch() -> None:
    one, again, other = (plain().at(number) for number in (5, 5, 6))
    np.testing.assert_array_equal(rows_of(one), rows_of(again))
    assert (rows_of(one) != rows_of(other)).any()


def test_no_random_number_is_used_twice() -> None:
    """Of one step, of two steps, of two seeds: for episodes, starts, return noise, rounding and dropout."""
    numbers: list[NDArray[Any]] = []
    for seed, step in ((0, 0), (0, 1), (1, 0)):
        random = RandomNumbers.of(jnp.uint32(seed), jnp.int32(step), 64)
        units = np.append(random.noise, random.rounding) * 2**24
        bits = [random.episodes, random.starts, jax.random.key_data(random.key)]
        if step == 0:  # the parameters of a seed come from this key
            key = jax.random.fold_in(jax.random.key(seed), 0)
            bits.append(jax.random.bits(key, (3 * 64 + 3,), jnp.uint32))
        numbers += [units.astype(np.uint32), *(np.asarray(each) >> 8 for each in bits)]
    every = np.concatenate(numbers)
    assert len(np.unique(every)) == len(every)


def test_discrete_actions_are_sampled_as_they_are() -> None:
    actions = np.array([0, 3, 1, 2, 2, 1])
    data = from_arrays("small", **d4rl_arrays(actions=actions))
    window = Sampler.of(as_in_the_paper("rvs"), data).at(0, batch_size=8, context=1)
    assert window.columns.actions.shape == (8, 1)
    assert jnp.issubdtype(window.columns.actions.dtype, jnp.integer)
    to_go = np.asarray(window.columns.extra["returns_to_go"])[:, 0]
    rows = [data.returns_to_go.tolist().index(each) for each in to_go]
    np.testing.assert_array_equal(window.columns.actions[:, 0], actions[rows])


@pytest.mark.parametrize(
    ("bits", "probabilities", "episode"),
    [
        (2**32 - 1, [0.5, 0.5, 0, 0, 0, 0], 1),
        (2**32 - 1, [0, 0, 0, 0, 0, 1.0], 5),
        (2**32 - 1, [1.0, 0, 0, 0, 0, 0], 0),
        (2**31, [0.5, 0.5, 0, 0, 0, 0], 1),
        (2**31 - 1, [0.5, 0.5, 0, 0, 0, 0], 0),
        (0, [0, 0, 0.3, 0.7, 0, 0], 2),
        (0, [1.0, 0, 0, 0, 0, 0], 0),
    ],
)
def test_the_smallest_and_largest_random_numbers(
    bits: int, probabilities: list[float], episode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype: jnp.full(shape, bits, dtype))
    sampler = Sampler.with_probabilities(np.array(probabilities))
    source = sampler.source
    window = windows(sampler.spec, 8, CONTEXT, jax.random.key(0), source.episodes, source.columns)
    assert set(episodes_of(window)) == {episode}


def test_thresholds_by_hand() -> None:
    found = thresholds(np.array([0.25, 0.0, 0.5, 0.25, 0.0]))
    assert found.dtype == np.uint32
    assert found.tolist() == [2**30, 2**30, 3 * 2**30, 2**32 - 1, 2**32 - 1]


def test_a_million_episodes_keep_their_probabilities() -> None:
    # In float32 a running sum near one moves in steps of 6e-8, a tenth of a typical probability here.
    random = np.random.default_rng(0)
    weights = random.gamma(0.3, size=1_000_000) * (random.random(1_000_000) < 0.8)
    probabilities = weights / weights.sum()
    found = thresholds(probabilities).astype(np.int64)
    widths = np.diff(found, prepend=0)
    assert (widths >= 0).all()
    assert (widths[probabilities == 0] == 0).all()
    np.testing.assert_allclose(widths / 2**32, probabilities, rtol=0, atol=1.1 / 2**32)
    exact = np.cumsum(probabilities.astype(np.longdouble))
    np.testing.assert_allclose(found / 2**32, exact.astype(np.float64), rtol=0, atol=2 / 2**32)


@pytest.mark.parametrize("total", [1 - 1e-8, 1 - 1e-15, 1.0, 1 + 1e-8])
def test_rounding_never_leaves_a_gap_at_the_top(total: float) -> None:
    assert thresholds(np.append(np.full(49, total / 49), [0, 0]))[48:].tolist() == [2**32 - 1] * 3


def test_training_normalizes_to_the_same_bits_as_acting() -> None:
    random = np.random.default_rng(0)
    observations = random.normal(size=(500, 7)) * random.uniform(0.01, 90, 7) + random.normal(size=7) * 20
    ends = np.arange(1, 501) % 25 == 0
    data = from_arrays("random", observations, random.normal(size=(500, 1)), np.ones(500), ends, ends)
    sampler = Sampler.of(parse("rvs"), data)
    # With a batch axis as in training: the compiler is not to see that the divisor is the same everywhere.
    found = sampler.many(3, 40).columns.observations

    def rows_at(key: jax.Array) -> jax.Array:
        seed, number = jax.random.key_data(key)
        random = RandomNumbers.of(seed, number, 40)
        return choose(random, sampler.source.episodes, sampler.spec.observations, CONTEXT).rows

    rows = jax.vmap(rows_at)(jax.random.split(jax.random.key(0), 3))
    received = sampler.spec.observations.received(data.observations)
    np.testing.assert_array_equal(found, received[np.asarray(rows)])


def test_the_device_has_the_dataset_as_float32_and_int32() -> None:
    source = to_device(with_returns(1, 2, 3), parse("dt+w+c"))
    arrays = jax.tree.leaves((source.episodes, source.columns))
    assert {str(array.dtype) for array in arrays} == {"float32", "int32", "uint32", "bool"}
    assert not source.streamed


def test_columns_in_host_memory_are_the_dataset_itself() -> None:
    source = in_host_memory(DATA, parse("rvs"))
    assert source.streamed
    assert np.shares_memory(source.columns.observations, DATA.observations)
    assert np.shares_memory(source.columns.actions, DATA.actions)
    # Rows that are not contiguous would be copied whole for every batch.
    scattered = dataclasses.replace(DATA, observations=np.asfortranarray(DATA.observations))
    assert in_host_memory(scattered, parse("rvs")).columns.observations.flags.c_contiguous
