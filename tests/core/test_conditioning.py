"""What a policy is conditioned on: hand-computed values, and the link between training and acting."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from conftest import logged

from cwbc.core.conditioning import (
    SCALES,
    AverageReturnToGo,
    Condition,
    ConditionScale,
    ReturnToGo,
    standardized,
)
from cwbc.core.methods import to_json
from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import InputError
from cwbc.system.typed_json import decode

MIXED = logged([1, 2, 3, 6], [0.5, -1.0], [4, 4, -7, 0, 2], time_limit=9)


def read(condition: Condition, data: Trajectories) -> np.ndarray:
    """What a network reads at every step of a dataset."""
    fitted = condition.fit(data)
    inputs = standardized(fitted, data.returns_to_go, data.timesteps, data.horizon)
    return np.asarray(fitted(inputs, data.timesteps, data.horizon))


def test_average_return_to_go_by_hand() -> None:
    # g = 12, 11, 9, 6 in a horizon of 6: omega_t = g_t / (6 - t), zero-based.
    omega = read(AverageReturnToGo(), logged([1, 2, 3, 6], time_limit=6))
    np.testing.assert_allclose(omega, [12 / 6, 11 / 5, 9 / 4, 6 / 3])


def test_a_constant_reward_over_the_whole_horizon_is_its_own_average() -> None:
    np.testing.assert_allclose(read(AverageReturnToGo(), logged([0.75] * 10)), np.full(10, 0.75))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", [AverageReturnToGo, ReturnToGo])
def test_acting_subtracts_rewards_as_training_counted_them(
    kind: type[Condition], scale: ConditionScale
) -> None:
    # After reward r_t the remaining return-to-go is g_t - r_t, one step later: the logged next condition.
    data = logged([0.5, -1.0, 4.0, 2.0], time_limit=9)
    condition = kind(condition_scale=scale).fit(data)
    logged_conditions = read(condition, data)
    for t in range(3):
        remaining = data.returns_to_go[t] - data.rewards[t]
        acting = standardized(condition, remaining, np.asarray(t + 1), 9)
        assert condition(acting, np.asarray(t + 1), 9) == pytest.approx(logged_conditions[t + 1], rel=1e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_no_division_by_zero_beyond_the_horizon(scale: ConditionScale) -> None:
    condition = AverageReturnToGo(scale, 2.0, 3.0)
    inputs = standardized(condition, np.full(3, 8.0), np.asarray([6, 7, 8]), 7)
    found = np.asarray(condition(inputs, np.asarray([6, 7, 8]), 7))
    assert np.isfinite(found).all()
    assert len(set(found.tolist())) == 1


def test_return_to_go_is_divided_by_the_scale() -> None:
    condition = ReturnToGo(return_scale=4.0)
    np.testing.assert_array_equal(condition(jnp.asarray([8.0, -2.0]), jnp.asarray([0, 5]), 9), [2.0, -0.5])


def test_the_papers_scale_is_published_or_the_largest_return_to_go() -> None:
    assert ReturnToGo().fit(logged([1.0], environment="Walker2d-v4")).return_scale == 1000.0
    # To go: -7, -9, then 3, 8. The largest distance from zero is neither the best nor the first.
    assert ReturnToGo().fit(logged([2, -9], [-5, 8])).return_scale == 9.0
    assert ReturnToGo(3.0).fit(logged([1.0], environment="Walker2d-v4")).return_scale == 3.0
    assert ReturnToGo().fit(logged([0.0, 0.0])).return_scale == 1.0


def test_the_paper_does_not_scale_averages() -> None:
    assert AverageReturnToGo().fit(logged([1.0])) == AverageReturnToGo()


def test_standardized_averages_by_hand() -> None:
    # Two episodes with omega 3, 3 and 1, 1: mean 2 and standard deviation 1 however the steps are weighted.
    data = logged([3, 3], [1, 1])
    condition = AverageReturnToGo("standardized").fit(data)
    assert (condition.center, condition.spread) == (2.0, 1.0)
    np.testing.assert_allclose(read(condition, data), [1, 1, -1, -1])
    np.testing.assert_allclose(
        read(AverageReturnToGo("bounded"), data), 3 * np.tanh([1 / 3, 1 / 3, -1 / 3, -1 / 3])
    )


def test_standardized_averages_have_zero_mean_and_unit_variance_weighted_by_the_steps_left() -> None:
    found, left = read(AverageReturnToGo("standardized"), MIXED), 9 - MIXED.timesteps
    assert np.average(found, weights=left) == pytest.approx(0, abs=1e-12)
    assert np.average(found**2, weights=left) == pytest.approx(1)


def test_a_reward_at_the_end_still_distinguishes_episodes_at_their_start() -> None:
    # Unweighted, the last steps' omega of 100 would set the scale, and 0.1 against 0 be nothing.
    ends = [np.append(np.zeros(999), each) for each in (0.0, 100.0)]
    found = read(AverageReturnToGo("bounded"), logged(*ends))
    assert found[1000] - found[0] > 0.2
    assert found.max() <= 3


def test_standardized_returns_to_go_have_unit_variance_around_the_average_step() -> None:
    data = logged([3, 3], [1, 1])  # an average step earns 2; to go beyond that: 2, 1, -2, -1
    condition = ReturnToGo(condition_scale="standardized").fit(data)
    assert condition.center == 2.0
    assert condition.return_scale == pytest.approx(np.sqrt(10 / 4))
    np.testing.assert_allclose(read(condition, data), np.array([2, 1, -2, -1]) / np.sqrt(10 / 4))


@pytest.mark.parametrize("kind", [AverageReturnToGo, ReturnToGo])
def test_targets_far_beyond_the_data_are_bounded_and_never_fall(kind: type[Condition]) -> None:
    condition = kind(condition_scale="bounded").fit(MIXED)
    targets = np.linspace(-1e6, 1e6, 50)
    inputs = standardized(condition, targets, np.asarray(0), MIXED.horizon)
    found = np.asarray(condition(inputs, np.asarray(0), MIXED.horizon))
    assert (np.abs(found) <= 3).all()
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("kind", [AverageReturnToGo, ReturnToGo])
@pytest.mark.parametrize("reward", [0.0, 5.0, -1e-9])
def test_rewards_that_never_change_give_conditions_of_zero(kind: type[Condition], reward: float) -> None:
    found = read(kind(condition_scale="bounded"), logged([reward] * 3, [reward] * 3))
    np.testing.assert_allclose(found, 0, atol=1e-6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", [AverageReturnToGo, ReturnToGo])
def test_conditions_come_back_from_json(kind: type[Condition], scale: ConditionScale) -> None:
    fitted = kind(condition_scale=scale).fit(MIXED)
    assert decode(kind, to_json(fitted), "condition") == fitted


def test_the_papers_condition_is_written_as_in_earlier_versions() -> None:
    """The hashes of runs depend on it."""
    assert to_json(AverageReturnToGo()) == {"kind": "AverageReturnToGo"}
    assert to_json(ReturnToGo(9.0)) == {"kind": "ReturnToGo", "return_scale": 9.0}
    found = decode(AverageReturnToGo, {"kind": "AverageReturnToGo"}, "condition")
    assert found == AverageReturnToGo("paper")


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_a_scale_must_be_positive(scale: float) -> None:
    with pytest.raises(InputError, match=f"return_scale must be positive; got {scale}"):
        ReturnToGo(scale)


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(InputError, match="unknown condition_scale 'bound'; did you mean 'bounded'"):
        AverageReturnToGo("bound")  # type: ignore[arg-type]
