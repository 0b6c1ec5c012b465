from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cwbc.results.intervals import Array, band, bands, interval, meaning, student_t, wider


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
