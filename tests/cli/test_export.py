"""`cwbc export` as users meet it: what it writes, says and refuses."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from command_line import TINY, run
from toys import ENVIRONMENT, write_toy

from cwbc.runs.export import FORMATS, SUFFIXES, checking, numpy_policy
from cwbc.runs.policies import Policy


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of two seeds."""
    root = tmp_path_factory.mktemp("trained")
    options = [each for each in TINY if "episodes" not in each]
    assert run("train", write_toy(root / "toy.hdf5"), "rvs", *options, "--out", root / "all" / "rvs") == 0
    return root / "all" / "rvs"


def test_an_onnx_file_acts_as_the_first_seed(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "robot.onnx"
    assert run("export", trained, "--format", "onnx", "--out", out, "--target", "4") == 0
    said = capsys.readouterr()
    assert said.err == "the policy of seed 0, the first of 0, 1; --seed chooses another\n"
    assert said.out.startswith("rvs: in NumPy and ONNX Runtime, actions differ by at most ")
    assert said.out.endswith(f"{out}\n")
    session = onnxruntime.InferenceSession(out)
    state = np.array([[float(session.get_modelmeta().custom_metadata_map["target"]), 0.0]])
    inputs = {"observation": np.ones((1, 2), np.float32), "reward": np.zeros(1), "state": state}
    action, _ = session.run(["action", "next_state"], inputs)
    policy = Policy.load(trained, seed=0)
    policy.begin([4.0])
    np.testing.assert_allclose(action, policy.act(np.ones((1, 2))), rtol=1e-5, atol=1e-6)


def test_weights_and_their_module_stand_in_the_run(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", trained, "--format=numpy", "--seed=1") == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines()[1:] == [str(trained / "policy.npz"), str(trained / "policy.py")]
    weights, policy = numpy_policy.Policy.load(trained / "policy.npz"), Policy.load(trained, seed=1)
    assert weights.about["seed"] == 1
    assert weights.about["best_return"] == 5.0
    for each in (weights, policy):
        each.begin(4.0)
    np.testing.assert_allclose(weights.act([1.0, 1.0]), policy.act([1.0, 1.0]), rtol=1e-5, atol=1e-6)
    assert run("export", trained, "--format=numpy") == 2
    assert f"{trained / 'policy.npz'} exists; --overwrite replaces it" in capsys.readouterr().err
    assert run("export", trained, "--format=numpy", "--overwrite") == 0
    assert numpy_policy.Policy.load(trained / "policy.npz").about["seed"] == 0


def test_the_snippets_of_the_documentation_run(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in FORMATS:
        out = tmp_path / f"policy{SUFFIXES[kind]}"
        assert run("export", trained, "--format", kind, "--target=4", "--out", out) == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "deployment.md").read_text()
    snippets = [part.partition("```")[0] for part in page.split("```python")[1:]]
    actions = []
    for snippet in snippets:
        snippet = snippet.replace("runs/cheetah/", "").replace("runs/cheetah", str(trained))
        names: dict[str, Any] = {}
        exec(snippet.replace("HalfCheetah-v5", ENVIRONMENT).replace("6000", "4"), names)
        actions.append(np.reshape(names["action"], 1))
    np.testing.assert_allclose(actions[1:], [actions[0]] * 2, rtol=1e-4, atol=1e-5)


def test_a_saved_policy_is_exported(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "policy.safetensors"
    Policy.load(trained, seed=1).save(saved)
    assert run("export", saved, "--format", "onnx") == 0
    assert (tmp_path / "policy.onnx").exists()
    assert run("export", saved, "--format", "numpy", "--seed", "0") == 2
    assert "holds the policy of seed 1, not that of seed 0" in capsys.readouterr().err


def test_mistakes_are_one_line_and_leave_no_file(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "policy.onnx"
    shutil.copytree(trained, tmp_path / "two" / "a")
    shutil.copytree(trained, tmp_path / "two" / "b")
    for arguments, message in (
        ((tmp_path / "none", "--format=onnx"), "none: no such directory or file"),
        ((tmp_path / "two", "--format=onnx"), "two/b; export one run"),
        ((trained, "--format=torch"), "unknown format 'torch'; known: numpy, onnx"),
        ((trained, "--format=onnx", "--seed=7"), "no seed 7; trained were 0, 1"),
        (
            (trained, "--format=onnx", f"--out={tmp_path / 'policy.npz'}"),
            "must end in .onnx for --format onnx",
        ),
        ((trained, "--format=onnx", "--target=inf"), "the target must be a finite number; got inf"),
    ):
        assert run("export", *arguments) == 2
        assert message in capsys.readouterr().err.splitlines()[-1]
    monkeypatch.setattr(checking, "TOLERANCE", -1.0)
    assert run("export", trained, "--format=onnx", "--out", out) == 1
    assert "cwbc: nothing was written: in NumPy, actions differ by" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert run("export", trained, "--format=onnx", "--out", out) == 2
    assert "pip install 'cwbc[onnx]'" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["two"]
