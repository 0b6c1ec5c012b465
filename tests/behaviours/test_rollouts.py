"""Episodes are whole, as many as wanted, what Gymnasium gives, and independent of what runs beside them."""

from __future__ import annotations

import dataclasses

import gymnasium
import jax
import numpy as np
import pytest
from pixels import PIXELS, SIDE
from toys import AIM, ENVIRONMENT, HORIZON, random_arrays

from cwbc.behaviours import rollouts, snapshots
from cwbc.behaviours.policies import BehaviourPolicy, UniformPolicy
from cwbc.behaviours.pqn import QNetwork
from cwbc.behaviours.rollouts import Episode, Stage, collect, evaluate
from cwbc.behaviours.value_policies import UniformChoice

HOPPER = UniformPolicy(np.full(3, -1, np.float32), np.full(3, 1, np.float32))
ANY = UniformPolicy(np.full(1, -2, np.float32), np.full(1, 2, np.float32))


def untrained() -> BehaviourPolicy:
    own = snapshots.shipped("hopper")
    policy = own.policy(own.snapshots[0])
    assert isinstance(policy, BehaviourPolicy)
    return policy


def assert_equal(one: list[Episode], other: list[Episode]) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        for field in ("observations", "actions", "rewards", "terminated"):
            np.testing.assert_array_equal(getattr(left, field), getattr(right, field))


def test_an_episode_depends_on_its_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Stage(untrained(), (7, 1), steps=600)
    (alone,) = collect("Hopper-v4", [wanted])
    monkeypatch.setattr(rollouts, "_MOST_COPIES", 3)
    (beside,) = collect("Hopper-v4", [Stage(HOPPER, (7, 0), steps=2500), wanted])[1:]
    shorter = min(len(alone), len(beside))
    assert shorter > 3
    assert_equal(alone[:shorter], beside[:shorter])


def test_there_are_no_more_episodes_than_needed() -> None:
    (by_steps, by_number) = collect(ENVIRONMENT, [Stage(ANY, (0,), steps=95), Stage(ANY, (1,), episodes=3)])
    assert [len(episode.rewards) for episode in by_steps] == [HORIZON] * 10
    assert [len(episode.rewards) for episode in by_number] == [HORIZON] * 3
    (random,) = collect("Hopper-v4", [Stage(HOPPER, (0,), steps=5000)])
    lengths = [len(episode.rewards) for episode in random]
    assert 5000 <= sum(lengths) < 5000 + max(lengths)
    assert all(episode.terminated for episode in random)  # they fall, long before the time limit
    assert not any(episode.terminated for episode in by_steps)


@pytest.mark.filterwarnings("ignore:.*out of date:DeprecationWarning")
def test_what_is_recorded_is_what_gymnasium_gives() -> None:
    (recorded,) = collect("Hopper-v4", [Stage(untrained(), (5,), episodes=2)])
    for number, episode in enumerate(recorded):
        environment = gymnasium.make("Hopper-v4")
        seed = int(np.random.default_rng((5, number)).integers(2**31))
        observation, _ = environment.reset(seed=seed)
        for seen, action, reward in zip(episode.observations, episode.actions, episode.rewards, strict=True):
            np.testing.assert_array_equal(seen, observation.astype(np.float32))
            observation, earned, terminated, _, _ = environment.step(action)
            assert np.float32(earned) == reward
        assert terminated == episode.terminated
        environment.close()


def test_policies_of_images_read_the_last_frames_of_their_episode() -> None:
    network = QNetwork((SIDE, SIDE, 1), 2, 16, 2)
    policy = network.policy(jax.device_get(random_arrays(network.initialize, 1)), 0.5)
    stages = [Stage(UniformChoice(2), (1,), episodes=2), Stage(policy, (2,), episodes=3, noisy=False)]
    random, greedy = collect(PIXELS, stages)
    assert len(random) == 2
    for episode in greedy:
        assert episode.observations.shape == (4, SIDE, SIDE, 1)
        assert episode.observations.dtype == np.uint8
        assert episode.actions.dtype == np.int32
        before = np.concatenate((episode.observations[:1], episode.observations[:-1]))
        seen = np.stack((before, episode.observations), axis=1).reshape(4, -1)
        np.testing.assert_array_equal(episode.actions, policy.act(seen))


def test_an_episode_of_a_game_ends_after_many_steps_without_a_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollouts, "_PATIENCE", 40)
    waiting = Stage(UniformChoice(4), (1,), episodes=2, noisy=False)  # it never launches the ball
    (episodes,) = collect("ALE/Breakout-v5", [waiting])
    assert [len(episode.rewards) for episode in episodes] == [40, 40]
    assert not any(episode.terminated for episode in episodes)


def test_evaluation_keeps_no_observations() -> None:
    wanted = Stage(UniformChoice(2), (1,), episodes=2, keeps_observations=False)
    (episodes, kept) = collect(PIXELS, [wanted, dataclasses.replace(wanted, keeps_observations=True)])
    assert [len(episode.observations) for episode in episodes] == [0, 0]
    for one, other in zip(episodes, kept, strict=True):
        np.testing.assert_array_equal(one.rewards, other.rewards)
        np.testing.assert_array_equal(one.actions, other.actions)


def test_long_episodes_are_recorded_block_after_block(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = collect("Hopper-v4", [Stage(untrained(), (7,), episodes=3, noisy=False)])
    assert len({len(episode.rewards) for episode in whole}) > 1
    monkeypatch.setattr(rollouts, "_BLOCK", 7)
    (parts,) = collect("Hopper-v4", [Stage(untrained(), (7,), episodes=3, noisy=False)])
    assert_equal(whole, parts)


def test_progress_counts_every_step() -> None:
    seen: list[int] = []
    collect(ENVIRONMENT, [Stage(ANY, (0,), steps=40)], progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 40


def test_policies_are_evaluated_from_the_same_starts() -> None:
    returns = evaluate(AIM, [ANY, ANY], 6, seed=0)
    np.testing.assert_array_equal(returns[0], returns[1])
    assert len(np.unique(returns[0])) == 6
    assert not np.allclose(returns, evaluate(AIM, [ANY, ANY], 6, seed=0, noisy=True))
