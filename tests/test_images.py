"""Image observations from a file to a policy that follows its target, in an environment of the user's."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from command_line import run
from pixels import HORIZON, Pixels, pixel_data

import cwbc
from cwbc.cli.planning import Plan, TrainingOptions
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.errors import InputError


def limited() -> gymnasium.Env[Any, Any]:
    return gymnasium.wrappers.TimeLimit(Pixels(), HORIZON)


def write_pixels(path: Path, logged: cwbc.Trajectories) -> Path:
    """Logged images as a file of a user's."""
    last = np.zeros(logged.steps, bool)
    last[logged.starts + logged.lengths - 1] = True
    np.savez(
        path,
        observations=logged.observations,
        actions=logged.actions,
        rewards=logged.rewards,
        terminals=np.zeros_like(last),
        timeouts=last,
    )
    return path


def test_an_npz_of_images_becomes_a_policy_that_is_evaluated(tmp_path: Path) -> None:
    logged = pixel_data()
    data = cwbc.load(write_pixels(tmp_path / "pixels.npz", logged))
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


def test_without_a_simulator_the_error_on_held_out_episodes_is_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = write_pixels(tmp_path / "pixels.npz", pixel_data(20)), tmp_path / "run"
    tiny = ["--preset=small", "--device=cpu", "--seeds=1", "--steps=4", "--batch-size=4", "--width=16"]
    assert run("compare", data, "bc", *tiny, "--out", out) == 2  # before any training
    assert "or train alone, which measures prediction errors" in capsys.readouterr().err
    assert not out.exists()
    assert run("train", data, "bc", *tiny, "--out", out) == 0
    last = RunDirectory(out).metrics()[-1]
    error = f"prediction error on held-out episodes: {last['heldout'][0]:.3g}"
    assert 0 < last["heldout"][0] <= 1
    printed = capsys.readouterr().err
    assert f"`cwbc evaluate {out} --env ID` evaluates it in a simulator" in printed
    assert error in printed
    assert "--offline" not in printed
    for command in (("evaluate", out), ("report", out), ("recommend", out)):
        assert run(*command) == 2
        printed = capsys.readouterr().err
        assert error in printed
        assert "--offline" not in printed
    assert run("evaluate", out, "--offline", "--dataset", data) == 2
    assert "offline evaluation takes vector observations" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"such as environment='Hopper-v5'$"):
        cwbc.evaluate(out)
    bare = tmp_path / "bare"
    assert run("train", data, "bc", *tiny, "--holdout=0", "--out", bare) == 0
    assert "none were held out (`cwbc train` with --holdout 0.1 measures it)" in capsys.readouterr().err


def test_the_small_preset_is_smaller_on_large_images() -> None:
    small = pixel_data()
    large = dataclasses.replace(small, observations=np.zeros((small.steps, 40, 40, 1), np.uint8))
    made = Plan.make(["rvs", "dt", "bc"], TrainingOptions(preset="small", steps=7))
    for data, channels, frames, episodes in (
        (small, None, (640, 640, 640), 10),
        (large, (16, 32, 32), (64, 64, 64), 2),
    ):
        plan = made.on(data, [])
        trainings = [training for _, training in plan.methods]
        assert tuple(each.batch_size * each.context for each in trainings) == frames
        assert {each.steps for each in trainings} == {7}
        learners: list[Any] = [method.learner for method, _ in plan.methods]
        assert {learner.encoder.channels for learner in learners} == {channels}
        assert plan.episodes(data) == episodes
    paper = Plan.make(["rvs"], TrainingOptions(preset="paper")).on(large, [])
    assert (paper.methods[0][1].context, paper.episodes(large)) == (20, 10)
