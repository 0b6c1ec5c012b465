"""Goals that change: from a dictionary of observations to a policy that goes where it is told."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path

import goal_maze
import gymnasium
import minari
import numpy as np
import pytest

import cwbc
from cwbc.core.trajectories import Trajectories

NAMES = ("achieved_goal[0]", "achieved_goal[1]", "desired_goal[0]", "desired_goal[1]")


def collected(episodes: int) -> Trajectories:
    """Data with another goal in every episode, as Minari's collector records it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = minari.DataCollector(gymnasium.make(goal_maze.SEEING))
        maze = env.unwrapped
        assert isinstance(maze, goal_maze.GoalMaze)
        planner = goal_maze.Planner(maze)
        for episode in range(episodes):
            observation, _ = env.reset(seed=episode)
            planner.begin(np.random.default_rng(episode), maze.goal)
            is_over = False
            while not is_over:
                observation, _, terminated, truncated, _ = env.step(planner.act(observation))
                is_over = terminated or truncated
        env.create_dataset("maze/goals-v0")
        env.close()
    return cwbc.load("maze/goals-v0")


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the collector
def test_a_policy_that_observes_the_goal_goes_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    data = collected(250)
    assert data.environment == goal_maze.SEEING
    assert data.observation_names[:4] == NAMES
    goals = data.observations[data.starts, 2:4]
    assert len(np.unique(goals, axis=0)) == 6  # in every cell but the one where episodes start
    blind = dataclasses.replace(
        data, observations=data.observations[:, 4:], observation_names=(), environment=goal_maze.BLIND
    )
    rates = []
    for each in (data, blind):
        policies = cwbc.train(each, "rvs+w", preset="small", seeds=1, steps=800, width=64, learning_rate=3e-3)
        rates.append(cwbc.evaluate(policies, targets=[1.0], episodes=40).returns.mean())
        if each is data:
            _acts_on_what_the_environment_gives(policies.policy())
    seeing, without = rates
    assert seeing > 0.9
    assert without < 0.6


def _acts_on_what_the_environment_gives(policy: cwbc.Policy) -> None:
    """On the dictionary itself, and on those of several episodes."""
    observation, _ = gymnasium.make(goal_maze.SEEING).reset(seed=0)
    flat = np.concatenate([observation[part] for part in ("achieved_goal", "desired_goal", "observation")])
    actions = []
    for given in (flat, observation):
        policy.begin(1.0)
        actions.append(policy.act(given))
    np.testing.assert_array_equal(actions[0], actions[1])
    policy.begin([1.0, 1.0])
    both = policy.act({part: np.stack([values, values]) for part, values in observation.items()})
    np.testing.assert_allclose(both, [actions[0]] * 2, rtol=1e-5)
