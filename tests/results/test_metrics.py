"""The metrics of curves of achieved vs. target scores, against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cwbc.results.evaluated import calibration_error, has_fractions, monotonicity, retention
from cwbc.results.intervals import Array, Estimate

T = 4.302653  # Student's t of three seeds


def alone(*curve: float) -> Array:
    """The scores of one seed."""
    return np.array([curve])


def value(found: Estimate) -> float:
    return found.value


def test_the_calibration_error_by_hand() -> None:
    scores, wanted = np.array([[14.0, 20.0], [8.0, 30.0], [8.0, 25.0]]), np.array([10.0, 30.0])
    # The means are 10 and 25, off by 0 and 5; without each seed in turn 8 and 27.5, 11 and 22.5, 11 and 25.
    without = np.array([(2 + 2.5) / 2, (1 + 7.5) / 2, (1 + 5) / 2])
    bias = (without.mean() - 2.5) / (np.sqrt(3 / 2) - 1)
    found, low, high = calibration_error(scores, wanted)
    assert found == pytest.approx(2.5)
    assert bias > 0  # a distance is larger by chance
    assert high == pytest.approx(2.5 + T * without.std() * np.sqrt(2))
    assert low == 0.0  # no error can be less


def test_a_policy_that_does_as_it_is_told_has_no_calibration_error() -> None:
    wanted = np.array([-20.0, 0.0, 50.0])
    assert calibration_error(np.array([wanted] * 3), wanted) == pytest.approx((0.0, 0.0, 0.0))
    # Too much is as far off as too little.
    assert value(calibration_error(wanted[None] + 3, wanted)) == pytest.approx(3.0)
    assert value(calibration_error(wanted[None] - 3, wanted)) == pytest.approx(3.0)


def test_the_monotonicity_by_hand() -> None:
    assert value(monotonicity(alone(10.0, 40.0, 30.0, 50.0))) == pytest.approx(1 - 10 / 50)
    # What counts is the whole way down, here 50 to 20 by way of 35, and not where the curve ends.
    assert value(monotonicity(alone(10.0, 50.0, 35.0, 40.0, 20.0, 45.0))) == pytest.approx(1 - 30 / 50)
    # The means are 30 50 25.
    found = monotonicity(np.array([[30.0, 50.0, 10.0], [30.0, 50.0, 25.0], [30.0, 50.0, 40.0]]))
    assert found == pytest.approx((0.5, 0.0, 1.0))  # the interval would be wider than is possible


def test_asking_for_more_that_never_gives_less_is_one() -> None:
    for curve in ((5.0, 5.0, 9.0, 30.0), (-8.0, -3.0, 20.0), (7.0, 7.0, 7.0)):
        assert monotonicity(np.array([curve] * 3)) == pytest.approx((1.0, 1.0, 1.0))


def test_losing_more_than_everything_is_zero() -> None:
    assert value(monotonicity(alone(10.0, 40.0, -5.0))) == 0.0


def test_the_noise_of_a_level_curve_does_not_add_up() -> None:
    few, many = np.tile([50.0, 49.0], 3), np.tile([50.0, 49.0], 100)
    assert value(monotonicity(few[None])) == value(monotonicity(many[None])) == pytest.approx(0.98)


def test_monotonicity_is_a_share_and_at_most_the_retention() -> None:
    for scores in np.random.default_rng(0).normal(30, 3, size=(20, 3, 8)):
        found = value(monotonicity(scores))
        assert value(monotonicity(7 * scores)) == pytest.approx(found)
        assert found <= value(retention(scores, far=7))


@pytest.mark.parametrize("scores", [alone(10.0), alone(-3.0, -1.0, 0.0), alone(1.0, np.nan, 2.0)])
def test_what_cannot_be_computed_is_no_number(scores: Array) -> None:
    assert np.isnan(monotonicity(scores)).all()


@pytest.mark.parametrize(
    ("seeds", "defined"),
    [
        ([4.9], False),  # points of score
        ([5.1], True),
        ([-50.0], False),
        ([20.0, 21.0, 22.0], True),
        ([1.0, 20.0, 40.0], True),  # however wide its interval is
    ],
)
def test_what_is_a_fraction_needs_a_best_point_clearly_above_zero(seeds: list[float], defined: bool) -> None:
    scores = np.array([[best, -9.0] for best in seeds])
    assert has_fractions(scores) == defined
    for ends in (retention(scores, far=1), monotonicity(scores)):
        assert np.isfinite(ends[0]) == defined


def test_retention_is_of_what_is_known() -> None:
    seeds = np.array([[10.0, 50.0, 40.0, 30.0], [10.0, np.nan, 40.0, 30.0], [10.0, 60.0, 40.0, 30.0]])
    assert value(retention(seeds, far=3)) == pytest.approx(30 / 40)
    assert np.isnan(retention(seeds, far=1)).all()  # without a warning
    assert np.isnan(retention(np.full((2, 3), np.nan), far=2)).all()


def test_no_calibration_error_of_fewer_than_two_targets_or_of_an_exploded_one() -> None:
    for curve in ([], [5.0], [5.0, np.inf]):
        assert np.isnan(calibration_error(alone(*curve), np.array(curve))).all()


@pytest.mark.parametrize("seeds", [3, 10])
def test_intervals_reach_the_truth_where_chance_makes_the_value_worse(seeds: int) -> None:
    """Around the value alone, those of a level curve with ten seeds hold the truth 12 times of 100."""
    wanted = np.linspace(20.0, 70.0, 12)
    noise = np.random.default_rng(0).normal(0.0, 5.0, size=(100, seeds, 12))
    level = [(monotonicity(70 + each), 1.0) for each in noise]
    shown = [(calibration_error(wanted + each, wanted), 0.0) for each in noise]
    kept = [(retention(70 + each, far=11), 1.0) for each in noise]
    for found in (level, shown, kept):
        assert np.mean([low <= truth <= high for (_, low, high), truth in found]) > 0.7
        assert all(low <= value <= high for (value, low, high), _ in found)
