"""Google's DQN-replay files: episodes cut at terminals, the checkpoints that are chosen, damaged files."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run
from numpy.typing import NDArray

from cwbc.data import load, read
from cwbc.data.dqn_replay import ReplayOptions
from cwbc.data.formats import dqn_replay, protection
from cwbc.data.formats.columns import ColumnOptions
from cwbc.data.issues import DataError
from cwbc.system.errors import InputError

STEPS = 10
FRAMES = np.random.default_rng(0).integers(0, 256, (3, STEPS, 6, 5), np.uint8)  # [checkpoint, step, ...]
ENDS = ([3, 9], [4], [2, 6])  # of the checkpoints 0, 1 and 12
NUMBERS = (0, 1, 12)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    return tmp_path


def name(part: str, number: int = 0) -> str:
    return f"$store$_{part}_ckpt.{number}.gz"


def packed(array: NDArray[Any]) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return gzip.compress(content.getvalue())


def arrays(place: int) -> dict[str, NDArray[Any]]:
    return {
        "observation": FRAMES[place],
        "action": np.arange(STEPS, dtype=np.int32) % 4,
        "reward": (np.arange(STEPS) % 3 - 1).astype(np.float32),
        "terminal": np.isin(np.arange(STEPS), ENDS[place]).astype(np.uint8),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three checkpoints, and files that Dopamine writes beside them."""
    path = tmp_path / "replay_logs"
    path.mkdir()
    for place, number in enumerate(NUMBERS):
        for part, array in arrays(place).items():
            (path / name(part, number)).write_bytes(packed(array))
        (path / f"add_count_ckpt.{number}.gz").write_bytes(packed(np.array(STEPS)))
    return path


def refused(folder: Path, text: str, **options: Any) -> None:
    with pytest.raises(InputError, match=re.escape(text)):
        read(folder, options=ReplayOptions(**options)).trusted()


def test_episodes_are_cut_at_the_terminals_of_each_checkpoint(folder: Path) -> None:
    recording = read(folder)
    data = recording.trusted()
    assert data.name == "replay_logs"
    assert data.lengths.tolist() == [4, 6, 5, 3, 4]
    assert data.terminated.all()
    frames = np.concatenate([FRAMES[0], FRAMES[1, :5], FRAMES[2, :7]])[..., None]
    np.testing.assert_array_equal(data.observations, frames)
    columns = {part: [arrays(0)[part][:count] for count in (10, 5, 7)] for part in ("action", "reward")}
    np.testing.assert_array_equal(data.actions, np.concatenate(columns["action"]))
    np.testing.assert_array_equal(data.rewards, np.concatenate(columns["reward"]))
    assert data.unfinished_steps == 5 + 3
    (warning,) = recording.warnings()
    assert warning.sentence() == (
        "the last 8 steps of checkpoints 1, 12 are episodes without an end; they are excluded"
    )


def test_rewards_are_known_to_be_clipped_unless_they_are_not(folder: Path) -> None:
    assert load(folder).clipped_rewards
    (folder / name("reward", 1)).write_bytes(packed(np.full(STEPS, 25.0)))
    assert not load(folder).clipped_rewards


@pytest.mark.parametrize(
    ("options", "lengths"),
    [
        ({"checkpoints": "12"}, [3, 4]),
        ({"checkpoints": "0-1, 12"}, [4, 6, 5, 3, 4]),
        ({"checkpoint_steps": 5}, [4, 5, 3]),
        ({"checkpoint_steps": 1000}, [4, 6, 5, 3, 4]),
        ({"checkpoints": "1,12", "checkpoint_steps": 4}, [3]),
    ],
)
def test_checkpoints_and_their_steps_are_chosen(
    folder: Path, options: dict[str, Any], lengths: list[int]
) -> None:
    assert read(folder, options=ReplayOptions(**options)).data.lengths.tolist() == lengths


def test_steps_that_are_not_chosen_are_not_read(folder: Path) -> None:
    path = folder / name("observation", 12)
    noise = np.random.default_rng(1).integers(0, 256, (STEPS, 400, 500), np.uint8)  # beyond any buffer
    path.write_bytes(packed(noise)[:-100_000])
    part = ReplayOptions("12", 3)
    np.testing.assert_array_equal(read(folder, options=part).data.observations[..., 0], noise[:3])
    refused(folder, f"{path} cannot be read as a gzip-compressed NumPy array (truncated", checkpoints="12")


def test_it_is_imported_and_trained_on_by_its_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("data", "check", folder) == 0
    assert "5 episodes, 22 steps; can be used, 1 warning" in capsys.readouterr().out
    options = ("--format=dqn-replay", "--checkpoints=0-1", "--checkpoint-steps=10")
    assert run("data", "import", folder, "--name=game", "--env=none", *options) == 0
    assert load("game").content_hash == read(folder, options=ReplayOptions("0,1")).data.content_hash
    assert load(folder).steps == 22


