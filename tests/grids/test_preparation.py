"""The directories of cells, their target returns, and the groups that one program trains."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from conftest import write_d4rl
from toys import write_toy

from cwbc.core.tasks import TASKS
from cwbc.grids import grouping
from cwbc.grids.cells import Cell, Scale, Variant, grid
from cwbc.grids.grouping import groups
from cwbc.grids.preparation import DatasetCache, Prepared, prepare, target_returns
from cwbc.system.errors import InputError

SCALE = Scale("small", steps=40, seeds=2, episodes=3, precision="float32")


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_toy(tmp_path_factory.mktemp("data") / "toy.hdf5"))


def prepared(*cells: Cell) -> list[Prepared]:
    return prepare(cells, Path("root"), {}, DatasetCache())


def test_what_tells_directories_apart(toy: str, tmp_path: Path) -> None:
    (cell,) = grid([toy], ["rvs+cwbc"], SCALE)
    copy = write_toy(tmp_path / "copy.hdf5")
    other = write_toy(tmp_path / "other.hdf5", full_length=False)
    strong = Variant("strong", "rvs+cwbc", {"coefficient": 2})

    def changed(**values: Any) -> Cell:
        return dataclasses.replace(cell, **values)

    same = prepared(
        cell,
        changed(label="ours"),
        changed(dataset=str(copy)),  # where the data lies is no part of it
        *grid([toy], ["rvs+w+c"], SCALE),  # another name of the method
        *grid([toy], [Variant("one", "rvs+cwbc", {"coefficient": 1})], SCALE),  # 1 is 1.0
    )
    assert len({each.directory.name for each in same}) == 1
    assert same[0].directory.parent == Path("root")
    steps = dataclasses.replace(cell.training, steps=41)
    different = prepared(
        cell,
        changed(dataset=str(other)),
        changed(training=steps),
        changed(seeds=(0, 2)),
        changed(targets=(1.0,)),
        changed(episodes=4),
        changed(points=4),
        *grid([toy], [strong], SCALE),
    )
    assert len({each.directory.name for each in different}) == len(different)


def test_the_marks_are_always_asked() -> None:
    (cell,) = grid(["hopper"], ["rvs"], SCALE)
    task = TASKS["hopper"]

    def wanted(points: int | None) -> tuple[float, ...]:
        return target_returns(dataclasses.replace(cell, points=points), task, best=3000.0)

    assert wanted(None) == task.targets(3000.0)
    assert wanted(1) == (3000.0, 3200.0, 6400.0)  # the dataset's best, 1x, 2x
    assert wanted(5) == (1000.0, 3000.0, 3200.0, 6115.789474, 6400.0)  # the ends of the others
    for points in range(3, 23):
        assert len(wanted(points)) == min(points, len(task.targets(3000.0)))
        assert {3000.0, 3200.0, 6400.0} <= set(wanted(points)) <= set(task.targets(3000.0))
    cell = dataclasses.replace(cell, points=None)
    assert target_returns(dataclasses.replace(cell, targets=(5.0, 1.0, 5.0)), task, 3000.0) == (1.0, 5.0)
    less = dataclasses.replace(cell, targets=(5.0, 1.0), fractions=(0.001, 0.5))
    assert target_returns(less, task, 3000.0) == (1.0, 3.0, 5.0, 1500.0)
    with pytest.raises(InputError, match="rvs: targets must be finite"):
        target_returns(dataclasses.replace(cell, targets=(float("inf"),)), task, 3000.0)


def test_mistakes_are_found_before_anything_is_written(toy: str, tmp_path: Path) -> None:
    nowhere = write_d4rl(tmp_path / "nowhere.hdf5")
    assert (
        prepare(grid(str(nowhere), "rvs", SCALE), tmp_path / "root", {}, DatasetCache())[0].environment
        == "offline"
    )
    with pytest.raises(InputError, match="unknown dataset"):
        prepare(grid([toy, "hoper-medium-v2"], ["rvs"], SCALE), tmp_path / "root", {}, DatasetCache())
    with pytest.raises(InputError, match="at least one cell"):
        prepare([], tmp_path / "root", {}, DatasetCache())
    with pytest.raises(InputError, match="is a file; cells need a directory"):
        prepare(grid(toy, "rvs", SCALE), nowhere, {}, DatasetCache())
    assert not (tmp_path / "root").exists()


def test_groups_share_all_but_numbers(toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weaker = [Variant(f"alpha = {a}", "rvs+cwbc", {"coefficient": a}) for a in (0.1, 0.5)]
    wide = Variant("wide", "rvs+cwbc", {"width": 32})
    longer = Variant("longer", "rvs+cwbc", {"steps": 80})
    copy = str(write_toy(tmp_path / "copy.hdf5", full_length=False))
    cells = prepared(*grid([toy, copy], ["rvs", "rvs+cwbc", wide, longer, *weaker], SCALE))

    def labels() -> list[list[str]]:
        return [[each.cell.label for each in group] for group in groups(cells, gpus=1)]

    one_dataset = [["rvs"], ["rvs+cwbc", "alpha = 0.1", "alpha = 0.5"], ["wide"], ["longer"]]
    assert labels() == [2 * names for names in one_dataset]  # steps are small
    monkeypatch.setattr(grouping, "_BUSY", 0.0)
    assert labels() == one_dataset * 2
    alike = [each for each in cells[: len(cells) // 2] if each.cell.label in one_dataset[1]]
    assert [len(group) for group in groups(alike, gpus=2)] == [2, 1]  # each has some
    assert [len(group) for group in groups(alike, gpus=0)] == [1, 1, 1]  # processes can share them
    assert [len(group) for group in groups(alike[:1] * 20, gpus=1)] == [16, 4]  # more would gain nothing
