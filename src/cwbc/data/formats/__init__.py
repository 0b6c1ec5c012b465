"""Formats of dataset files: how each is recognized, and its reader, which returns a Recording."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.system.errors import InputError

if TYPE_CHECKING:
    from cwbc.data.checks import Recording

_HDF5, _NPZ, _PARQUET, _CSV = "hdf5:read", "arrays:read_npz", "arrow:read_parquet", "arrow:read_csv"
_SIGNATURES = {b"\x89HDF": _HDF5, b"PAR1": _PARQUET, b"PK\x03\x04": _NPZ, b"PK\x05\x06": _NPZ}
SUFFIXES = {
    ".hdf5": _HDF5, ".h5": _HDF5, ".npz": _NPZ, ".parquet": _PARQUET, ".csv": _CSV, ".tsv": _CSV
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".zst")
_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))


def reader(path: Path) -> Callable[..., Recording]:
    """The reader of a file's format, or of a folder of Parquet files."""
    name = _PARQUET if path.is_dir() else _reader_name(path)
    return pkgutil.resolve_name(f"{__name__}.{name}")


def _reader_name(path: Path) -> str:
    """The first bytes of a file imply its format, or else its name."""
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
        why = "which runs code when it is loaded, and is never read"
        raise InputError(f"{path} looks like a pickle, {why}; write its arrays with numpy.savez")
    raise InputError(f"{path}: unknown format; expected HDF5, NPZ, Parquet (.parquet) or CSV (.csv)")
