"""Images that exceed the memory: mapped from a raw file, and never in memory as a whole."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from command_line import run
from toys import toy_data

import cwbc
from cwbc.core import training_loop, trajectories
from cwbc.core.regularizers import Conservative
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByReturn
from cwbc.data import load, statistics, store, unpacked
from cwbc.data.checks import Recording
from cwbc.data.formats import hdf5
from cwbc.data.issues import Origin
from cwbc.data.statistics import DatasetStatistics
from cwbc.system.errors import InputError

EPISODES, LENGTH, SIDE = 128, 32, 64
SIZE = EPISODES * LENGTH * SIDE * SIDE  # bytes of the images: 16 MiB
MEMORY = SIZE // 4
NAME = "frames"
SMALL: dict[str, Any] = {
    "seeds": 1,
    "steps": 20,
    "batch_size": 4,
    "context": 3,
    "frame_stack": 2,
    "width": 16,
}
SMALL |= {"preset": "small", "channels": (2,), "kernels": (8,), "strides": (8,), "holdout": 0.2}


@pytest.fixture(scope="module")
def data() -> Trajectories:
    random = np.random.default_rng(0)
    rows, lengths = EPISODES * LENGTH, np.full(EPISODES, LENGTH)
    images = np.zeros((rows, SIDE, SIDE, 1), np.uint8)
    images[:, :4] = random.integers(0, 256, (rows, 4, SIDE, 1), np.uint8)
    return Trajectories(
        name=NAME,
        observations=images,
        actions=random.integers(0, 3, rows, np.int32),
        rewards=random.integers(0, 2, rows).astype(np.float32),
        starts=np.cumsum(lengths) - LENGTH,
        lengths=lengths,
        terminated=np.ones(EPISODES, bool),
        action_count=3,
    )


@pytest.fixture(scope="module")
def stored(data: Trajectories, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the data, in chunks that are small beside the memory."""
    root = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(store.VARIABLE, str(root))
        patch.setattr(hdf5, "_CHUNK", 1 << 16)
        store.add(data, "memory")
    return root


