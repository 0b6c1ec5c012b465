from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize, stats

from cwbc.results.intervals import Array, band, bands, interval, meaning, student_t, success_interval, wider


@pytest.mark.parametrize(
    ("degrees", "printed"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (10, 2.228), (30, 2.042), (1000, 1.962)],
)
def test_student_t_is_that_of_printed_tables(degrees: int, printed: float) -> None:
    assert student_t(degrees) == pytest.approx(printed, abs=5e-4)


def test_the_interval_of_a_mean_is_the_textbook_one() -> None:
    samples = np.array([[1.0, 10.0], [2.0, 10.0], [6.0, 10.0]])
    value, low, high = interval(samples)
    # deviations -2, -1, 3: variance 14 / 2 = 7, error sqrt(7 / 3), t with two degrees 4.302653
    reach = 4.302653 * math.sqrt(7 / 3)
    np.testing.assert_allclose(value, [3.0, 10.0])
    np.testing.assert_allclose(low, [3.0 - reach, 10.0], rtol=1e-6)
    np.testing.assert_allclose(high, [3.0 + reach, 10.0], rtol=1e-6)


def test_the_interval_of_a_ratio_leaves_out_one_seed_at_a_time() -> None:
    def ratio(samples: Array) -> Array:
        mean = samples.mean(axis=0)
        return np.asarray(mean[0] / mean[1])

    value, low, high = interval(np.array([[1.0, 2.0], [3.0, 4.0], [2.0, 6.0]]), ratio)
    without = np.array([5 / 10, 3 / 8, 4 / 6])
    reach = 4.302653 * without.std() * math.sqrt(2)
    # A bias that is b with three seeds is b sqrt(3 / 2) with two.
    bias = (without.mean() - 1 / 2) / (math.sqrt(3 / 2) - 1)
    assert bias > 0
    assert value == pytest.approx(6 / 12)
    assert low == pytest.approx(1 / 2 - bias - reach)
    assert high == pytest.approx(1 / 2 + reach)


@given(st.integers(3, 6).flatmap(lambda seeds: arrays(np.float64, (seeds, 4), elements=st.floats(-99, 99))))
def test_an_interval_has_its_value_in_it_and_that_of_a_mean_in_its_middle(samples: Array) -> None:
    mean, low, high = interval(samples)
    np.testing.assert_allclose(low + high, 2 * mean, atol=1e-9)
    for statistic in (lambda each: each.mean(axis=0).max(), lambda each: np.abs(each.mean(axis=0)).mean()):
        value, low, high = interval(samples, statistic)
        assert low <= value <= high


def wilson(successes: int, episodes: int, seeds: int) -> tuple[float, float]:
    """SciPy's, at the level whose normal point is Student's t for these seeds."""
    level = 2 * stats.norm.cdf(stats.t.ppf(0.975, seeds - 1)) - 1
    found = stats.binomtest(successes, episodes).proportion_ci(level, "wilson")
    return float(found.low), float(found.high)


@pytest.mark.parametrize(
    ("successes", "episodes"),
    [((10, 10, 10), 10), ((0, 0, 0, 0), 5), ((9, 9, 9), 10), ((50, 51, 49), 100), ((2, 1, 1), 10)],
)
def test_seeds_that_differ_less_than_chance_would_make_them_count_as_their_episodes(
    successes: tuple[int, ...], episodes: int
) -> None:
    seeds = len(successes)
    value, low, high = success_interval(np.array(successes) / episodes, episodes)
    expected = wilson(sum(successes), seeds * episodes, seeds)
    assert value == pytest.approx(sum(successes) / (seeds * episodes))
    assert (low, high) == pytest.approx(expected, abs=1e-9)
    assert high - low > 0.1


