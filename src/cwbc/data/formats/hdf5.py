"""HDF5 files with one array per column, as D4RL's are; on damaged bytes the library can hang or crash."""

from __future__ import annotations

import contextlib
import errno
import math
import mmap
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from cwbc.core.trajectories import Trajectories
from cwbc.data.checks import Recording
from cwbc.data.formats.arrays import array_table
from cwbc.data.formats.assembly import assemble
from cwbc.data.formats.columns import BY_NAME, ColumnOptions
from cwbc.data.formats.protection import check_regular, check_size, decoding
from cwbc.system.errors import InputError
from cwbc.system.progress import Progress

_DENSEST = 1 << 16  # bytes that one byte of a compressed array can stand for
_CHECKSUM = 4  # bytes
_CHUNK = 1 << 20  # bytes of images that are compressed together
_DEEPEST = 32  # nested groups; observations that are dictionaries of dictionaries need a few
_CLIPPED = "clipped_rewards"  # the attribute of data whose rewards are clipped
_HEAP = b"GCOL\x01\0\0\0"  # the start of a text heap


def read(
    path: Path,
    options: ColumnOptions = BY_NAME,
    progress: Progress | None = None,
    images: Callable[[h5py.Dataset], Any] = lambda stored: stored,
) -> Recording:
    """The episodes of a file, with the environment that its attribute `env` names.

    Args:
        images: gives the array to read in place of a stored one of images, such as a file that is mapped.
    """
    check_regular(path)
    with decoding(path, "HDF5"), h5py.File(path, "r") as file:
        # Links to other files are not followed.
        owned = [key for key in file if isinstance(file.get(key, getlink=True), h5py.HardLink)]
        arrays: dict[str, Any] = {str(key): file[key] for key in owned if isinstance(file[key], h5py.Dataset)}
        for key, array in arrays.items():
            _check_array(path, key, array.id)
            if array.dtype == np.uint8 and array.ndim in (3, 4) and array.size:
                arrays[key] = images(array)
        table = array_table(str(path), arrays, path.stat().st_size)
        recording = assemble(table, path.stem, options, progress)
        clipped = _is_flagged(file, _CLIPPED)
        return recording.described(environment=_read_environment(path, file), clipped_rewards=clipped)


def write(path: Path, data: Trajectories) -> None:
    """Write the episodes in D4RL's layout, which most tools read; a file of our own there is replaced."""
    last = np.zeros(data.steps, bool)
    last[data.starts + data.lengths - 1] = True
    terminated = np.repeat(data.terminated, data.lengths)
    # Refused before it is started: the HDF5 library may crash on a full disk.
    free, needed = shutil.disk_usage(path.parent).free, data.nbytes + 2 * data.steps + (1 << 20)
    if free < needed:
        raise OSError(errno.ENOSPC, f"no room: {needed:,} bytes are needed, {free:,} are free", str(path))
    path.unlink(missing_ok=True)
    try:
        with h5py.File(path, "x") as file:  # "w" would truncate the target of a link
            file.create_dataset("observations", data=data.observations, **_compression(data))
            file["actions"] = data.actions
            file["rewards"] = data.rewards
            file["terminals"] = last & terminated
            file["timeouts"] = last & ~terminated
            if data.environment is not None:
                file.attrs["env"] = np.bytes_(data.environment.encode())
            if data.clipped_rewards:
                file.attrs[_CLIPPED] = np.uint8(True)
    except BaseException as error:
        with contextlib.suppress(OSError):  # where nothing could be created, there is nothing to remove
            path.unlink()
        if isinstance(error, OSError) and error.errno:  # h5py adds half a page
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        if isinstance(error, RuntimeError):  # how h5py reports a full disk
            raise OSError(f"{path} cannot be written: {error}") from error
        raise


