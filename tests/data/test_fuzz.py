"""Whatever the bytes: sound data or a clear error; never a traceback, a hang, a crash, a loaded pickle."""

from __future__ import annotations

import base64
import datetime
import decimal
import gzip
import io
import json
import os
import pickle
import resource
import select
import subprocess
import sys
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from conftest import d4rl_arrays, write_d4rl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cwbc.core.trajectories import Trajectories
from cwbc.data import load
from cwbc.system.errors import InputError

PATIENCE = 120.0  # seconds for one file of a few kilobytes; busy cores may be slow
ROOM = 2 << 30  # bytes that reading one may take

# Nothing here may depend on how busy the machine is.
budget = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def consistent(data: Trajectories) -> None:
    """The laws that every method relies on."""
    steps, ends = data.steps, data.starts + data.lengths
    assert data.observations.shape == (steps, data.observations.shape[-1])
    assert data.actions.shape == ((steps,) if data.discrete else (steps, data.action_size))
    assert min(data.observations.size, data.actions.size) > 0
    assert data.observations.dtype == data.rewards.dtype == np.float32
    assert data.actions.dtype == (np.int32 if data.discrete else np.float32)
    assert all(np.isfinite(array).all() for array in (data.observations, data.actions, data.rewards))
    assert not data.discrete or (data.actions.min() >= 0 and data.actions.max() < data.action_size)
    assert len(data.starts) == len(data.lengths) == len(data.terminated)
    assert data.lengths.min() > 0
    assert [0, *ends] == [*data.starts, steps]
    assert data.unfinished_steps >= 0
    assert len(data.observation_names) in (0, data.observations.shape[1])
    assert data.environment is None or type(data.environment) is str
    assert type(data.content_hash) is str


def outcome(path: str) -> str:
    try:
        data = load(path)
    except InputError as error:
        return f"refused: {error}" if path in str(error) else f"which file? {error}"
    consistent(data)
    return f"read: {data.content_hash}"


def serve() -> None:
    """Answer each path on the standard input with one line."""
    warnings.simplefilter("ignore")
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    for line in sys.stdin:
        try:
            answer = outcome(json.loads(line))
        except BaseException:
            answer = traceback.format_exc()
        print(json.dumps(answer), flush=True)


