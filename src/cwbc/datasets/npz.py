"""NumPy's NPZ files: one array per column. Python objects in them are never unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.datasets.arrays import ArrayTable
from cwbc.datasets.columns import BY_NAME, ColumnOptions
from cwbc.datasets.decoding import decoding
from cwbc.datasets.source import Progress
from cwbc.datasets.tables import Recording, assemble
from cwbc.errors import InputError

FORMAT = "NPZ"


def read(path: Path, options: ColumnOptions = BY_NAME, progress: Progress | None = None) -> Recording:
    """The episodes of a file."""
    with decoding(path, FORMAT), np.load(path, allow_pickle=False) as file:

        def fetch(key: str, dtype: type | None) -> NDArray[Any]:
            array = file[key]
            return array if dtype is None else array.astype(dtype, copy=False)

        with zipfile.ZipFile(path) as members:
            described = {
                name.removesuffix(".npy"): _header(members, name, path) for name in members.namelist()
            }
        return assemble(ArrayTable(str(path), described, fetch), path.stem, options, progress)


def _header(members: zipfile.ZipFile, name: str, path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of an array, without its values."""
    with members.open(name) as member:
        version = np.lib.format.read_magic(member)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise InputError(f"{path}: {name} is of the array format {version}; expected 1.0 or 2.0")
        shape, _, dtype = readers[version](member)
        return tuple(shape), dtype
