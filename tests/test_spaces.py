"""Continuous and discrete actions: losses by hand, and a way back from every encoding."""

from __future__ import annotations

from math import exp, log, tanh

import jax.numpy as jnp
import numpy as np
import pytest

from cwbc.spaces import Continuous, Discrete

SPACE = Continuous((-1.0, -4.0), (1.0, 4.0))
ACTIONS = jnp.asarray([[[0.5, -3.0], [-1.0, 0.25]]])  # [window, step, dimension]


def test_continuous_loss_by_hand() -> None:
    outputs = jnp.asarray([[[0.0, 1.0], [-2.0, 0.5]]])
    found = SPACE.loss(outputs, ACTIONS)
    assert found.shape == (1, 2)
    # The second dimension is compared in units of its scale.
    first = ((tanh(0.0) - 0.5) ** 2 + (tanh(1.0) + 3.0 / 4) ** 2) / 2
    second = ((tanh(-2.0) + 1.0) ** 2 + (tanh(0.5) - 0.25 / 4) ** 2) / 2
    np.testing.assert_allclose(found[0], [first, second], rtol=1e-6)


def test_continuous_actions_come_back_from_their_encoding() -> None:
    space = SPACE
    inside = ACTIONS * 0.99  # tanh never quite reaches the ends
    outputs = jnp.arctanh(space.encode(inside))
    np.testing.assert_allclose(space.choose(outputs), inside, rtol=1e-5)
    np.testing.assert_allclose(space.loss(outputs, inside), 0, atol=1e-10)
    assert space.size == 2


def test_continuous_choices_stay_within_the_bounds() -> None:
    chosen = np.abs(SPACE.choose(jnp.asarray([[1e9, -1e9], [-30.0, 30.0]])))
    assert (chosen <= [1.0, 4.0]).all()


def test_the_bounds_are_those_of_the_data() -> None:
    logged = np.array([[0.2, 0.0, -3.0, 5.0, 0.0], [-0.4, 100.0, 1.0, 5.0, 0.0]])
    space = Continuous.of(logged)
    # An action that never changes lies in the middle.
    assert space == Continuous((-0.4, 0.0, -3.0, 0.0, -1.0), (0.2, 100.0, 1.0, 10.0, 1.0))
    np.testing.assert_allclose(
        space.encode(jnp.asarray(logged)), [[1, -1, -1, 0, 0], [-1, 1, 1, 0, 0]], atol=1e-6
    )
    far = space.choose(jnp.asarray([[50.0] * 5, [-50.0] * 5]))
    np.testing.assert_allclose(far, [space.highest, space.lowest], rtol=1e-6)


def test_the_bounds_of_the_environment_are_kept_unless_the_data_goes_beyond() -> None:
    logged = np.array([[0.2, -3.0], [-0.4, 0.5]])
    assert Continuous.of(logged, ((-1.0, -1.0), (1.0, 1.0))) == Continuous((-1.0, -3.0), (1.0, 1.0))


def test_actions_between_plus_and_minus_one_are_left_as_they_are() -> None:
    logged = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(np.float32)
    space = Continuous.of(logged, ((-1.0,) * 3, (1.0,) * 3))
    np.testing.assert_array_equal(space.encode(jnp.asarray(logged)), logged)


def test_discrete_loss_by_hand() -> None:
    outputs = jnp.asarray([[[1.0, 2.0, -1.0], [0.0, 0.0, 0.0]]])
    found = Discrete(3).loss(outputs, jnp.asarray([[2, 0]]))
    assert found.shape == (1, 2)
    total = exp(1) + exp(2) + exp(-1)
    np.testing.assert_allclose(found[0], [log(total) + 1, log(3)], rtol=1e-6)


def test_discrete_loss_survives_large_outputs() -> None:
    found = Discrete(2).loss(jnp.asarray([[1e4, -1e4]]), jnp.asarray([1]))
    np.testing.assert_allclose(found, [2e4])


def test_discrete_actions_come_back_from_their_encoding() -> None:
    space = Discrete(5)
    actions = jnp.asarray([[4, 0, 2]], jnp.int32)
    encoded = space.encode(actions)
    np.testing.assert_array_equal(encoded[0], np.eye(5)[[4, 0, 2]])
    chosen = space.choose(encoded)
    assert chosen.dtype == jnp.int32
    np.testing.assert_array_equal(chosen, actions)


@pytest.mark.parametrize("space", [SPACE, Discrete(2)])
def test_spaces_are_values(space: Continuous | Discrete) -> None:
    """They shape compiled programs, so equal ones must hash equal."""
    copy = Continuous((-1.0, -4.0), (1.0, 4.0)) if isinstance(space, Continuous) else Discrete(2)
    assert hash(space) == hash(copy)
    assert space == copy
