"""HDF5 files with one array per column, as D4RL has them, without the d4rl package."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from cwbc.datasets.arrays import ArrayTable
from cwbc.datasets.columns import BY_NAME, ColumnOptions
from cwbc.datasets.decoding import decoding
from cwbc.datasets.source import Progress
from cwbc.datasets.tables import Recording, assemble
from cwbc.trajectories import Trajectories


def read(path: Path, options: ColumnOptions = BY_NAME, progress: Progress | None = None) -> Recording:
    """The episodes of a file, with the environment that its attribute `env` names."""
    with decoding(path, "HDF5"), h5py.File(path, "r") as file:
        arrays = {str(key): file[key] for key in file if isinstance(file.get(key), h5py.Dataset)}

        def fetch(key: str, dtype: type | None) -> NDArray[Any]:
            array = arrays[key]
            # Wide numbers are narrowed while reading, so that the wide copy never exists.
            return (array if dtype is None or array.dtype == dtype else array.astype(dtype))[()]

        described = {key: (array.shape or (), array.dtype) for key, array in arrays.items()}
        recording = assemble(ArrayTable(str(path), described, fetch), path.stem, options, progress)
        environment = _environment(file.attrs.get("env"))
    return dataclasses.replace(recording, data=dataclasses.replace(recording.data, environment=environment))


def write(path: Path, data: Trajectories) -> None:
    """The episodes in D4RL's layout, which most tools for offline reinforcement learning read."""
    last = np.zeros(data.steps, bool)
    last[data.starts + data.lengths - 1] = True
    ended = np.repeat(data.terminated, data.lengths)
    with h5py.File(path, "w") as file:
        file["observations"] = data.observations
        file["actions"] = data.actions
        file["rewards"] = data.rewards
        file["terminals"] = last & ended
        file["timeouts"] = last & ~ended
        if data.environment is not None:
            # Of fixed length: a damaged one of variable length can crash the library that reads it.
            file.attrs["env"] = np.bytes_(data.environment.encode())


def _environment(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = value.decode(errors="ignore")
    # "module:Name" would have the module imported: a file may not choose what is run.
    return str(value) if value and ":" not in str(value) else None