def test_a_value_is_located_in_its_checkpoint(folder: Path) -> None:
    rewards = arrays(2)["reward"]
    rewards[4] = np.nan
    (folder / name("reward", 12)).write_bytes(packed(rewards))
    text = "rewards is not finite: nan at row 4 (episode 1 of checkpoint 12, step 1)"
    with pytest.raises(DataError, match=re.escape(text)):
        load(folder)


@pytest.mark.parametrize(
    ("part", "array", "text"),
    [
        (
            "observation",
            FRAMES[0] / np.float32(255),
            "float32 of shape (10, 6, 5); expected uint8 [step, height, width]",
        ),
        ("observation", FRAMES[0].reshape(STEPS, -1), "uint8 of shape (10, 30); expected uint8 [step, hei"),
        ("observation", FRAMES[0][..., None], "uint8 of shape (10, 6, 5, 1); expected uint8 [step, height"),
        ("observation", np.asfortranarray(FRAMES[0]), "uint8 of shape (10, 6, 5) in Fortran order; expected"),
        ("observation", FRAMES[0][:0], "uint8 of shape (0, 6, 5); expected uint8 [step, height, width]"),
        ("action", np.zeros(STEPS), "float64 of shape (10,); expected integers [step]"),
        ("reward", np.zeros((STEPS, 1)), "float64 of shape (10, 1); expected numbers [step]"),
        ("reward", np.array([None] * STEPS), "object of shape (10,); expected numbers [step]"),
        ("terminal", np.zeros(STEPS, np.float32), "float32 of shape (10,); expected 0 or 1 [step]"),
        ("terminal", np.full(STEPS, 2, np.uint8), "2 at step 0; expected 0, or 1 at last steps"),
    ],
)
def test_arrays_of_another_kind_are_refused(folder: Path, part: str, array: NDArray[Any], text: str) -> None:
    (folder / name(part)).write_bytes(packed(array))
    refused(folder, f"{folder / name(part)} holds {text}")


def test_files_that_do_not_belong_together_are_refused(folder: Path) -> None:
    (folder / name("reward")).write_bytes(packed(np.zeros(STEPS - 1, np.float32)))
    refused(folder, f"{name('reward')} has 9 steps, but {name('observation')} has 10")
    (folder / name("observation", 12)).write_bytes(packed(FRAMES[2][:, :4]))
    text = (
        f"{name('observation', 12)} has images of 4 x 5 pixels, but {name('observation', 1)} of 6 x 5; choose"
    )
    refused(folder, text, checkpoints="1,12")
    (folder / name("reward")).unlink()
    refused(folder, f"{folder} lacks {name('reward')}, but has {name('observation')}, {name('action')}")


def test_what_is_not_there(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(folder, f"{folder} does not have all of the checkpoints 1-3; it has 0, 1, 12", checkpoints="1-3")
    refused(folder, "--checkpoints takes numbers such as 0,4,10-19; got 'last'", checkpoints="last")
    refused(folder, "no episode ends in the steps that are read", checkpoint_steps=1)
    refused(tmp_path, "is a folder with neither Parquet files nor a Minari dataset in it, nor DQN")
    np.savez(tmp_path / "arrays.npz", rewards=np.zeros(2))
    refused(tmp_path / "arrays.npz", "arrays.npz is no folder of DQN-replay files; expected for each")
    with pytest.raises(InputError, match=r"the columns of .* have their roles already"):
        read(folder, options=ColumnOptions(reward="paid"))
    for wrong, text in (
        (("--checkpoint-steps=0",), "--checkpoint-steps must be at least 1; got 0"),
        (("--checkpoints=0", "--reward=paid"), "column options are for tables; the columns of DQN"),
    ):
        assert run("data", "import", folder, *wrong) == 2
        assert text in capsys.readouterr().err


def test_damaged_files_are_refused(folder: Path) -> None:
    path = folder / name("observation")
    whole = path.read_bytes()
    wrong_sum = whole[:-8] + bytes(4) + whole[-4:]
    longer = gzip.compress(gzip.decompress(whole) + b"more")
    shorter = gzip.compress(gzip.decompress(whole)[:-1])
    for content in (b"", whole[: len(whole) // 2], wrong_sum, longer, shorter, b"plain", gzip.compress(b"x")):
        path.write_bytes(content)
        refused(folder, f"{path} cannot be read as a gzip-compressed NumPy array (truncated, damaged, or")


def test_a_file_is_refused_by_its_header(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dqn_replay._PackedArray, "read_into", lambda *_: pytest.fail("it was read"))
    monkeypatch.setattr(protection, "_ALWAYS", 1000)
    path = folder / name("observation")
    header = io.BytesIO()
    claimed = {"descr": "|u1", "fortran_order": False, "shape": (STEPS, 84_000, 84_000)}
    np.lib.format.write_array_header_1_0(header, claimed)
    path.write_bytes(gzip.compress(header.getvalue()))
    refused(folder, "expands to 70.56 GB or more, beyond the limit", checkpoints="0")
