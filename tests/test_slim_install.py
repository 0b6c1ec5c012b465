"""What works without the packages of the extras, and the errors that name these where they are needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from tables import columns, write
from toys import random_parameters, tiny, toy_data

from cwbc import envs
from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.runs.policies import Policy
from cwbc.system.errors import InputError

SIMULATORS, PLOTS = ("gymnasium", "mujoco"), ("matplotlib", "PIL")
_WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")

sys.meta_path.insert(0, Missing())
{code}
"""


def without(names: Sequence[str], code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A program that runs in a folder as if these packages were not installed."""
    program = _WITHOUT.format(names=set(names), code=code)
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def command(*arguments: str) -> str:
    return f"from cwbc.cli.main import main; main({list(arguments)})"


def test_acting_needs_few_packages(tmp_path: Path) -> None:
    spec = PolicySpec.fit(tiny("dt"), toy_data(), Training(context=4))
    policy = Policy(spec, random_parameters(spec, 7))
    policy.save(tmp_path / "policy.safetensors")
    policy.begin([1.0, 2.0])
    expected = policy.act(np.zeros((2, 2)))
    others = ("h5py", "jinja2", "tyro", "rich", "scipy", "pyarrow")
    code = """
import cwbc, numpy
policy = cwbc.Policy.load("policy.safetensors")
policy.begin([1.0, 2.0])
print(policy.act(numpy.zeros((2, 2))).tolist())
"""
    ended = without((*SIMULATORS, *PLOTS, *others), code, tmp_path)
    assert (ended.stdout, ended.stderr) == (f"{expected.tolist()}\n", "")


def test_training_on_a_table_needs_no_simulator(tmp_path: Path) -> None:
    write(tmp_path / "own.csv", columns())
    options = ("--preset=small", "--device=cpu", "--seeds=1", "--steps=20", "--width=8")
    ended = without((*SIMULATORS, *PLOTS), command("train", "own.csv", "rvs+cwbc", *options), tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert Policy.load(tmp_path / "runs" / "own" / "rvs+cwbc").spec.horizon == 3


def test_simulators_are_named_with_their_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    for module in SIMULATORS:
        with monkeypatch.context() as missing:
            missing.setitem(sys.modules, module, None)
            for environment in ("Hopper-v5", "CartPole-v1"):
                with pytest.raises(InputError, match=r"environments need more.*pip install 'cwbc\[mujoco\]'"):
                    envs.make(environment, 1)
            assert envs.time_limit("CartPole-v1") is None
            dataset = "cwbc/hopper/medium-v0"
            assert run("compare", dataset, "rvs", "--preset=small", "--device=cpu", "--out", tmp_path) == 2
            assert "pip install 'cwbc[mujoco]'" in capsys.readouterr().err


def test_charts_in_files_are_named_with_their_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write(tmp_path / "own.csv", columns()))
    for module in PLOTS:
        with monkeypatch.context() as missing:
            missing.setitem(sys.modules, module, None)
            assert run("data", "show", path, "--plot", tmp_path / "chart.png") == 2
        assert "charts in files need more packages: pip install 'cwbc[plots]'" in capsys.readouterr().err
    assert not (tmp_path / "chart.png").exists()