class Reader:
    """Reads files in a process of its own: C libraries can crash, hang, or fill the memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, content: bytes, suffix: str) -> str:
        """What became of a file with this content: "read: HASH" or "refused: TEXT"."""
        path = self._folder / f"fuzzed{suffix}"
        path.write_bytes(content)
        answer = self.ask(path)
        if not answer.startswith(("read: ", "refused: ")):
            text = base64.b64encode(content[: 1 << 16]).decode()
            pytest.fail(f"{suffix}: {answer}\nbase64 of the file: {text}")
        return answer

    def ask(self, path: Path) -> str:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])},
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(str(path)) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        line = process.stdout.readline() if ready else ""
        if line:
            return str(json.loads(line))
        self.close()
        return f"crashed with status {process.returncode}" if ready else f"no answer in {PATIENCE:g} s"

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = None


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    reader = Reader(tmp_path_factory.mktemp("fuzz"))
    yield reader
    reader.close()


def hdf5_bytes(
    arrays: dict[str, Any] | None = None,
    libver: str | None = None,
    env: str | bytes = "Hopper-v4",
    **filters: Any,
) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=libver) as file:
        for key, array in (d4rl_arrays() if arrays is None else arrays).items():
            file.create_dataset(key, data=array, **filters)
        file.attrs["env"] = env
    return buffer.getvalue()


def npz_bytes(arrays: dict[str, Any] | None = None, compressed: bool = False) -> bytes:
    buffer = io.BytesIO()
    save: Callable[..., None] = np.savez_compressed if compressed else np.savez
    save(buffer, **(d4rl_arrays() if arrays is None else arrays))
    return buffer.getvalue()


def parquet_bytes(table: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer, **options)
    return buffer.getvalue()


def csv_bytes(table: Any) -> bytes:
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(table, buffer)
    return buffer.getvalue()


def d4rl_table(**changes: Any) -> Any:
    """The episodes of d4rl_arrays as a table; a column that is changed to None is left out."""
    arrays = d4rl_arrays()
    columns = {
        "episode": [0, 0, 0, 1, 2, 2],
        "step": [0, 1, 2, 0, 0, 1],
        **{f"obs_{i}": arrays["observations"][:, i] for i in range(3)},
        **{f"action_{i}": arrays["actions"][:, i] for i in range(2)},
        "reward": arrays["rewards"],
        "terminated": arrays["terminals"],
    }
    return pa.table({name: values for name, values in (columns | changes).items() if values is not None})


def lists() -> Any:
    vectors = pa.array(d4rl_arrays()["observations"].tolist(), pa.list_(pa.float32()))
    return d4rl_table(obs_0=None, obs_1=None, obs_2=None, observation=vectors)


WHOLE = {
    ".hdf5": [
        hdf5_bytes(),
        hdf5_bytes(libver="latest", env=np.bytes_("Hopper-v4")),
        hdf5_bytes(chunks=True, fletcher32=True),
        hdf5_bytes(chunks=True, compression="gzip", shuffle=True),
        hdf5_bytes(libver="latest", chunks=True, compression="lzf"),
    ],
    ".npz": [npz_bytes(), npz_bytes(compressed=True)],
    ".parquet": [
        parquet_bytes(d4rl_table()),
        parquet_bytes(lists(), compression="zstd", use_dictionary=False),
        parquet_bytes(lists(), compression="gzip", data_page_version="2.0", row_group_size=4),
        parquet_bytes(d4rl_table(), compression="none", store_schema=False),
    ],
    ".csv": [csv_bytes(d4rl_table()), csv_bytes(d4rl_table()).replace(b",", b";")],
}


@pytest.mark.parametrize("suffix", WHOLE)
def test_what_is_damaged_below_is_whole(reader: Reader, suffix: str) -> None:
    for content in WHOLE[suffix]:
        assert reader(content, suffix).startswith("read: ")


@st.composite
def damaged(draw: st.DrawFn, wholes: Sequence[bytes]) -> bytes:
    """A whole file with a few things done to it."""
    content = bytearray(draw(st.sampled_from(wholes)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        count = draw(st.integers(1, 16))
        match draw(st.sampled_from(["flip", "overwrite", "insert", "delete", "cut", "splice"])):
            case "flip":
                content[at : at + 1] = bytes(byte ^ 1 << count % 8 for byte in content[at : at + 1])
            case "overwrite":
                fill = st.sampled_from([b"\xff" * count, b"\0" * count, b"\x7f" * count])
                content[at : at + count] = draw(fill | st.binary(min_size=count, max_size=count))
            case "insert":
                content[at:at] = draw(st.binary(min_size=1, max_size=16))
            case "delete":
                del content[at : at + count]
            case "cut":
                del content[at:]
            case "splice":
                other = draw(st.sampled_from(wholes))
                content[at:] = other[draw(st.integers(0, len(other))) :]
    return bytes(content)


@pytest.mark.parametrize("suffix", WHOLE)
def test_a_damaged_file(reader: Reader, suffix: str) -> None:
    @settings(budget, max_examples=250)
    @given(damaged(WHOLE[suffix]))
    def check(content: bytes) -> None:
        reader(content, suffix)

    check()


@settings(budget, max_examples=100)
@given(
    st.sampled_from([b"", b"\x89HDF\r\n\x1a\n", b"PAR1", b"PK\x03\x04", b"PK\x05\x06", b"\x80\x04"]),
    st.binary(max_size=300) | st.text(max_size=100).map(str.encode),
    st.sampled_from([*WHOLE, ".h5", ".tsv", ".csv.gz", ".csv.zst", ".pkl", ".npy", "", ".unheard"]),
)
def test_garbage(reader: Reader, start: bytes, rest: bytes, suffix: str) -> None:
    # A text of a few letters can be a table, but has no columns for everything.
    assert reader(start + rest, suffix).startswith("refused: ")


numbers = st.floats() | st.integers(-(2**63), 2**64 - 1).map(float)
COLUMNS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.float64(), numbers),
    (pa.float32(), st.floats(width=32)),
    (pa.float16(), st.floats(width=16)),
    (pa.int8(), st.integers(-3, 3)),
    (pa.int64(), st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 3) | st.integers(2**63, 2**64 - 1)),
    (pa.bool_(), st.booleans()),
    (
        pa.string(),
        st.text(max_size=3) | st.sampled_from(["1", "nan", "[1, 2]", "(1", "[", "true", "2024-01-01"]),
    ),
    (pa.large_string(), st.text(max_size=3)),
    (pa.binary(), st.binary(max_size=3)),
    (pa.list_(pa.float64()), st.lists(numbers, max_size=2)),
    (pa.list_(pa.int64(), 2), st.lists(st.integers(-3, 3), min_size=2, max_size=2)),
    (pa.large_list(pa.bool_()), st.lists(st.booleans(), max_size=2)),
    (pa.list_(pa.list_(pa.float32())), st.lists(st.lists(st.floats(width=32), max_size=1), max_size=2)),
    (pa.list_(pa.string()), st.lists(st.text(max_size=2), max_size=2)),
    (pa.struct({"x": pa.int32()}), st.fixed_dictionaries({"x": st.integers(0, 3)})),
    (pa.timestamp("us"), st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))),
    (pa.timestamp("ms", "UTC"), st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2100, 1, 1))),
    (pa.date32(), st.dates()),
    (pa.time64("us"), st.times()),
    (pa.duration("us"), st.timedeltas(datetime.timedelta(-9), datetime.timedelta(9))),
    (pa.decimal128(38, 2), st.decimals(-(10**30), 10**30, places=2).map(decimal.Decimal)),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b"])),
    (pa.dictionary(pa.int8(), pa.int64()), st.integers(-3, 3)),
    (pa.dictionary(pa.int8(), pa.float32()), st.floats(width=32)),
    (pa.null(), st.none()),
]
ROLES = ["episode", "step", "observation", "action", "reward", "terminated", "truncated", "done"]
NAMES = [
    " Reward ",
    "OBS",
    "obs_10",
    "obs_2",
    "obs0",
    "obs\u00b2",
    "act",
    "rew",
    "ep_id",
    "time",
    "action_0",
    "action_x",
    "t",
    "",
    "é\n",
    "[/red]",
    'a,"b',
    "\x1b[1m",
]


@st.composite
def tables(draw: st.DrawFn) -> Any:
    """A table that could be read, but for some columns of any name and type; two may have one name."""
    rows = draw(st.integers(0, 4))
    usual = {
        "episode": pa.array([row // 2 for row in range(rows)], pa.int64()),
        "observation": pa.array([row / 3 for row in range(rows)], pa.float64()),
        "action": pa.array([row / 4 for row in range(rows)], pa.float64()),
        "reward": pa.array([float(row) for row in range(rows)], pa.float64()),
    }
    for role in draw(st.sets(st.sampled_from(sorted(usual)), max_size=2)):
        del usual[role]
    columns = list(usual.items())
    for name in draw(st.lists(st.sampled_from(ROLES + NAMES), max_size=4)):
        kind, values = draw(st.sampled_from(COLUMNS))
        holes = draw(st.booleans())
        cells = draw(st.lists(values | st.none() if holes else values, min_size=rows, max_size=rows))
        columns.append((name, pa.array(cells, kind)))
    return pa.Table.from_arrays([array for _, array in columns], [name for name, _ in columns])


def spelled(table: Any) -> Any:
    """The same table with what a CSV file cannot hold written out."""
    texts = [
        pa.array([None if v is None else str(v) for v in c.to_pylist()], pa.string()) for c in table.columns
    ]
    plain = [
        column if _is_plain(column.type) else text for column, text in zip(table.columns, texts, strict=True)
    ]
    return pa.Table.from_arrays(plain, table.column_names)


def _is_plain(kind: Any) -> bool:
    unwritable = (pa.types.is_nested, pa.types.is_dictionary, pa.types.is_float16, pa.types.is_binary)
    return not any(test(kind) for test in unwritable)


@settings(budget, max_examples=100)
@given(tables())
def test_any_table(reader: Reader, table: Any) -> None:
    reader(parquet_bytes(table, row_group_size=3), ".parquet")
    reader(csv_bytes(spelled(table)), ".csv")
    arrays = {
        f"{name}": column.to_numpy() for name, column in zip(table.column_names, table.columns, strict=True)
    }
    reader(npz_bytes(arrays), ".npz")


@st.composite
def logs(draw: st.DrawFn) -> tuple[dict[str, Any], list[int]]:
    """The columns of some episodes, and another order of their rows."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rows = sum(lengths)
    finite = st.floats(-(2.0**99), 2.0**99, width=32)
    last = np.cumsum(lengths) - 1
    columns = {
        "episode": np.repeat(np.arange(len(lengths)), lengths),
        "step": np.concatenate([np.arange(length) for length in lengths]),
        "terminated": np.isin(np.arange(rows), last[draw(st.integers(0, 1)) :: 2]),
    }
    for name in ("obs_0", "obs_1", "action_0", "action_1", "reward"):
        columns[name] = np.array(draw(st.lists(finite, min_size=rows, max_size=rows)), np.float32)
        columns[name][0] = 0.5  # a text of whole numbers alone says that they are discrete
    return columns, draw(st.permutations(range(rows)))


