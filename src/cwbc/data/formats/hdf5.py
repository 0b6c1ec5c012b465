"""HDF5 files with one array per column, as D4RL's are, without the d4rl package."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.data.checks import Recording
from cwbc.data.formats import hdf5_safety
from cwbc.data.formats.arrays import array_table
from cwbc.data.formats.assembly import assemble
from cwbc.data.formats.columns import BY_NAME, ColumnOptions
from cwbc.data.formats.protection import check_regular, decoding

if TYPE_CHECKING:
    from cwbc.system.progress import Progress


def read(path: Path, options: ColumnOptions = BY_NAME, progress: Progress | None = None) -> Recording:
    """The episodes of a file, with the environment that its attribute `env` names."""
    check_regular(path)
    with decoding(path, "HDF5"), h5py.File(path, "r") as file:
        arrays = {str(key): file[key] for key in file if _is_array(file, key)}
        for key, array in arrays.items():
            hdf5_safety.check_array(path, key, array.id)

        def fetch(key: str, dtype: type | None) -> NDArray[Any]:
            array = arrays[key]
            # Wide numbers are narrowed while reading, so that the wide copy never exists.
            return (array if dtype is None or array.dtype == dtype else array.astype(dtype))[()]

        described = {key: (array.shape or (), array.dtype) for key, array in arrays.items()}
        table = array_table(str(path), described, fetch, path.stat().st_size)
        recording = assemble(table, path.stem, options, progress)
        environment = hdf5_safety.read_text(path, file, "env")
    if environment is not None and ":" in environment:
        environment = None  # "module:Name" would import the module: a file must not choose what is run
    return dataclasses.replace(recording, data=dataclasses.replace(recording.data, environment=environment))


def write(path: Path, data: Trajectories) -> None:
    """Write the episodes in D4RL's layout, which most tools for offline reinforcement learning read.

    Args:
        path: a file of our own, which is replaced.
    """
    last = np.zeros(data.steps, bool)
    last[data.starts + data.lengths - 1] = True
    terminated = np.repeat(data.terminated, data.lengths)
    _check_room(path, data.nbytes + 2 * data.steps)
    path.unlink(missing_ok=True)
    with _writing(path), h5py.File(path, "x") as file:  # "w" would truncate the target of a link
        file["observations"] = data.observations
        file["actions"] = data.actions
        file["rewards"] = data.rewards
        file["terminals"] = last & terminated
        file["timeouts"] = last & ~terminated
        if data.environment is not None:
            file.attrs["env"] = np.bytes_(data.environment.encode())


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Remove a half-written file, and report errors as for any other file."""
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(OSError):  # where nothing could be created, there is nothing to remove
            path.unlink()
        if isinstance(error, OSError) and error.errno:  # h5py adds half a page
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        if isinstance(error, RuntimeError):  # how h5py reports a full disk
            raise OSError(f"{path} cannot be written: {error}") from error
        raise


def _check_room(path: Path, size: int) -> None:
    """Refuse to start what does not fit: the HDF5 library may crash on a full disk."""
    free, needed = shutil.disk_usage(path.parent).free, size + (1 << 20)
    if free < needed:
        raise OSError(errno.ENOSPC, f"no room: {needed:,} bytes are needed, {free:,} are free", str(path))


def _is_array(file: h5py.File, key: str) -> bool:
    # Links to other files are not followed.
    return isinstance(file.get(key, getlink=True), h5py.HardLink) and isinstance(file[key], h5py.Dataset)
