"""Every reader on real D4RL files, wherever a folder of them is: CWBC_TEST_DATA=FOLDER make test."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from tables import FORMATS, write

from cwbc.core.trajectories import Trajectories
from cwbc.data import load, read, store
from cwbc.data.formats import minari

FOLDER = os.environ.get("CWBC_TEST_DATA")
FILES = sorted(Path(FOLDER).glob("*.hdf5")) if FOLDER else []

pytestmark = pytest.mark.skipif(
    not FILES,
    reason="CWBC_TEST_DATA names no folder with D4RL files, and they are too large to come with the code",
)


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return Path(request.param)


def as_columns(data: Trajectories) -> dict[str, Any]:
    last = np.cumsum(data.lengths) - 1
    columns: dict[str, Any] = {
        "episode": np.repeat(np.arange(data.episodes), data.lengths),
        "step": np.arange(data.steps) - np.repeat(data.starts, data.lengths),
        "reward": data.rewards,
        "terminated": np.isin(np.arange(data.steps), last[data.terminated]),
    }
    columns |= {f"observation_{i}": column for i, column in enumerate(data.observations.T)}
    return columns | {f"action_{i}": column for i, column in enumerate(data.actions.T)}


def test_a_plain_loop_finds_the_same_episodes(path: Path) -> None:
    data = load(path)
    with h5py.File(path) as file:
        rewards, ends = file["rewards"][()], file["terminals"][()] | file["timeouts"][()]
    returns, total = [], 0.0
    for reward, end in zip(rewards, ends, strict=True):
        total += float(reward)
        if end:
            returns.append(total)
            total = 0.0
    np.testing.assert_allclose(data.returns, returns, rtol=1e-9, atol=1e-6)
    assert len(rewards) == data.steps + data.unfinished_steps


def test_nothing_is_wrong_with_it(path: Path) -> None:
    recording = read(path)
    shown = [issue.sentence() for issue in recording.warnings()]
    assert not [text for text in shown if "episodes have one step" not in text]


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_in_any_format_and_order(path: Path, kind: str, tmp_path: Path) -> None:
    data = load(path)
    order = np.random.default_rng(0).permutation(data.steps)
    columns = {name: column[order] for name, column in as_columns(data).items()}
    again = load(write(tmp_path / f"log.{kind}", columns))
    assert again.content_hash == data.content_hash


def test_the_same_from_the_store_and_from_minari(path: Path) -> None:
    data = load(path)
    store.add(data, str(path))
    assert load(data.name).content_hash == data.content_hash
    minari.export(data, "real/file-v0")
    back = load("real/file-v0")
    assert (back.content_hash, back.environment) == (data.content_hash, data.environment)