@settings(budget, max_examples=25)
@given(logs())
def test_neither_format_nor_order_changes_the_data(
    tmp_path_factory: pytest.TempPathFactory, log: tuple[dict[str, Any], list[int]]
) -> None:
    columns, order = log
    folder = tmp_path_factory.getbasetemp()
    last = np.append(np.diff(columns["episode"]) > 0, True)
    layout = {
        "observations": np.stack([columns["obs_0"], columns["obs_1"]], axis=1),
        "actions": np.stack([columns["action_0"], columns["action_1"]], axis=1),
        "rewards": columns["reward"],
        "terminals": columns["terminated"],
        "timeouts": last & ~columns["terminated"],
    }
    table = pa.table(columns)
    by_step = np.argsort(columns["step"], kind="stable")  # one step of every episode after another
    named = pa.table(columns | {"episode": [f"day {episode}" for episode in columns["episode"]]})
    contents = {
        "layout.hdf5": hdf5_bytes(layout),
        "layout.npz": npz_bytes(layout),
        "table.npz": npz_bytes({name: values[order] for name, values in columns.items()}),
        "table.parquet": parquet_bytes(table, row_group_size=3),
        "shuffled.parquet": parquet_bytes(table.take(order)),
        "interleaved.parquet": parquet_bytes(table.take(by_step)),
        "named.parquet": parquet_bytes(named.take(order)),
        "table.csv": csv_bytes(table),
        "shuffled.csv": csv_bytes(table.take(order)),
    }
    hashes = {}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        hashes[name] = load(folder / name).content_hash
    assert len(set(hashes.values())) == 1, hashes


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._marker),)


