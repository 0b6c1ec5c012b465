"""Drawing windows: frequencies, masks, and every value against its source row."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import d4rl_arrays, logged, with_returns
from numpy.typing import NDArray
from toys import as_in_the_paper

from cwbc.datasets.arrays import from_arrays
from cwbc.methods import parse
from cwbc.regularizers import Conservative
from cwbc.sampling import (
    Draws,
    Episodes,
    Rows,
    Source,
    Window,
    choose,
    in_host_memory,
    normalized,
    thresholds,
    to_device,
    windows,
)

DRAWS, CONTEXT = 100_000, 4
LENGTHS = (3, 1, 8, 5, 2, 6)
DATA = logged(*np.split(np.random.default_rng(0).normal(size=sum(LENGTHS)) * 9, np.cumsum(LENGTHS)[:-1]))
UNEVEN = np.array([0.0, 0.02, 0.4, 0.0, 0.58, 0.0])


def draws_of(key: jax.Array, batch_size: int) -> Draws:
    seed, number = jax.random.key_data(key)
    return Draws.of(seed, number, batch_size)


def sample(key: jax.Array, episodes: Episodes, rows: Rows, batch_size: int, context: int) -> Window:
    choice = choose(draws_of(key, batch_size), episodes, context)
    return windows(choice, rows.at(choice.row_numbers), episodes)


sample_compiled = jax.jit(sample, static_argnums=(3, 4))


def draw(key: jax.Array, data: Source, batch_size: int, context: int) -> Window:
    return sample_compiled(key, data.episodes, data.rows, batch_size, context)


def device(probabilities: NDArray[np.float64] | None = None) -> Source:
    if probabilities is None:
        return to_device(DATA, as_in_the_paper("rvs+c"))
    plain = to_device(DATA, as_in_the_paper("rvs"))
    changed = dataclasses.replace(plain.episodes, thresholds=jnp.asarray(thresholds(probabilities)[None]))
    return dataclasses.replace(plain, episodes=changed)


def rows_of(window: Window) -> NDArray[np.int64]:
    """The source row of every step, which logged() writes into the actions."""
    return np.rint(np.asarray(window.actions)[..., 0] * DATA.steps).astype(np.int64)


def episodes_of(window: Window) -> NDArray[np.int64]:
    return np.searchsorted(DATA.starts, rows_of(window)[:, 0], side="right") - 1


def assert_frequencies(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> None:
    """A chi-square test: the statistic has mean n and variance 2n; six deviations are out of reach."""
    assert (counts[probabilities == 0] == 0).all()
    expected = (counts.sum() * probabilities)[probabilities > 0]
    statistic = (np.square(counts[probabilities > 0] - expected) / expected).sum()
    freedom = len(expected) - 1
    assert statistic <= freedom + 6 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("probabilities", [UNEVEN, UNEVEN[::-1], np.full(6, 1 / 6)])
def test_episodes_are_drawn_by_their_probability(probabilities: NDArray[np.float64]) -> None:
    window = draw(jax.random.key(0), device(probabilities), DRAWS, CONTEXT)
    assert_frequencies(np.bincount(episodes_of(window), minlength=6), probabilities)


@pytest.mark.parametrize("name", ["rvs", "rvs+w", "rvs+f", "rvs+c", "rvs+w+c", "rvs+f+c"])
def test_the_methods_weighting_decides(name: str) -> None:
    method = parse(name)
    window = draw(jax.random.key(1), to_device(DATA, method), DRAWS, CONTEXT)
    assert_frequencies(np.bincount(episodes_of(window), minlength=6), method.weighting.probabilities(DATA))


@pytest.mark.parametrize(("name", "percentile"), [("rvs+c", 50.0), ("rvs+w+c", 95.0), ("rvs+c", 0.0)])
def test_a_batch_begins_with_as_many_raised_windows_as_expected(name: str, percentile: float) -> None:
    regularizer = Conservative(percentile)
    method = dataclasses.replace(parse(name), regularizer=regularizer)
    selected = regularizer.selected(DATA)
    expected = 10 * method.weighting.probabilities(DATA)[selected].sum()
    on_device = to_device(DATA, method)
    keys = jax.random.split(jax.random.key(0), 4000)
    drawn = jax.jit(jax.vmap(lambda key: sample(key, on_device.episodes, on_device.rows, 10, CONTEXT)))(keys)
    raised = np.asarray(drawn.selected)
    assert drawn.raised == np.ceil(expected - 1e-9)
    assert not raised[:, drawn.raised :].any()
    counts = raised.sum(axis=1)
    assert set(counts) <= {np.floor(expected + 1e-9), np.ceil(expected - 1e-9)}
    assert counts.mean() == pytest.approx(expected, abs=0.05)


def test_start_steps_are_uniform_within_the_episode() -> None:
    window = draw(jax.random.key(2), device(), DRAWS, CONTEXT)
    episodes, first = episodes_of(window), np.asarray(window.timesteps)[:, 0]
    for episode, length in enumerate(LENGTHS):
        counts = np.bincount(first[episodes == episode], minlength=length)
        assert len(counts) == length
        if length > 1:
            assert_frequencies(counts, np.full(length, 1 / length))


def test_the_first_steps_of_an_episode_are_in_fewer_windows_than_the_others() -> None:
    length, context = 50, 20
    source = to_device(logged([1.0] * length), parse("rvs"))
    draws = draws_of(jax.random.key(0), length)
    every_start = dataclasses.replace(draws, starts=jnp.arange(length, dtype=jnp.uint32))
    choice = choose(every_start, source.episodes, context)
    counts = np.bincount(np.asarray(choice.timesteps)[np.asarray(choice.mask)], minlength=length)
    np.testing.assert_array_equal(counts, np.minimum(np.arange(length) + 1, context))


@pytest.mark.parametrize(("batch_size", "more"), [(64, "3.9"), (32, "24.0")])
def test_no_batch_is_without_a_regularized_window_which_the_docs_tell(batch_size: int, more: str) -> None:
    data = with_returns(*range(100))  # of one length: the top five are a twentieth of all draws
    episodes = to_device(data, parse("rvs+c")).episodes
    for number in range(20):
        choice = choose(draws_of(jax.random.key(number), batch_size), episodes, 2)
        assert np.asarray(episodes.selected)[np.asarray(choice.episodes)].any()
    without = (1 - 0.05) ** batch_size  # if each window were drawn from all
    assert f"{100 * (1 / (1 - without) - 1):.1f}" == more
    told = f"{more} % stronger at batch size {batch_size}"
    assert told in (Path(__file__).parents[1] / "docs" / "differences.md").read_text()


def test_windows_are_their_source_rows() -> None:
    window = draw(jax.random.key(3), device(), DRAWS, CONTEXT)
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
    np.testing.assert_allclose(np.asarray(window.observations)[mask], expected[rows], atol=1e-5)
    np.testing.assert_allclose(np.asarray(window.returns_to_go)[mask], DATA.returns_to_go[rows], rtol=1e-6)
    np.testing.assert_allclose(window.shortfalls, (DATA.best - DATA.returns)[episodes], rtol=1e-6)
    np.testing.assert_array_equal(window.selected, (DATA.returns == DATA.best)[episodes])


def test_what_lies_past_the_end_is_finite_and_of_the_same_episode() -> None:
    window = draw(jax.random.key(4), device(), DRAWS, CONTEXT)
    past = ~np.asarray(window.mask)
    assert (np.asarray(window.timesteps)[past] == 0).all()
    last = (DATA.starts + DATA.lengths - 1)[episodes_of(window)][:, None]
    np.testing.assert_array_equal(rows_of(window)[past], np.broadcast_to(last, past.shape)[past])


def test_a_key_is_a_batch() -> None:
    one, again, other = (draw(jax.random.key(k), device(), DRAWS, CONTEXT) for k in (5, 5, 6))
    np.testing.assert_array_equal(rows_of(one), rows_of(again))
    assert (rows_of(one) != rows_of(other)).any()


def test_no_random_number_serves_twice() -> None:
    """Of one step, of two steps, of two seeds: for episodes, starts, return noise, rounding and dropout."""
    numbers: list[NDArray[Any]] = []
    for seed, step in ((0, 0), (0, 1), (1, 0)):
        draws = Draws.of(jnp.uint32(seed), jnp.int32(step), 64)
        units = np.append(draws.raises, draws.rounding) * 2**24
        bits = [draws.episodes, draws.starts, jax.random.key_data(draws.dropout_key)]
        if step == 0:  # the parameters of a seed come from this key
            key = jax.random.fold_in(jax.random.key(seed), 0)
            bits.append(jax.random.bits(key, (3 * 64 + 3,), jnp.uint32))
        numbers += [units.astype(np.uint32), *(np.asarray(each) >> 8 for each in bits)]
    drawn = np.concatenate(numbers)
    assert len(np.unique(drawn)) == len(drawn)


def test_discrete_actions_are_drawn_as_they_are() -> None:
    actions = np.array([0, 3, 1, 2, 2, 1])
    data = from_arrays("small", **d4rl_arrays(actions=actions))
    window = draw(jax.random.key(0), to_device(data, as_in_the_paper("rvs")), 8, 1)
    assert window.actions.shape == (8, 1)
    assert jnp.issubdtype(window.actions.dtype, jnp.integer)
    to_go = np.asarray(window.returns_to_go)[:, 0]
    rows = [data.returns_to_go.tolist().index(each) for each in to_go]
    np.testing.assert_array_equal(window.actions[:, 0], actions[rows])


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
def test_the_outermost_draws(
    bits: int, probabilities: list[float], episode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype: jnp.full(shape, bits, dtype))
    data = device(np.array(probabilities))
    window = sample(jax.random.key(0), data.episodes, data.rows, 8, CONTEXT)
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


def test_normalizing_is_the_same_for_one_observation_and_for_all() -> None:
    mean, deviation = DATA.observation_statistics
    together = normalized(DATA.observations, mean, deviation)
    assert together.dtype == np.float32
    for row in (0, 7):
        alone = normalized(DATA.observations[row].astype(np.float64), mean, deviation)
        assert alone.dtype == np.float32
        np.testing.assert_array_equal(alone, together[row])
    np.testing.assert_allclose(together.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(together.std(axis=0), 1, atol=1e-5)


def test_training_normalizes_to_the_same_bits_as_acting() -> None:
    random = np.random.default_rng(0)
    observations = random.normal(size=(500, 7)) * random.uniform(0.01, 90, 7) + random.normal(size=7) * 20
    ends = np.arange(1, 501) % 25 == 0
    data = from_arrays("random", observations, random.normal(size=(500, 1)), np.ones(500), ends, ends)
    source = to_device(data, parse("rvs"))
    keys = jax.random.split(jax.random.key(0), 3)
    # With a batch axis as in training: the compiler is not to see that the divisor is the same everywhere.
    drawn = jax.jit(jax.vmap(lambda key: sample(key, source.episodes, source.rows, 40, CONTEXT)))(keys)
    chosen = jax.vmap(lambda key: choose(draws_of(key, 40), source.episodes, CONTEXT))(keys)
    expected = normalized(data.observations, *data.observation_statistics)[np.asarray(chosen.row_numbers)]
    np.testing.assert_array_equal(drawn.observations, expected)


def test_the_device_holds_the_dataset_as_float32_and_int32() -> None:
    held = to_device(with_returns(1, 2, 3), parse("dt+w+c"))
    arrays = jax.tree.leaves((held.episodes, held.rows))
    assert {str(array.dtype) for array in arrays} == {"float32", "int32", "uint32", "bool"}
    assert not held.streamed


def test_rows_in_host_memory_are_the_dataset_itself() -> None:
    held = in_host_memory(DATA, parse("rvs"))
    assert held.streamed
    assert np.shares_memory(held.rows.observations, DATA.observations)
    assert np.shares_memory(held.rows.actions, DATA.actions)
    # Rows that do not lie end to end would be copied whole for every batch.
    scattered = dataclasses.replace(DATA, observations=np.asfortranarray(DATA.observations))
    assert in_host_memory(scattered, parse("rvs")).rows.observations.flags.c_contiguous
