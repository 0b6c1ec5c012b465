"""Tables of arrays, one per column: in memory, in NumPy's NPZ files, or in HDF5 files of D4RL's layout."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.data.checks import Recording
from cwbc.data.formats.assembly import assemble
from cwbc.data.formats.columns import BY_NAME, ColumnOptions, Kind, StepColumn, StepTable
from cwbc.data.formats.protection import check_size, decoding
from cwbc.data.issues import Origin
from cwbc.system.errors import InputError
from cwbc.system.progress import Progress

_KINDS: dict[str, Kind] = {
    "f": "float", "i": "integer", "u": "integer", "b": "boolean",
    "U": "text", "S": "text", "M": "time", "m": "time",
}  # fmt: skip
_LONGEST_HEADER = 1 << 16  # bytes


def array_table(source: str, arrays: Mapping[str, Any], stored: int | None = None) -> StepTable:
    """Arrays (NumPy's, or like h5py's) with a row per step; `stored` are the bytes of their file, if any."""
    shapes: dict[str, tuple[int, ...]] = {name: array.shape or () for name, array in arrays.items()}
    per_step = shapes.get("rewards") or shapes.get("reward") or ()
    for name, shape in shapes.items():
        if len(per_step) == 2 and len(shape) > 2 and shape[:2] == per_step:
            count = shape[0] * shape[1]
            raise InputError(
                f"{source}: {name} has the shape {shape}, a row for each episode; concatenate the episodes "
                f"to {(count, *shape[2:])} and the rewards to ({count},), and mark the last step of each"
            )
    # The rewards are the surest: there is one per step.
    rows = per_step[0] if per_step else max((shape[0] for shape in shapes.values() if shape), default=0)
    columns = {name: _column(name, shapes[name], array.dtype, rows) for name, array in arrays.items()}
    if stored is not None:
        size = in_file = 0
        for name, column in columns.items():
            if column.kind != "other":
                count, width = math.prod(shapes[name]), arrays[name].dtype.itemsize
                in_file += count * width
                # Every number takes four bytes in memory, but a pixel.
                size += count * (1 if column.kind == "image" else max(width, 4))
        check_size(source, size, stored, size / max(in_file, 1))

    def side_by_side(names: Sequence[str], dtype: type | None, report: Callable[[int], None]) -> NDArray[Any]:
        chosen = (arrays[name] for name in names)
        with np.errstate(over="ignore", invalid="ignore"):  # inf, which the checks report
            # h5py narrows wide numbers while reading, so that the wide copy never exists.
            read = [(a if dtype is None or a.dtype == dtype else a.astype(dtype))[()] for a in chosen]
        report(sum(array.size for array in read))
        if dtype is np.uint8:
            return read[0]
        matrices = [array.reshape(len(array), -1) for array in read]
        return matrices[0] if len(matrices) == 1 else np.concatenate(matrices, axis=1)

    return StepTable(Origin(source), rows, columns, side_by_side)


def from_arrays(
    name: str,
    observations: NDArray[Any],
    actions: NDArray[Any],
    rewards: NDArray[Any],
    terminals: NDArray[Any],
    timeouts: NDArray[Any],
    environment: str | None = None,
    time_limit: int | None = None,
    action_count: int | None = None,
) -> Trajectories:
    """Trajectories from step arrays in which `terminals` or `timeouts` mark each episode's last step.

    Args:
        observations: [step, dimension]; or images of type uint8 [step, height, width(, channel)].
        actions: [step, dimension] of floats, or [step] of integers: then they are discrete.
        terminals: [step] the environment terminated the episode here.
        timeouts: [step] a time limit, or the end of the log, truncated it here.
        environment: a Gymnasium id, where one fits.
        time_limit: H, the longest possible episode; without it, the longest one here.
        action_count: the number of discrete actions; without it, the highest one seen plus one.
    """
    given = {
        "observations": observations, "actions": actions, "rewards": rewards, "terminals": terminals,
        "timeouts": timeouts,
    }  # fmt: skip
    table = array_table(name, {key: np.asarray(array) for key, array in given.items()})
    facts = {"environment": environment, "time_limit": time_limit, "action_count": action_count}
    return assemble(table, name).described(name=name, **facts).trusted()


def read_npz(path: Path, options: ColumnOptions = BY_NAME, progress: Progress | None = None) -> Recording:
    """The episodes of an NPZ file; Python objects in it are never unpickled."""
    # Not numpy.load: it reads all of an array to find its shape.
    with decoding(path, "NPZ"), zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        if not names:
            excel = any(name.startswith("xl/") for name in archive.namelist())
            what = "is an Excel file; save it as CSV" if excel else "is an archive without arrays in it"
            raise InputError(f"{path} {what}")
        arrays = {name.removesuffix(".npy"): _ArrayInArchive(archive, name) for name in names}
        table = array_table(str(path), arrays, path.stat().st_size)
        return assemble(table, path.stem, options, progress)


class ArrayHeader(NamedTuple):
    """What stands before the values of an array in NumPy's format."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    size: int  # bytes of the header

    @property
    def row_size(self) -> int:
        """The bytes of a row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def read_header(file: IO[bytes] | io.BufferedIOBase) -> ArrayHeader:
    """The header at the start of a file; the place in the file is undefined afterwards."""
    start = io.BytesIO(file.read(_LONGEST_HEADER))  # whatever length the header declares
    first = np.lib.format.read_magic(start) == (1, 0)  # of versions that differ in the header's length
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    return ArrayHeader(*read(start), start.tell())


class _ArrayInArchive:
    """An array of an NPZ file, whose values are read when they are needed."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._archive, self._name = archive, name
        with archive.open(name) as file:
            header = read_header(file)
        self.shape, self.dtype = header.shape, header.dtype

    def astype(self, dtype: type) -> NDArray[Any]:
        return self[()].astype(dtype)

    def __getitem__(self, everything: tuple[()]) -> NDArray[Any]:
        with self._archive.open(self._name) as member:
            return np.lib.format.read_array(member, allow_pickle=False)


