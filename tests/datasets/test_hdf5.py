"""Files in D4RL's layout: what is read, and how each broken file is told."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from conftest import d4rl_arrays, write_d4rl

from cwbc.datasets import load
from cwbc.errors import InputError
from cwbc.trajectories import from_flat


def refused(path: Path, *parts: str) -> None:
    """Reading fails with an error that names the file and then the parts, in this order."""
    with pytest.raises(InputError, match=".*".join(map(re.escape, (str(path), *parts)))):
        load(path)


def test_a_file_reads_as_its_arrays(tmp_path: Path) -> None:
    data = load(write_d4rl(tmp_path / "mine.hdf5"))
    assert data.name == "mine"
    assert data.content_hash == from_flat("", **d4rl_arrays()).content_hash
    assert (data.environment, data.time_limit, data.horizon) == (None, None, 3)
    assert load(str(tmp_path / "mine.hdf5")).content_hash == data.content_hash


@pytest.mark.parametrize(
    "changes",
    [
        {key: array.astype(np.float64) for key, array in d4rl_arrays().items()},
        {key: array.astype(">f8") for key, array in d4rl_arrays().items()},
        {key: d4rl_arrays()[key].astype(np.uint8) for key in ("terminals", "timeouts")},
        {key: d4rl_arrays()[key].astype(np.float32)[:, None] for key in ("terminals", "timeouts", "rewards")},
        {"metadata/algorithm": "SAC", "infos/qpos": np.zeros((2, 2)), "next_observations": np.zeros(1)},
    ],
    ids=["float64", "big-endian", "uint8 flags", "columns", "extra keys"],
)
def test_other_ways_to_store_the_same(tmp_path: Path, changes: dict[str, Any]) -> None:
    data = load(write_d4rl(tmp_path / "mine.hdf5", **changes))
    assert data.content_hash == from_flat("", **d4rl_arrays()).content_hash
    assert data.observations.dtype == data.actions.dtype == data.rewards.dtype == np.float32


def test_integer_actions_are_discrete(tmp_path: Path) -> None:
    actions = np.array([0, 4, 1, 0, 2, 2], np.int64)
    data = load(write_d4rl(tmp_path / "mine.hdf5", actions=actions))
    assert (data.discrete, data.action_size) == (True, 5)
    assert data.actions.tolist() == actions.tolist()


def test_a_trailing_episode_is_counted(tmp_path: Path) -> None:
    data = load(write_d4rl(tmp_path / "mine.hdf5", terminals=np.array([0, 0, 1, 0, 0, 0])))
    assert (data.lengths.tolist(), data.unfinished_steps) == ([3, 1], 2)


@pytest.mark.parametrize(
    ("name", "written", "asked", "environment"),
    [
        ("hopper_medium-v2", None, None, "Hopper-v4"),
        ("walker2d-medium-expert-v2", None, None, "Walker2d-v4"),
        ("HalfCheetah-mine", None, None, "HalfCheetah-v4"),
        ("halfcheetah", None, None, "HalfCheetah-v4"),
        ("mine", None, None, None),
        ("hopper-medium", "Walker2d-v5", None, "Walker2d-v5"),
        ("hopper-medium", np.bytes_("Walker2d-v5"), None, "Walker2d-v5"),
        ("hopper-medium", "Unheard-v0", None, "Unheard-v0"),
        ("hopper-medium", np.bytes_(b"\xff"), None, "Hopper-v4"),
        ("hopper-medium", "Walker2d-v5", "CartPole-v1", "CartPole-v1"),
        ("mine", None, "Unheard-v0", "Unheard-v0"),
    ],
)
def test_the_environment_is_asked_written_or_named(
    tmp_path: Path, name: str, written: str | bytes | None, asked: str | None, environment: str | None
) -> None:
    data = load(write_d4rl(tmp_path / f"{name}.hdf5", env=written), asked)
    limits = {"CartPole-v1": 500, "Unheard-v0": None, None: None}
    assert (data.environment, data.time_limit) == (environment, limits.get(environment, 1000))


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        (
            {"timeouts": None},
            ["missing 'timeouts'; found ['actions', 'observations', 'rewards', 'terminals'],"],
        ),
        (
            {"actions": None, "rewards": None},
            ["missing 'actions', 'rewards'", "expected one array each for obs"],
        ),
        ({"actions": None, "actions/inner": np.zeros(6)}, ["missing 'actions'", "expected one array each"]),
        ({"observations": np.zeros((5, 3))}, ["'observations' has 5 rows, 'rewards' has 6"]),
        ({"timeouts": np.zeros(7, bool)}, ["'timeouts' has 7 rows, 'rewards' has 6"]),
        ({"terminals": np.array(True)}, ["'terminals' has 0 rows, 'rewards' has 6"]),
        ({"rewards": np.zeros(0)}, ["'rewards' has no rows"]),
        ({"rewards": np.array(1.0)}, ["'rewards' has no rows"]),
        ({"observations": np.zeros(6)}, ["'observations' has shape (6,); expected [step, dimension]"]),
        ({"observations": np.zeros((6, 2, 2))}, ["'observations' has shape (6, 2, 2); expected [step, dim"]),
        ({"actions": np.zeros(6)}, ["'actions' has shape (6,); expected [step, dimension] for real actions"]),
        (
            {"actions": np.zeros((6, 1), int)},
            ["'actions' has shape (6, 1); expected [step] for integer actions"],
        ),
        ({"rewards": np.zeros((6, 2))}, ["'rewards' has shape (6, 2); expected one value per step"]),
        ({"terminals": np.zeros((6, 3))}, ["'terminals' has shape (6, 3); expected one value per step"]),
        ({"rewards": np.array([b"one"] * 6)}, ["'rewards' holds |S3; expected numbers"]),
        ({"rewards": ["one"] * 6}, ["'rewards' holds object; expected numbers"]),
        ({"observations": np.zeros((6, 3), complex)}, ["'observations' holds complex128; expected numbers"]),
    ],
)
def test_a_wrong_layout_is_told_by_file_key_and_remedy(
    tmp_path: Path, changes: dict[str, Any], parts: list[str]
) -> None:
    refused(write_d4rl(tmp_path / "mine.hdf5", **changes), *parts)


def test_bad_values_are_told_by_the_files_name(tmp_path: Path) -> None:
    rewards = np.array([0, 0, 0, 0, np.nan, 0])
    path = write_d4rl(tmp_path / "mine.hdf5", rewards=rewards)
    with pytest.raises(InputError, match=r"mine: rewards has the value nan at row 4 \(episode 2, step 0\)"):
        load(path)
    write_d4rl(path, observations=np.full((6, 3), 1e300))
    with pytest.raises(InputError, match=r"mine: observations has the value inf at row 0, column 0"):
        load(path)


def test_no_episode_end(tmp_path: Path) -> None:
    flags = np.zeros(6, bool)
    path = write_d4rl(tmp_path / "mine.hdf5", terminals=flags, timeouts=flags)
    with pytest.raises(
        InputError, match=r"mine: no episode end: 'terminals' and 'timeouts' are false in all 6"
    ):
        load(path)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "mine.hdf5").touch()
    refused(tmp_path / "mine.hdf5", "is empty; expected an HDF5 file with observations, actions, rewards,")


def test_an_hdf5_file_with_nothing_in_it(tmp_path: Path) -> None:
    h5py.File(tmp_path / "mine.hdf5", "w").close()
    refused(tmp_path / "mine.hdf5", "missing 'observations', 'actions', 'rewards'", "found []")


@pytest.mark.parametrize("kept", [1, 100, 3000, -1])
def test_a_truncated_file(tmp_path: Path, kept: int) -> None:
    path = write_d4rl(tmp_path / "mine.hdf5")
    path.write_bytes(path.read_bytes()[:kept])
    refused(path, "cannot be read as HDF5 (truncated, or another format)")


def test_a_file_of_another_format(tmp_path: Path) -> None:
    path = tmp_path / "mine.hdf5"
    path.write_text("observations,actions,rewards\n1,2,3\n")
    refused(path, "cannot be read as HDF5 (truncated, or another format)")


def test_a_damaged_chunk(tmp_path: Path) -> None:
    path = write_d4rl(tmp_path / "mine.hdf5", observations=None)
    with h5py.File(path, "a") as file:
        values = np.random.default_rng(0).normal(size=(6, 3))
        dataset = file.create_dataset("observations", data=values, compression="gzip")
        file.flush()
        chunk = dataset.id.get_chunk_info(0)
    assert load(path).steps == 6
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset + 2 : chunk.byte_offset + chunk.size] = b"\xff" * (chunk.size - 2)
    path.write_bytes(content)
    refused(path, "cannot be read as HDF5")


@pytest.mark.parametrize("signature", [b"SNOD", b"TREE", b"HEAP"])
def test_a_damaged_table_of_contents(tmp_path: Path, signature: bytes) -> None:
    path = write_d4rl(tmp_path / "mine.hdf5")
    content = path.read_bytes()
    assert signature in content
    path.write_bytes(content.replace(signature, b"XXXX"))
    refused(path)


def test_a_missing_file_is_told_its_neighbours(tmp_path: Path) -> None:
    for name in ("ant-1", "ant-2", "ant-3", "ant-4", "ant-5", "hopper-medium-v2"):
        write_d4rl(tmp_path / f"{name}.hdf5")
    refused_path = tmp_path / "hoper-medium-v2.hdf5"
    with pytest.raises(
        InputError, match=r"unknown dataset '.*hoper-.*': no such file; beside it: .*hopper-med"
    ):
        load(refused_path)
    with pytest.raises(InputError, match=r"unknown dataset 'nowhere/mine.hdf5': no such file$"):
        load("nowhere/mine.hdf5")


def test_a_folder_is_not_a_dataset(tmp_path: Path) -> None:
    refused(tmp_path, "is a folder; a dataset is an HDF5 file in D4RL's layout")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_million_steps_are_read_without_a_second_copy(tmp_path: Path, dtype: type) -> None:
    steps, ends = 1_000_000, np.zeros(1_000_000, bool)
    ends[999::1000] = True
    path = write_d4rl(
        tmp_path / "large.hdf5",
        observations=np.ones((steps, 17), dtype),
        actions=np.ones((steps, 6), dtype),
        rewards=np.ones(steps, dtype),
        terminals=np.zeros(steps, bool),
        timeouts=ends,
    )
    tracemalloc.start()
    data = load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    path.unlink()
    assert (data.episodes, data.steps, data.best) == (1000, steps, 1000.0)
    kept = data.observations.nbytes + data.actions.nbytes + data.rewards.nbytes
    assert kept < peak < 2 * kept
