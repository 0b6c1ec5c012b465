"""Statistics over seeds and tasks, against values worked out by hand, laws, and SciPy."""

from __future__ import annotations

import functools
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats

from cwbc.results.intervals import Array
from cwbc.results.statistics import (
    bootstrap,
    difference,
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
)

SCORES = np.random.default_rng(0).normal(50, 20, size=(10, 6))  # [seed, task]
OTHERS = np.random.default_rng(1).normal(45, 20, size=(8, 6))


def mean(scores: Array) -> Array:
    return np.asarray(scores.mean(axis=(-2, -1)))


def test_the_interquartile_mean_by_hand() -> None:
    # Eight runs, of which the middle four are 3, 4, 5 and 6; the outermost do not matter.
    assert interquartile_mean(np.array([[1.0, 6], [5, 900], [3, 4], [-70, 7]])) == pytest.approx(4.5)
    # Of five, 1.25 are cut from either end: 2 and 7 count three quarters, 4 as a whole, 2.5 in all.
    assert interquartile_mean(np.array([[2.0], [4.0], [0.0], [7.0], [99.0]])) == pytest.approx(
        (0.75 * 2 + 4 + 0.75 * 7) / 2.5
    )
    # Of one and of two nothing is cut as a whole.
    assert interquartile_mean(np.array([[3.0]])) == pytest.approx(3.0)
    assert interquartile_mean(np.array([[3.0, 5.0]])) == pytest.approx(4.0)


def test_the_interquartile_mean_is_scipys_where_quarters_are_whole() -> None:
    assert SCORES.size % 4 == 0
    assert interquartile_mean(SCORES) == pytest.approx(scipy.stats.trim_mean(SCORES, 0.25, axis=None))
    # Elsewhere it is SciPy's of every run repeated four times, which makes quarters whole.
    odd = SCORES[:9, :5]
    assert interquartile_mean(odd) == pytest.approx(scipy.stats.trim_mean(np.repeat(odd, 4), 0.25))


def test_laws_of_the_interquartile_mean() -> None:
    assert interquartile_mean(np.full((3, 7), 12.5)) == pytest.approx(12.5)
    shuffled = np.random.default_rng(2).permutation(SCORES.ravel()).reshape(SCORES.shape)
    assert interquartile_mean(shuffled) == pytest.approx(interquartile_mean(SCORES))
    assert interquartile_mean(3 * SCORES - 7) == pytest.approx(3 * interquartile_mean(SCORES) - 7)
    middle = interquartile_mean(SCORES)
    np.testing.assert_allclose(interquartile_mean(np.stack([SCORES, shuffled + 1])), [middle, middle + 1])


def test_the_probability_of_improvement_by_hand() -> None:
    # First task: of the pairs (1, 2), (1, 1), (3, 2), (3, 1) two are won, one is tied: 2.5 / 4.
    # Second task: always won.
    ours, theirs = np.array([[1.0, 9.0], [3.0, 8.0]]), np.array([[2.0, 0.0], [1.0, 7.0]])
    assert probability_of_improvement(ours, theirs) == pytest.approx((2.5 / 4 + 1.0) / 2)


def test_laws_of_the_probability_of_improvement() -> None:
    ours, theirs = SCORES.round(-1), OTHERS.round(-1)  # with ties
    there, back = probability_of_improvement(ours, theirs), probability_of_improvement(theirs, ours)
    assert there + back == pytest.approx(1.0)
    assert probability_of_improvement(ours, ours) == pytest.approx(0.5)
    assert probability_of_improvement(ours + 1000, theirs) == 1.0
    wins = scipy.stats.mannwhitneyu(ours, theirs, axis=0).statistic  # [task], ties counted as halves
    assert there == pytest.approx(np.mean(wins / (len(ours) * len(theirs))))


def test_the_performance_profile_by_hand() -> None:
    # Above 1 lie 2, 3 and 4; above 3 only 4: the threshold itself is not above.
    profile = performance_profile(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.0, 1.0, 3.0, 4.0]))
    np.testing.assert_allclose(profile, [1.0, 0.75, 0.25, 0.0])


def test_a_constant_has_an_interval_of_no_length() -> None:
    estimate = bootstrap(interquartile_mean, np.full((5, 3), 7.0), generator=np.random.default_rng(0))
    assert estimate == pytest.approx((7.0, 7.0, 7.0))


def test_one_seed_has_no_interval() -> None:
    estimate = bootstrap(interquartile_mean, np.array([[1.0, 3.0]]), generator=np.random.default_rng(0))
    assert estimate == pytest.approx((2.0, np.nan, np.nan), nan_ok=True)


