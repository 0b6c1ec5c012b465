"""Images of the store that exceed the memory: a raw file beside the stored one, which is mapped."""

from __future__ import annotations

import contextlib
import contextvars
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.data.sources import size_text
from cwbc.system.errors import InputError
from cwbc.system.files import LOCK, create, locked, replace_atomically
from cwbc.system.host_memory import host_memory

if TYPE_CHECKING:  # listing datasets needs no numpy, so nothing that imports it is imported here
    import h5py
    import numpy as np
    from numpy.typing import NDArray

    from cwbc.core.trajectories import Trajectories

SUFFIX = ".images"
_chosen: contextvars.ContextVar[bool | None] = contextvars.ContextVar("on disk", default=None)


@contextlib.contextmanager
def mapping(chosen: bool | None) -> Iterator[None]:
    """In this block, map images (True) or read them (False); None: map those that exceed the memory."""
    token = _chosen.set(chosen)
    try:
        yield
    finally:
        _chosen.reset(token)


def wants_disk(place: str | None) -> bool | None:
    """`on_disk` for the place of a dataset in training; host memory holds whatever its user says."""
    return {"disk": True, "host": False}.get(place or "")


def check_mapped(data: Trajectories) -> None:
    """Refuse data that is in memory instead of on disk."""
    if not data.is_mapped:
        raise InputError(
            f"{data.name} is not on disk: only images of the store are streamed from there; `cwbc data "
            'import` stores a file, and --data-on host (data_on="host") streams any data from memory'
        )


def read_or_map(images: h5py.Dataset, path: Path) -> h5py.Dataset | NDArray[np.uint8]:
    """Images to read, or those of the raw file at `path`, which is written first where it is missing."""
    import numpy as np

    chosen = _chosen.get()
    # At most half of the memory, as parameters and batches need room.
    if not (images.nbytes > host_memory() / 2 if chosen is None else chosen):
        return images
    if not _is_whole(path, images):
        with locked(path.parent / LOCK, "", wait=True):
            if not _is_whole(path, images):  # again: another process may have written it in between
                _write(path, images)
    return np.memmap(path, np.uint8, "r", shape=images.shape)


def _is_whole(path: Path, images: h5py.Dataset) -> bool:
    return bool(path.is_file() and path.stat().st_size == images.nbytes)


def _write(path: Path, images: h5py.Dataset) -> None:
    from cwbc.core.trajectories import images_together

    free = shutil.disk_usage(path.parent).free
    if free < images.nbytes:
        needed = f"{size_text(images.nbytes)} are needed to stream from disk, {size_text(free)} are free"
        raise OSError(errno.ENOSPC, f"no room: {needed}", str(path))
    # A chunk is decompressed as a whole.
    rows = images.chunks[0] if images.chunks else images_together(images[:1].nbytes)
    aside = path.parent / f".data{SUFFIX}.tmp"
    aside.unlink(missing_ok=True)
    try:
        with create(aside) as file:
            for first in range(0, len(images), rows):
                file.write(images[first : first + rows].data)
        replace_atomically(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
