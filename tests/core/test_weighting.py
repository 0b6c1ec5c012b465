"""Trajectory weighting: the paper's formula by hand, and the laws it must keep."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from conftest import logged, with_returns

from cwbc.core.weighting import ByLength, ByReturn, TopFraction
from cwbc.system.errors import InputError

RANDOM = np.random.default_rng(0).gamma(2.0, 300.0, size=400)


def test_bins_and_weights_by_hand() -> None:
    # Bins of width 2 over [0, 10]: {0, 1}, {2} on an inner edge, none, none, {9, 10}.
    data = with_returns(10, 0, 2, 9, 1)
    found = ByReturn(bins=5, smoothing=0.25, temperature=4.0).probabilities(data)
    low = 0.4 / (0.4 + 0.25) * exp(-(10 - 0.5) / 4)
    edge = 0.2 / (0.2 + 0.25) * exp(-(10 - 2) / 4)
    high = 0.4 / (0.4 + 0.25) * exp(-(10 - 9.5) / 4)
    expected = np.array([high / 2, low / 2, edge, high / 2, low / 2]) / (low + edge + high)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_paper_sizes_are_the_default() -> None:
    assert ByReturn() == ByReturn(bins=20, smoothing=0.01, temperature=None, temperature_percentile=90.0)


def test_ninety_zeros_and_ten_ones() -> None:
    """Sparse rewards: the ones are the top tenth, so kappa falls back to a tenth of the range."""
    found = ByReturn().probabilities(with_returns(*[0] * 90, *[1] * 10))
    zeros = 0.9 / 0.91 * exp(-1 / 0.1)
    ones = 0.1 / 0.11
    assert found[:90].sum() == pytest.approx(zeros / (zeros + ones), rel=1e-9)
    assert found[:90].sum() < 1e-4
    np.testing.assert_allclose(found[90:], ones / (zeros + ones) / 10, rtol=1e-12)


def test_the_temperature_is_best_minus_the_percentile() -> None:
    returns = np.arange(101.0)[::-1]
    assert ByReturn().resolved_temperature(returns) == 10.0
    assert ByReturn(temperature_percentile=50.0).resolved_temperature(returns) == 50.0
    assert ByReturn(temperature_percentile=0.0).resolved_temperature(returns) == 100.0
    assert ByReturn(temperature=7.0).resolved_temperature(returns) == 7.0


def test_the_temperature_falls_back_to_a_tenth_of_the_range() -> None:
    assert ByReturn().resolved_temperature(np.array([-4.0, *[6.0] * 30])) == pytest.approx(1.0)
    # With less than a tenth at the top there is a gap: the paper's formula stands.
    assert ByReturn().resolved_temperature(np.array([0.0] * 91 + [1.0] * 9)) == 1.0


@pytest.mark.parametrize(
    "weighting", [ByLength(), ByReturn(), ByReturn(bins=1), ByReturn(bins=1000), TopFraction()]
)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_probabilities_sum_to_one(weighting: ByLength | ByReturn | TopFraction, scale: float) -> None:
    found = weighting.probabilities(with_returns(*RANDOM * scale))
    assert found.shape == RANDOM.shape
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-12)


def test_the_range_ends_belong_to_the_outer_bins() -> None:
    low_a, high_a, middle_low, low_b, middle_high, high_b = ByReturn(bins=2).probabilities(
        with_returns(0, 10, 4, 0, 6, 10)
    )
    assert low_a == low_b == middle_low
    assert high_a == high_b == middle_high
    assert high_a > low_a


@pytest.mark.parametrize("bins", [1, 3, 7, 20, 49, 1000])
def test_ties_have_equal_probabilities_wherever_the_edges_are(bins: int) -> None:
    # Tenths are not exact in binary, and many of them fall on or beside an edge.
    levels = np.arange(8) * 0.1
    shuffled = np.random.default_rng(bins).permutation(np.repeat(levels, np.arange(1, 9)))
    found = ByReturn(bins=bins).probabilities(with_returns(*shuffled))
    for level in levels:
        assert len(set(found[shuffled == level])) == 1


@pytest.mark.parametrize("level", [0.0, -3.0, 1e6])
def test_equal_returns_are_sampled_uniformly(level: float) -> None:
    # Lengths differ, but +W samples by return alone.
    data = logged([level], [level, 0.0], [0.0, 0.0, level])
    np.testing.assert_array_equal(ByReturn().probabilities(data), np.full(3, 1 / 3))


def test_equally_populated_bins_are_preferred_by_return() -> None:
    found = ByReturn(bins=10, temperature=25.0).probabilities(with_returns(*range(100)))
    bins = found.reshape(10, 10)
    assert (bins == bins[:, :1]).all()
    # One bin further is ten more: a factor of e^(10 / 25) in probability.
    np.testing.assert_allclose(bins[1:] / bins[:-1], exp(10 / 25), rtol=1e-9)


def test_a_smaller_temperature_prefers_high_returns_more() -> None:
    data = with_returns(*RANDOM)
    means = [(ByReturn(temperature=k).probabilities(data) * data.returns).sum() for k in (1, 50, 300, 1e9)]
    assert means == sorted(means, reverse=True)
    assert means[0] > means[-1] + 100


def test_more_smoothing_stays_closer_to_the_data() -> None:
    # With a huge temperature and lambda, a bin's mass is its part of the data.
    data = with_returns(*RANDOM)
    found = ByReturn(smoothing=1e9, temperature=1e15).probabilities(data)
    np.testing.assert_allclose(found, 1 / len(RANDOM), rtol=1e-6)


def test_without_smoothing_occupied_bins_count_the_same() -> None:
    found = ByReturn(bins=4, smoothing=0.0, temperature=1e15).probabilities(with_returns(0, 0, 0, 8))
    np.testing.assert_allclose(found, [1 / 6, 1 / 6, 1 / 6, 1 / 2])


def test_weights_do_not_depend_on_the_unit_of_reward() -> None:
    found = ByReturn().probabilities(with_returns(*np.round(RANDOM)))
    other = ByReturn().probabilities(with_returns(*np.round(RANDOM) * 64 - 512))
    np.testing.assert_allclose(other, found, rtol=1e-9)


@pytest.mark.parametrize("temperature", [1e-3, 1e-12, 1e-300, 5e-324])
def test_a_tiny_temperature_leaves_only_the_best_bin(temperature: float) -> None:
    # The best bin's mean is below the best return, so every plain exponential underflows.
    found = ByReturn(bins=2, temperature=temperature).probabilities(with_returns(0, 1000, 3, 600))
    np.testing.assert_array_equal(found, [0, 0.5, 0, 0.5])


def test_a_single_episode_is_always_sampled() -> None:
    for weighting in (ByLength(), ByReturn(), TopFraction()):
        np.testing.assert_array_equal(weighting.probabilities(with_returns(3.0)), [1.0])


def test_by_length_is_in_proportion() -> None:
    found = ByLength().probabilities(logged([1] * 2, [9] * 5, [0] * 3))
    np.testing.assert_allclose(found, [0.2, 0.5, 0.3])


def test_the_top_fraction_is_sampled_by_length() -> None:
    data = logged([9], [1, 1], [4, 4, 4], [3, 3], [0])  # returns 9, 2, 12, 6, 0
    np.testing.assert_allclose(TopFraction(0.4).probabilities(data), [1 / 4, 0, 3 / 4, 0, 0])
    np.testing.assert_allclose(TopFraction(1.0).probabilities(data), ByLength().probabilities(data))
    # Even the smallest part keeps the best.
    np.testing.assert_array_equal(TopFraction(1e-9).probabilities(data), [0, 0, 1, 0, 0])


def test_a_tenth_is_the_default() -> None:
    found = TopFraction().probabilities(with_returns(*range(50)))
    assert np.flatnonzero(found).tolist() == [45, 46, 47, 48, 49]


def test_the_top_fraction_includes_ties() -> None:
    found = TopFraction(0.25).probabilities(with_returns(5, 7, 5, 5, 1, 0, 1, 0))
    np.testing.assert_allclose(found, [0.25, 0.25, 0.25, 0.25, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bins": 0}, "bins must be at least 1; got 0"),
        ({"smoothing": -0.1}, "smoothing must be at least 0; got -0.1"),
        ({"temperature": 0.0}, "temperature must be positive; got 0.0"),
        ({"temperature_percentile": 101.0}, "temperature_percentile must be between 0 and 100; got 101.0"),
    ],
)
def test_values_that_make_no_sense_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ByReturn(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("fraction", [0.0, 1.1, -0.1, float("nan")])
def test_a_fraction_is_above_zero_and_at_most_one(fraction: float) -> None:
    with pytest.raises(InputError, match=f"top_fraction must be above 0 and at most 1; got {fraction}"):
        TopFraction(fraction)