def test_the_generator_alone_decides() -> None:
    def drawn(seed: int) -> tuple[Array, ...]:
        generator = np.random.default_rng(seed)
        return bootstrap(probability_of_improvement, SCORES, OTHERS, generator=generator)

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


def test_seeds_are_drawn_within_their_task() -> None:
    # Every task is constant: drawn within tasks the mean never changes, drawn across them it would.
    scores = np.broadcast_to([0.0, 10.0, 100.0], (6, 3))
    value, low, high = bootstrap(mean, scores, generator=np.random.default_rng(0))
    assert (value, low, high) == pytest.approx((110 / 3, 110 / 3, 110 / 3))
    # And apart from other tasks: two that cancel out seed by seed would never differ if drawn together.
    opposite = np.array([[1.0, -1.0], [-1.0, 1.0], [2.0, -2.0]])
    value, low, high = bootstrap(mean, opposite, generator=np.random.default_rng(0))
    assert low < value < high


def test_the_interval_of_two_seeds_by_hand() -> None:
    # Drawn are (0, 0), (0, 1), (1, 0), (1, 1): a mean of 0, 1/2 or 1 with 1/4, 1/2 and 1/4.
    estimate = bootstrap(mean, np.array([[0.0], [1.0]]), generator=np.random.default_rng(0))
    assert estimate == pytest.approx((0.5, 0.0, 1.0))


def test_the_percentile_interval_is_scipys_for_one_task() -> None:
    scores = SCORES[:, :1]
    ours = bootstrap(mean, scores, generator=np.random.default_rng(0), resamples=20_000)
    theirs = scipy.stats.bootstrap(
        (scores[:, 0],), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours[1:] == pytest.approx((theirs.low, theirs.high), abs=0.03 * width)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    random, covered = np.random.default_rng(5), 0
    centres = np.array([0.0, 30.0, 100.0, 20.0])
    for _ in range(200):
        scores = random.normal(centres, [1.0, 5.0, 10.0, 3.0], size=(10, 4))
        _, low, high = bootstrap(mean, scores, generator=random, resamples=400)
        covered += bool(low <= centres.mean() <= high)
    # Ten seeds seem less spread by sqrt(9 / 10), so 1.96 of that cover 93.7 %; two errors on either side.
    assert 0.90 <= covered / 200 <= 0.975


def test_the_band_of_a_profile_has_its_shape() -> None:
    profile = functools.partial(performance_profile, thresholds=np.linspace(0, 100, 11))
    value, low, high = bootstrap(profile, SCORES, generator=np.random.default_rng(0))
    assert value.shape == low.shape == high.shape == (11,)
    assert ((low <= value) & (value <= high)).all()
    assert (np.diff(value) <= 0).all()
    assert low.min() >= 0
    assert high.max() <= 1


def test_statistics_need_numpy_alone() -> None:
    program = "import sys, cwbc.results.statistics; sys.exit(bool({'jax', 'scipy'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_difference_has_welch_s_interval() -> None:
    ours = np.array([3.0, 4, 5, 6, 7])  # mean 5, variance 2.5 of each, 0.5 of their means
    theirs = np.array([1.0, 2, 3, 4, 5])
    reach = 2.306004  # Student's t with 8 degrees of freedom, times the root of 0.5 + 0.5
    assert difference([ours], [theirs]) == pytest.approx((2, 2 - reach, 2 + reach))
    assert difference([theirs], [ours]) == pytest.approx((-2, -2 - reach, -2 + reach))
    # Two tasks have twice the degrees of freedom, and their mean half of the variance.
    reach = 2.119905 * math.sqrt(0.5)
    assert difference([ours, ours], [theirs, theirs]) == pytest.approx((2, 2 - reach, 2 + reach), abs=1e-3)
    # All variance in one: its degrees are what counts.
    reach = 2.776445 * math.sqrt(0.5)
    assert difference([ours], [np.full(3, 4.0)]) == pytest.approx((1, 1 - reach, 1 + reach))


def test_a_difference_without_variance_is_certain_and_of_one_seed_unknown() -> None:
    assert difference([np.full(2, 3.0)], [np.full(2, 1.0)]) == (2, 2, 2)
    value, low, high = difference([np.array([3.0])], [np.array([1.0, 2.0])])
    assert value == 1.5
    assert math.isnan(low)
    assert math.isnan(high)


def test_a_difference_is_scipy_s() -> None:
    ours, theirs = SCORES[:, 0], 3 * OTHERS[:, 0]
    expected = scipy.stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    value, low, high = difference([ours], [theirs])
    # Whole degrees of freedom make it a little wider.
    assert low <= expected.low < value < expected.high <= high
    assert high - low == pytest.approx(expected.high - expected.low, rel=0.03)
