"""Parquet and CSV tables, read with pyarrow (extra `tables`)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.data.checks import Recording
from cwbc.data.formats.assembly import assemble
from cwbc.data.formats.columns import BY_NAME, NUMBERS, ColumnOptions, Kind, StepColumn, StepTable, listed
from cwbc.data.formats.protection import check_regular, check_size, decoding
from cwbc.data.issues import DataError, Origin
from cwbc.system.errors import InputError, need_extra
from cwbc.system.progress import Progress

_BATCH = 1 << 16  # rows decoded together
_BRACKETS = str.maketrans("[],()", "     ")
_Batches = Callable[[Sequence[str]], Iterable[Any]]  # the batches of some columns


def read_parquet(path: Path, options: ColumnOptions = BY_NAME, progress: Progress | None = None) -> Recording:
    """The episodes of a Parquet file, or of a folder of them."""
    parquet = need_extra("pyarrow.parquet", "tables", "Parquet files")
    from pyarrow import types

    files = _parts(path) if path.is_dir() else [path]
    for file in files:
        check_regular(file)
    stored = sum(file.stat().st_size for file in files)
    with decoding(path, "Parquet"), contextlib.ExitStack() as stack:
        parts = [stack.enter_context(parquet.ParquetFile(file, pre_buffer=False)) for file in files]
        schema = parts[0].schema_arrow.remove_metadata()
        for file, part in zip(files, parts, strict=True):
            if part.schema_arrow.remove_metadata() != schema:
                raise InputError(f"{file} has other columns than {files[0]}; all of {path} must be the same")
        rows = sum(part.metadata.num_rows for part in parts)
        # A value takes four bytes at least. Not by the metadata of columns: damaged ones end the process.
        check_size(path, 4 * rows * len(schema), stored)

        def batches(names: Sequence[str]) -> Iterator[Any]:
            at_once, size = _BATCH, 0
            if not all(types.is_primitive(schema.field(name).type) for name in names):
                # Many rows of lists and texts may share one value in the file.
                first = next(parts[0].iter_batches(batch_size=1, columns=list(names)), None)
                at_once = max(min(_BATCH // 16, (1 << 26) // max(first.nbytes if first else 1, 1)), 1)
            for part in parts:
                for batch in part.iter_batches(batch_size=at_once, columns=list(names)):
                    size += batch.nbytes
                    check_size(path, size, stored)
                    yield batch

        # A folder may be given as "..".
        name = path.resolve().name if path.is_dir() else path.stem
        return assemble(_table(Origin(str(path)), rows, schema, batches), name, options, progress)


def _parts(folder: Path) -> list[Path]:
    """The files below a folder by their numbers: part-2 before part-10."""
    parts = [part for part in folder.rglob("*.parquet") if not part.name.startswith((".", "_"))]
    if not parts:
        raise InputError(f"{folder} has no Parquet files except _name or .name, which are never data")
    if any("=" in part.relative_to(folder).as_posix() for part in parts):
        raise InputError(f"{folder} stores columns in the names of its folders; write them into the files")

    def key(part: Path) -> list[int | str]:
        words = re.split(r"(\d+)", part.relative_to(folder).as_posix())
        return [int(word) if word.isdecimal() else word for word in words]

    return sorted(parts, key=key)


def read_csv(path: Path, options: ColumnOptions = BY_NAME, progress: Progress | None = None) -> Recording:
    """The episodes of a text file with a header and one line per step, compressed or not."""
    csv = need_extra("pyarrow.csv", "tables", "CSV files")
    with decoding(path, "CSV"):
        start = _start(path)
        header = start.split(b"\n")[0]
        sign = max((",", ";", "\t"), key=lambda sign: header.count(sign.encode()))
        # Only quotes can contain line breaks; without them, the reader may split at any.
        parse = csv.ParseOptions(delimiter=sign, newlines_in_values=b'"' in start)
        convert = csv.ConvertOptions(strings_can_be_null=True)
        # Line 1 is the header. Empty lines are skipped, so line numbers would be wrong.
        lines = re.search(rb"\n\s*\n\s*\S", start) is None
        origin = Origin(str(path), unit="line" if lines else "row", first_row=2 if lines else 0)
        try:
            whole = csv.read_csv(str(path), parse_options=parse, convert_options=convert)
        except ValueError:
            _check_widths(origin, parse)
            raise

        table = _table(
            origin, whole.num_rows, whole.schema, lambda names: whole.select(list(names)).to_batches(_BATCH)
        )
        return assemble(table, re.sub(r"\.(csv|tsv)(\.\w+)?$", "", path.name), options, progress)


def _start(path: Path) -> bytes:
    """The first bytes of a text file; a compressed one that expands to more than the limit is refused."""
    import pyarrow

    with pyarrow.input_stream(str(path)) as stream:
        start = block = bytes(stream.read(1 << 20))
        size = 0
        while block and isinstance(stream, pyarrow.CompressedInputStream):
            size += 4 * len(block)  # a digit and a comma become a number of eight bytes
            check_size(path, size, path.stat().st_size)
            block = stream.read(1 << 20)
    return start


def _check_widths(origin: Origin, parse: Any) -> None:
    """Refuse a text file with rows that are longer or shorter than its header."""
    from pyarrow import csv

    wrong: list[Any] = []

    def skip(row: Any) -> str:
        wrong.append(row)
        return "skip"

    parse.invalid_row_handler = skip
    csv.read_csv(origin.source, csv.ReadOptions(use_threads=False), parse)  # one thread counts the rows
    if wrong:
        what = f"rows do not have the {wrong[0].expected_columns} values of the header"
        rows, values = [row.number - 2 for row in wrong], (f"{row.actual_columns} values" for row in wrong)
        issue = origin.issue("error", what, "give each row all of them", None, rows, None, values)
        raise DataError(origin.source, [issue])


def _table(origin: Origin, rows: int, schema: Any, batches: _Batches) -> StepTable:
    """A table that pyarrow reads in batches of rows."""
    if len(set(schema.names)) < len(schema.names):
        raise InputError(f"{origin.source}: two columns have the same name: {listed(schema.names)}")
    columns = {field.name: _column(field, batches) for field in schema}

    def fetch(names: Sequence[str], dtype: type | None, report: Callable[[int], None]) -> NDArray[Any]:
        whole: NDArray[Any] | None = None
        first = 0
        for batch in filter(len, batches(names)):
            parts = [_array(table, columns[n], batch.column(i), first) for i, n in enumerate(names)]
            block = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
            with np.errstate(over="ignore", invalid="ignore"):  # inf, which the checks report
                block = block if dtype is None else block.astype(dtype, copy=False)
            if whole is None:
                whole = np.empty((rows, block.shape[1]), block.dtype)
            elif not np.can_cast(block.dtype, whole.dtype):  # integers up to here, then some are missing
                whole = whole.astype(np.promote_types(block.dtype, whole.dtype))
            whole[first : first + len(block)] = block
            first += len(block)
            report(block.size)
        if whole is None or first != rows:  # the missing rows would be uninitialized memory
            raise InputError(f"{origin.source} is damaged: it declares {rows:,} rows and has {first:,}")
        return whole

    return (table := StepTable(origin, rows, columns, fetch))


def _column(field: Any, batches: _Batches) -> StepColumn:
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    text = types.is_string(kind) or types.is_large_string(kind)
    width = None
    if lists or text:
        starts = (batch.column(0).drop_null()[:1].to_pylist() for batch in batches([field.name]))
        first = next((value for start in starts for value in start), None)
        if isinstance(first, list):
            width = len(first)
        elif isinstance(first, str) and first.startswith(("[", "(")) and (numbers := _numbers(first)):
            return StepColumn(field.name, "float", len(numbers), "text")  # a list, written as text
    element = kind.value_type if lists else kind
    kinds: dict[Kind, bool] = {
        "float": types.is_floating(element) or types.is_decimal(element),
        "integer": types.is_integer(element),
        "boolean": types.is_boolean(element),
        "text": text,
        "time": types.is_temporal(kind),
    }
    name: Kind = next((name for name, fits in kinds.items() if fits), "other")
    type_name = "text" if text else "no values" if types.is_null(kind) else str(field.type)
    return StepColumn(field.name, name, width if name in NUMBERS else None, type_name)


def _array(table: StepTable, column: StepColumn, array: Any, first: int) -> NDArray[Any]:
    """A column of one batch, which starts at row `first`. [row, width]"""
    from pyarrow import types

    if column.width is not None:
        return _lists(table, column, array, first)
    if column.kind in ("text", "other"):
        texts = np.empty((len(array), 1), object)
        texts[:, 0] = array.to_pylist()
        return texts
    if array.null_count and column.kind != "time":
        array = array.cast("float64")  # nan for a missing value
    if types.is_time(array.type):
        array = array.cast(f"int{array.type.bit_width}")
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)[:, None]
    return values.astype(np.float64) if values.dtype.kind == "O" else values  # decimals


def _lists(table: StepTable, column: StepColumn, array: Any, first: int) -> NDArray[Any]:
    import pyarrow.compute as compute
    from pyarrow import types

    if types.is_string(array.type) or types.is_large_string(array.type):
        parsed = [_numbers(text) for text in array.to_pylist()]
        lengths = np.array([-1 if numbers is None else len(numbers) for numbers in parsed])
        flat = np.array([number for numbers in parsed for number in numbers or ()])
    else:
        lengths = compute.fill_null(compute.list_value_length(array), -1).to_numpy(zero_copy_only=False)
        values = array.flatten()
        flat = (values.cast("float64") if values.null_count else values).to_numpy(zero_copy_only=False)
    if (wrong := np.flatnonzero(lengths != column.width)).size:
        what = f"holds lists of different lengths, {column.width} values in the first row"
        found = ("no list" if length < 0 else f"{length} values" for length in lengths[wrong])
        raise table.invalid(column, wrong + first, what, "every row has the same dimensions", found)
    return flat.reshape(len(array), -1)


def _numbers(text: str | None) -> list[float] | None:
    """The numbers of a list written as text, such as [0.5, 1] or [0.5 1]."""
    try:
        return None if text is None else [float(word) for word in text.translate(_BRACKETS).split()]
    except ValueError:
        return None
