"""The scripts that people copy, each run in a small size."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from toys import write_toy

from cwbc.core.methods import Training
from cwbc.grids import engine
from cwbc.runs.policies import Policy

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    """The module of an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # which dataclasses look up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A dataset in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    return str(write_toy(tmp_path / "toy.hdf5"))


def test_every_example_is_run_here() -> None:
    names = {"compare_methods", "csv_to_policy", "custom_environment", "grid_on_ray", "new_method"}
    names.add("without_simulator")
    assert {path.stem for path in EXAMPLES.glob("*.py")} == names
    assert len((EXAMPLES / "new_method.py").read_text().splitlines()) < 60


def test_csv_to_policy(toy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example("csv_to_policy").main(steps=20)
    assert "first action" in capsys.readouterr().out
    assert Policy.load(tmp_path / "policy.safetensors").spec.method.name == "rvs+cwbc"


def test_compare_methods(toy: str, capsys: pytest.CaptureFixture[str]) -> None:
    example("compare_methods").main(toy, steps=20)
    out = capsys.readouterr().out
    assert "rvs+cwbc" in out
    assert Path(out.splitlines()[-1]).exists()


def test_grid_on_ray(toy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On this machine's engine: that of clusters has tests of its own."""

    def here(cells: Any, root: Any, address: Any, **named: Any) -> Any:
        assert address is None
        return engine.run(cells, root, **named)

    monkeypatch.setattr("cwbc.grids.ray_engine.run", here)
    example("grid_on_ray").main([toy], steps=20)
    assert Path(capsys.readouterr().out.splitlines()[-1]).exists()


def test_custom_environment(toy: str, capsys: pytest.CaptureFixture[str]) -> None:
    example("custom_environment").main(steps=20)
    assert "10.0" in capsys.readouterr().out


def test_new_method(toy: str, capsys: pytest.CaptureFixture[str]) -> None:
    example("new_method").main(toy, steps=20)
    assert "rvs+softmax+c" in capsys.readouterr().out


def test_without_simulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cwbc.runs.offline.FEWEST", 20)
    monkeypatch.setattr("cwbc.runs.offline.VALUES", Training(20, batch_size=32))
    example("without_simulator").main(steps=20, seeds=1, episodes=1)
    out = capsys.readouterr().out
    assert "estimated return" in out or "No policy to deploy" in out
    assert "in the shop:" in out
