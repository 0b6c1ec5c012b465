"""Minari's datasets, by the minari package itself: found, read, downloaded, and written for others to use."""

from __future__ import annotations

import contextlib
import copy
import difflib
import importlib.metadata
import io
import json
import math
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
from gymnasium import Space, registry, spaces
from numpy.typing import NDArray

from cwbc import observations
from cwbc.datasets.decoding import decoding
from cwbc.datasets.tables import Recording
from cwbc.errors import InputError, need_extra
from cwbc.findings import Finding, Origin
from cwbc.trajectories import Trajectories

FORMAT = "a Minari dataset"
ROOT = "MINARI_DATASETS_PATH"  # Minari's environment variable for where its datasets lie
REMOTE = "MINARI_REMOTE"  # and for where they are downloaded from

_ID = re.compile(r"(?![-\w]/[^/]*$)([-\w]+/)*[-\w]+-v\d+")  # Minari takes no namespace of one letter
_MOST_NUMBERS = 1 << 20  # in one observation; more are a damaged space, and would fill the memory
_DENSEST = 1 << 16  # bytes that one byte of a compressed array can stand for
_ALWAYS_READ = 1 << 16  # bytes of an array that need no proof
_LOT = 1 << 15  # rows; of a longer episode, Minari's arrow storage writes all and reads the first so many
_PATIENCE = 10.0  # seconds for a first answer; the packages below wait for minutes, or forever


def is_dataset(path: Path) -> bool:
    """Whether a folder has Minari's layout."""
    return os.path.isfile(path / "data" / "metadata.json")  # False also where the name cannot be a file's


def local(name: str) -> Path | None:
    """The folder of the dataset with this id in Minari's own place, if it is there."""
    folder = _root() / name
    return folder if _ID.fullmatch(name) and is_dataset(folder) else None


def local_names() -> list[str]:
    """The ids of all datasets in Minari's own place."""
    names = (path.relative_to(_root()).as_posix() for path in _datasets(_root()))
    return sorted(name for name in names if _ID.fullmatch(name))


