"""The ring: what stays, what gives way, and rows that come apart as they were put together."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cwbc.behaviours.replay import Replay, columns, insert, pack, restore, unpack


def filled_with(*values: float) -> Replay:
    """A ring of six one-column rows after inserting the values in pairs."""
    replay = Replay(jnp.zeros((6, 1)), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
    for first, second in zip(values[::2], values[1::2], strict=True):
        replay = jax.jit(insert)(replay, jnp.array([[first], [second]], jnp.float32))
    return replay


def test_rows_fill_up_in_order() -> None:
    replay = filled_with(1, 2, 3, 4)
    assert replay.rows[:, 0].tolist() == [1, 2, 3, 4, 0, 0]
    assert (int(replay.position), int(replay.filled)) == (4, 4)


def test_the_oldest_rows_give_way() -> None:
    replay = filled_with(1, 2, 3, 4, 5, 6, 7, 8)
    assert replay.rows[:, 0].tolist() == [7, 8, 3, 4, 5, 6]
    assert (int(replay.position), int(replay.filled)) == (2, 6)


@pytest.mark.parametrize("steps", [0, 4, 6, 8])
def test_what_is_restored_is_what_was_inserted(steps: int) -> None:
    expected = filled_with(*range(1, steps + 1))
    restored = restore(np.asarray(expected.rows)[None], steps)
    jax.tree.map(lambda one, other: np.testing.assert_array_equal(one[0], other), restored, expected)


def test_a_capacity_that_a_slice_would_cross_is_refused() -> None:
    with pytest.raises(ValueError, match="6 rows cannot take 4"):
        insert(filled_with(), jnp.zeros((4, 1)))


def test_rows_come_apart_as_they_were_put_together() -> None:
    generator = np.random.default_rng(0)
    observations, next_observations = generator.normal(size=(2, 4, 3))
    actions, rewards = generator.normal(size=(4, 2)), generator.normal(size=4)
    terminated = np.array([True, False, False, True])
    packed = pack(observations, actions, rewards, terminated, next_observations)
    assert packed.dtype == np.float32
    assert packed.shape[1] == columns(3, 2)
    rows = unpack(jnp.asarray(packed), 3, 2)
    np.testing.assert_allclose(rows.observations, observations, rtol=1e-6)
    np.testing.assert_allclose(rows.actions, actions, rtol=1e-6)
    np.testing.assert_allclose(rows.rewards, rewards, rtol=1e-6)
    assert rows.terminated.tolist() == [1, 0, 0, 1]
    np.testing.assert_allclose(rows.next_observations, next_observations, rtol=1e-6)
