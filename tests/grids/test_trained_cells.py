"""A cell with other target returns or episodes is evaluated with the parameters of a trained cell."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from toy_cells import EPISODES, TARGETS, tables, toy_cells
from toys import write_toy

from cwbc.core import training_loop
from cwbc.grids import engine
from cwbc.grids.preparation import DatasetCache, fingerprint, prepare, reuse_training, trained_as
from cwbc.runs.configuration import identity
from cwbc.runs.run_directory import METRICS, RunDirectory
from cwbc.system.tensor_files import CHECKPOINT


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy(tmp_path_factory.mktemp("data") / "toy.hdf5")


def no_training(self: object) -> NoReturn:
    raise AssertionError("this was trained")


def test_more_episodes_and_other_returns_need_no_training(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = toy_cells(toy, 1, steps=10)
    (first,) = engine.run([cell], tmp_path, notes={"command": "first"}).outcomes
    (prepared,) = prepare([cell], tmp_path, {}, DatasetCache())
    assert fingerprint(identity(RunDirectory(first.directory).config())) == prepared.trained_as
    before = tables(tmp_path)
    monkeypatch.setattr(training_loop._Loop, "run", no_training)
    more = dataclasses.replace(cell, episodes=EPISODES + 1, targets=(*TARGETS, 5.0))
    (second,) = engine.run([more], tmp_path, notes={"command": "second"}).outcomes
    assert second.directory != first.directory
    assert second.sweep.returns.shape == (1, 3, EPISODES + 1)
    shared = second.sweep.returns[:, : len(TARGETS), :EPISODES]
    np.testing.assert_allclose(shared, first.sweep.returns, rtol=1e-5)  # the same policies, begun alike
    assert (second.directory / CHECKPOINT).read_bytes() == (first.directory / CHECKPOINT).read_bytes()
    assert RunDirectory(second.directory).config()["notes"]["command"] == "first"  # which trained it
    assert (
        RunDirectory(second.directory).training_seconds() == RunDirectory(first.directory).training_seconds()
    )
    assert tables(tmp_path).items() >= before.items()


@pytest.mark.parametrize("what", ["steps", "seeds", "unfinished", "damaged"])
def test_what_is_not_the_same_training_is_trained(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    (cell,) = toy_cells(toy, 1, steps=10)
    (first,) = engine.run([cell], tmp_path).outcomes
    monkeypatch.setattr(training_loop._Loop, "run", no_training)
    (other,) = toy_cells(toy, 1, steps=11 if what == "steps" else 10)
    other = dataclasses.replace(other, episodes=1, seeds=(7,) if what == "seeds" else (0,))
    if what == "unfinished":
        monkeypatch.setattr(RunDirectory, "steps_done", lambda self: 5)
    if what == "damaged":
        (first.directory / CHECKPOINT).write_bytes(b"half")
    (failure,) = engine.run([other], tmp_path).failures
    assert "this was trained" in failure.reason


def test_neighbours_that_cannot_be_read_are_no_hindrance(toy: Path, tmp_path: Path) -> None:
    for name, text in (("other", '{"method": "rvs"}'), ("empty", "{}"), ("half", '{"method": {')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(text)
        (tmp_path / name / CHECKPOINT).touch()
    (tmp_path / "folder" / CHECKPOINT).mkdir(parents=True)
    (tmp_path / "folder" / "config.json").mkdir()
    (cell,) = toy_cells(toy, 1, steps=5)
    assert len(engine.run([cell], tmp_path).outcomes) == 1


def test_a_lending_that_was_cut_short_is_no_hindrance(toy: Path, tmp_path: Path) -> None:
    (cell,) = toy_cells(toy, 1, steps=5)
    (first,) = engine.run([cell], tmp_path).outcomes
    (prepared,) = prepare([dataclasses.replace(cell, episodes=1)], tmp_path, {}, DatasetCache())
    written: list[str] = []

    def killed() -> None:
        if len(written) == 1:
            raise KeyboardInterrupt
        written.append("one")

    with pytest.raises(KeyboardInterrupt):
        reuse_training(prepared, trained_as, killed)
    assert [path.name for path in prepared.directory.iterdir()] == ["config.json"]
    shutil.rmtree(first.directory)  # so that it has to be trained
    assert len(engine.run([prepared.cell], tmp_path).outcomes) == 1


def test_parameters_without_metrics_are_lent_as_well(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = toy_cells(toy, 1, steps=5)
    (first,) = engine.run([cell], tmp_path).outcomes
    (first.directory / METRICS).unlink()
    monkeypatch.setattr(training_loop._Loop, "run", no_training)
    assert len(engine.run([dataclasses.replace(cell, episodes=1)], tmp_path).outcomes) == 1
