"""Image observations from a file to a policy that follows its target, in an environment of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from pixels import HORIZON, Pixels, pixel_data

import cwbc


def limited() -> gymnasium.Env[Any, Any]:
    return gymnasium.wrappers.TimeLimit(Pixels(), HORIZON)


def test_an_npz_of_images_becomes_a_policy_that_is_evaluated(tmp_path: Path) -> None:
    logged = pixel_data()
    last = np.zeros(logged.steps, bool)
    last[logged.starts + logged.lengths - 1] = True
    np.savez(
        tmp_path / "pixels.npz",
        observations=logged.observations,
        actions=logged.actions,
        rewards=logged.rewards,
        terminals=np.zeros_like(last),
        timeouts=last,
    )
    data = cwbc.load(tmp_path / "pixels.npz")
    assert data.content_hash == logged.content_hash
    policies = cwbc.train(
        data, "rvs", seeds=1, preset="small", steps=300, batch_size=16, width=32, frame_stack=2
    )
    policies.policy().save(tmp_path / "policy.safetensors")
    low, high = 0.0, float(data.best)
    sweep = cwbc.evaluate(policies, limited, targets=[low, high], episodes=10, actions="greedy")
    means = sweep.returns.mean(axis=(0, 2))
    assert means[1] > means[0] + 1
    policy, environment = cwbc.Policy.load(tmp_path / "policy.safetensors").acting("greedy"), Pixels()
    policy.begin(high)
    observation, _ = environment.reset(seed=0)
    first = policy.act(observation[..., 0])  # an image of one channel may come without it
    policy.begin(high)
    assert policy.act(observation) == first
    policy.begin(high)
    reward, earned = None, 0.0
    for _ in range(HORIZON):
        observation, reward, *_ = environment.step(int(policy.act(observation, reward)))
        earned += reward
    assert earned > means[0]