def _column(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], rows: int) -> StepColumn:
    if dtype.kind == "O" and not dtype.metadata:  # HDF5's texts have some
        remedy = "save plain arrays of numbers: objects would need pickle, which is never read"
        return StepColumn(name, "other", None, "Python objects", remedy)
    pixels = len(shape) in (3, 4)
    if shape[:1] != (rows,) or 0 in shape or len(shape) > 4 or (pixels and dtype != np.uint8):
        there = f", where there are {rows:,} rows" if shape[:1] != (rows,) else ""
        remedy = _image_remedy(shape, dtype, rows) if len(shape) > 2 else ""
        return StepColumn(name, "other", None, f"an array of shape {shape}{there}", remedy)
    width = math.prod(shape[1:]) if len(shape) > 1 else None
    if pixels:
        return StepColumn(name, "image", width, f"images of shape {shape[1:]}")
    return StepColumn(name, _KINDS.get(dtype.kind, "other"), width, str(dtype))


def _image_remedy(shape: tuple[int, ...], dtype: np.dtype[Any], rows: int) -> str:
    """What would be right in place of an array of more dimensions than a table that is no images either."""
    if shape[:1] != (rows,):
        return f"expected a frame for each of the {rows:,} rows, and none after an episode's last action"
    images = "images are uint8, [step, height, width] or with channels last"
    if len(shape) > 4:
        return f"{images}: one frame per step, since frames are stacked when they are sampled"
    if dtype == np.uint8:
        return images
    of_bytes, of_fractions = ".astype('uint8')", "(255 * images).round().astype('uint8')"
    conversion = f"convert those from 0 to 255 with {of_bytes}" if dtype.kind in "fiu" else ""
    if dtype.kind == "f":
        conversion += f", those from 0 to 1 with {of_fractions}"
    return f"{images}; got {dtype}{': ' * bool(conversion)}{conversion}"