def _datasets(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    real = folder.resolve()
    if real in above:  # a link that goes round
        return
    try:
        inner = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except OSError:  # not there, or not for us to see
        return
    for path in inner:
        if is_dataset(path):
            yield path
        else:
            yield from _datasets(path, above | {real})


def _root() -> Path:
    return Path(os.environ.get(ROOT) or Path.home() / ".minari" / "datasets")


@contextlib.contextmanager
def _unwarned() -> Iterator[None]:
    """Minari warns of every field that is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """A download also prints what it does; its bars are left to terminals."""
    aside = io.StringIO()
    errors = sys.stderr if sys.stderr.isatty() else aside
    with _unwarned(), contextlib.redirect_stdout(aside), contextlib.redirect_stderr(errors):
        yield


def read(path: Path, name: str | None = None) -> Recording:
    """Every episode of a dataset, as Minari counts them.

    Args:
        name: what to call it; without it, its id.
    """
    source = name or str(path)
    try:
        with _unwarned(), decoding(path, FORMAT):
            need_extra("minari", "minari", "Minari datasets")
            return _Reader(path, source).recording(name)
    except FileNotFoundError as error:  # of one episode: the folder as a whole is there
        raise InputError(f"{path} lacks a part of {FORMAT}: {error}") from error


class _Reader:
    """One dataset, its episodes laid end to end as they come."""

    def __init__(self, path: Path, source: str) -> None:
        self._path, self._source = path / "data", source
        self._metadata: dict[str, Any] = json.loads((self._path / "metadata.json").read_bytes())
        self._check_metadata()
        from minari.dataset.minari_storage import MinariStorage

        self._storage = MinariStorage.read(self._path)
        self._space, self._action_space = self._storage.observation_space, self._storage.action_space
        self._check_spaces()
        self._discrete = isinstance(self._action_space, spaces.Discrete)
        # Each step takes some bytes: a count beyond is not believed. What it leaves out finds its room later.
        expected = min(self._metadata["total_steps"], sum(f.stat().st_size for f in self._path.rglob("*")))
        width = 1 if self._discrete else math.prod(self._action_space.shape)
        try:
            self._observations = _Rows(expected, observations.size(self._space), np.float32)
            self._actions = _Rows(expected, width, np.int32 if self._discrete else np.float32)
            self._rewards = _Rows(expected, 1, np.float32)
        except MemoryError as error:
            raise InputError(f"{source}: {expected:,} steps do not fit into the memory: {error}") from error
        self._labels: list[int] = []
        self._lengths: list[int] = []
        self._terminated: list[bool] = []
        self._empty: list[int] = []

    def recording(self, name: str | None) -> Recording:
        with contextlib.closing(self._episodes()) as episodes:
            for episode in episodes:
                with self._naming(episode["id"]):
                    self._add(episode)
        if not self._labels:
            raise InputError(f"{self._source}: there are no steps; was the dataset written to its end?")
        ends = np.cumsum(self._lengths, dtype=np.int64)
        environment, time_limit = self._environment()
        actions = self._actions.array()
        data = Trajectories(
            name=name or self._metadata["dataset_id"],
            observations=self._observations.array(),
            actions=actions[:, 0] if self._discrete else actions,
            rewards=self._rewards.array()[:, 0],
            starts=ends - self._lengths,
            lengths=np.array(self._lengths, np.int64),
            terminated=np.array(self._terminated, bool),
            environment=environment,
            time_limit=time_limit,
            action_count=int(self._action_space.n) if self._discrete else None,
            observation_names=observations.names(self._space),
        )
        origin = Origin(self._source, episodes=self._labels, ordered_by_step=True)
        return Recording(data, origin, tuple(self._doubts(data)))

    def _check_metadata(self) -> None:
        from minari import __version__, supported_dataset_versions

        for key, kind in (
            # Without a space, Minari would make the environment, which runs what the file names.
            ("observation_space", str), ("action_space", str), ("data_format", str),
            ("total_episodes", int), ("total_steps", int), ("dataset_id", str), ("minari_version", str),
        ):  # fmt: skip
            if not isinstance(self._metadata, dict) or not isinstance(self._metadata.get(key), kind):
                where = self._path / "metadata.json"
                raise InputError(f"{where} has no {key}; every dataset that Minari wrote has one")
        version = self._metadata["minari_version"]
        if version not in supported_dataset_versions:
            raise InputError(
                f"{self._source} was written by Minari {version}, which Minari {__version__} does not read; "
                f"it reads {', '.join(sorted(supported_dataset_versions))}"
            )

    def _check_spaces(self) -> None:
        if not isinstance(self._action_space, spaces.Box | spaces.Discrete):
            raise InputError(
                f"{self._source}: actions are in a {type(self._action_space).__name__} space; "
                "those of Box and Discrete spaces can be learnt"
            )
        try:
            count = observations.size(self._space)
        except InputError as error:
            raise InputError(f"{self._source}: {error}") from error
        if not 0 < count <= _MOST_NUMBERS:
            wanted = f"from 1 to {_MOST_NUMBERS:,} can be learnt from"
            raise InputError(f"{self._source}: an observation is of {count:,} numbers; {wanted}")

    def _episodes(self) -> Generator[dict[str, Any], None, None]:
        episodes = range(self._metadata["total_episodes"])
        if self._storage.FORMAT == "hdf5":
            _check_sizes(self._path / "main_data.hdf5")
            yield from self._storage.get_episodes(episodes)
            return
        for episode in episodes:  # one by one: of many, Minari takes every batch for an episode of its own
            with self._naming(episode):
                _check_batches(self._path / str(episode), self._storage.FORMAT)
            yield from self._storage.get_episodes([episode])

    @contextlib.contextmanager
    def _naming(self, episode: int) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            raise InputError(f"{self._source}, episode {episode}: {error}") from error

    def _add(self, episode: dict[str, Any]) -> None:
        count = len(episode["rewards"])
        if not count:  # nothing can be learnt from it, and nothing is wrong with the others
            self._empty.append(episode["id"])
            return
        ended = _column(episode, "terminations", count)
        _column(episode, "truncations", count)
        # The observation after the last action is left out: nothing was decided on it.
        seen = observations.flatten_batch(self._space, episode["observations"], count + 1)[:count]
        self._observations.add(seen)
        self._actions.add(self._taken(episode["actions"], count))
        self._rewards.add(_column(episode, "rewards", count))
        self._labels.append(episode["id"])
        self._lengths.append(count)
        self._terminated.append(bool(ended[-1, 0]))

    def _taken(self, actions: Any, count: int) -> NDArray[Any]:
        space, values = self._action_space, np.asarray(actions)
        shape = (count, *space.shape)
        if values.shape[:1] != (count,) or values.size != math.prod(shape):
            raise InputError(f"'actions' has values of shape {values.shape}; expected {shape}")
        if not self._discrete:
            return values.reshape(count, -1)
        if values.dtype.kind not in "iub":
            raise InputError(f"'actions' holds {values.dtype}; {space} has whole numbers")
        # What is not in the space stays outside, and the checks tell its place.
        return (values.astype(np.int64) - space.start).clip(-1, 2**31 - 1).reshape(count, 1)

    def _environment(self) -> tuple[str | None, int | None]:
        """Id and time limit of the environment, as the file has them; it is not made."""
        spec = json.loads(self._metadata.get("env_spec") or "{}")
        name, limit = spec.get("id"), spec.get("max_episode_steps")
        # "module:Name" would have the module imported: a file may not choose what is run.
        known = isinstance(name, str) and ":" not in name
        return name if known else None, limit if isinstance(limit, int) and limit > 0 else None

    def _doubts(self, data: Trajectories) -> Iterator[Finding]:
        if (told := self._metadata["total_steps"]) != data.steps:
            counted = f"its {data.episodes + len(self._empty):,} episodes have {data.steps:,}"
            yield Finding(
                "warning",
                f"metadata.json counts {told:,} steps, but {counted}",
                "was the dataset written to its end?",
            )
        if self._empty:
            first = ", ".join(map(str, self._empty[:5])) + (" ..." if len(self._empty) > 5 else "")
            yield Finding(
                "warning",
                f"{len(self._empty):,} episodes have no steps ({first})",
                "they are left out: were they recorded?",
                count=len(self._empty),
            )


class _Rows:
    """Rows that come an episode at a time, in one array that grows where it is."""

    def __init__(self, expected: int, width: int, dtype: type) -> None:
        self._array: NDArray[Any] = np.empty((max(expected, 0), width), dtype)
        self._count = 0

    @np.errstate(over="ignore", invalid="ignore")  # beyond float32 is inf, which the checks refuse
    def add(self, block: NDArray[Any]) -> None:
        end = self._count + len(block)
        if end > len(self._array):
            self._resize(max(end, 2 * len(self._array)))
        self._array[self._count : end] = block
        self._count = end

    def array(self) -> NDArray[Any]:
        self._resize(self._count)
        return self._array

    def _resize(self, rows: int) -> None:
        # In place, unlike np.concatenate: at no time is there a second copy of the whole.
        self._array.resize((rows, self._array.shape[1]), refcheck=False)


def _column(episode: dict[str, Any], name: str, count: int) -> NDArray[Any]:
    """One number per step. [count, 1]"""
    values = np.asarray(episode[name])
    if values.size != count or len(values) != count:
        raise InputError(f"'{name}' has values of shape {values.shape}; expected {(count,)}")
    if values.dtype.kind not in "fiub":
        raise InputError(f"'{name}' holds {values.dtype}; expected numbers")
    return values.reshape(count, 1)


def _check_sizes(path: Path) -> None:
    """Refuse arrays of which a file has next to nothing: reading one would fill the memory."""
    with h5py.File(path, "r") as file:

        def look(name: bytes, info: Any) -> None:
            if info.type != h5py.h5o.TYPE_DATASET:
                return
            array = h5py.h5d.open(file.id, name)
            count, plan = array.get_space().get_simple_extent_npoints(), array.get_create_plist()
            if count and plan.get_layout() == h5py.h5d.CHUNKED:
                count = max(count, math.prod(plan.get_chunk()))
            size = count * array.get_type().get_size()
            if size > max(_ALWAYS_READ, array.get_storage_size() * (_DENSEST if plan.get_nfilters() else 1)):
                where = name.decode(errors="replace")
                raise InputError(f"{path} is damaged: it has a part of the {size:,} bytes of {where}")

        h5py.h5o.visit(file.id, look, info=True)


def _check_batches(folder: Path, data_format: str) -> None:
    """Refuse an episode that Minari would read a part of, or whose damage would crash the interpreter."""
    import pyarrow.dataset

    dataset = pyarrow.dataset.dataset(folder, format=data_format, ignore_prefixes=["_", ".", "metadata.json"])
    batches = list(dataset.to_batches())
    for batch in batches:
        batch.validate(full=True)
    if len(batches) != 1:
        raise InputError(
            f"its rows are in {len(batches)} lots, of which Minari reads the first; write the dataset again, "
            "as hdf5"
        )


def download(name: str) -> None:
    """Bring a dataset from Minari's remote to Minari's own place; one that is there already stays."""
    _check_id(name)
    if local(name) is not None:
        return
    _check_place(name, overwrite=False)
    with _unwarned():
        minari = need_extra("minari", "minari", "Minari datasets")
    root = _root()
    root.mkdir(parents=True, exist_ok=True)
    # Aside: Minari takes whatever is in the place of a dataset, such as a part of it, for the whole.
    with tempfile.TemporaryDirectory(prefix=".cwbc-", dir=root) as aside:
        try:
            with _quiet(), _environment_variable(ROOT, aside):
                _reach_remote()
                minari.download_dataset(name)
        except Exception as error:  # a network, a server, and three packages: anything at all
            raise _not_downloaded(name, error) from error
        arrived = list(_datasets(Path(aside)))  # several, where one combines others
        for path in (*arrived, *Path(aside).rglob("namespace_metadata.json")):
            place = root / path.relative_to(aside)
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                os.replace(path, place)


@contextlib.contextmanager
def _environment_variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _reach_remote() -> None:
    """Fail soon where nothing answers: listing the remote sets no time limit, and tries six times."""
    from minari.storage.remotes import DEFAULT_REMOTE

    if os.environ.get(REMOTE, DEFAULT_REMOTE).startswith("hf://"):
        from huggingface_hub import constants, get_session

        get_session().head(constants.ENDPOINT, timeout=_PATIENCE)


def _not_downloaded(name: str, error: Exception) -> InputError:
    if isinstance(error, ImportError):
        return InputError(f"downloading {name} needs more packages: pip install 'cwbc[minari]' ({error})")
    if type(error) is ValueError and (known := _remote_names()) and name not in known:
        return _unknown(name, known)
    text = " ".join(str(error).split())[:300] or type(error).__name__
    return InputError(
        f"{name} cannot be downloaded from Minari's remote: {text}; is the network there? "
        f"{REMOTE} names another remote, HF_ENDPOINT a mirror of this one"
    )


def _remote_names() -> list[str]:
    try:
        from minari.storage.remotes import get_cloud_storage

        with _quiet():
            return sorted(get_cloud_storage().list_datasets())
    except Exception:  # the list is only for a better hint
        return []


def _unknown(name: str, known: list[str]) -> InputError:
    versions = [other for other in known if other.rpartition("-v")[0] == name.rpartition("-v")[0]]
    if versions:
        return InputError(f"there is no Minari dataset {name!r}; the remote has {', '.join(versions)}")
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "`minari list remote` shows all"
    return InputError(f"there is no Minari dataset {name!r}; {hint}")


def export(
    data: Trajectories,
    dataset_id: str,
    overwrite: bool = False,
    data_format: Literal["hdf5", "arrow"] = "hdf5",
) -> Path:
    """Write a dataset in Minari's own place, for every tool that reads Minari's."""
    _check_id(dataset_id)
    root, folder = _root(), _root() / dataset_id
    _check_place(dataset_id, overwrite)
    if data_format == "arrow" and (longest := int(data.lengths.max())) >= _LOT:
        raise InputError(
            f"an episode of {longest:,} steps cannot be exported as arrow: Minari would not read beyond "
            f"{_LOT - 1:,}; hdf5 has no such limit"
        )
    with _unwarned():
        need_extra("minari", "minari", "Minari datasets")
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".cwbc-", dir=root) as aside:
            written = Path(aside, "written")
            written.mkdir()
            _write(data, written / "data", dataset_id, data_format)
            _make_namespace(dataset_id)
            _put(written, folder, Path(aside, "replaced"))
    return folder


def _check_id(name: str) -> None:
    if _ID.fullmatch(name):
        return
    parts = [part for part in re.sub(r"[^-\w/]+", "-", name).split("/") if part.strip("-")]
    likely = "/".join(part.strip("-") for part in parts)
    likely = likely if re.search(r"-v\d+$", likely) else f"{likely}-v0"
    raise InputError(
        f"{name!r} is not an id of a Minari dataset; one is like "
        f"{likely if _ID.fullmatch(likely) else 'namespace/name-v0'!r}"
    )


def _check_place(dataset_id: str, overwrite: bool) -> None:
    root, folder = _root(), _root() / dataset_id
    if is_dataset(folder) and not overwrite:
        raise InputError(f"there is a Minari dataset {dataset_id} already; --overwrite replaces it")
    if folder.exists() and not is_dataset(folder):
        raise InputError(f"{folder} is not a Minari dataset; remove it, or choose another id")
    for parent in list(folder.relative_to(root).parents)[:-1]:
        if is_dataset(root / parent):
            raise InputError(f"{parent.as_posix()} is a Minari dataset; {dataset_id} cannot lie below it")


def _write(data: Trajectories, path: Path, dataset_id: str, data_format: str) -> None:
    import minari
    from minari.dataset.minari_storage import MinariStorage

    storage = MinariStorage.new(
        path,
        observation_space=spaces.Box(-np.inf, np.inf, data.observations.shape[1:], np.float32),
        action_space=_action_space(data),
        env_spec=_specification(data),
        data_format=data_format,
    )
    version = importlib.metadata.version("cwbc")
    storage.update_metadata(
        {
            "dataset_id": dataset_id,
            "minari_version": minari.__version__,
            "author": {f"cwbc {version}"},
            "description": f"Exported by cwbc {version} from {data.name} (content hash {data.content_hash}). "
            "What was observed after the last action of an episode is not in the logs: it repeats the last "
            "observation.",
        }
    )
    # After each arrow episode, Minari adds up the sizes of all before: 2,000 of them would take minutes.
    storage.get_size = lambda: 0.0
    storage.update_episodes(_buffers(data))
    del storage.get_size
    storage.update_metadata({"dataset_size": storage.get_size()})


def _buffers(data: Trajectories) -> Iterable[Any]:
    from minari.data_collector import EpisodeBuffer

    for start, length, ended in zip(data.starts, data.lengths, data.terminated, strict=True):
        rows = slice(start, start + length)
        last = np.arange(length) == length - 1
        seen = data.observations[rows]
        yield EpisodeBuffer(
            observations=np.concatenate([seen, seen[-1:]]),
            actions=data.actions[rows].astype(np.int64) if data.discrete else data.actions[rows],
            rewards=data.rewards[rows],
            terminations=last & ended,
            truncations=last & ~ended,
        )


def _action_space(data: Trajectories) -> Space[Any]:
    if data.discrete:
        return spaces.Discrete(data.action_size)
    bounds = np.maximum(1, np.maximum(data.actions.max(axis=0), -data.actions.min(axis=0)))
    return spaces.Box(-bounds, bounds, dtype=np.float32)


def _specification(data: Trajectories) -> Any:
    """Gymnasium's entry for the environment, with the time limit of the data, where a file can hold it."""
    name = (data.environment or "").rpartition(":")[2]
    if name not in registry:
        return None
    entry = copy.copy(registry[name])
    entry.max_episode_steps = data.time_limit or entry.max_episode_steps
    try:
        entry.to_json()
    except (TypeError, ValueError):  # registered with a class or a function in place of its name
        return None
    return entry


def _make_namespace(dataset_id: str) -> None:
    from minari.namespace import create_namespace, list_local_namespaces

    namespace = dataset_id.rpartition("/")[0]
    if namespace and namespace not in list_local_namespaces():
        create_namespace(namespace)


def _put(written: Path, folder: Path, replaced: Path) -> None:
    """Move a whole dataset to its place, and one that is there out of the way."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists():
        os.replace(folder, replaced)
    try:
        os.replace(written, folder)
    except BaseException:
        if replaced.exists():
            os.replace(replaced, folder)
        raise
