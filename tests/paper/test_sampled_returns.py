"""The bound's terms against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import logged, with_returns

from cwbc.core.weighting import ByLength, ByReturn, TopFraction
from cwbc.paper.sampled_returns import binned, bound, effective_sample_size
from cwbc.results.intervals import Array

# Two bins: six trajectories in the lower one, two in the upper one.
RETURNS = np.array([0.0, 1, 1, 2, 2, 3, 9, 10])


def uniform(returns: Array) -> Array:
    return np.full(len(returns), 1 / len(returns))


def only_best(returns: Array) -> Array:
    is_best = returns == returns.max()
    return np.asarray(is_best / is_best.sum())


def test_bins_are_of_equal_width_and_ties_share_them() -> None:
    probabilities = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    found = binned(np.array([0.0, 4.9, 5.0, 10.0, 10.0]), probabilities, 2)
    assert found.tolist() == pytest.approx([0.1 + 0.2, 0.3 + 0.15 + 0.25])
    assert sorted(binned(np.array([3.0, 3.0]), np.array([0.5, 0.5]), 4)) == [0, 0, 0, 1]


def test_uniform_by_hand() -> None:
    found = bound(RETURNS, uniform(RETURNS), bins=2)
    assert found.scarcity == pytest.approx(6 / 8 / 6 + 2 / 8 / 2)  # one eighth from each bin
    assert found.divergence == pytest.approx(1 / 8)  # q is p_D: no divergence but the data's size
    assert found.binned_divergence == pytest.approx(1 / 8)
    assert found.bias == pytest.approx(0.75**2)


def test_hard_filtering_by_hand() -> None:
    chosen = TopFraction(0.25).probabilities(with_returns(*RETURNS))
    assert chosen.tolist() == [0, 0, 0, 0, 0, 0, 0.5, 0.5]
    found = bound(RETURNS, chosen, bins=2)
    assert found.scarcity == pytest.approx(1 / 2)
    assert found.divergence == pytest.approx(1 / 0.25 / 8)
    assert found.bias == 0
    # Half of a bin is used half as evenly as all of it.
    assert bound(RETURNS, np.eye(8)[7], bins=2) == bound(RETURNS, only_best(RETURNS), bins=2)
    assert bound(RETURNS, np.eye(8)[7], bins=2).divergence == 1
    assert bound(RETURNS, np.eye(8)[7], bins=2).binned_divergence == found.divergence  # bins do not see it


def test_sampling_by_length_by_hand() -> None:
    data = logged([1, 1, 1], [4], [5], [2, 2, 2])  # returns of 3, 4, 5 and 6
    by_length = bound(data.returns, ByLength().probabilities(data), bins=3)
    assert by_length.scarcity == pytest.approx(3 / 8 / 1 + 1 / 8 / 1 + (1 / 8 + 3 / 8) / 2)
    assert by_length.divergence == pytest.approx((9 + 1 + 1 + 9) / 64)
    assert by_length.bias == pytest.approx(1 / 4)
    filtered = bound(data.returns, TopFraction(0.5).probabilities(data), bins=3)
    assert filtered.divergence == pytest.approx((1 + 9) / 16)  # longer ones among the best count for more


def test_weighting_by_hand() -> None:
    # Three bins of width 4: four returns of 0, four of 6, two of 12; kappa 6 / ln 2 halves per 6 of return.
    data = with_returns(0, 0, 0, 0, 6, 6, 6, 6, 12, 12)
    weighting = ByReturn(bins=3, smoothing=0.2, temperature=6 / np.log(2))
    weights = np.array([0.4 / 0.6 / 4, 0.4 / 0.6 / 2, 0.2 / 0.4])
    sampled = weights / weights.sum()  # 1/6, 1/3, 1/2
    found = bound(data.returns, weighting.probabilities(data), bins=3)
    assert sampled.tolist() == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    assert found.scarcity == pytest.approx(1 / 6 / 4 + 1 / 3 / 4 + 1 / 2 / 2)
    assert found.divergence == pytest.approx((1 / 36 / 0.4 + 1 / 9 / 0.4 + 1 / 4 / 0.2) / 10)
    assert found.bias == pytest.approx(1 / 4)


def test_only_the_best_has_no_bias_and_the_most_variance() -> None:
    returns = np.random.default_rng(0).gamma(2.0, 100.0, 500)
    best = bound(returns, only_best(returns))
    for other in (uniform(returns), TopFraction().probabilities(with_returns(*returns))):
        assert best.bias == 0 < bound(returns, other).bias
        assert best.divergence > bound(returns, other).divergence
        assert best.scarcity >= bound(returns, other).scarcity


def test_the_divergence_is_least_for_the_data_itself() -> None:
    generator = np.random.default_rng(1)
    returns = generator.normal(size=60)
    least = bound(returns, uniform(returns)).divergence
    for _ in range(20):
        probabilities = generator.dirichlet(np.ones(60))
        assert bound(returns, probabilities).divergence >= least - 1e-12


def test_effective_sample_size() -> None:
    assert effective_sample_size(np.full(8, 1 / 8)) == pytest.approx(8)
    assert effective_sample_size(np.array([0.5, 0.5, 0, 0])) == pytest.approx(2)
