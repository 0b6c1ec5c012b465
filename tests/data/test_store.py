"""Datasets kept under names: found again equal, or not at all."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import logged

from cwbc.core.trajectories import Trajectories
from cwbc.data import is_reserved, load, store
from cwbc.system.errors import InputError


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    return tmp_path / "store"


def mine(name: str = "mine", *rewards: float) -> Trajectories:
    data = logged([1, 2, *rewards], [3.5], name=name, environment="CartPole-v1", time_limit=77)
    return dataclasses.replace(
        data, observation_names=("row", "wave"), action_names=("push",), unfinished_steps=4
    )


def test_a_dataset_comes_back_as_it_was() -> None:
    data = mine("d4rl/mine/medium-v2")
    store.add(data, "log.csv")
    back = load("d4rl/mine/medium-v2")
    assert back.content_hash == data.content_hash
    for field in (
        "name",
        "environment",
        "time_limit",
        "unfinished_steps",
        "observation_names",
        "action_names",
    ):
        assert getattr(back, field) == getattr(data, field)
    assert back.terminated.tolist() == data.terminated.tolist()


def test_the_manifest_says_what_it_is(place: Path) -> None:
    store.add(mine(), "log.csv")
    manifest = json.loads((place / "mine" / "cwbc-manifest.json").read_text())
    assert manifest["source"] == "log.csv"
    assert manifest["content_hash"] == mine().content_hash
    assert (manifest["episodes"], manifest["steps"], manifest["environment"]) == (2, 3, "CartPole-v1")
    assert {"cwbc", "numpy", "h5py", "mujoco", "gymnasium"} == set(manifest["versions"])
    assert manifest["bytes"] == (place / "mine" / manifest["file"]).stat().st_size
    entry = store.find("mine")
    assert entry is not None
    assert (entry.name, entry.looks_whole()) == ("mine", True)


def test_discrete_actions_keep_their_count() -> None:
    data = logged([1, 2, 3], name="choices")
    actions = np.array([0, 2, 1], np.int32)
    store.add(dataclasses.replace(data, actions=actions, action_count=18), "somewhere")
    back = load("choices")
    assert (back.actions.tolist(), back.action_size) == ([0, 2, 1], 18)


def test_a_changed_byte_is_found_and_the_dataset_named(place: Path) -> None:
    entry = store.add(mine(), "log.csv")
    content = bytearray(entry.path.read_bytes())
    position = content.index(np.float32(3.5).tobytes())
    content[position + 3] ^= 1
    entry.path.write_bytes(content)
    assert entry.looks_whole()
    text = (
        r"dataset mine is damaged: .*\.hdf5 has the hash \w{12}, expected \w{12}; get it again from log.csv"
    )
    with pytest.raises(InputError, match=text):
        load("mine")


def test_a_truncated_or_missing_file_is_named() -> None:
    entry = store.add(mine(), "log.csv")
    entry.path.write_bytes(entry.path.read_bytes()[:500])
    assert not entry.looks_whole()
    with pytest.raises(InputError, match=r"dataset mine is damaged: .*cannot be read as HDF5"):
        load("mine")
    entry.path.unlink()
    assert not entry.looks_whole()
    with pytest.raises(InputError, match=r"dataset mine is damaged"):
        load("mine")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"name": "mine"}', "\x00\x01"])
def test_a_damaged_manifest_is_named(place: Path, text: str) -> None:
    store.add(mine(), "log.csv")
    (place / "mine" / "cwbc-manifest.json").write_text(text)
    with pytest.raises(InputError, match=r"dataset mine is damaged: .*cwbc-manifest.json cannot be read"):
        load("mine")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("environment", "Acrobot-v1"),
        ("file", "../other/x.hdf5"),
        ("steps", "5x"),
        ("format", 2),
        ("bytes", None),
    ],
)
def test_a_changed_manifest_is_named(place: Path, field: str, value: object) -> None:
    store.add(mine(), "log.csv")
    manifest = place / "mine" / "cwbc-manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {field: value}))
    with pytest.raises(
        InputError, match=r"dataset mine is damaged: .*(was changed after|another version of cwbc)"
    ):
        load("mine")
    store.add(mine(), "log.csv", overwrite=True)
    assert load("mine").steps == 3


HOLDING = """
import sys, time
from cwbc.data import store
with store.place("mine"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_processes_do_not_write_one_dataset(place: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDING], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match="another process is writing the dataset mine; wait for it"):
            store.add(mine(), "log.csv")
        store.add(mine("yours"), "log.csv")
        other.kill()
    store.add(mine(), "log.csv")  # a dead process holds nothing
    assert store.names() == ["mine", "yours"]


