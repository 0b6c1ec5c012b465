"""The library as the README shows it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from toys import ENVIRONMENT, toy_data, write_toy

import cwbc
from cwbc.core.device import Place

DATA = toy_data(full_length=True)  # as in the files, and as in test_cli: each shape is compiled once
PLACES: tuple[Place, Place] = ("device", "host")
TINY: dict[str, Any] = {"preset": "small", "steps": 20, "width": 16, "batch_size": 4}


def test_from_a_file_to_a_saved_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = write_toy(tmp_path / "toy.hdf5")
    policies = cwbc.train(dataset, "rvs+cwbc", seeds=2, **TINY)
    sweep = cwbc.evaluate(policies, targets=[-2, 4], episodes=3)
    said = capsys.readouterr()
    assert not said.out
    shown = r"training rvs\+cwbc: 20 steps in .* s\nevaluating rvs\+cwbc: 10 steps in .* s\n"
    assert re.fullmatch(shown, said.err)
    assert sweep.returns.shape == (2, 2, 3)
    policies.policy(seed=1).save(tmp_path / "policy.safetensors")
    policy = cwbc.Policy.load(tmp_path / "policy.safetensors")
    policy.begin(target=[1, 2, 3])
    assert policy.act(np.zeros((3, 2))).shape == (3, 1)


def test_a_run_directory_is_evaluated_over_the_default_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cwbc.train(DATA, cwbc.METHODS["bc"], seeds=[7, 3], directory=tmp_path / "bc", **TINY)
    capsys.readouterr()
    cwbc.train(DATA, cwbc.METHODS["bc"], seeds=[7, 3], directory=tmp_path / "bc", **TINY)
    assert not capsys.readouterr().err  # it was only read
    sweep = cwbc.evaluate(tmp_path / "bc", episodes=1)
    assert sweep.seeds.tolist() == [7, 3]
    assert sweep.returns.shape == (2, 1, 1)  # it takes no target
    assert not sweep.takes_target
    assert cwbc.Policy.load(tmp_path / "bc").about["seed"] == 7


def test_seeds_may_be_numpy_s(tmp_path: Path) -> None:
    trained = cwbc.train(DATA, "bc", seeds=np.array([4, 2]), directory=tmp_path / "bc", **TINY)  # type: ignore[arg-type]
    assert trained.seeds == (4, 2)
    assert cwbc.train(DATA, "bc", seeds=np.int64(2), **TINY).seeds == (0, 1)  # type: ignore[arg-type]


def test_mistakes_are_input_errors(tmp_path: Path) -> None:
    with pytest.raises(cwbc.InputError, match="rvs has no option coefficient, speed"):
        cwbc.train(DATA, "rvs", coefficient=1.0, speed=3)
    with pytest.raises(cwbc.InputError, match="seeds must be at least 1; got 0"):
        cwbc.train(DATA, "rvs", seeds=0)
    with pytest.raises(cwbc.InputError, match="seeds must be at most 10,000; got 100000000000"):
        cwbc.train(DATA, "rvs", seeds=100_000_000_000)
    for wrong in (2.0, [0.5, 1], "two", True):
        with pytest.raises(cwbc.InputError, match="seeds must be a whole number, or a list of such"):
            cwbc.train(DATA, "rvs", seeds=wrong)  # type: ignore[arg-type]
    with pytest.raises(cwbc.InputError, match="seeds must be at least one, all different"):
        cwbc.train(DATA, "rvs", seeds=[1, 1])
    with pytest.raises(cwbc.InputError, match="unknown preset 'Paper'; did you mean 'paper'"):
        cwbc.train(DATA, "rvs", preset="Paper")  # type: ignore[arg-type]
    with pytest.raises(cwbc.InputError, match="learning_rate must be positive; got inf"):
        cwbc.train(DATA, "rvs", learning_rate=float("inf"))
    dataset = write_toy(tmp_path / "mine.hdf5", environment=None)
    with pytest.raises(cwbc.InputError, match="names no environment; give one, such as"):
        cwbc.evaluate(cwbc.train(dataset, "bc", seeds=2, **TINY))


def test_data_may_stay_in_host_memory() -> None:
    whole, streamed = (cwbc.train(DATA, "rvs+cwbc", seeds=2, data_on=place, **TINY) for place in PLACES)
    jax.tree.map(np.testing.assert_array_equal, whole.parameters, streamed.parameters)
    with pytest.raises(cwbc.InputError, match="unknown place for the data 'disc'; did you mean 'disk'"):
        cwbc.train(DATA, "rvs", data_on="disc", **TINY)  # type: ignore[arg-type]


def test_a_method_of_ones_own_can_have_any_name() -> None:
    mine = dataclasses.replace(cwbc.METHODS["bc"], name="mine")
    assert cwbc.train(DATA, mine, seeds=2, **TINY).spec.method.name == "mine"


def test_an_environment_can_be_given(tmp_path: Path) -> None:
    dataset = write_toy(tmp_path / "mine.hdf5", environment=None)
    policies = cwbc.train(dataset, "bc", seeds=2, **TINY)
    assert cwbc.evaluate(policies, ENVIRONMENT, [1.0], episodes=1).lengths.tolist() == [[[10]], [[10]]]


def test_only_what_is_promised_is_exported() -> None:
    assert all(hasattr(cwbc, name) for name in cwbc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cwbc.nothing  # noqa: B018
