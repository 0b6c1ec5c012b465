"""Held-out episodes: whole ones, over the range of returns, the same for the same data."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from pixels import HORIZON, pixel_data
from toys import tiny, toy_data

from cwbc.core.holdout import held_out, some_of, split
from cwbc.core.methods import Training, method_from_json, to_json
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.sampling import RandomNumbers, choose, gathered, side_by_side, to_device
from cwbc.core.spaces import Vector
from cwbc.system.errors import InputError


def test_held_out_episodes_are_spread_over_the_returns() -> None:
    data = toy_data()  # the returns of its 60 episodes are all different
    chosen = held_out(data, 0.1)
    ranks = np.argsort(np.argsort(data.returns))[chosen]
    assert sorted(ranks) == [4, 14, 24, 34, 44, 54]
    assert not held_out(data, 0.5)[np.argmax(data.returns)]
    assert held_out(data, 0.001).sum() == 1


def test_both_parts_have_the_steps_of_their_episodes() -> None:
    data = toy_data()
    parts, is_held_out = split(data, 0.2), held_out(data, 0.2)
    assert parts.held_out is not None
    for part, chosen in ((parts.training, ~is_held_out), (parts.held_out, is_held_out)):
        np.testing.assert_allclose(part.returns, data.returns[chosen])
        rows = np.concatenate([np.arange(s, s + n) for s, n in zip(data.starts, data.lengths, strict=True)])
        of_part = np.repeat(chosen, data.lengths)
        np.testing.assert_array_equal(part.observations, data.observations[rows[of_part]])
        np.testing.assert_array_equal(part.terminated, data.terminated[chosen])
        assert (part.horizon, part.action_size, part.name) == (data.horizon, 1, "toy")
    assert parts.training.best == data.best
    assert split(data, 0.2) is parts  # methods that train side by side share it


def test_some_episodes_are_spread_over_the_returns() -> None:
    data = toy_data()
    assert some_of(data, 60) is data
    some = some_of(data, 4)
    np.testing.assert_allclose(np.sort(some.returns), np.sort(data.returns)[[0, 20, 39, 59]])


def test_nothing_is_copied_where_nothing_is_held_out() -> None:
    data = toy_data(episodes=5)
    assert split(data, 0.0).training is data
    with pytest.raises(InputError, match="toy has 5 episodes, and to hold some out takes 10; holdout=0"):
        split(data, 0.1)


def test_images_are_shared_rather_than_copied() -> None:
    data = pixel_data(episodes=20)
    parts, is_held_out = split(data, 0.2), held_out(data, 0.2)
    assert parts.held_out is not None
    again = split(parts.training, 0.2).training  # a part of a part
    for part in (parts.training, parts.held_out, again):
        assert np.shares_memory(part.observations, data.observations)
        assert part.starts.tolist() == list(range(0, part.steps, HORIZON))
    for part, chosen in ((parts.training, ~is_held_out), (parts.held_out, is_held_out)):
        np.testing.assert_array_equal(part.observation_starts, data.starts[chosen])
        np.testing.assert_array_equal(
            part.rewards.reshape(-1, HORIZON), data.rewards.reshape(-1, HORIZON)[chosen]
        )
    assert set(again.observation_starts) < set(parts.training.observation_starts)


def test_windows_of_a_part_are_of_its_episodes() -> None:
    data, training = pixel_data(episodes=20), Training(steps=10, batch_size=64, context=3, frame_stack=2)
    part = split(data, 0.3).training
    rows = (part.observation_starts[:, None] + np.arange(HORIZON)).reshape(-1)
    copied = dataclasses.replace(part, observations=data.observations[rows], first_images=None)
    other = dataclasses.replace(data, name="other")
    method = tiny("rvs", channels=(4,), kernels=(3,), strides=(1,))
    spec = PolicySpec.fit(method, part, training)
    found = []
    for source in (
        to_device(part, spec.method),
        to_device(copied, spec.method),
        side_by_side([(other, spec.method), (part, spec.method)]),
    ):
        episodes = jax.tree.map(lambda x: x[-1], source.episodes) if source.methods > 1 else source.episodes
        random = RandomNumbers.of(jax.numpy.uint32(0), jax.numpy.uint32(1), training.batch_size)
        choice = choose(random, episodes, spec.observations, training.context)
        found.append(gathered(source.columns, choice))
    for each in found[1:]:
        jax.tree.map(np.testing.assert_array_equal, found[0], each)


def test_what_is_fitted_to_the_data_sees_the_training_episodes_only() -> None:
    data, training = toy_data(), Training(steps=10, holdout=0.3)
    spec = PolicySpec.fit(tiny("rvs+w+c"), data, training)
    alone = PolicySpec.fit(tiny("rvs+w+c"), split(data, 0.3).training, Training(steps=10))
    assert spec == alone
    assert isinstance(spec.observations, Vector)
    assert spec.observations.mean != tuple(data.observation_statistics[0].tolist())


def test_configurations_without_it_stay_as_they_were() -> None:
    assert "holdout" not in to_json(Training())
    assert to_json(Training(holdout=0.1))["holdout"] == 0.1
    assert method_from_json(to_json(tiny("rvs")), "method") == tiny("rvs")
    for fraction in (-0.1, 0.6, float("nan")):
        with pytest.raises(InputError, match=r"holdout must be from 0 to 0\.5"):
            Training(holdout=fraction)
