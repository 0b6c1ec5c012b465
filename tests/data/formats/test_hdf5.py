"""Files in D4RL's layout: what is read, and the error of each broken file."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from conftest import d4rl_arrays, write_d4rl

from cwbc.data import load, store
from cwbc.data.formats import hdf5
from cwbc.data.formats.arrays import from_arrays
from cwbc.system.errors import InputError


def refused(path: Path, *parts: str) -> None:
    """Reading fails with an error that names the file and then the parts, in this order."""
    with pytest.raises(InputError, match=".*".join(map(re.escape, (str(path), *parts)))):
        load(path)


def test_a_file_reads_as_its_arrays(tmp_path: Path) -> None:
    data = load(write_d4rl(tmp_path / "mine.hdf5"))
    assert data.name == "mine"
    assert data.content_hash == from_arrays("", **d4rl_arrays()).content_hash
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
    assert data.content_hash == from_arrays("", **d4rl_arrays()).content_hash
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
    ("name", "written", "wanted", "environment"),
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
        ("hopper-medium", "antigravity:Flying-v0", None, "Hopper-v4"),
        ("hopper-medium", "Walker2d-v5", "CartPole-v1", "CartPole-v1"),
        ("mine", None, "Unheard-v0", "Unheard-v0"),
        ("hopper-medium", "Walker2d-v5", "none", None),
    ],
)
def test_the_environment_is_asked_written_or_named(
    tmp_path: Path, name: str, written: str | bytes | None, wanted: str | None, environment: str | None
) -> None:
    sizes = (17, 6) if name.lower().startswith(("walker2d", "halfcheetah")) else (11, 3)
    changes = {"observations": np.zeros((6, sizes[0])), "actions": np.zeros((6, sizes[1]))}
    data = load(write_d4rl(tmp_path / f"{name}.hdf5", env=written, **changes), wanted)
    limits = {"CartPole-v1": 500, "Unheard-v0": None, None: None}
    assert (data.environment, data.time_limit) == (environment, limits.get(environment, 1000))


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"timeouts": None}, ["terminals alone does not mark the end of every episode", "--done terminals"]),
        ({"terminals": None}, ["timeouts alone does not mark the end of every episode", "(--terminated)"]),
        ({"terminals": None, "timeouts": None}, ["no column separates the episodes; give the column"]),
        (
            {"actions": None, "rewards": None},
            [
                "no column for actions (looked for action, actions, act, acts or action_*; it has obs",
                "1 more",
            ],
        ),
        ({"actions": None, "actions/inner": np.zeros(6)}, ["no column for actions", "--actions"]),
        ({"observations": np.zeros((5, 3))}, ["observations holds an array of shape (5, 3)", "6 rows"]),
        ({"timeouts": np.zeros(7, bool)}, ["timeouts holds an array of shape (7,), where there are 6 rows"]),
        ({"terminals": np.array(True)}, ["terminals holds an array of shape ()", "true or false per row"]),
        ({"rewards": np.zeros(0)}, ["there are no rows; give one row per step"]),
        ({"rewards": np.array(1.0)}, ["rewards holds an array of shape ()"]),
        (
            {"observations": np.zeros((6, 2, 2))},
            ["observations holds an array of shape (6, 2, 2); images are uint8"],
        ),
        ({"actions": np.zeros((6, 2), int)}, ["actions are several integers per step", "continuous"]),
        (
            {"rewards": np.zeros((6, 2))},
            ["rewards holds lists of 2 values (float64); expected one number per"],
        ),
        (
            {"terminals": np.zeros((6, 3))},
            ["terminals holds lists of 3 values (float64); expected true or"],
        ),
        (
            {"terminals": np.full(6, 2)},
            ["terminals is neither true nor false: 2 at row 0 and 5 more; expected"],
        ),
        ({"rewards": np.array([b"one"] * 6)}, ["rewards holds |S3: ", "expected one number per row"]),
        ({"rewards": ["one"] * 6}, ["rewards holds object; expected one number per row"]),
        (
            {"observations": np.zeros((6, 3), complex)},
            ["observations holds lists of 3 values (complex128); expected"],
        ),
    ],
)
def test_a_wrong_layout_is_told_by_file_key_and_remedy(
    tmp_path: Path, changes: dict[str, Any], parts: list[str]
) -> None:
    refused(write_d4rl(tmp_path / "mine.hdf5", **changes), *parts)


def test_bad_values_are_told_by_the_file_and_the_place(tmp_path: Path) -> None:
    path = write_d4rl(tmp_path / "mine.hdf5", rewards=np.array([0, 0, 0, 0, np.nan, 0]))
    refused(path, "rewards is not finite: nan at row 4 (episode 2, step 0)")
    write_d4rl(path, observations=np.full((6, 3), 1e300))
    refused(path, "observations[0] is not finite: inf at row 0 (episode 0, step 0) and 5 more", "(and 2 more")


def test_no_episode_end(tmp_path: Path) -> None:
    flags = np.zeros(6, bool)
    path = write_d4rl(tmp_path / "mine.hdf5", terminals=flags, timeouts=flags)
    refused(path, "no episode end: terminals and timeouts are false in all 6 rows; mark each episode's last")


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "mine.hdf5").touch()
    refused(tmp_path / "mine.hdf5", "is empty; expected one row per step")


def test_an_hdf5_file_with_nothing_in_it(tmp_path: Path) -> None:
    h5py.File(tmp_path / "mine.hdf5", "w").close()
    refused(tmp_path / "mine.hdf5", "there are no rows")


def test_one_real_action_may_be_a_plain_column(tmp_path: Path) -> None:
    data = load(write_d4rl(tmp_path / "mine.hdf5", actions=np.linspace(-1, 1, 6)))
    assert (data.discrete, data.actions.shape) == (False, (6, 1))


def test_episodes_may_be_named_by_a_column(tmp_path: Path) -> None:
    path = write_d4rl(tmp_path / "mine.hdf5", terminals=None, timeouts=None, episode=[7, 3, 7, 3, 3, 7])
    data = load(path)
    assert data.lengths.tolist() == [3, 3]
    assert data.returns.tolist() == [2 + 10 - 1, 1 + 3 + 0.5]


def test_what_is_written_reads_back_equal(tmp_path: Path) -> None:
    data = load(write_d4rl(tmp_path / "mine.hdf5", env="Hopper-v4"))
    hdf5.write(tmp_path / "again.hdf5", data)
    again = load(tmp_path / "again.hdf5")
    assert (again.content_hash, again.environment) == (data.content_hash, "Hopper-v4")


@pytest.mark.parametrize("kept", [1, 100, 3000, -1])
def test_a_truncated_file(tmp_path: Path, kept: int) -> None:
    path = write_d4rl(tmp_path / "mine.hdf5")
    path.write_bytes(path.read_bytes()[:kept])
    refused(path, "cannot be read as HDF5 (truncated, damaged, or another format)")


def test_a_file_of_another_format(tmp_path: Path) -> None:
    path = tmp_path / "mine.hdf5"
    path.write_text("observations,actions,rewards\n1,2,3\n")
    refused(path, "cannot be read as HDF5 (truncated, damaged, or another format)")


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


@pytest.mark.parametrize("kind", [None, h5py.string_dtype("ascii"), h5py.string_dtype("utf-8")])
@pytest.mark.parametrize("value", [b"\xff\xfe\x80", b"Hopper-v4\xff", b"a\x1b[31m"])
def test_an_environment_that_is_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, value: bytes
) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    path = write_d4rl(tmp_path / "mine.hdf5")
    with h5py.File(path, "a") as file:
        file.attrs.create("env", np.bytes_(value) if kind is None else value, dtype=kind)
        file["env"] = np.bytes_(value)
    data = load(path)
    assert data.environment is None
    store.add(data, str(path))
    assert load("mine").content_hash == data.content_hash


def test_groups_within_groups_are_not_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_d4rl(tmp_path / "mine.hdf5")
    with h5py.File(path, "a") as file:
        group = file
        for _ in range(2000):
            group = group.create_group("g")
    monkeypatch.setattr(h5py.h5o, "visit", lambda *_, **__: pytest.fail("it looks at all of them"))
    assert load(path).steps == 6


def test_writing_replaces_a_link_and_leaves_its_file(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "data.hdf5").symlink_to(tmp_path / "victim")
    hdf5.write(tmp_path / "data.hdf5", load(write_d4rl(tmp_path / "mine.hdf5")))
    assert (tmp_path / "victim").read_text() == "precious"
    assert load(tmp_path / "data.hdf5").episodes == 3
