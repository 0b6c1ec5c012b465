"""What a dataset's name can be: a path of any format, a name of the store, a Minari id, or a mistake."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import d4rl_arrays, logged, write_d4rl
from tables import columns, write

from cwbc.data import load, read, store
from cwbc.system.errors import InputError


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.chdir(tmp_path)


def refused(name: str | Path, text: str) -> None:
    with pytest.raises(InputError, match=text):
        load(name)


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    plain = load(write(tmp_path / "log.parquet", columns())).content_hash
    os.rename(write(tmp_path / "log.npz", columns()), tmp_path / "log.data")
    assert load("log.data").content_hash == plain
    os.rename(tmp_path / "log.parquet", tmp_path / "log.csv")
    assert load("log.csv").content_hash == plain


def test_the_store_is_asked_for_what_is_no_path() -> None:
    store.add(logged([1, 2, 3], name="mine"), "somewhere")
    assert load("mine").steps == 3
    store.add(logged([1, 2], name="d4rl/hopper/medium-v2", environment="Hopper-v4"), "somewhere")
    assert load("hopper-medium-v2").name == "d4rl/hopper/medium-v2"
    assert load("d4rl/hopper/medium-v2").time_limit == 1000
    assert load("hopper-medium-v2", "CartPole-v1").time_limit == 500


def test_a_name_is_not_taken_for_an_environment() -> None:
    data = logged([1, 2, 3], name="hopper-mine")
    store.add(data, "somewhere")
    assert load("hopper-mine").environment is None


def test_a_bare_word_is_a_name_first(tmp_path: Path) -> None:
    store.add(logged([1, 2, 3], name="mine"), "somewhere")
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine" / "part-0.parquet", columns())
    assert load("mine").steps == 3
    assert load("./mine").steps == 6
    (tmp_path / "other").mkdir()
    refused("other", "other is a folder with neither Parquet files nor a Minari dataset in it")


def test_a_limit_that_was_given_beats_the_registered_one() -> None:
    store.add(logged([1, 2], name="mine", environment="CartPole-v1", time_limit=50), "somewhere")
    assert load("mine").time_limit == 50
    assert load("mine", "CartPole-v1").time_limit == 50
    assert load("mine", "Acrobot-v1").time_limit == 500


def test_ends_at_the_limit_are_no_ends_by_the_environment(tmp_path: Path) -> None:
    ends = columns(terminated=None, truncated=None, done=np.array([0, 0, 1, 1, 0, 1]))
    write(tmp_path / "log.csv", ends)
    assert load("log.csv").terminated.tolist() == [True, True, True]
    assert read("log.csv", time_limit=3).data.terminated.tolist() == [False, True, True]
    with pytest.raises(InputError, match="--time-limit 2 is shorter than an episode of 3 steps"):
        read("log.csv", time_limit=2)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log.csv")
    refused("log.csv", "log.csv is a pipe or a device, not a regular file")


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "table.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    refused("table.xlsx", "table.xlsx is an Excel file; save it as CSV")


def test_what_is_not_known_gets_a_hint(tmp_path: Path) -> None:
    store.add(logged([1, 2, 3], name="cartpole"), "somewhere")
    refused("carpole", "unknown dataset 'carpole'; did you mean 'cartpole'")
    refused("hoper-medium-v2", "unknown dataset 'hoper-medium-v2'; did you mean 'hopper-medium-v2'")
    text = "d4rl/hopper/medium-v2 is not available here yet; `cwbc data download hopper-medium-v2` downloads"
    refused("hopper-medium-v2", text)
    refused("zzzzzzzz", "unknown dataset 'zzzzzzzz'; `cwbc data list` shows the available ones")
    for name in ("ant-1", "ant-2", "hopper-medium-v2"):
        write_d4rl(tmp_path / f"{name}.hdf5")
    refused("hoper-mediun-v2.hdf5", "did you mean 'hopper-medium-v2")
    refused("zzzzzzzzzz.hdf5", "no such file; beside it: ant-1.hdf5, ant-2.hdf5")
    refused("nowhere/mine.hdf5", "unknown dataset 'nowhere/mine.hdf5': no such file")


def test_what_is_no_dataset(tmp_path: Path) -> None:
    refused(tmp_path, "is a folder with neither Parquet files nor a Minari dataset in it")
    for name in ("empty.csv", "empty.npz", "empty"):
        (tmp_path / name).touch()
        refused(name, f"{name} is empty; expected one row per step")
    (tmp_path / "notes.txt").write_text("hello there")
    refused("notes.txt", r"unknown format; expected HDF5, NPZ, Parquet \(.parquet\) or CSV \(.csv\)")
    (tmp_path / "data.pkl").write_bytes(b"\x80\x04\x95 and so on")
    refused(
        "data.pkl",
        "data.pkl looks like a pickle, which runs code when it is loaded, and is never read; write",
    )
    (tmp_path / "data.bin").write_bytes(b"\x80\x04\x95 and so on")
    refused("data.bin", "looks like a pickle")


@pytest.mark.parametrize(
    ("name", "environment", "limit"),
    [("hopper_medium-v2", "Hopper-v4", 1000), ("mine", None, None), ("walker2d", "Walker2d-v4", 1000)],
)
def test_the_name_of_a_file_may_tell_the_environment(
    tmp_path: Path, name: str, environment: str | None, limit: int | None
) -> None:
    sizes = (17, 6) if name == "walker2d" else (11, 3)
    arrays = d4rl_arrays(observations=np.zeros((6, sizes[0])), actions=np.zeros((6, sizes[1])))
    np.savez(tmp_path / f"{name}.npz", **arrays)
    data = load(f"{name}.npz")
    assert (data.environment, data.time_limit) == (environment, limit)
    np.savez(tmp_path / f"{name}.npz", **d4rl_arrays())  # another robot of that name
    assert load(f"{name}.npz").environment is None
    assert load(f"{name}.npz", "CartPole-v1").environment == "CartPole-v1"
