"""The conservative regularizer's pieces: which trajectories it selects, and the return noise."""

from __future__ import annotations

from math import sqrt

import jax
import numpy as np
import pytest
from conftest import logged, with_returns
from toys import as_in_the_paper

from cwbc.core.methods import parse
from cwbc.core.regularizers import Conservative
from cwbc.core.sampling import to_device
from cwbc.system.errors import InputError


def test_returns_of_at_least_the_percentile_are_regularized() -> None:
    # 21 returns: the 95th percentile is exactly the second best, which counts.
    selected = Conservative().selected(with_returns(*range(21)))
    assert np.flatnonzero(selected).tolist() == [19, 20]


def test_a_percentile_between_two_returns_selects_those_above() -> None:
    selected = Conservative(percentile=50.0).selected(with_returns(3, 1, 2, 4))
    assert selected.tolist() == [True, False, False, True]


@pytest.mark.parametrize("tied", [5, 6, 50, 100])
def test_ties_at_the_top_are_selected(tied: int) -> None:
    # "Above the percentile" would select none of six or more.
    selected = Conservative().selected(with_returns(*[0] * (100 - tied), *[1] * tied))
    assert selected.tolist() == [i >= 100 - tied for i in range(100)]


def test_rare_successes_are_selected_without_the_failures() -> None:
    # The 95th percentile is the failures' own return: "at least" would select everything.
    selected = Conservative().selected(with_returns(*[0] * 96, *[1] * 4))
    assert np.flatnonzero(selected).tolist() == [96, 97, 98, 99]
    assert Conservative(percentile=0).selected(with_returns(0, 0, 1)).all()


@pytest.mark.parametrize("returns", [(-2, -1, 0, 0), (-1, 0, 0, 0, 5), (0, 0, 0)])
def test_a_threshold_of_zero_is_a_threshold(returns: tuple[int, ...]) -> None:
    selected = Conservative(percentile=60.0).selected(with_returns(*returns))
    assert selected.tolist() == [each >= 0 for each in returns]


@pytest.mark.parametrize("percentile", [0.0, 33.3, 95.0, 99.99, 100.0])
def test_the_best_trajectory_is_always_selected(percentile: float) -> None:
    data = with_returns(*np.random.default_rng(0).normal(size=37))
    selected = Conservative(percentile=percentile).selected(data)
    assert selected[data.returns.argmax()]
    assert selected.all() == (percentile == 0.0)


def test_the_noise_is_published_or_from_the_range() -> None:
    assert Conservative().fit(with_returns(0, 5, environment="HalfCheetah-v4")).noise == 1000.0
    own = Conservative().fit(with_returns(-2, 1, 10))
    assert own.noise == pytest.approx(12 / sqrt(12))
    # The noisy returns-to-go then reach one whole range beyond the best.
    assert own.width == pytest.approx(12)
    assert Conservative(noise=50.0).fit(with_returns(0, 1, environment="Hopper-v4")).noise == 50.0
    assert Conservative(noise=0.0).fit(with_returns(0, 1)).width == 0.0
    assert Conservative().fit(with_returns(4, 4)).width == 0.0


def test_fitting_changes_only_the_noise() -> None:
    fitted = Conservative(percentile=80.0, coefficient=0.5).fit(with_returns(0, 1))
    assert (fitted.percentile, fitted.coefficient) == (80.0, 0.5)


def test_uniform_noise_of_this_width_has_the_standard_deviation_sigma() -> None:
    noise = np.linspace(0, Conservative(noise=3.0).width, 100_001)
    assert noise.std() == pytest.approx(3.0, rel=1e-4)
    with pytest.raises(ValueError, match="not known before fit"):
        _ = Conservative().width


def test_noisy_returns_to_go_are_between_the_best_and_the_width_beyond() -> None:
    """g_0 + eps with eps ~ Uniform[l, l + width] and l = best - R."""
    data = logged([2, -1, 4], [10], [3, 3, 3, 0.5])  # returns 5, 10, 9.5
    device = to_device(data, as_in_the_paper("rvs+c"))
    shortfalls = np.asarray(device.episodes.columns["shortfalls"])
    np.testing.assert_allclose(shortfalls, [5.0, 0.0, 0.5])
    first = np.asarray(device.columns.extra["returns_to_go"])[data.starts]
    regularizer = Conservative(percentile=50.0).fit(data)
    noise = np.asarray(jax.random.uniform(jax.random.key(0), (1000, 3)))
    noisy = first + shortfalls + regularizer.width * noise
    assert noisy.min() >= data.best
    assert noisy.max() < data.best + (data.best - data.lowest)
    # The whole stretch is used.
    np.testing.assert_allclose(noisy.min(axis=0), 10, atol=0.05)
    np.testing.assert_allclose(noisy.max(axis=0), 15, atol=0.05)


def test_the_selected_trajectories_are_on_the_device() -> None:
    data = with_returns(*range(41))
    assert np.flatnonzero(to_device(data, parse("rvs+c")).episodes.selected).tolist() == [38, 39, 40]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"percentile": 100.5}, "percentile must be between 0 and 100; got 100.5"),
        ({"percentile": -1.0}, "percentile must be between 0 and 100; got -1.0"),
        ({"noise": -1.0}, "noise must be at least 0; got -1.0"),
        ({"coefficient": -0.5}, "coefficient must be at least 0; got -0.5"),
    ],
)
def test_values_that_make_no_sense_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Conservative(**settings)
