"""Spaces: actions and their losses by hand, observations that are normalized, frames that are stacked."""

from __future__ import annotations

from math import exp, log, tanh

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import logged
from pixels import pixel_data

from cwbc.core.spaces import (
    Continuous,
    Discrete,
    Image,
    Vector,
    observation_space,
)

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
    taken = np.array([[0.2, 0.0, -3.0, 5.0, 0.0], [-0.4, 100.0, 1.0, 5.0, 0.0]])
    space = Continuous.of(taken)
    # An action that never changes is in the middle.
    assert space == Continuous((-0.4, 0.0, -3.0, 0.0, -1.0), (0.2, 100.0, 1.0, 10.0, 1.0))
    np.testing.assert_allclose(
        space.encode(jnp.asarray(taken)), [[1, -1, -1, 0, 0], [-1, 1, 1, 0, 0]], atol=1e-6
    )
    far = space.choose(jnp.asarray([[50.0] * 5, [-50.0] * 5]))
    np.testing.assert_allclose(far, [space.highest, space.lowest], rtol=1e-6)


def test_the_bounds_are_those_of_the_environment_unless_the_data_exceeds_them() -> None:
    taken = np.array([[0.2, -3.0], [-0.4, 0.5]])
    assert Continuous.of(taken, ((-1.0, -1.0), (1.0, 1.0))) == Continuous((-1.0, -3.0), (1.0, 1.0))


def test_actions_between_plus_and_minus_one_are_left_as_they_are() -> None:
    taken = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(np.float32)
    space = Continuous.of(taken, ((-1.0,) * 3, (1.0,) * 3))
    np.testing.assert_array_equal(space.encode(jnp.asarray(taken)), taken)


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


DATA = logged([1.0, 2.0, 3.0], [4.0], [5.0, 6.0, 7.0, 8.0])


def test_normalizing_is_the_same_for_one_observation_and_for_all() -> None:
    space = observation_space(DATA, 1)
    together = space.received(DATA.observations)
    assert together.dtype == np.float32
    for row in (0, 7):
        alone = space.received(DATA.observations[row].astype(np.float64))
        assert alone.dtype == np.float32
        np.testing.assert_array_equal(alone, together[row])
    np.testing.assert_allclose(together.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(together.std(axis=0), 1, atol=1e-5)


def test_the_form_of_vectors_has_no_statistics() -> None:
    space = observation_space(DATA, 1)
    assert space.form == Vector((0.0, 0.0), (1.0, 1.0)) == Vector((3.0, 4.0), (5.0, 6.0)).form
    assert space.shape == space.encoded_shape == (2,)


def test_the_space_is_that_of_the_data() -> None:
    mean, std = DATA.observation_statistics
    assert observation_space(DATA, frame_stack=4) == Vector(tuple(mean.tolist()), tuple(std.tolist()))
    space = observation_space(pixel_data(episodes=2), frame_stack=4)
    assert space == space.form == Image(10, 10, 1, stack=4)
    assert (space.shape, space.encoded_shape, space.arrays) == ((10, 10, 1), (10, 10, 4), ())


def test_frames_become_channels_with_the_latest_last() -> None:
    space = Image(2, 2, 3, stack=2)
    frames = np.arange(5 * 2 * 2 * 2 * 3).reshape(5, 2, 2, 2, 3).astype(np.uint8)  # [step, frame, ...]
    found = space.sampled(jnp.asarray(frames))
    assert found.shape == (5, 2, 2, 6)
    np.testing.assert_array_equal(found[..., :3], frames[:, 0])
    np.testing.assert_array_equal(found[..., 3:], frames[:, 1])
    assert found.dtype == space.received(frames[:, 1].astype(np.float32)).dtype == np.uint8


def test_frames_before_the_first_of_an_episode_are_the_first_by_hand() -> None:
    """Two episodes: rows 0 to 2, and rows 3 to 6."""
    rows, first_rows = np.array([0, 1, 2, 3, 4, 6]), np.array([0, 0, 0, 3, 3, 3])
    found = Image(2, 2, 1, stack=3).rows_read(rows, first_rows)
    assert found.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [3, 3, 3], [3, 3, 4], [4, 5, 6]]
    on_device = Image(2, 2, 1, stack=3).rows_read(jnp.asarray(rows)[None], jnp.asarray(first_rows)[None])
    np.testing.assert_array_equal(on_device, found[None])
    assert Image(2, 2, 1).rows_read(rows, first_rows).tolist() == rows[:, None].tolist()


def test_vectors_are_not_stacked() -> None:
    rows = np.array([0, 1, 2])
    assert observation_space(DATA, 1).rows_read(rows, np.zeros(3, int)) is rows


def test_discrete_actions_are_sampled_by_their_probabilities() -> None:
    outputs = jnp.log(jnp.array([[0.1, 0.6, 0.3]] * 4000))
    keys = jax.random.split(jax.random.key(0), len(outputs))
    counts = np.bincount(np.asarray(Discrete(3).sample(outputs, keys)))
    np.testing.assert_allclose(counts / len(outputs), [0.1, 0.6, 0.3], atol=0.03)  # 4 standard errors
