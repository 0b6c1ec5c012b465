"""Grids as values: the product in its order, and mistakes by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from cwbc.core.cloning import Cloning
from cwbc.core.methods import sized
from cwbc.core.regularizers import Conservative
from cwbc.grids.cells import Scale, Variant, grid
from cwbc.system.errors import InputError

SCALE = Scale("small", steps=40, seeds=2, episodes=3, points=5, precision="float32")


def test_a_grid_is_the_product_in_order() -> None:
    strong = Variant("alpha = 2", "rvs+cwbc", {"coefficient": 2.0, "steps": 50})
    cells = grid(["a", "b"], ["rvs", strong], SCALE)
    assert [(cell.dataset, cell.label) for cell in cells] == [
        ("a", "rvs"),
        ("a", "alpha = 2"),
        ("b", "rvs"),
        ("b", "alpha = 2"),
    ]
    plain, changed = cells[:2]
    method, training = sized("rvs", "small")
    assert (plain.method, plain.training.batch_size) == (method, training.batch_size)
    assert (plain.training.steps, changed.training.steps) == (40, 50)  # a variant's own word counts more
    assert isinstance(changed.method.learner, Cloning)
    assert changed.method.learner.regularizer == Conservative(coefficient=2.0)
    assert {(cell.seeds, cell.targets, cell.episodes, cell.points) for cell in cells} == {
        ((0, 1), None, 3, 5)
    }
    every_point = dataclasses.replace(SCALE, points=None)
    assert [cell.targets for cell in grid(["a"], ["bc"], every_point, targets=[3, 1])] == [(3.0, 1.0)]
    assert [cell.dataset for cell in grid(Path("a.csv"), "bc", SCALE)] == ["a.csv"]
    assert [cell.dataset for cell in grid([Path("a.csv"), "b"], "bc", SCALE)] == ["a.csv", "b"]


@pytest.mark.parametrize(
    ("datasets", "variants", "message"),
    [
        (["a"], ["rvs", Variant("rvs", "dt")], "two variants are called 'rvs'"),
        (["a", "a"], ["rvs"], "dataset a is there twice"),
        (["a"], [Variant("mine", "rvs", {"coefficient": 1.0})], "mine: rvs has no option coefficient"),
        (["a"], ["rsv"], "unknown method 'rsv'; did you mean 'rvs'"),
    ],
)
def test_mistakes_are_told(datasets: list[str], variants: list[Variant | str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        grid(datasets, variants, SCALE)


def test_cells_ask_something() -> None:
    with pytest.raises(InputError, match="rvs: targets must be at least one number"):
        grid(["a"], ["rvs"], SCALE, targets=[])
    for method in ("rvs+q", "iql"):  # which need none
        (cell,) = grid(["a"], [method], dataclasses.replace(SCALE, points=None), targets=[])
        assert cell.targets == ()
    for targets in ("1x", ["1x"], [None]):
        with pytest.raises(InputError, match="targets must be numbers, such as"):
            grid(["a"], ["rvs"], SCALE, targets=targets)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rvs: points are of the task's sweep, and not of given targets"):
        grid(["a"], ["rvs"], SCALE, targets=[1.0])
    with pytest.raises(InputError, match="seeds must be a whole number, at least 1; got 0"):
        Scale("small", None, 0, 1)


def test_wrong_kinds_are_told() -> None:
    with pytest.raises(InputError, match="datasets are names or paths; got a NoneType"):
        grid(None, "rvs", SCALE)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"variants are cwbc\.Variants or names of methods; got a int"):
        grid("a", [5], SCALE)  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"scale must be a cwbc\.Scale; got a NoneType"):
        grid("a", "rvs", None)  # type: ignore[arg-type]


def test_one_dataset_and_one_method_need_no_list() -> None:
    scale = Scale("small", 10, 1, 1)
    assert grid("toy", "rvs", scale) == grid(["toy"], ["rvs"], scale)
    assert grid("toy", Variant("a", "rvs"), scale) == grid(["toy"], [Variant("a", "rvs")], scale)
    with pytest.raises(InputError, match="points must be a whole number, at least 1; got 0"):
        Scale("small", 10, 1, 1, points=0)
    assert type(Scale("small", seeds=np.int64(3)).seeds) is int  # type: ignore[arg-type]
    with pytest.raises(InputError, match="episodes must be a whole number, at least 1; got '3'"):
        Scale("small", 10, 1, "3")  # type: ignore[arg-type]
