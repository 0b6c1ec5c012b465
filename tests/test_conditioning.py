"""What a policy is told: hand-computed values, and the link between training and acting."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from conftest import logged

from cwbc.conditioning import AverageReturnToGo, ReturnToGo
from cwbc.errors import InputError


def test_average_return_to_go_by_hand() -> None:
    # g = 12, 11, 9, 6 in a horizon of 6: omega_t = g_t / (6 - t), zero-based.
    data = logged([1, 2, 3, 6], time_limit=6)
    omega = AverageReturnToGo()(data.returns_to_go, np.arange(4), data.horizon)
    np.testing.assert_allclose(omega, [12 / 6, 11 / 5, 9 / 4, 6 / 3])


def test_a_constant_reward_over_the_whole_horizon_is_its_own_average() -> None:
    omega = AverageReturnToGo()(np.arange(10, 0, -1) * 0.7, np.arange(10), 10)
    np.testing.assert_allclose(omega, np.full(10, 0.7))


def test_acting_spends_what_training_counted() -> None:
    # After reward r_t the policy is told (g_t - r_t) / (H - t - 1): the logged next step's condition.
    rewards = [0.5, -1.0, 4.0, 2.0]
    data = logged(rewards, time_limit=9)
    told = AverageReturnToGo()(data.returns_to_go, np.arange(4), 9)
    for t in range(3):
        assert told[t + 1] == pytest.approx((data.returns_to_go[t] - rewards[t]) / (9 - t - 1))


def test_no_division_by_zero_beyond_the_horizon() -> None:
    omega = AverageReturnToGo()(jnp.full(3, 8.0), jnp.asarray([6, 7, 8]), 7)
    np.testing.assert_array_equal(omega, [8.0, 8.0, 8.0])


def test_return_to_go_is_divided_by_the_scale() -> None:
    condition = ReturnToGo(return_scale=4.0)
    np.testing.assert_array_equal(condition(jnp.asarray([8.0, -2.0]), jnp.asarray([0, 5]), 9), [2.0, -0.5])


def test_the_scale_is_published_or_the_largest_return_to_go() -> None:
    assert ReturnToGo().fit(logged([1.0], environment="Walker2d-v4")).return_scale == 1000.0
    # To go: -7, -9, then 3, 8. The largest distance from zero is neither the best nor the first.
    assert ReturnToGo().fit(logged([2, -9], [-5, 8])).return_scale == 9.0
    assert ReturnToGo(3.0).fit(logged([1.0], environment="Walker2d-v4")).return_scale == 3.0
    assert ReturnToGo().fit(logged([0.0, 0.0])).return_scale == 1.0


def test_an_average_needs_no_fitting() -> None:
    assert AverageReturnToGo().fit(logged([1.0])) == AverageReturnToGo()


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_a_scale_must_be_positive(scale: float) -> None:
    with pytest.raises(InputError, match=f"return_scale must be positive; got {scale}"):
        ReturnToGo(scale)
