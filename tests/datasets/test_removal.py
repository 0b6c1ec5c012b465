"""What is removed from the store, and what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import logged

from cwbc.datasets import load, removal, store
from cwbc.errors import InputError
from cwbc.trajectories import Trajectories


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    return tmp_path / "store"


def named(name: str = "mine") -> Trajectories:
    return logged([1, 2], [3.5], name=name)


def test_removing_a_dataset(place: Path) -> None:
    store.add(named("one/two"), "log.csv")
    store.add(named("one/other"), "log.csv")
    file = store.find("one/two")
    assert file is not None
    (place / "one" / "two" / ".data.part").write_bytes(b"12345")
    manifest = (place / "one" / "two" / "cwbc-manifest.json").stat().st_size
    removed = removal.remove("one/two")
    assert removed.bytes == file.bytes + manifest + 5
    assert (removed.folder, removed.others) == (place / "one" / "two", ())
    assert sorted(os.listdir(place / "one")) == ["other"]
    assert store.names() == ["one/other"]
    removal.remove("one/other")
    assert os.listdir(place) == []


def test_removing_keeps_the_files_of_others(place: Path) -> None:
    store.add(named(), "log.csv")
    precious = place / "mine" / "precious.hdf5"
    precious.write_bytes(b"precious")
    removed = removal.remove("mine")
    assert removed.others == ("precious.hdf5",)
    assert sorted(os.listdir(place / "mine")) == [".lock", "precious.hdf5"]
    assert precious.read_bytes() == b"precious"
    assert store.names() == []


def test_removing_what_is_not_there_or_not_readable(place: Path) -> None:
    store.add(named(), "log.csv")
    with pytest.raises(InputError, match="the store holds no dataset 'mien'; did you mean 'mine'"):
        removal.remove("mien")
    with pytest.raises(InputError, match=r"the store holds no dataset '\.\./mine'"):
        removal.remove("../mine")
    (place / "mine" / "cwbc-manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"which files are its own is not known: delete .*mine yourself"):
        removal.remove("mine")
    assert len(list((place / "mine").glob("*.hdf5"))) == 1


def test_a_dataset_that_another_process_writes_is_not_removed(place: Path) -> None:
    store.add(named(), "log.csv")
    with store.place("mine", overwrite=True), pytest.raises(InputError, match="another process is writing"):
        removal.remove("mine")
    assert load("mine").steps == 3
