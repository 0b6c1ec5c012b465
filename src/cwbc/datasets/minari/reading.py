"""Minari's datasets, read with the minari package itself."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc import observations
from cwbc.datasets import limits
from cwbc.datasets.decoding import check_regular, decoding
from cwbc.datasets.hdf5_safety import check_arrays
from cwbc.datasets.minari.places import FORMAT, unwarned
from cwbc.datasets.naming import contained
from cwbc.errors import InputError, need_extra
from cwbc.findings import Finding, Origin
from cwbc.recordings import Recording
from cwbc.trajectories import Trajectories

_MOST_NUMBERS = 1 << 20  # in one observation; more are a damaged space, and would fill the memory
_UNPROVED = 1 << 16  # bytes that an array may have without as many in the file


def read(path: Path, name: str | None = None) -> Recording:
    """Every episode of a dataset, as Minari counts them.

    Args:
        name: what to call it; without it, its id.
    """
    source = name or str(path)
    try:
        with unwarned(), decoding(path, FORMAT):
            need_extra("minari", "minari", "Minari datasets")
            return _Reader(path, source).recording(name)
    except FileNotFoundError as error:  # of one episode: the folder as a whole is there
        raise InputError(f"{path} lacks a part of {FORMAT}: {error}") from error


class _Reader:
    """One dataset, its episodes laid end to end as they come."""

    def __init__(self, path: Path, source: str) -> None:
        self._path, self._source = path / "data", source
        files = [file for file in self._path.rglob("*") if not file.is_dir()]
        for file in files:
            check_regular(file)
        self._stored = sum(file.stat().st_size for file in files)
        self._metadata: dict[str, Any] = json.loads((self._path / "metadata.json").read_bytes())
        self._check_metadata()
        from minari.dataset.minari_storage import MinariStorage

        self._storage = MinariStorage.read(self._path)
        self._space, self._action_space = self._storage.observation_space, self._storage.action_space
        self._check_spaces()
        self._discrete = isinstance(self._action_space, spaces.Discrete)
        # Each step takes some bytes: a count beyond is not believed. What it leaves out finds its room later.
        expected = min(self._metadata["total_steps"], self._stored)
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
            name=name or contained(self._metadata["dataset_id"]),
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
        origin = Origin(self._source, episodes=self._labels, in_order=True)
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
            path = self._path / "main_data.hdf5"
            with h5py.File(path, "r") as file:
                limits.check(self._source, check_arrays(path, file, _UNPROVED), self._stored)
            yield from self._storage.get_episodes(episodes)
            return
        for episode in episodes:  # one by one: of many, Minari takes every batch for an episode of its own
            with self._naming(episode):
                self._check_batches(self._path / str(episode))
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
        # Again: many episodes may be one and the same in the file.
        kept = (self._observations, self._actions, self._rewards)
        limits.check(self._source, sum(rows.nbytes for rows in kept), self._stored)
        self._labels.append(episode["id"])
        self._lengths.append(count)
        self._terminated.append(bool(ended[-1, 0]))

    def _check_batches(self, folder: Path) -> None:
        """Refuse an episode that Minari would read a part of, or whose damage would crash the interpreter."""
        import pyarrow.dataset

        dataset = pyarrow.dataset.dataset(
            folder, format=self._storage.FORMAT, ignore_prefixes=["_", ".", "metadata.json"]
        )
        # By the count alone, which takes no reading, before any is unfolded.
        numbers = observations.size(self._space) + self._actions.width + 1
        limits.check(self._source, dataset.count_rows() * numbers * 4, self._stored)
        size, batches = 0, 0
        for batch in dataset.to_batches(batch_readahead=0, fragment_readahead=0):
            batch.validate(full=True)
            size, batches = size + batch.nbytes, batches + 1
            limits.check(self._source, size, self._stored)
        if batches != 1:
            raise InputError(
                f"its rows are in {batches} lots, of which Minari reads the first; write the dataset again, "
                "as hdf5"
            )

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

    @property
    def width(self) -> int:
        return int(self._array.shape[1])

    @property
    def nbytes(self) -> int:
        """Of the rows that have come."""
        return self._count * self.width * self._array.itemsize

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