def zipped(**members: bytes) -> bytes:
    """An NPZ file of d4rl_arrays with other bytes in place of some arrays."""
    buffer = io.BytesIO(npz_bytes(d4rl_arrays(**dict.fromkeys(members))))
    with zipfile.ZipFile(buffer, "a") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def saved(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def extension_type(trap: bytes) -> bytes:
    name, metadata = "arrow.py_extension_type", trap
    field = pa.field(
        "reward", pa.float32(), metadata={"ARROW:extension:name": name, "ARROW:extension:metadata": metadata}
    )
    table = d4rl_table(reward=None).append_column(field, pa.array(d4rl_arrays()["rewards"]))
    return parquet_bytes(table)


def test_no_pickle_is_loaded(reader: Reader, tmp_path: Path) -> None:
    marker = tmp_path / "unpickled"
    trap = pickle.dumps(Trap(marker))
    pickle.loads(trap)
    marker.rmdir()  # the trap works
    objects = np.array([Trap(marker)] * 6, object)
    opaque = np.frombuffer(trap * 6, f"V{len(trap)}")
    refused = [
        (npz_bytes(d4rl_arrays(observations=objects)), ".npz"),
        (npz_bytes(d4rl_arrays(terminals=objects[:1])), ".npz"),
        (zipped(rewards=trap), ".npz"),
        (zipped(rewards=saved(objects)), ".npz"),
        (hdf5_bytes(d4rl_arrays(rewards=opaque)), ".hdf5"),
        (parquet_bytes(d4rl_table(reward=[trap] * 6)), ".parquet"),
        *((content, suffix) for suffix in (*WHOLE, ".pkl", ".npy", "") for content in (trap, saved(objects))),
    ]
    for content, suffix in refused:
        assert reader(content, suffix).startswith("refused: ")
    # Numbers under the name of a type that pyarrow used to unpickle are numbers.
    reader(extension_type(trap), ".parquet")
    with h5py.File(tmp_path / "mine.hdf5", "w") as file:
        for key, array in d4rl_arrays(extra=opaque).items():
            file[key] = array
        file.attrs["env"] = np.void(trap)
    reader((tmp_path / "mine.hdf5").read_bytes(), ".hdf5")
    assert not marker.exists()


def claiming(shape: tuple[int, ...]) -> bytes:
    """An array whose header tells this shape, without values."""
    buffer = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()


def nested_header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def empty_hdf5(rows: int) -> bytes:
    """Arrays of so many rows, none of them written."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for key, array in d4rl_arrays().items():
            shape, chunks = (rows, *array.shape[1:]), (1 << 16, *array.shape[1:])
            file.create_dataset(key, shape, array.dtype, chunks=chunks, fillvalue=1)
    return buffer.getvalue()


def hdf5_of_columns(count: int, rows: int) -> bytes:
    """As many columns of so many rows, none of them written, and none too long by itself."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for key in (*(f"obs_{i}" for i in range(count)), "action", "reward", "done"):
            file.create_dataset(key, (rows,), "f4", chunks=(1 << 16,), fillvalue=1)
    return buffer.getvalue()


def telling_rows(table: Any, rows: int) -> bytes:
    """A Parquet file of six rows that tells another number of them."""
    content = parquet_bytes(table, compression="none", store_schema=False)
    size = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - size : -8]
    before = b"\x16\x0c\x19"  # in thrift: the field of the six rows, and the beginning of the next
    assert footer.count(before) == 1
    number, digits = 2 * rows, b""
    while number > 127:
        number, digits = number >> 7, digits + bytes([number & 127 | 128])
    footer = footer.replace(before, b"\x16" + digits + bytes([number]) + b"\x19")
    return content[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "npz of 10^12 rows": (lambda: zipped(**dict.fromkeys(d4rl_arrays(), claiming((10**12,)))), ".npz"),
    "npz of 10^9 rows": (lambda: zipped(rewards=claiming((10**9,))), ".npz"),
    "npz of 2^64 rows": (lambda: zipped(rewards=claiming((2**64,))), ".npz"),
    "npz of negative rows": (lambda: zipped(rewards=claiming((-6,))), ".npz"),
    "npz with parentheses": (lambda: zipped(rewards=nested_header("(" * 9000)), ".npz"),
    "npz with signs": (lambda: zipped(rewards=nested_header("-" * 9000 + "1")), ".npz"),
    "hdf5 of 10^12 rows": (lambda: empty_hdf5(10**12), ".hdf5"),
    "hdf5 of 10^10 rows": (lambda: empty_hdf5(10**10), ".hdf5"),
    "parquet of 10^12 rows": (lambda: telling_rows(d4rl_table(), 10**12), ".parquet"),
    "parquet of 5 rows": (lambda: telling_rows(d4rl_table(), 5), ".parquet"),
    "csv of one line": (lambda: b"a" * 5_000_000, ".csv"),
    "csv of many columns": (lambda: b"," * 20_000 + b"\n", ".csv"),
    "csv with brackets": (lambda: b"episode,obs,action,reward\n0," + b"[" * 500_000 + b"x,1,1\n", ".csv"),
    "csv of zeros, compressed": (lambda: gzip.compress(bytes(50_000_000), 1), ".csv.gz"),
    "hdf5 of columns without values": (lambda: hdf5_of_columns(40, 60_000_000), ".hdf5"),
    "npz with a header of 3 GB": (
        lambda: zipped(rewards=b"\x93NUMPY\x02\x00\0\0\0\xc0" + bytes(99_999)),
        ".npz",
    ),
    "csv of 50,000 columns": (lambda: b",".join(b"obs_%d" % i for i in range(50_000)) + b"\n", ".csv"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb(reader: Reader, bomb: str) -> None:
    make, suffix = BOMBS[bomb]
    assert reader(make(), suffix).startswith("refused: ")


def test_an_array_that_cannot_be_in_the_file_is_not_allocated(reader: Reader) -> None:
    assert "allocate" not in reader(empty_hdf5(10**10), ".hdf5")


def test_rows_that_are_told_but_not_there(reader: Reader) -> None:
    content = telling_rows(d4rl_table(step=None), 8)
    assert reader(content, ".parquet").startswith("refused: ")


@pytest.mark.parametrize("column", ["observation", "action"])
def test_lists_without_values(tmp_path: Path, column: str) -> None:
    empty = pa.array([[]] * 6, pa.list_(pa.float32()))
    names = [name for name in d4rl_table().column_names if name.startswith(column[:3])]
    table = d4rl_table(**dict.fromkeys(names)).append_column(column, empty)
    (tmp_path / "mine.parquet").write_bytes(parquet_bytes(table))
    with pytest.raises(InputError, match=column):
        load(tmp_path / "mine.parquet")


def test_missing_times(tmp_path: Path) -> None:
    times = np.array(["NaT"] * 6, "M8[s]")
    (tmp_path / "mine.npz").write_bytes(npz_bytes(d4rl_arrays(episode=np.zeros(6, int), step=times)))
    with pytest.raises(InputError, match="step has no value"):
        load(tmp_path / "mine.npz")


def test_opposite_infinities(tmp_path: Path) -> None:
    path = write_d4rl(tmp_path / "mine.hdf5", rewards=np.array([np.inf, -np.inf, 0, 0, 0, 0]))
    with pytest.raises(InputError, match="rewards is not finite"):
        load(path)


@pytest.mark.parametrize("name", ["imported_by_a_file:Thing-v0", ".relative:Thing-v0"])
def test_a_file_does_not_choose_what_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "imported_by_a_file.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    load(write_d4rl(tmp_path / "mine.hdf5", env=np.bytes_(name)))
    assert "imported_by_a_file" not in sys.modules


@pytest.mark.parametrize(
    ("after", "offset", "value"),
    [
        (b"GCOL", 24, 0),  # the size of the text in the heap: what follows is taken for an object of no size
        (b"GCOL", 56, 0),  # the size of what is free in the heap
        (b"env\0", 9, 2),  # a kind of variable length that is neither text nor sequence
    ],
)
def test_a_damaged_text_of_variable_length(
    reader: Reader, tmp_path: Path, after: bytes, offset: int, value: int
) -> None:
    content = bytearray(write_d4rl(tmp_path / "mine.hdf5", env="Hopper-v4").read_bytes())
    content[content.index(after) + offset] = value
    reader(bytes(content), ".hdf5")


def test_a_chunk_that_is_shorter_than_its_checksum(reader: Reader) -> None:
    before, *trees = hdf5_bytes(chunks=True, fletcher32=True).split(b"TREE\x01")  # the lists of chunks
    assert len(trees) == len(d4rl_arrays())
    content = before + b"".join(b"TREE\x01" + tree[:19] + bytes(4) + tree[23:] for tree in trees)
    assert reader(content, ".hdf5").startswith("refused: ")


def test_a_pipe_among_the_parts_of_a_dataset(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part-0.parquet").write_bytes(parquet_bytes(d4rl_table()))
    os.mkfifo(tmp_path / "parts" / "part-1.parquet")
    assert "part-1.parquet is a pipe or a device" in reader.ask(tmp_path / "parts")
    minari = tmp_path / "minari"
    (minari / "data").mkdir(parents=True)
    (minari / "data" / "metadata.json").write_text("{}")
    os.mkfifo(minari / "data" / "main_data.hdf5")
    assert "main_data.hdf5 is a pipe or a device" in reader.ask(minari)


@pytest.mark.parametrize("inside", [False, True])
def test_a_pipe(reader: Reader, tmp_path: Path, inside: bool) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    if inside:
        path = write_d4rl(tmp_path / "mine.hdf5", rewards=None)
        with h5py.File(path, "a") as file:
            file.create_dataset("rewards", (6,), "f4", external=[(str(pipe), 0, 24)])
    assert reader.ask(path if inside else pipe).startswith("refused: ")


if __name__ == "__main__":
    serve()
