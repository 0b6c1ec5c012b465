"""Parquet and CSV tables, read with pyarrow (extra `tables`)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.datasets import limits
from cwbc.datasets.columns import BY_NAME, ColumnOptions, listed
from cwbc.datasets.decoding import check_regular, decoding
from cwbc.datasets.source import Column, Progress, refuse
from cwbc.datasets.tables import assemble
from cwbc.errors import InputError, need_extra
from cwbc.findings import PLACES_KEPT, Finding, Place, Rejected
from cwbc.recordings import Recording

_BATCH = 1 << 16  # rows decoded together
_BRACKETS = str.maketrans("[],()", "     ")


def read_parquet(path: Path, options: ColumnOptions = BY_NAME, progress: Progress | None = None) -> Recording:
    """The episodes of a Parquet file, or of a folder of them."""
    parquet = need_extra("pyarrow.parquet", "tables", "Parquet files")
    files = _parts(path) if path.is_dir() else [path]
    for file in files:
        check_regular(file)
    stored = sum(file.stat().st_size for file in files)
    with decoding(path, "Parquet"), contextlib.ExitStack() as stack:
        parts = [stack.enter_context(parquet.ParquetFile(file, pre_buffer=False)) for file in files]
        schema = parts[0].schema_arrow.remove_metadata()
        for file, part in zip(files, parts, strict=True):
            if part.schema_arrow.remove_metadata() != schema:
                raise InputError(f"{file} has other columns than {files[0]}; all of {path} must be alike")
        rows = sum(part.metadata.num_rows for part in parts)
        # Not by what it tells of each column: to ask pyarrow for that ends the process where it is damaged.
        limits.check(path, rows * sum(map(_fixed_width, schema.types)), stored)

        def batches(names: Sequence[str]) -> Iterator[Any]:
            fixed = all(_fixed_width(schema.field(name).type) for name in names)
            at_once = _BATCH if fixed else _rows_at_once(parts[0], names)
            size = 0
            for part in parts:
                for batch in part.iter_batches(batch_size=at_once, columns=list(names)):
                    size += batch.nbytes
                    limits.check(path, size, stored)
                    yield batch

        # A folder may be given as "..", which has a name of its own.
        name = path.resolve().name if path.is_dir() else path.stem
        return assemble(ArrowTable(str(path), rows, schema, batches), name, options, progress)


def _fixed_width(kind: Any) -> int:
    """The bytes that each value of a type takes, which are kept in four at least; 0 where they differ."""
    from pyarrow import types

    if types.is_fixed_size_list(kind):
        return int(kind.list_size) * _fixed_width(kind.value_type)
    if not (types.is_primitive(kind) or types.is_decimal(kind)):
        return 0
    return max(int(kind.bit_width) // 8, 4)


def _rows_at_once(part: Any, names: Sequence[str]) -> int:
    """How many rows of lists and texts are read together: one in the file may be that of many rows."""
    first = next(part.iter_batches(batch_size=1, columns=list(names)), None)
    size = max(1 if first is None else first.nbytes, 1)
    return max(min(_BATCH // 16, (1 << 26) // size), 1)


def _parts(folder: Path) -> list[Path]:
    """The files of a folder, however deep, by their numbers: part-2 before part-10."""
    parts = [part for part in folder.rglob("*.parquet") if not part.name.startswith((".", "_"))]
    if not parts:
        raise InputError(f"{folder} has no Parquet files but such as _name or .name, which are never data")
    if any("=" in part.relative_to(folder).as_posix() for part in parts):
        raise InputError(f"{folder} keeps columns in the names of its folders; write them into the files")

    def key(part: Path) -> list[int | str]:
        words = re.split(r"(\d+)", part.relative_to(folder).as_posix())
        return [int(word) if word.isdecimal() else word for word in words]

    return sorted(parts, key=key)


def read_csv(path: Path, options: ColumnOptions = BY_NAME, progress: Progress | None = None) -> Recording:
    """The episodes of a text with a header and one line per step; compressed ones too."""
    csv = need_extra("pyarrow.csv", "tables", "CSV files")
    with decoding(path, "CSV"):
        start = _start(path)
        header = start.split(b"\n")[0]
        sign = max((",", ";", "\t"), key=lambda sign: header.count(sign.encode()))
        # Lines can break within quotes only; where there are none, the reader may split at any.
        parse = csv.ParseOptions(delimiter=sign, newlines_in_values=b'"' in start)
        convert = csv.ConvertOptions(strings_can_be_null=True)
        # Line 1 is the header. Lines that are skipped make the others uncertain.
        lines = re.search(rb"\n\s*\n\s*\S", start) is None
        unit, first_row = ("line", 2) if lines else ("row", 0)
        try:
            with _opened(path) as file:
                whole = csv.read_csv(file, parse_options=parse, convert_options=convert)
        except InputError:
            raise
        except ValueError:
            _check_widths(csv, path, parse, unit, first_row)
            raise

        def batches(names: Sequence[str]) -> Iterator[Any]:
            yield from whole.select(list(names)).to_batches(_BATCH)

        table = ArrowTable(str(path), whole.num_rows, whole.schema, batches, unit, first_row)
        return assemble(table, re.sub(r"\.(csv|tsv)(\.\w+)?$", "", path.name), options, progress)


def _check_widths(csv: Any, path: Path, parse: Any, unit: str, first_row: int) -> None:
    """Refuse a text with rows that are longer or shorter than its header, by their places."""
    wrong: list[Any] = []
    count = 0

    def skip(row: Any) -> str:
        nonlocal count
        count += 1
        if count <= PLACES_KEPT:
            wrong.append(row)
        return "skip"

    parse.invalid_row_handler = skip
    with _opened(path) as file:
        csv.read_csv(file, csv.ReadOptions(use_threads=False), parse)  # by one thread, which counts the rows
    if wrong:
        width = wrong[0].expected_columns
        places = tuple(
            Place(row.number - 2 + first_row, unit, value=f"{row.actual_columns} values") for row in wrong
        )
        what, remedy = f"rows do not have the {width} values that the header has", "give each row all of them"
        raise Rejected(str(path), [Finding("error", what, remedy, count=count, places=places)])


class ArrowTable:
    """A table that pyarrow hands over in batches of rows."""

    def __init__(
        self,
        source: str,
        rows: int,
        schema: Any,
        batches: Callable[[Sequence[str]], Iterator[Any]],
        unit: str = "row",
        first_row: int = 0,
    ) -> None:
        self.source, self.rows, self.unit, self.first_row = source, rows, unit, first_row
        self._batches = batches
        if len(set(schema.names)) < len(schema.names):
            raise InputError(f"{source}: two columns have the same name: {listed(schema.names)}")
        self.columns: dict[str, Column] = {field.name: self._column(field) for field in schema}

    def read(self, names: Sequence[str], dtype: type | None = None) -> Iterator[list[NDArray[Any]]]:
        """These columns, a batch of rows at a time."""
        first = 0
        for batch in self._batches(names):
            yield [self._array(self.columns[n], batch.column(i), first) for i, n in enumerate(names)]
            first += batch.num_rows

    def _column(self, field: Any) -> Column:
        from pyarrow import types

        kind, spelled = field.type, str(field.type)
        if types.is_dictionary(kind):
            kind = kind.value_type
        lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        element = kind.value_type if lists else kind
        width = None
        if lists or types.is_string(kind) or types.is_large_string(kind):
            first = self._first(field.name)
            if isinstance(first, list):
                width = len(first)
            elif isinstance(first, str) and first.startswith(("[", "(")) and (numbers := _numbers(first)):
                return Column(field.name, "real", len(numbers), "text")  # a list, written out
        if types.is_floating(element) or types.is_decimal(element):
            return Column(field.name, "real", width, spelled)
        if types.is_integer(element):
            return Column(field.name, "whole", width, spelled)
        if types.is_boolean(element):
            return Column(field.name, "truth", width, spelled)
        if types.is_string(kind) or types.is_large_string(kind):
            return Column(field.name, "text", None, "text")
        if types.is_temporal(kind):
            return Column(field.name, "time", None, spelled)
        return Column(field.name, "other", None, "no values" if types.is_null(kind) else spelled)

    def _first(self, name: str) -> Any:
        """The first value that there is in a column."""
        for batch in self._batches([name]):
            for value in batch.column(0).drop_null()[:1].to_pylist():
                return value
        return None

    def _array(self, column: Column, array: Any, first: int) -> NDArray[Any]:
        from pyarrow import types

        if column.width is not None:
            return self._lists(column, array, first)
        if column.kind in ("text", "other"):
            values = np.empty(len(array), object)
            values[:] = array.to_pylist()
            return values
        if array.null_count and column.kind != "time":
            array = array.cast("float64")  # where nan says that there is no value
        if types.is_time(array.type):
            array = array.cast(f"int{array.type.bit_width}")
        values = array.to_numpy(zero_copy_only=False)
        return values.astype(np.float64) if values.dtype.kind == "O" else values  # decimals

    def _lists(self, column: Column, array: Any, first: int) -> NDArray[Any]:
        import pyarrow.compute as compute
        from pyarrow import types

        if types.is_string(array.type) or types.is_large_string(array.type):
            parsed = [_numbers(text) for text in array.to_pylist()]
            lengths = np.array([-1 if numbers is None else len(numbers) for numbers in parsed])
            flat: NDArray[Any] = np.array([])
            if (lengths == column.width).all():
                flat = np.array(parsed, np.float64)
        else:
            lengths = compute.fill_null(compute.list_value_length(array), -1).to_numpy(zero_copy_only=False)
            values = array.flatten()
            if values.null_count:
                values = values.cast("float64")
            flat = values.to_numpy(zero_copy_only=False)
        if (wrong := np.flatnonzero(lengths != column.width)).size:
            what = f"holds lists of different lengths, {column.width} values in the first row"
            held = ["no list" if lengths[row] < 0 else f"{lengths[row]} values" for row in wrong[:10]]
            remedy = "every row has the same dimensions"
            raise refuse(self, column, wrong + first, what, remedy, held)
        return flat.reshape(len(array), -1)


def _numbers(text: str | None) -> list[float] | None:
    """The numbers of a list that is written as text, such as [0.5, 1] or [0.5 1]."""
    try:
        return None if text is None else [float(word) for word in text.translate(_BRACKETS).split()]
    except ValueError:
        return None


def _start(path: Path) -> bytes:
    """The first bytes of a text, also of a compressed one."""
    with _opened(path) as stream:
        return bytes(stream.read(1 << 20))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A text, unfolded where it is compressed, and no further than it may be."""
    import pyarrow

    with pyarrow.input_stream(str(path)) as stream:
        packed = isinstance(stream, pyarrow.CompressedInputStream)
        yield pyarrow.PythonFile(_Bounded(path, stream), "r") if packed else stream


class _Bounded:
    """A stream that ends in an error where it has given more than its file may unfold to."""

    closed = False

    def __init__(self, path: Path, stream: Any) -> None:
        self._path, self._stream, self._stored = path, stream, path.stat().st_size
        self._most = limits.limit(
            self._stored
        )  # now: it is read by threads, which do not know what was chosen
        self._given = 0

    def read(self, size: int) -> bytes:
        block = bytes(self._stream.read(size))
        self._given += 4 * len(block)  # a digit and a comma become a number of eight bytes
        if self._given > self._most:
            raise limits.refusal(self._path, self._given, self._stored, self._most)
        return block

    def close(self) -> None:
        self.closed = True
