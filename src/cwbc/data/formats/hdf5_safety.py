"""Checks before the HDF5 library reads a file: on damaged bytes it can hang or crash."""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path
from typing import Any

import h5py

from cwbc.data.formats.protection import check_size
from cwbc.system.errors import InputError

_DENSEST = 1 << 16  # bytes that one byte of a compressed array can stand for
_CHECKSUM = 4  # bytes
_DEEPEST = 32  # nested groups; observations that are dictionaries of dictionaries need a few
_HEAP = b"GCOL\x01\0\0\0"  # the start of a text heap


def check_arrays(path: Path, file: h5py.File, unproved: int) -> int:
    """The bytes that all arrays of a file expand to; refuses arrays that the file does not contain."""
    sizes: list[int] = []

    def look(name: bytes, info: Any) -> None:
        if name.count(b"/") > _DEEPEST:  # visiting takes time quadratic in the depth
            raise InputError(f"{path} has groups within groups, more than {_DEEPEST} deep")
        if info.type == h5py.h5o.TYPE_DATASET:
            where = name.decode(errors="replace")
            sizes.append(check_array(path, where, h5py.h5d.open(file.id, name), unproved))

    h5py.h5o.visit(file.id, look, info=True)
    return sum(sizes)


def check_array(path: Path, name: str, array: h5py.h5d.DatasetID, unproved: float = math.inf) -> int:
    """The bytes that an array expands to; refuses one that the file does not contain.

    Args:
        unproved: bytes that an array may have without as many in the file, as one that was never written.
    """
    plan = array.get_create_plist()
    layout, filters = plan.get_layout(), plan.get_nfilters()
    if plan.get_external_count() or layout == h5py.h5d.VIRTUAL:
        raise InputError(f"{path}: {name} is in another file; expected one file with everything in it")
    count, item = array.get_space().get_simple_extent_npoints(), array.get_type().get_size()
    if count and layout == h5py.h5d.CHUNKED:
        chunk = math.prod(plan.get_chunk())
        count = max(count, chunk)
        check_size(path, chunk * item, path.stat().st_size)  # a chunk is decompressed as a whole
        if any(plan.get_filter(i)[0] == h5py.h5z.FILTER_FLETCHER32 for i in range(filters)):
            _check_chunks(path, name, array)
    if count * item > max(unproved, array.get_storage_size() * (_DENSEST if filters else 1)):
        raise InputError(f"{path} is damaged: it has only a part of the {count * item:,} bytes of {name}")
    return int(count * item)


def _check_chunks(path: Path, name: str, array: h5py.h5d.DatasetID) -> None:
    # The library removes the checksum of a shorter chunk too, and writes before its start.
    for number in range(array.get_num_chunks()):
        if array.get_chunk_info(number).size < _CHECKSUM:
            raise InputError(f"{path} is damaged: a part of {name} is shorter than its checksum")


def read_text(path: Path, file: h5py.File, name: str) -> str | None:
    """A printable text attribute, or None."""
    if name not in file.attrs:
        return None
    attribute = h5py.h5a.open(file.id, name.encode())
    kind = attribute.get_type()
    if not isinstance(kind, h5py.h5t.TypeStringID) or attribute.shape != ():
        return None
    if kind.is_variable_str() and not _heaps_are_whole(path):
        raise InputError(f"{path} is damaged: the text of {name} cannot be read")
    value = file.attrs[name]
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    # h5py decodes bytes that are no text to surrogates, which cannot be printed.
    return text if text and text.isprintable() and "\ufffd" not in text else None


def _heaps_are_whole(path: Path) -> bool:
    """Whether each object in the text heaps has a size: without one, the library would loop forever."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(_HEAP)
        while at >= 0:
            end = at + _number(content, at + 8)
            if end > len(content):
                return False
            object_at = at + 16
            while object_at + 16 <= end:
                index, size = content[object_at] + content[object_at + 1], _number(content, object_at + 8)
                taken = 16 + (size + 7) // 8 * 8 if index else size  # number 0 is free space
                if taken < 16 or object_at + taken > end:
                    return False
                object_at += taken
            at = content.find(_HEAP, max(end, at + 8))
    return True


def _number(content: mmap.mmap, at: int) -> int:
    return int(struct.unpack_from("<Q", content, at)[0]) if at + 8 <= len(content) else len(content) + 1