def test_a_full_disk_leaves_nothing_behind(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add(mine(), "log.csv")
    usage = shutil.disk_usage(place)._replace(free=5000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match=r"no room: 1,048,6.. bytes are needed, 5,000 are free"):
        store.add(mine("mine", 7.0), "other.csv", overwrite=True)
    assert load("mine").steps == 3
    assert not list((place / "mine").glob(".data*"))


def test_nothing_is_replaced_unasked(place: Path) -> None:
    store.add(mine(), "log.csv")
    with pytest.raises(InputError, match="there is a dataset mine already; --overwrite replaces it"):
        store.add(mine("mine", 7.0), "other.csv")
    assert load("mine").steps == 3
    store.add(mine("mine", 7.0), "other.csv", overwrite=True)
    assert load("mine").steps == 4
    assert len(list((place / "mine").glob("*.hdf5"))) == 1


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../x",
        "/x",
        "a//b",
        "a/../b",
        ".hidden",
        "a b",
        "ü",
        "a/",
        "a\n",
        "a" * 101,
        "x/cwbc-manifest.json",
    ],
)
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(InputError, match="is not a name for a dataset: it has up to 100 letters"):
        store.add(mine(name), "log.csv")


def test_names_of_other_datasets_are_reserved() -> None:
    for name in ("d4rl", "cwbc", "d4rl/hopper", "hopper-medium-v2", "cwbc/hopper/medium-v0"):
        assert is_reserved(name)
    assert not is_reserved("mine")
    assert not is_reserved("d4rl/mine")


def test_datasets_do_not_lie_in_each_other() -> None:
    store.add(mine("one/two"), "log.csv")
    with pytest.raises(InputError, match="one/two is a dataset; one/two/three cannot be below it"):
        store.add(mine("one/two/three"), "log.csv")
    with pytest.raises(InputError, match="one/two is a dataset; one cannot be above it"):
        store.add(mine("one"), "log.csv")
    store.add(mine("one/other"), "log.csv")
    assert store.names() == ["one/other", "one/two"]


def test_the_place_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert store.root() == tmp_path / "store"
    monkeypatch.delenv("CWBC_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert store.root() == tmp_path / "cache" / "cwbc" / "datasets"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert store.root() == Path.home() / ".cache" / "cwbc" / "datasets"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert store.root() == Path.home() / "Library" / "Caches" / "cwbc" / "datasets"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert store.root() == tmp_path / "local" / "cwbc" / "datasets"


def test_a_place_that_cannot_be_is_told_with_what_moves_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "file"))
    with pytest.raises(InputError, match="Not a directory; the variable CWBC_DATA names another folder"):
        store.add(mine(), "log.csv")


KILLED = """
import os, signal, sys
from cwbc.data import store, load
sys.path.insert(0, sys.argv[1])
from test_store import mine
real = os.replace
calls = []
def replace(*arguments):
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    calls.append(arguments)
    real(*arguments)
os.replace = replace
store.add(mine("mine", 7.0), "other.csv", overwrite=True)
"""


