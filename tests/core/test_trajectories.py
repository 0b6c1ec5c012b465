"""Logged episodes: sums against plain loops, statistics against numpy."""

from __future__ import annotations

import dataclasses
import tracemalloc
from typing import Any

import numpy as np
import pytest
from conftest import d4rl_arrays, logged
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.data.formats.arrays import from_arrays


def flat(**changes: Any) -> Trajectories:
    return from_arrays("small", **d4rl_arrays(**changes))


def with_observations(observations: NDArray[Any]) -> Trajectories:
    steps = len(observations)
    ends = np.arange(steps) == steps - 1
    return from_arrays("wide", observations, np.zeros((steps, 1)), np.zeros(steps), ends, ends)


def test_episodes_end_at_terminals_and_timeouts() -> None:
    data = flat()
    assert data.starts.tolist() == [0, 3, 4]
    assert data.lengths.tolist() == [3, 1, 2]
    assert data.terminated.tolist() == [True, False, True]
    assert (data.episodes, data.steps, data.unfinished_steps) == (3, 6, 0)
    assert data.returns.tolist() == [6.0, 10.0, -0.5]
    assert data.returns_to_go.tolist() == [6.0, 5.0, 3.0, 10.0, -0.5, 0.5]
    assert (data.lowest, data.best) == (-0.5, 10.0)


def test_returns_equal_a_naive_loop() -> None:
    random = np.random.default_rng(0)
    data = logged(*(random.normal(size=length) * 1e3 for length in (7, 1, 30, 2, 11)))
    for episode, (start, length) in enumerate(zip(data.starts, data.lengths, strict=True)):
        to_go = 0.0
        for row in reversed(range(start, start + length)):
            to_go += float(data.rewards[row])
            assert data.returns_to_go[row] == pytest.approx(to_go, abs=1e-9)
        assert data.returns[episode] == pytest.approx(to_go, abs=1e-9)


def test_a_million_rewards_are_summed_in_float64() -> None:
    data = logged(*np.full((1000, 1000), 5.3))
    reward = float(np.float32(5.3))
    np.testing.assert_allclose(data.returns, 1000 * reward, rtol=1e-6)
    np.testing.assert_allclose(data.returns_to_go[-1000:], np.arange(1000, 0, -1) * reward, rtol=1e-6)
    assert logged(np.full(1_000_000, 5.3)).returns[0] == pytest.approx(1e6 * reward, rel=1e-6)


def test_an_episode_is_not_disturbed_by_the_others() -> None:
    alone = logged([0.25, 0.5]).returns_to_go
    np.testing.assert_allclose(logged([1e6] * 50, [0.25, 0.5]).returns_to_go[-2:], alone, atol=1e-7)


def test_a_trailing_episode_without_an_end_is_left_out_and_counted() -> None:
    terminals, timeouts = np.array([0, 1, 0, 0, 0, 0]), np.zeros(6)
    data = flat(terminals=terminals, timeouts=timeouts)
    assert (data.episodes, data.steps, data.unfinished_steps) == (1, 2, 4)
    assert data.observations.shape == (2, 3)
    assert data.returns.tolist() == [3.0]


def test_arrays_are_read_only() -> None:
    data = flat()
    arrays = {f.name: getattr(data, f.name) for f in dataclasses.fields(data)}
    arrays |= {"returns": data.returns, "returns_to_go": data.returns_to_go}
    arrays = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    assert len(arrays) == 8
    for array in arrays.values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_callers_own_arrays_stay_writable() -> None:
    arrays = d4rl_arrays()
    from_arrays("small", **arrays)
    for array in arrays.values():
        array[0] = 0


@pytest.mark.parametrize("limit", [None, 2, 3, 1000])
def test_the_horizon_is_at_least_the_longest_episode(limit: int | None) -> None:
    horizon = logged([1] * 3, [1], time_limit=limit).horizon
    assert horizon == {None: 3, 2: 3, 3: 3, 1000: 1000}[limit]


