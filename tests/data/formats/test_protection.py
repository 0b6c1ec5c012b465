"""What files may unfold to: refused before any of it is, in every format, and allowed where it is meant."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from command_line import run
from conftest import d4rl_arrays
from tables import columns, write

from cwbc.data import load, read
from cwbc.data.formats import protection
from cwbc.system.errors import InputError

REFUSED = r"takes [\d.]+ [kM]?B and expands to [\d.,]+ [kMG]B or more, beyond the limit of [\d.]+ [kMG]B; to "


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits in proportion to the files of a test."""
    monkeypatch.setattr(protection, "_ALWAYS", 1e5)
    monkeypatch.setattr(protection, "_TIMES", 2)


def refused(path: Path, **options: Any) -> str:
    with pytest.raises(InputError, match=REFUSED) as error:
        read(path, **options)
    assert str(path) in str(error.value)
    return str(error.value)


def alike(rows: int = 20_000, **changes: Any) -> dict[str, Any]:
    """A table that compresses to nearly nothing."""
    last = np.arange(1, rows + 1) % 100 == 0
    values = {
        "episode": np.arange(rows) // 100,
        "obs_0": np.zeros(rows),
        "obs_1": np.ones(rows, np.float32),
        "action": np.zeros(rows, np.int8),
        "reward": last.astype(np.float32),
        "terminated": last,
    }
    return {name: array for name, array in (values | changes).items() if array is not None}


def claiming(path: Path, rows: int) -> Path:
    """An NPZ file whose arrays tell that they have so many rows, and have none."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in d4rl_arrays().items():
            buffer = io.BytesIO()
            header = {"descr": array.dtype.str, "fortran_order": False, "shape": (rows, *array.shape[1:])}
            np.lib.format.write_array_header_1_0(buffer, header)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    return path


def unwritten(path: Path, rows: int, width: int = 1, **settings: Any) -> Path:
    """An HDF5 file of arrays in chunks of which none is written."""
    with h5py.File(path, "w") as file:
        for name in (*(f"obs_{i}" for i in range(width)), "action", "reward", "terminals", "timeouts"):
            kind = bool if name in ("terminals", "timeouts") else np.float32
            file.create_dataset(name, (rows,), kind, **{"chunks": (1 << 16,)} | settings)
    return path


def test_an_npz_file_is_refused_by_its_headers(tmp_path: Path) -> None:
    shown = refused(claiming(tmp_path / "bomb.npz", 100_000_000))
    assert "expands to 3.20 GB or more, beyond the limit of 1.00 GB" in shown
    assert "to allow N gigabytes, give --max-gigabytes N (`cwbc data check` and `import`)" in shown
    assert "max_gigabytes=N (`cwbc.load`) or CWBC_MAX_GIGABYTES=N" in shown


def test_an_hdf5_file_is_refused_by_its_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda *_: pytest.fail("it was read"))
    assert "expands to 8.80 GB" in refused(unwritten(tmp_path / "bomb.hdf5", 50_000_000, width=40))


def test_a_chunk_counts_as_a_whole(tmp_path: Path) -> None:
    assert "expands to 1.20 GB" in refused(
        unwritten(tmp_path / "x.hdf5", 6, chunks=(3 * 10**8,), maxshape=(None,))
    )


def test_a_parquet_file_is_refused_by_its_counts(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        pyarrow.parquet.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("it was read")
    )
    path = write(tmp_path / "bomb.parquet", alike())
    refused(path)
    (tmp_path / "parts").mkdir()
    path.rename(tmp_path / "parts" / "part-0.parquet")
    refused(tmp_path / "parts")


def test_lists_are_counted_by_their_values(small: None, tmp_path: Path) -> None:
    lists = pa.array([[0.0] * 500] * 200, pa.list_(pa.float32()))
    path = write(tmp_path / "bomb.parquet", alike(200, obs_0=None, obs_1=None) | {"observation": lists})
    assert "expands to 4" in refused(path)


def test_a_text_that_many_rows_share_is_unfolded_no_further(small: None, tmp_path: Path) -> None:
    name = "x" * 40_000
    table = alike(200, episode=[f"{name}{i // 100}" for i in range(200)], note=[name] * 200)
    path = write(tmp_path / "bomb.parquet", table)
    assert path.stat().st_size < 20_000
    refused(path)


def test_a_compressed_text_is_unfolded_no_further(small: None, tmp_path: Path) -> None:
    plain = write(tmp_path / "logs.csv", alike())
    assert load(plain).steps == 20_000  # what is not compressed is what it is
    packed = tmp_path / "logs.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    refused(packed)
    assert load(packed, max_gigabytes=0.01).steps == 20_000


@pytest.mark.parametrize("kind", ["npz", "parquet", "hdf5"])
def test_what_compresses_well_is_read(tmp_path: Path, kind: str) -> None:
    values = alike(200_000)
    path = tmp_path / f"logs.{kind}"
    if kind == "npz":
        np.savez_compressed(path, **values)
    elif kind == "parquet":
        write(path, values)
    else:
        with h5py.File(path, "w") as file:
            for name, array in values.items():
                file.create_dataset(name, data=array, compression="gzip", chunks=True)
    assert load(path).steps == 200_000


def test_images_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of a game, a few squares on a plain ground, without the help of the floor."""
    monkeypatch.setattr(protection, "_ALWAYS", 0)
    generator = np.random.default_rng(0)
    frames = np.zeros((200, 84, 84), np.uint8)
    for frame in frames:
        for _ in range(6):
            row, column = generator.integers(0, 76, 2)
            frame[row : row + 8, column : column + 8] = generator.integers(256)
    last = np.arange(1, 201) % 50 == 0
    arrays = {
        "observations": frames.reshape(200, -1),
        "actions": generator.integers(0, 4, 200),
        "rewards": last.astype(np.float32),
        "terminals": last,
        "timeouts": np.zeros(200, bool),
    }
    np.savez_compressed(tmp_path / "frames.npz", **arrays)
    assert load(tmp_path / "frames.npz").observations.shape == (200, 84 * 84)


def test_ways_to_allow_it(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    path = write(tmp_path / "mine.parquet", alike())
    refused(path)
    assert run("data", "check", str(path)) == 2
    assert "--max-gigabytes N" in capsys.readouterr().out
    assert run("data", "check", str(path), "--max-gigabytes", "0.1") == 0
    assert run("data", "import", str(path), "--max-gigabytes", "0.1") == 0
    assert load("mine").steps == 20_000  # the store holds it unfolded
    assert load(path, max_gigabytes=0.1).steps == 20_000
    monkeypatch.setenv("CWBC_MAX_GIGABYTES", "0.1")
    assert load(path).steps == 20_000
    monkeypatch.setenv("CWBC_MAX_GIGABYTES", "0.0001")
    refused(path)


@pytest.mark.parametrize(
    ("text", "shown"), [("much", "must be a number, such as 8; got 'much'"), ("-1", "more than 0")]
)
def test_limits_that_make_no_sense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, shown: str
) -> None:
    path = write(tmp_path / "mine.npz", columns())
    monkeypatch.setenv("CWBC_MAX_GIGABYTES", text)
    with pytest.raises(InputError, match=re.escape(shown)):
        load(path)
    with pytest.raises(InputError, match="--max-gigabytes must be more than 0"):
        load(path, max_gigabytes=float("nan"))
