from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cwbc.results.dataset_names import distinct_names, file_names, short_name


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["cwbc/hopper/medium-v0", "logs/arm.csv"], ["hopper-medium", "arm"]),
        (["cwbc/a/medium-v0", "d4rl/a/medium-v2"], ["cwbc/a/medium-v0", "d4rl/a/medium-v2"]),
        (["a/arm.csv", "a/arm.npz"], ["arm.csv", "arm.npz"]),
        (["a/arm.csv", "b/arm.csv", "leg.csv"], ["a/arm.csv", "b/arm.csv", "leg"]),
        (["x/a/arm.csv", "y/a/arm.csv"], ["x/a/arm.csv", "y/a/arm.csv"]),
        (["a/logs.csv", "/x/b/logs.csv", "e.hdf5"], ["a/logs.csv", "b/logs.csv", "e"]),
        (["c.hdf5", "./c.hdf5", "d/c.csv"], ["c.hdf5", "./c.hdf5", "c.csv"]),
        (["mujoco/hopper/medium-v0", "mujoco/hopper/expert-v0"], ["medium-v0", "expert-v0"]),
    ],
)
def test_datasets_are_told_apart_by_no_more_than_it_takes(names: list[str], short: list[str]) -> None:
    assert distinct_names(names) == dict(zip(names, short, strict=True))


@pytest.mark.parametrize("name", ["cwbc/walker2d/medium-replay-v0", "d4rl/walker2d/medium-replay-v2"])
def test_stored_datasets_have_short_names(name: str) -> None:
    assert short_name(name) == "walker2d-medium-replay"


def test_files_have_plain_names_and_no_two_the_same() -> None:
    names = ["alpha = 1", "Alpha = 1", "a/b", "..", "x" * 300]
    found = file_names(names)
    assert [found[name] for name in names] == ["alpha-1", "Alpha-1-2", "a-b", "dataset", "x" * 60]


@given(st.sets(st.text("aA./-_ é", min_size=1, max_size=8), max_size=8))
def test_no_two_names_or_files_are_the_same(names: set[str]) -> None:
    short = distinct_names(sorted(names))
    assert set(short) == names
    assert len(set(short.values())) == len(names)
    assert all(short.values())
    files = file_names(short.values())
    assert len({file.lower() for file in files.values()}) == len(names)
    for file in files.values():
        assert Path(file).name == file
        assert not file.startswith(".")