def test_the_hash_depends_on_every_array_and_not_on_the_name() -> None:
    data = flat()
    assert flat().content_hash == data.content_hash
    assert dataclasses.replace(data, name="another").content_hash == data.content_hash
    hashes = {data.content_hash}
    for key in ("observations", "actions", "rewards", "terminated"):
        changed = getattr(data, key).copy()
        changed.flat[-1] = 0
        hashes.add(dataclasses.replace(data, **{key: changed}).content_hash)
    # Other cuts of the same steps.
    hashes.add(dataclasses.replace(data, lengths=np.array([3, 1, 1])).content_hash)
    hashes.add(dataclasses.replace(data, starts=np.array([0, 2, 4])).content_hash)
    hashes.add(dataclasses.replace(data, observations=data.observations.reshape(9, 2)).content_hash)
    assert len(hashes) == 8


def test_other_facts_cost_no_second_sum_and_no_second_hash() -> None:
    data = flat()
    known = data.content_hash, data.returns
    again = data.described(name="another", environment="Hopper-v4", time_limit=9)
    assert (again.name, again.environment, again.horizon) == ("another", "Hopper-v4", 9)
    assert again.__dict__["content_hash"] is known[0]
    assert again.returns is known[1]
    assert again.returns_to_go.tolist() == data.returns_to_go.tolist()


@pytest.mark.parametrize(("offset", "spread"), [(0.0, 1.0), (1e4, 0.05), (-1e6, 3.0), (0.0, 1e-4)])
def test_observation_statistics_equal_numpys_in_float64(offset: float, spread: float) -> None:
    random = np.random.default_rng(0)
    data = with_observations(offset + spread * random.normal(size=(70_000, 3)))
    wide = data.observations.astype(np.float64)
    mean, std = data.observation_statistics
    assert mean.dtype == std.dtype == np.float32
    np.testing.assert_allclose(mean, wide.mean(axis=0), rtol=1e-6, atol=1e-7 * spread)
    np.testing.assert_allclose(std, wide.std(axis=0), rtol=1e-6)


def test_statistics_need_no_second_copy_of_the_data() -> None:
    data = with_observations(np.zeros((1_000_000, 8), np.float32))
    tracemalloc.start()
    _ = data.observation_statistics
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < data.observations.nbytes


def test_a_constant_observation_is_divided_by_its_size() -> None:
    mean, std = with_observations(np.full((70_000, 1), 0.1)).observation_statistics
    assert mean[0] == np.float32(0.1)
    assert std[0] == pytest.approx(0.1)
    assert with_observations(np.zeros((5, 1))).observation_statistics[1] == 1


def test_integer_actions_are_discrete() -> None:
    actions = np.array([0, 3, 1, 0, 2, 1], np.uint8)
    data = flat(actions=actions)
    assert data.discrete
    assert data.actions.dtype == np.int32
    assert data.actions.tolist() == actions.tolist()
    assert data.action_size == 4
    assert from_arrays("small", **d4rl_arrays(actions=actions), action_count=18).action_size == 18
    assert not flat().discrete
    assert flat().action_size == 2


def test_the_task_is_the_environments_or_the_datas_own() -> None:
    assert logged([1.0], [3.0], environment="Hopper-v4").task.expert_return == 3200
    own = logged([1.0], [3.0]).task
    assert (own.published, own.expert_return, own.random_score) == (False, 3.0, 1.0)


def test_clipped_rewards_are_other_data() -> None:
    raw = logged([-3, 0.5, 2], [9])
    assert raw.with_clipped_rewards().rewards.tolist() == [-1, 0.5, 1, 1]
    broken = dataclasses.replace(raw, rewards=np.array([np.nan, np.inf, -np.inf, 9], np.float32))
    found = broken.with_clipped_rewards().rewards
    np.testing.assert_array_equal(found, [np.nan, np.inf, -np.inf, 1])  # the checks report the others
    small = logged([0.5, 1], [-1])
    assert small.with_clipped_rewards().returns.tolist() == small.returns.tolist() == [1.5, -1]
    # The same arrays, but a policy of the data acts differently.
    assert small.with_clipped_rewards().content_hash != small.content_hash
    assert small.described(clipped_rewards=True).content_hash == small.with_clipped_rewards().content_hash