@pytest.fixture(autouse=True)
def place(stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that store, and little memory; work is done in blocks that are small beside it."""
    root = tmp_path / "store"
    shutil.copytree(stored, root)
    monkeypatch.setenv(store.VARIABLE, str(root))
    monkeypatch.setattr(unpacked, "host_memory", lambda: MEMORY)
    monkeypatch.setattr(trajectories, "_IMAGES", 1 << 17)
    monkeypatch.setattr(statistics, "_CELLS", 1 << 14)
    monkeypatch.setattr(training_loop, "chunk_length", lambda *_: 10)
    return root / NAME


def raw_file(place: Path) -> Path:
    (found,) = place.glob("*.images")
    return found


def peak(work: Callable[[], Any]) -> int:
    """The most bytes that were allocated at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_exceeds_half_of_the_memory_is_mapped(
    data: Trajectories, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped = load(NAME)
    assert mapped.is_mapped
    assert mapped.content_hash == data.content_hash
    assert raw_file(place).read_bytes() == data.observations.tobytes()
    monkeypatch.setattr(unpacked, "host_memory", lambda: 2 * SIZE)
    assert not load(NAME).is_mapped
    assert load(NAME, on_disk=True).is_mapped
    monkeypatch.setattr(unpacked, "host_memory", lambda: 2 * SIZE - 1)
    assert load(NAME).is_mapped
    assert not load(NAME, on_disk=False).is_mapped


def test_never_are_all_images_in_memory() -> None:
    assert peak(lambda: load(NAME, on_disk=False)) > SIZE
    assert peak(lambda: load(NAME)) < MEMORY  # which writes the raw file
    assert peak(lambda: load(NAME)) < MEMORY
    mapped = load(NAME)
    recording = Recording(mapped, Origin(NAME))
    assert peak(lambda: [recording.errors(), recording.warnings()]) < MEMORY
    assert peak(lambda: DatasetStatistics.of(mapped, ByReturn(), Conservative())) < MEMORY
    assert peak(lambda: store.add(mapped.described(name="again"), "copy")) < MEMORY
    cwbc.train(NAME, "rvs", **SMALL)  # which compiles
    assert peak(lambda: cwbc.train(NAME, "rvs", **SMALL)) < MEMORY


def test_training_from_disk_gives_the_same_bits(
    data: Trajectories, capsys: pytest.CaptureFixture[str]
) -> None:
    from_disk = cwbc.train(NAME, "rvs+cwbc", **SMALL)
    on_device = cwbc.train(data, "rvs+cwbc", data_on="device", **SMALL)
    jax.tree.map(np.testing.assert_array_equal, from_disk.parameters, on_device.parameters)


def test_a_damaged_raw_file_is_written_again(data: Trajectories, place: Path) -> None:
    load(NAME)
    path = raw_file(place)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert load(NAME).content_hash == data.content_hash
    path.write_bytes(whole[:1000])  # as no process of ours leaves it
    assert load(NAME).content_hash == data.content_hash
    assert path.read_bytes() == whole


def test_a_damaged_dataset_is_refused(place: Path) -> None:
    (path,) = place.glob("*.hdf5")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"dataset frames is damaged: .*--overwrite"):
        load(NAME)
    assert not list(place.glob(".data*"))


def test_without_disk_space_nothing_is_left(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(place)._replace(free=SIZE - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match=r"16\.8 MB are needed to stream from disk, 16\.8 MB are free"):
        load(NAME)
    assert not list(place.glob("*images*"))


def test_the_raw_file_is_the_datasets(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = store.find(NAME)
    assert entry is not None
    load(NAME)
    assert run("data", "list", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)["here"]
    assert listed["disk_space"] == entry.bytes + SIZE
    store.add(load(NAME), "again", overwrite=True)
    assert raw_file(place).stat().st_size == SIZE  # the same data has the same file
    other = toy_data()
    store.add(other.described(name=NAME), "other", overwrite=True)
    assert not list(place.glob("*.images"))


def test_removing_a_dataset_removes_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mapped, entry = load(NAME), store.find(NAME)
    assert entry is not None
    assert run("data", "remove", NAME) == 0
    manifest = 2000
    freed = int(capsys.readouterr().err.split("removed frames: ")[1].split(" bytes")[0].replace(",", ""))
    assert SIZE + entry.bytes < freed < SIZE + entry.bytes + manifest
    assert not place.exists()
    assert mapped.observations[0].any()  # what is open stays readable


def test_the_command_line_says_where_the_images_are(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = ["--device=cpu", "--preset=small", "--seeds=1", "--steps=20", "--batch-size=4", "--context=3"]
    tiny += ["--frame-stack=2", "--width=16", "--channels=2", "--kernels=8", "--strides=8", "--holdout=0.2"]
    assert run("train", NAME, "rvs", *tiny, "--out", tmp_path / "out") == 0
    said = capsys.readouterr().err
    assert f"data streamed from disk, 16.8 MB in {raw_file(place)}, which `cwbc data remove frames`" in said
    assert "(its 0.0168 GB are more than half of the memory that this process may use)" in said
    assert run("train", NAME, "rvs", *tiny, "--data-on=disk", "--out", tmp_path / "out") == 0
    assert "removes too (as given)" in capsys.readouterr().err


def test_only_images_of_the_store_are_streamed_from_disk(
    data: Trajectories, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hdf5.write(tmp_path / "file.hdf5", data)
    store.add(toy_data().described(name="vectors"), "memory")
    text = "is not on disk: only images of the store are streamed from there; `cwbc data import`"
    for dataset, name in ((data, "frames"), (tmp_path / "file.hdf5", "file"), ("vectors", "vectors")):
        with pytest.raises(InputError, match=f"{name} {text}"):
            cwbc.train(dataset, "rvs", data_on="disk", **SMALL)
    assert run("compare", "vectors", "rvs", "--data-on=disk", "--device=cpu", "--out", tmp_path / "out") == 2
    assert f"vectors {text}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