def _compression(data: Trajectories) -> dict[str, Any]:
    """Images are compressed, since a frame differs little from the one before: games take 1 to 2 %."""
    if not data.has_images:
        return {}
    shape = data.observations.shape[1:]
    frames = min(data.steps, max(1, _CHUNK // math.prod(shape)))
    return {"chunks": (frames, *shape), "compression": "gzip", "compression_opts": 8}


def check_arrays(path: Path, file: h5py.File, unproved: int) -> int:
    """The bytes that all arrays expand to; one of more than `unproved` must be in the file."""
    sizes: list[int] = []

    def look(name: bytes, info: Any) -> None:
        if name.count(b"/") > _DEEPEST:  # visiting takes time quadratic in the depth
            raise InputError(f"{path} has groups within groups, more than {_DEEPEST} deep")
        if info.type == h5py.h5o.TYPE_DATASET:
            array = h5py.h5d.open(file.id, name)
            sizes.append(_check_array(path, name.decode(errors="replace"), array, unproved))

    h5py.h5o.visit(file.id, look, info=True)
    return sum(sizes)


def _check_array(path: Path, name: str, array: h5py.h5d.DatasetID, unproved: float = math.inf) -> int:
    plan = array.get_create_plist()
    layout, filters = plan.get_layout(), [plan.get_filter(i)[0] for i in range(plan.get_nfilters())]
    if plan.get_external_count() or layout == h5py.h5d.VIRTUAL:
        raise InputError(f"{path}: {name} is in another file; expected one file with everything in it")
    count, item = array.get_space().get_simple_extent_npoints(), array.get_type().get_size()
    if count and layout == h5py.h5d.CHUNKED:
        chunk = math.prod(plan.get_chunk())
        count = max(count, chunk)
        check_size(path, chunk * item, path.stat().st_size)  # a chunk is decompressed as a whole
        chunks = range(array.get_num_chunks() if h5py.h5z.FILTER_FLETCHER32 in filters else 0)
        # The library removes the checksum of a shorter chunk too, and writes before its start.
        if any(array.get_chunk_info(number).size < _CHECKSUM for number in chunks):
            raise InputError(f"{path} is damaged: a part of {name} is shorter than its checksum")
    if count * item > max(unproved, array.get_storage_size() * (_DENSEST if filters else 1)):
        raise InputError(f"{path} is damaged: it has only a part of the {count * item:,} bytes of {name}")
    return int(count * item)


def _read_environment(path: Path, file: h5py.File) -> str | None:
    """The attribute `env`, if it is the printable id of an environment."""
    if "env" not in file.attrs:
        return None
    attribute = h5py.h5a.open(file.id, b"env")
    kind = attribute.get_type()
    if not isinstance(kind, h5py.h5t.TypeStringID) or attribute.shape != ():
        return None
    if kind.is_variable_str() and not _heaps_are_whole(path):
        raise InputError(f"{path} is damaged: the text of env cannot be read")
    value = file.attrs["env"]
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    # h5py decodes bytes that are no text to surrogates, which cannot be printed; and "module:Name" would
    # import the module: a file must not choose what is run.
    return text if text and text.isprintable() and "\ufffd" not in text and ":" not in text else None


def _is_flagged(file: h5py.File, name: str) -> bool:
    """Whether an attribute is the number 1."""
    if name not in file.attrs:
        return False
    attribute = h5py.h5a.open(file.id, name.encode())
    is_number = isinstance(attribute.get_type(), h5py.h5t.TypeIntegerID) and attribute.shape == ()
    return bool(is_number and file.attrs[name] == 1)


def _heaps_are_whole(path: Path) -> bool:
    """Whether each object in the text heaps has a size: without one, the library would loop forever."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(_HEAP)
        while at >= 0:
            place, end = at + 16, at + struct.unpack_from("<Q", content, at + 8)[0]
            if not place <= end <= len(content):
                return False
            while place + 16 <= end:
                index, size = struct.unpack_from("<H6xQ", content, place)
                taken = 16 + (size + 7) // 8 * 8 if index else size  # number 0 is free space
                if taken < 16 or place + taken > end:
                    return False
                place += taken
            at = content.find(_HEAP, end)
    return True