@pytest.mark.parametrize("moment", [0, 1])
def test_a_kill_while_replacing_leaves_the_old_one(moment: int) -> None:
    store.add(mine(), "log.csv")
    here = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), str(here.parent), *sys.path])}
    ended = subprocess.run([sys.executable, "-c", KILLED, here, str(moment)], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert load("mine").steps == 3
    store.add(mine("mine", 7.0), "other.csv", overwrite=True)
    assert load("mine").steps == 4


# What the store may remove


def beside(folder: Path) -> Path:
    """Somebody's own file in a folder of the store."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "precious.hdf5").write_bytes(b"precious")
    return folder / "precious.hdf5"


@pytest.mark.parametrize("linked", [False, True])
def test_a_folder_of_other_files_is_refused_and_left_alone(place: Path, tmp_path: Path, linked: bool) -> None:
    precious = beside(tmp_path / "own" if linked else place / "mine")
    if linked:
        place.mkdir()
        (place / "mine").symlink_to(tmp_path / "own")
    for overwrite in (False, True):
        with pytest.raises(
            InputError, match=r"mine has files that are not the store's \(precious.hdf5\); choose another"
        ):
            store.add(mine(), "log.csv", overwrite)
    assert os.listdir(precious.parent) == ["precious.hdf5"]


def test_replacing_removes_the_file_that_the_manifest_names_and_no_other(place: Path) -> None:
    old = store.add(mine(), "log.csv").path
    precious = beside(place / "mine")
    new = store.add(mine("mine", 7.0), "other.csv", overwrite=True).path
    assert (old.exists(), new.exists(), precious.read_bytes()) == (False, True, b"precious")


def test_what_a_kill_left_does_not_close_a_place(place: Path) -> None:
    store.add(mine(), "log.csv")
    (place / "mine" / "cwbc-manifest.json").unlink()
    (place / "mine" / ".data.part").touch()
    store.add(mine("mine", 7.0), "other.csv")
    assert load("mine").steps == 4


def test_a_link_in_the_way_is_not_written_through(place: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (place / "mine").mkdir(parents=True)
    (place / "mine" / ".data.tmp").symlink_to(victim)
    store.add(mine(), "log.csv")
    assert (victim.read_text(), load("mine").steps) == ("precious", 3)


def test_folders_whose_names_no_dataset_can_have_are_not_listed(place: Path) -> None:
    store.add(mine(), "log.csv")
    shutil.copytree(place / "mine", place / "\x1b[31mred")
    assert store.names() == ["mine"]


# Removal


def named(name: str = "mine") -> Trajectories:
    return logged([1, 2], [3.5], name=name)


def test_removing_a_dataset(place: Path) -> None:
    store.add(named("one/two"), "log.csv")
    store.add(named("one/other"), "log.csv")
    file = store.find("one/two")
    assert file is not None
    (place / "one" / "two" / ".data.part").write_bytes(b"12345")
    manifest = (place / "one" / "two" / "cwbc-manifest.json").stat().st_size
    assert store.remove("one/two") == (file.bytes + manifest + 5, [])
    assert sorted(os.listdir(place / "one")) == ["other"]
    assert store.names() == ["one/other"]
    store.remove("one/other")
    assert os.listdir(place) == []


def test_removing_keeps_the_files_of_others(place: Path) -> None:
    store.add(named(), "log.csv")
    precious = place / "mine" / "precious.hdf5"
    precious.write_bytes(b"precious")
    _, others = store.remove("mine")
    assert others == ["precious.hdf5"]
    assert sorted(os.listdir(place / "mine")) == [".lock", "precious.hdf5"]
    assert precious.read_bytes() == b"precious"
    assert store.names() == []


def test_removing_what_is_not_there_or_not_readable(place: Path) -> None:
    store.add(named(), "log.csv")
    with pytest.raises(InputError, match="the store has no dataset 'mien'; did you mean 'mine'"):
        store.remove("mien")
    with pytest.raises(InputError, match=r"the store has no dataset '\.\./mine'"):
        store.remove("../mine")
    (place / "mine" / "cwbc-manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"its files are not known: delete .*mine yourself"):
        store.remove("mine")
    assert len(list((place / "mine").glob("*.hdf5"))) == 1


def test_a_dataset_that_another_process_writes_is_not_removed(place: Path) -> None:
    store.add(named(), "log.csv")
    with store.place("mine", overwrite=True), pytest.raises(InputError, match="another process is writing"):
        store.remove("mine")
    assert load("mine").steps == 3