def test_seeds_that_differ_more_count_as_fewer_episodes() -> None:
    rates = np.array([[0.2, 0.95], [0.9, 1.0], [0.7, 0.7], [0.6, 1.0]])
    values, lows, highs = success_interval(rates, 100)
    for column, value, low, high in zip(rates.T, values, lows, highs, strict=True):
        # The ends are the rates from which the mean is t standard errors away, which shrink with p (1 - p).
        error = column.std(ddof=1) / math.sqrt(len(column))
        t = float(stats.t.ppf(0.975, len(column) - 1))

        def distance(rate: float, value: float = value, error: float = error, t: float = t) -> float:
            return abs(rate - value) - t * error * math.sqrt(rate * (1 - rate) / (value * (1 - value)))

        assert low == pytest.approx(optimize.brentq(distance, 0, value), abs=1e-9)
        assert high == pytest.approx(optimize.brentq(distance, value, 1), abs=1e-9)


def test_an_interval_of_success_rates_is_right_where_seeds_differ_and_most_succeed() -> None:
    generator, rate, rows = np.random.default_rng(0), 0.95, 2000
    of_seeds = generator.beta(rate * 19, (1 - rate) * 19, (3, rows))  # a std of 5 points between seeds
    achieved = generator.binomial(20, of_seeds) / 20
    _, low, high = success_interval(achieved, 20)
    assert ((low <= rate) & (rate <= high)).mean() >= 0.95
    _, low, high = interval(achieved)
    assert ((low <= rate) & (rate <= high)).mean() < 0.9  # by the seeds alone


def test_returns_of_a_model_and_broken_simulations_have_intervals_of_success_rates_as_well() -> None:
    value, low, high = success_interval(np.array([[1.2, 0.5], [1.1, math.nan], [1.3, 0.5]]), 10)
    assert value[0] == pytest.approx(1.2)
    assert 0 <= low[0] <= high[0] == 1
    assert np.isnan([value[1], low[1], high[1]]).all()
    assert np.isnan(success_interval(np.ones(2), 10)[1:]).all()  # two seeds, as for other returns


@pytest.mark.parametrize("seeds", [1, 2])
def test_one_and_two_seeds_are_too_few_for_an_interval(seeds: int) -> None:
    value, low, high = interval(np.array([[5.0]] * seeds))
    assert value.tolist() == [5.0]
    assert np.isnan([low, high]).all()
    assert meaning([seeds]) == "too few seeds for an interval"


def test_pictures_show_two_seeds_as_they_are_and_more_by_their_interval() -> None:
    two = np.array([[1.0, 5.0], [3.0, 4.0]])
    np.testing.assert_array_equal(band(two), [[2.0, 4.5], [1.0, 4.0], [3.0, 5.0]])
    three = np.array([[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(band(three), interval(three))
    np.testing.assert_array_equal(band(three / 3, 5), success_interval(three / 3, 5))
    np.testing.assert_array_equal(band(two[:, 1:] / 5, 5)[1:], [[0.8], [1.0]])
    assert meaning([3, 10]) == "95 % intervals over seeds"
    assert meaning([3, 2]) == "95 % intervals over seeds; 2 are too few for an interval"
    assert bands([1, 1]) == "One seed: too few seeds for an interval."
    words = "Means over 1 or 2 seeds. Bands span both seeds: too few seeds for an interval."
    assert bands([2, 1]) == words
    assert bands([3]) == "Means over 3 seeds. Bands are 95 % intervals over seeds."
    words = "Means over 2 or 3 seeds. Bands are 95 % intervals over seeds; of two seeds, they span both."
    assert bands([3, 2]) == words


def test_an_independent_error_adds_in_squares() -> None:
    value, low, high = (np.array([number]) for number in (3.0, 0.0, 8.0))
    assert [end.item() for end in wider((value, low, high), np.array([4.0]))] == pytest.approx(
        [3.0, 3.0 - 5.0, 3.0 + math.sqrt(41.0)]
    )
    assert "over seeds and the model's error" in meaning([3], of_model=True)
    assert "over seeds and the model's error" in bands([3], of_model=True)
