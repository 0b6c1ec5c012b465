from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cwbc.intervals import Array, band, interval, meaning, student_t


@pytest.mark.parametrize("degrees", [*range(1, 31), 100, 1000])
def test_student_t_is_scipy_s(degrees: int) -> None:
    assert student_t(degrees) == pytest.approx(scipy.stats.t.ppf(0.975, degrees), abs=2e-4)


def test_the_interval_of_a_mean_is_the_textbook_one() -> None:
    samples = np.array([[1.0, 10.0], [2.0, 10.0], [6.0, 10.0]])
    value, low, high = interval(samples)
    # deviations -2, -1, 3: variance 14 / 2 = 7, error sqrt(7 / 3), t with two degrees 4.302653
    reach = 4.302653 * math.sqrt(7 / 3)
    np.testing.assert_allclose(value, [3.0, 10.0])
    np.testing.assert_allclose(low, [3.0 - reach, 10.0])
    np.testing.assert_allclose(high, [3.0 + reach, 10.0])


def test_the_interval_of_a_ratio_leaves_out_one_seed_at_a_time() -> None:
    def ratio(samples: Array) -> Array:
        mean = samples.mean(axis=0)
        return np.asarray(mean[0] / mean[1])

    value, low, high = interval(np.array([[1.0, 2.0], [3.0, 4.0]]), ratio)
    # left out in turn: 3 / 4 and 1 / 2; their deviation is 1 / 8 and sqrt(2 - 1) = 1
    assert value == pytest.approx(4 / 6)
    assert low == pytest.approx(4 / 6 - 12.706205 / 8)
    # One seed gives 5 / 8 on average, 1 / 24 less than two. A bias that is b with two is b sqrt(2) with one.
    assert high == pytest.approx(4 / 6 + 1 / 24 / (math.sqrt(2) - 1) + 12.706205 / 8)


@given(st.integers(2, 6).flatmap(lambda seeds: arrays(np.float64, (seeds, 4), elements=st.floats(-99, 99))))
def test_an_interval_has_its_value_in_it_and_that_of_a_mean_in_its_middle(samples: Array) -> None:
    mean, low, high = interval(samples)
    np.testing.assert_allclose(low + high, 2 * mean, atol=1e-9)
    for statistic in (lambda each: each.mean(axis=0).max(), lambda each: np.abs(each.mean(axis=0)).mean()):
        value, low, high = interval(samples, statistic)
        assert low <= value <= high


def test_one_seed_has_no_interval() -> None:
    value, low, high = interval(np.array([[5.0]]))
    assert value.tolist() == [5.0]
    assert np.isnan([low, high]).all()


def test_pictures_show_two_seeds_as_they_are_and_more_by_their_interval() -> None:
    two = np.array([[1.0, 5.0], [3.0, 4.0]])
    np.testing.assert_array_equal(band(two), [[2.0, 4.5], [1.0, 4.0], [3.0, 5.0]])
    three = np.array([[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(band(three), interval(three))
    assert meaning([1, 1]) == ""
    assert meaning([2, 1]) == "what both seeds reach"
    assert meaning([3]) == "95 % intervals over seeds"
    assert "two" in meaning([3, 2])
