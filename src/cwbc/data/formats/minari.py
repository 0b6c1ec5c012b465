"""Reads datasets in Minari's layout, with the minari package itself."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, TypedDict

import h5py
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.data.checks import Recording
from cwbc.data.formats.hdf5 import check_arrays
from cwbc.data.formats.protection import check_regular, check_size, decoding
from cwbc.data.issues import Issue, Origin
from cwbc.data.minari import without_warnings
from cwbc.data.store import contained
from cwbc.envs import observations
from cwbc.system.errors import InputError, need_extra
from cwbc.system.typed_json import decode

_FORMAT = "a Minari dataset"
_MOST_NUMBERS = 1 << 20  # in one observation; more are a damaged space, and would fill the memory
_UNPROVED = 1 << 16  # bytes that an array may have without as many in the file


class _Metadata(TypedDict):
    """What every metadata.json of Minari has."""

    # Without a space, Minari would make the environment, which runs the code that the file names.
    observation_space: str
    action_space: str
    data_format: str
    total_episodes: int
    total_steps: int
    dataset_id: str
    minari_version: str


def read(path: Path, name: str | None = None) -> Recording:
    """Every episode of a dataset, numbered as Minari does.

    Args:
        name: of the dataset; without it, its id.
    """
    source = name or str(path)
    try:
        with without_warnings(), decoding(path, _FORMAT):
            need_extra("minari", "minari", "Minari datasets")
            return _Reader(path / "data", source).recording(name)
    except FileNotFoundError as error:  # of one episode: the folder itself exists
        raise InputError(f"{path} lacks a part of {_FORMAT}: {error}") from error


class _Reader:
    """One dataset, its episodes concatenated in order."""

    def __init__(self, path: Path, source: str) -> None:
        self._path, self._source = path, source
        files = [file for file in path.rglob("*") if not file.is_dir()]
        for file in files:
            check_regular(file)
        self._stored = sum(file.stat().st_size for file in files)
        values = json.loads((path / "metadata.json").read_bytes())
        self._metadata: dict[str, Any] = decode(_Metadata, values, str(path / "metadata.json"))
        _check_version(source, self._metadata["minari_version"])
        from minari.dataset.minari_storage import MinariStorage

        self._storage = MinariStorage.read(path)
        self._space, self._action_space = self._storage.observation_space, self._storage.action_space
        self._discrete = isinstance(self._action_space, spaces.Discrete)
        self._numbers = _check_spaces(source, self._space, self._action_space)  # of a step
        self._blocks: list[tuple[NDArray[Any], ...]] = []  # [episode] observations, actions, rewards
        self._steps = 0
        self._labels: list[int] = []
        self._terminated: list[bool] = []
        self._empty: list[int] = []

    def recording(self, name: str | None) -> Recording:
        with contextlib.closing(self._episodes()) as episodes:
            for episode in episodes:
                with self._naming(episode["id"]):
                    self._add(episode)
        if not self._labels:
            raise InputError(f"{self._source}: there are no steps; was the dataset written completely?")
        lengths = np.array([len(rewards) for *_, rewards in self._blocks], np.int64)
        observed, actions, rewards = map(np.concatenate, zip(*self._blocks, strict=True))
        environment, time_limit = self._environment()
        data = Trajectories(
            name=name or contained(self._metadata["dataset_id"]),
            observations=observed,
            actions=actions[:, 0] if self._discrete else actions,
            rewards=rewards[:, 0],
            starts=np.cumsum(lengths) - lengths,
            lengths=lengths,
            terminated=np.array(self._terminated, bool),
            environment=environment,
            time_limit=time_limit,
            action_count=int(self._action_space.n) if self._discrete else None,
            observation_names=observations.names(self._space),
        )
        origin = Origin(self._source, episodes=self._labels, in_order=True)
        return Recording(data, origin, tuple(self._warnings(data)))

    def _episodes(self) -> Generator[dict[str, Any], None, None]:
        episodes = range(self._metadata["total_episodes"])
        if self._storage.FORMAT == "hdf5":
            path = self._path / "main_data.hdf5"
            with h5py.File(path, "r") as file:
                check_size(self._source, check_arrays(path, file, _UNPROVED), self._stored)
            yield from self._storage.get_episodes(episodes)
            return
        for episode in episodes:  # one by one: of many, Minari takes every batch for an episode
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
        if not count:  # nothing can be learnt from it, and the others are valid
            self._empty.append(episode["id"])
            return
        rewards, terminations, _ = (
            _column(episode, name, count) for name in ("rewards", "terminations", "truncations")
        )
        # Again: many episodes may be the same one in the file.
        self._steps += count
        check_size(self._source, 4 * self._numbers * self._steps, self._stored)
        # The observation after the last action is excluded: no action follows it.
        observed = observations.flatten_batch(self._space, episode["observations"], count + 1)[:count]
        with np.errstate(over="ignore", invalid="ignore"):  # inf, which the checks report
            block = (observed.astype(np.float32), self._actions(episode, count), rewards.astype(np.float32))
        self._blocks.append(block)
        self._labels.append(episode["id"])
        self._terminated.append(bool(terminations[-1, 0]))

    def _check_batches(self, folder: Path) -> None:
        """Refuse an episode that Minari would read only partly, or whose damage would crash Python."""
        import pyarrow.dataset

        dataset = pyarrow.dataset.dataset(
            folder, format=self._storage.FORMAT, ignore_prefixes=["_", ".", "metadata.json"]
        )
        # By the count alone, before anything is decompressed.
        check_size(self._source, dataset.count_rows() * self._numbers * 4, self._stored)
        size, batches = 0, 0
        for batch in dataset.to_batches(batch_readahead=0, fragment_readahead=0):
            batch.validate(full=True)
            size, batches = size + batch.nbytes, batches + 1
            check_size(self._source, size, self._stored)
        if batches != 1:
            raise InputError(
                f"its rows are in {batches} batches, of which Minari reads the first; write the dataset "
                "again, as hdf5"
            )

    def _actions(self, episode: dict[str, Any], count: int) -> NDArray[Any]:
        """The actions of an episode. [count, width]"""
        space, values = self._action_space, np.asarray(episode["actions"])
        shape = (count, *space.shape)
        if values.shape[:1] != (count,) or values.size != math.prod(shape):
            raise InputError(f"'actions' has values of shape {values.shape}; expected {shape}")
        if not self._discrete:
            return values.reshape(count, -1).astype(np.float32)
        if values.dtype.kind not in "iub":
            raise InputError(f"'actions' holds {values.dtype}; {space} has integers")
        # An action outside the space stays outside, and the checks report its location.
        return (values.astype(np.int64) - space.start).clip(-1, 2**31 - 1).reshape(count, 1).astype(np.int32)

    def _environment(self) -> tuple[str | None, int | None]:
        """Id and time limit of the environment, from the metadata alone."""
        spec = json.loads(self._metadata.get("env_spec") or "{}")
        name, limit = spec.get("id"), spec.get("max_episode_steps")
        # "module:Name" would import the module: a file must not choose what is run.
        known = isinstance(name, str) and ":" not in name
        return name if known else None, limit if isinstance(limit, int) and limit > 0 else None

    def _warnings(self, data: Trajectories) -> Iterator[Issue]:
        if (declared := self._metadata["total_steps"]) != data.steps:
            counted = f"its {data.episodes + len(self._empty):,} episodes have {data.steps:,}"
            what = f"metadata.json counts {declared:,} steps, but {counted}"
            yield Issue("warning", what, "was the dataset written completely?")
        if self._empty:
            first = ", ".join(map(str, self._empty[:5])) + (" ..." if len(self._empty) > 5 else "")
            what = f"{len(self._empty):,} episodes have no steps ({first})"
            yield Issue("warning", what, "they are excluded: were they recorded?", count=len(self._empty))


def _check_version(source: str, version: str) -> None:
    from minari import __version__, supported_dataset_versions

    if version not in supported_dataset_versions:
        raise InputError(
            f"{source} was written by Minari {version}, which Minari {__version__} does not read; "
            f"it reads {', '.join(sorted(supported_dataset_versions))}"
        )


def _check_spaces(source: str, space: Any, action_space: Any) -> int:
    """The numbers of a step: its observation, action and reward."""
    if not isinstance(action_space, spaces.Box | spaces.Discrete):
        kind = type(action_space).__name__
        raise InputError(f"{source}: actions are in a {kind} space; Box and Discrete are supported")
    try:
        size = observations.size(space)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    if not 0 < size <= _MOST_NUMBERS:
        supported = f"from 1 to {_MOST_NUMBERS:,} are supported"
        raise InputError(f"{source}: an observation has {size:,} numbers; {supported}")
    return size + math.prod(action_space.shape or ()) + 1


def _column(episode: dict[str, Any], name: str, count: int) -> NDArray[Any]:
    """One number per step. [count, 1]"""
    values = np.asarray(episode[name])
    if values.size != count or len(values) != count:
        raise InputError(f"'{name}' has values of shape {values.shape}; expected {(count,)}")
    if values.dtype.kind not in "fiub":
        raise InputError(f"'{name}' holds {values.dtype}; expected numbers")
    return values.reshape(count, 1)
