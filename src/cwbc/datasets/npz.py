"""NumPy's NPZ files: one array per column. Python objects in them are never unpickled."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.datasets.arrays import ArrayTable
from cwbc.datasets.columns import BY_NAME, ColumnOptions
from cwbc.datasets.decoding import decoding
from cwbc.datasets.source import Progress
from cwbc.datasets.tables import assemble
from cwbc.errors import InputError
from cwbc.recordings import Recording

_LONGEST_HEADER = 1 << 16  # bytes


def read(path: Path, options: ColumnOptions = BY_NAME, progress: Progress | None = None) -> Recording:
    """The episodes of a file."""
    # Not numpy.load: it tells an array's shape only by reading all of it.
    with decoding(path, "NPZ"), zipfile.ZipFile(path) as archive:

        def fetch(key: str, dtype: type | None) -> NDArray[Any]:
            with archive.open(f"{key}.npy") as member:
                array = np.lib.format.read_array(member, allow_pickle=False)
            return array if dtype is None else array.astype(dtype, copy=False)

        names = [name for name in archive.namelist() if name.endswith(".npy")]
        if not names:
            excel = any(name.startswith("xl/") for name in archive.namelist())
            what = "is an Excel file; save it as CSV" if excel else "is an archive without arrays in it"
            raise InputError(f"{path} {what}")
        described = {name.removesuffix(".npy"): _header(archive, name) for name in names}
        table = ArrayTable(str(path), described, fetch, path.stat().st_size)
        return assemble(table, path.stem, options, progress)


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of an array, without its values."""
    with archive.open(name) as file:
        member = io.BytesIO(
            file.read(_LONGEST_HEADER)
        )  # one that tells it is longer would be read all the same
        version = np.lib.format.read_magic(member)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise InputError(f"{name} is in version {version} of NumPy's format; expected 1.0 or 2.0")
        shape, _, dtype = readers[version](member)
        return tuple(shape), dtype
