"""Datasets that are files or folders of the user: HDF5, NPZ, Parquet, CSV, or in Minari's layout."""

from __future__ import annotations

import dataclasses
import importlib
import math
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.data import d4rl, minari
from cwbc.data.formats.columns import BY_NAME, ColumnOptions
from cwbc.data.sources import DatasetSource
from cwbc.system.errors import InputError

if TYPE_CHECKING:
    from cwbc.data.checks import Recording
    from cwbc.system.progress import Progress

_READERS = {
    "hdf5": ("hdf5", "read"),
    "npz": ("arrays", "read_npz"),
    "parquet": ("arrow", "read_parquet"),
    "csv": ("arrow", "read_csv"),
}  # the module of data.formats and its function
_SIGNATURES = {b"\x89HDF": "hdf5", b"PAR1": "parquet", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz"}
SUFFIXES = {
    ".hdf5": "hdf5", ".h5": "hdf5", ".npz": "npz", ".parquet": "parquet", ".csv": "csv", ".tsv": "csv"
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".zst")
_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))


def _has(name: str) -> bool:
    """Whether there is a file, or a folder with a dataset."""
    path = Path(name)
    if path.is_dir():
        return minari.is_dataset(path) or any(path.rglob("*.parquet"))
    return path.exists()


def _read(name: str, options: ColumnOptions, progress: Progress | None) -> Recording:
    """The episodes of a file or folder; its name may imply the environment, as D4RL's do."""
    path = Path(name)
    if path.is_dir() and minari.is_dataset(path):
        if options != BY_NAME:
            raise options_not_allowed(name)
        from cwbc.data.formats import minari as reader

        recording = reader.read(path)
    else:
        module, function = _READERS["parquet" if path.is_dir() else _format(path)]
        reading = getattr(importlib.import_module(f"cwbc.data.formats.{module}"), function)
        recording = reading(path, options, progress)
    data = recording.data
    if data.environment is not None:
        return recording
    sizes = (math.prod(data.observations.shape[1:]), 0 if data.discrete else data.action_size)
    data = data.described(environment=d4rl.environment_of(path.stem, *sizes))
    return dataclasses.replace(recording, data=data)


def options_not_allowed(name: str) -> InputError:
    """The error for column options of a dataset that is no table."""
    return InputError(f"the columns of {name} have their roles already; column options are for tables only")


def _format(path: Path) -> str:
    """The format of a file by its first bytes, or else by its name."""
    from cwbc.data.formats.protection import check_regular

    check_regular(path)
    with path.open("rb") as file:
        start = file.read(4)
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _COMPRESSED]
    suffix = suffixes[-1] if suffixes else ""
    if not start:
        raise InputError(f"{path} is empty; expected one row per step")
    if found := _SIGNATURES.get(start) or SUFFIXES.get(suffix):
        return found
    if suffix in (".pkl", ".pickle", ".pt") or start[:2] in _PICKLES:
        raise InputError(
            f"{path} looks like a pickle, which runs code when it is loaded, and is never read; "
            "write its arrays with numpy.savez"
        )
    raise InputError(f"{path}: unknown format; expected HDF5, NPZ, Parquet (.parquet) or CSV (.csv)")


def beside(name: str) -> list[str]:
    """The data files in the folder of a file that does not exist."""
    return sorted(str(path) for path in Path(name).parent.glob("*") if path.suffix in SUFFIXES)


def _hint(name: str) -> str | None:
    folder = f"{name} is a folder with neither Parquet files nor a Minari dataset in it"
    return folder if Path(name).is_dir() else None


SOURCE = DatasetSource(has=_has, read=_read, hint=_hint, tables=True)
