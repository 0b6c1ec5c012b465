"""Several episodes at once, which begin and end one by one, as in Gymnasium's vector environments."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from toys import HORIZON, random_parameters, tiny, toy_data

from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.data.formats.arrays import from_arrays
from cwbc.runs import policies
from cwbc.runs.policies import Policy
from cwbc.system.errors import InputError

TRAINING = Training(context=4)


@functools.cache
def trained(name: str) -> tuple[PolicySpec, Any]:
    spec = PolicySpec.fit(tiny(name), toy_data(), TRAINING)
    return spec, random_parameters(spec, 7)


def policy(name: str) -> Policy:
    return Policy(*trained(name))


def alone(
    one: Policy, target: float, observations: Iterable[Any], rewards: Sequence[float]
) -> list[NDArray[Any]]:
    """The actions of one episode, given its observations and the rewards between them."""
    one.begin(target)
    return [one.act(o, r) for o, r in zip(observations, [None, *rewards], strict=True)]


@pytest.mark.parametrize("name", ["rvs", "dt", "rvs+q"])
def test_episodes_that_begin_one_by_one_equal_each_alone(name: str) -> None:
    many, generator, count = policy(name), np.random.default_rng(2), 3
    targets = [1.0, 2.0, 3.0]
    many.begin(targets)
    # Per episode: its target, its observations and actions, and the rewards between them.
    episodes: list[tuple[float, list[Any], list[Any], list[float]]] = [(t, [], [], []) for t in targets]
    finished = []
    rewards = None
    for t in range(14):
        observations = generator.normal(size=(count, 2))
        actions = many.act(observations, rewards)
        rewards = generator.normal(size=count)
        for row, (_, seen, taken, _) in enumerate(episodes):
            seen.append(observations[row])
            taken.append(actions[row])
        begun = {2: [0], 5: [2, 1], 6: [1], 11: [0, 1, 2]}.get(t, [])
        again = generator.normal(size=len(begun))
        many.begin(again, episodes=begun)
        for row, episode in enumerate(episodes):
            if row in begun:
                finished.append(episode)
                episodes[row] = (float(again[begun.index(row)]), [], [], [])
                rewards[row] = np.nan  # of an action of the episode before: ignored
            else:
                episode[3].append(rewards[row])
    for target, seen, taken, between in finished:
        np.testing.assert_allclose(taken, alone(policy(name), target, seen, between), rtol=1e-4, atol=1e-6)


@functools.cache
def cartpole(name: str) -> tuple[PolicySpec, Any]:
    generator, steps = np.random.default_rng(0), 60
    data = from_arrays(
        "cartpole",
        generator.normal(size=(steps, 4)),
        generator.integers(2, size=steps),
        np.ones(steps),
        np.arange(steps) % 20 == 19,
        np.zeros(steps, bool),
    )
    spec = PolicySpec.fit(tiny(name), data, TRAINING)
    return spec, random_parameters(spec, 3)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_environments_that_reset_themselves(mode: AutoresetMode) -> None:
    count, target = 3, 30.0
    environments = gymnasium.make_vec(
        "CartPole-v1",
        count,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        max_episode_steps=20,  # as many as the policy's horizon
    )
    many, one = Policy(*cartpole("dt")), Policy(*cartpole("dt"))
    many.begin([target] * count)
    observations, _ = environments.reset(seed=0)
    rewards, ended = None, np.zeros(count, bool)
    episodes: list[list[tuple[Any, int, float]]] = [[] for _ in range(count)]
    finished = []
    for _ in range(50):
        actions = many.act(observations, rewards)
        before, ended_before = observations, ended
        observations, rewards, terminated, truncated, _ = environments.step(actions)
        ended = terminated | truncated
        again = ended if mode == AutoresetMode.SAME_STEP else ended | ended_before
        many.begin(target, episodes=np.flatnonzero(again))
        for row, episode in enumerate(episodes):
            if mode == AutoresetMode.NEXT_STEP and ended_before[row]:
                continue  # the environment was reset, and took no action
            episode.append((before[row], int(actions[row]), float(rewards[row])))
            if ended[row]:
                finished.append(episode)
                episodes[row] = []
    environments.close()
    assert len(finished) >= 6
    assert len({len(episode) for episode in finished}) > 1
    for episode in finished:
        seen, taken, received = zip(*episode, strict=True)
        assert [int(a) for a in alone(one, target, seen, received[:-1])] == list(taken)


def test_numbers_of_episodes_up_to_a_power_of_two_share_a_program() -> None:
    many = policy("rvs")
    compiled = []
    for count in (17, 25, 32, 33, 64):
        many.begin(np.arange(count))
        assert many.act(np.zeros((count, 2))).shape == (count, 1)
        compiled.append(policies._act_each._cache_size())  # type: ignore[attr-defined]
    assert compiled == [compiled[0]] * 3 + [compiled[0] + 1] * 2


def test_an_episode_of_a_batch_of_one_can_begin_anew() -> None:
    one, same = policy("rvs"), policy("rvs")
    one.begin(1.0)
    one.act([0.5, 0.5])
    one.begin(2.0, episodes=0)
    same.begin(2.0)
    np.testing.assert_array_equal(one.act([0.1, 0.2]), same.act([0.1, 0.2]))


@pytest.mark.parametrize("episodes", [[3], [-1], [0, 0], [0.5], ["0"], [[0]], [True, False, True], None])
def test_episodes_that_there_are_not(episodes: Any) -> None:
    many = policy("rvs")
    with pytest.raises(InputError, match=r"call begin\(target\) for all episodes before"):
        many.begin(1.0, episodes=[0])
    many.begin([1.0, 2.0, 3.0])
    many.act(np.zeros((3, 2)))
    if episodes is not None:
        with pytest.raises(InputError, match="episodes are numbers from 0 to 2, each at most once; got"):
            many.begin(1.0, episodes=episodes)
    with pytest.raises(InputError, match="3 targets for 2 episodes; expected one, or one for each"):
        many.begin([1.0, 2.0, 3.0], episodes=[0, 1])
    many.begin(1.0, episodes=[])
    with pytest.raises(InputError, match="needs the reward"):
        many.act(np.zeros((3, 2)))
    many.begin(1.0, episodes=[0, 1, 2])
    many.act(np.zeros((3, 2)))


def test_rewards_of_episodes_that_have_just_begun_are_ignored() -> None:
    one, other = policy("rvs"), policy("rvs")
    for each, rewards in ((one, None), (other, [np.nan, 5.0])):
        each.begin([1.0, 2.0])
        each.act(np.zeros((2, 2)), rewards)
    np.testing.assert_array_equal(one.act(np.ones((2, 2)), [1, 2]), other.act(np.ones((2, 2)), [1, 2]))
    with pytest.raises(InputError, match=r"the reward has shape \(3,\); expected \(2,\)"):
        one.act(np.ones((2, 2)), [1, 2, 3])
    with pytest.raises(InputError, match="a reward is a finite number"):
        one.act(np.ones((2, 2)), [1, np.inf])


def test_an_episode_ends_at_the_horizon() -> None:
    one, many = policy("rvs"), policy("rvs")
    alone(one, 1.0, np.zeros((HORIZON, 2)), [0.0] * (HORIZON - 1))
    with pytest.raises(InputError, match=rf"the episode has had {HORIZON} steps.*call begin\(target\) for"):
        one.act([0.0, 0.0], 0.0)
    many.begin([1.0, 2.0])
    many.act(np.zeros((2, 2)))
    many.begin(1.0, episodes=[0])
    for _ in range(HORIZON - 1):
        many.act(np.zeros((2, 2)), [0.0, 0.0])
    with pytest.raises(
        InputError, match=rf"episode 1 has had {HORIZON} steps.*call begin\(target, episodes\)"
    ):
        many.act(np.zeros((2, 2)), [0.0, 0.0])
    unconditioned = policy("bc")  # its actions depend on the observation alone
    alone(unconditioned, 0.0, np.zeros((HORIZON + 1, 2)), [0.0] * HORIZON)


def test_sampled_actions_follow_the_seed_and_differ_between_episodes() -> None:
    spec = PolicySpec.fit(tiny("rvs"), toy_data(discrete=True), TRAINING)
    sampled = Policy(spec, random_parameters(spec, 7)).acting("sampled")
    seen = np.zeros((HORIZON, 2))

    def taken(seed: int | None = None) -> list[int]:
        sampled.begin(1.0, seed=seed)
        return [int(sampled.act(each, 0.0 if t else None)) for t, each in enumerate(seen)]

    first, second = taken(seed=5), taken()
    assert len({*first}) > 1  # though observations are all the same
    assert second != first
    assert (taken(seed=5), taken()) == (first, second)
    # Several episodes at once, one of which is replaced by the next: the same again with the same seed.
    several = []
    for _ in range(2):
        sampled.begin([1.0] * 3, seed=5)
        actions = [sampled.act(np.zeros((3, 2)))]
        actions += [sampled.act(np.zeros((3, 2)), np.zeros(3)) for _ in range(HORIZON - 2)]
        sampled.begin(1.0, episodes=[1])
        actions.append(sampled.act(np.zeros((3, 2)), np.zeros(3))[1:2])
        several.append(np.concatenate(actions).tolist())
    assert several[0] == several[1]
    rows = np.array(several[0][:-1]).reshape(HORIZON - 1, 3)
    assert (rows[:, 0] != rows[:, 1]).any()
    with pytest.raises(InputError, match="seed must be at least 0; got -1"):
        sampled.begin(1.0, seed=-1)
