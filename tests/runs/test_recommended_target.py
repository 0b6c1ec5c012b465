"""Policies of an evaluated run know the recommended target, begin with it, and warn of unsupported ones."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from toys import tiny, toy_data

from cwbc.core.methods import Training
from cwbc.runs.evaluating import evaluate_run
from cwbc.runs.policies import Policies, Policy
from cwbc.runs.training import train
from cwbc.system.errors import InputError


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is trained a little and evaluated."""
    path, data = tmp_path_factory.mktemp("runs") / "rvs", toy_data()
    policies = train(data, tiny("rvs"), Training(20, batch_size=8), (0,), path)
    with pytest.raises(InputError, match="its run is not evaluated"):
        Policies.load(path).policy().begin()
    evaluate_run(path, policies, "cwbc-toy-v0", (-5.0, 0.0, 5.0), 2)
    return path


def test_an_episode_begins_with_the_recommended_target(evaluated: Path, tmp_path: Path) -> None:
    target = json.loads((evaluated / "summary.json").read_text())["recommendation"]["target"]
    saved = tmp_path / "policy.safetensors"
    Policy.load(evaluated).save(saved)
    observation = np.ones(2, np.float32)
    for policy in (Policy.load(evaluated), Policy.load(saved)):
        assert policy.recommended_target == target
        policy.begin()
        action = policy.act(observation)
        policy.begin(target)
        np.testing.assert_array_equal(policy.act(observation), action)


def test_an_unsupported_target_is_warned_of_once(evaluated: Path) -> None:
    policy = Policy.load(evaluated)
    low, high = policy.about["supported_targets"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.begin([low, high])
    with pytest.warns(UserWarning, match="outside of the supported ones"):
        policy.begin(high + 100)
    policy.begin(high + 100)  # once is enough


def test_a_damaged_recommendation_is_none(evaluated: Path, tmp_path: Path) -> None:
    copy = tmp_path / "rvs"
    copy.mkdir()
    for file in evaluated.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    for damaged in ('{"recommendation": {"target": "5"}}', '{"recommendation": null}', "{"):
        (copy / "summary.json").write_text(damaged)
        assert Policy.load(copy).recommended_target is None
