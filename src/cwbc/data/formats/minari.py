"""Reads and writes datasets in Minari's layout, with the minari package itself."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, TypedDict

import h5py
import numpy as np
from gymnasium import registry, spaces
from numpy.typing import NDArray

import cwbc
from cwbc.core.trajectories import Trajectories
from cwbc.data import compatibility
from cwbc.data.checks import Recording
from cwbc.data.formats.hdf5 import check_arrays
from cwbc.data.formats.protection import check_regular, check_size, decoding
from cwbc.data.issues import Issue, Origin
from cwbc.data.minari import check_id, check_place, put, root
from cwbc.data.store import contained
from cwbc.envs import observations
from cwbc.system.errors import InputError, need_extra
from cwbc.system.files import folder_aside
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
    """Every episode of a dataset, numbered as Minari does; without a name, its id is the name."""
    try:
        with warnings.catch_warnings(action="ignore"), decoding(path, _FORMAT):
            need_extra("minari", "minari", "Minari datasets")
            return _read(path / "data", name or str(path), name)
    except FileNotFoundError as error:  # of one episode: the folder itself exists
        raise InputError(f"{path} lacks a part of {_FORMAT}: {error}") from error


def _read(path: Path, source: str, name: str | None) -> Recording:
    from minari import __version__, supported_dataset_versions
    from minari.dataset.minari_storage import MinariStorage

    files = [file for file in path.rglob("*") if not file.is_dir()]
    for file in files:
        check_regular(file)
    stored = sum(file.stat().st_size for file in files)
    values = json.loads((path / "metadata.json").read_bytes())
    metadata: dict[str, Any] = decode(_Metadata, values, str(path / "metadata.json"))
    if (version := metadata["minari_version"]) not in supported_dataset_versions:
        raise InputError(
            f"{source} was written by Minari {version}, which Minari {__version__} does not read; "
            f"it reads {', '.join(sorted(supported_dataset_versions))}"
        )
    storage = MinariStorage.read(path)
    space, action_space = storage.observation_space, storage.action_space
    step_size = _step_size(source, space, action_space)
    blocks: list[tuple[NDArray[Any], ...]] = []  # [episode] observations, actions, rewards, terminations
    labels: list[int] = []
    empty: list[int] = []
    steps = 0
    with contextlib.closing(
        _episodes(source, storage, metadata["total_episodes"], step_size, stored)
    ) as found:
        for episode in found:
            count = len(episode["rewards"])
            if not count:  # nothing can be learnt from it, and the others are valid
                empty.append(episode["id"])
                continue
            steps += count
            check_size(source, step_size * steps, stored)  # again: many may be the same one in the file
            with _naming(f"{source}, episode {episode['id']}"):
                blocks.append(_arrays(episode, count, space, action_space))
            labels.append(episode["id"])
    if not labels:
        raise InputError(f"{source}: there are no steps; was the dataset written completely?")
    lengths = np.array([len(block[0]) for block in blocks], np.int64)
    observed, actions, rewards, terminations = map(np.concatenate, zip(*blocks, strict=True))
    starts, discrete = np.cumsum(lengths) - lengths, isinstance(action_space, spaces.Discrete)
    # From the metadata alone: "module:Name" would import the module, and a file must not choose what is run.
    spec = json.loads(metadata.get("env_spec") or "{}")
    environment, limit = spec.get("id"), spec.get("max_episode_steps")
    data = Trajectories(
        name=name or contained(metadata["dataset_id"]),
        observations=observed,
        actions=actions[:, 0] if discrete else actions,
        rewards=rewards[:, 0],
        starts=starts,
        lengths=lengths,
        terminated=terminations[starts + lengths - 1, 0].astype(bool),
        environment=environment if isinstance(environment, str) and ":" not in environment else None,
        time_limit=limit if isinstance(limit, int) and limit > 0 else None,
        action_count=int(action_space.n) if discrete else None,
        clipped_rewards=metadata.get("clipped_rewards") is True,
        observation_names=() if observations.is_image(space) else observations.names(space),
    )
    issues = []
    if (declared := metadata["total_steps"]) != steps:
        counted = f"its {len(labels) + len(empty):,} episodes have {steps:,}"
        what = f"metadata.json counts {declared:,} steps, but {counted}"
        issues.append(Issue("warning", what, "was the dataset written completely?"))
    if empty:
        first = ", ".join(map(str, empty[:5])) + (" ..." if len(empty) > 5 else "")
        what = f"{len(empty):,} episodes have no steps ({first})"
        issues.append(Issue("warning", what, "they are excluded: were they recorded?", count=len(empty)))
    return Recording(data, Origin(source, episodes=labels, in_order=True), tuple(issues))


def _step_size(source: str, space: Any, action_space: Any) -> int:
    """How many bytes a step takes in memory: its observation, action and reward."""
    if not isinstance(action_space, spaces.Box | spaces.Discrete):
        kind = type(action_space).__name__
        raise InputError(f"{source}: actions are in a {kind} space; Box and Discrete are supported")
    with _naming(source):
        size = observations.size(space)
    if not 0 < size <= _MOST_NUMBERS:
        supported = f"from 1 to {_MOST_NUMBERS:,} are supported"
        raise InputError(f"{source}: an observation has {size:,} numbers; {supported}")
    others = math.prod(action_space.shape or ()) + 1
    return size * (1 if observations.is_image(space) else 4) + 4 * others


def _episodes(
    source: str, storage: Any, count: int, step_size: int, stored: int
) -> Generator[dict[str, Any], None, None]:
    if storage.FORMAT == "hdf5":
        path = storage.data_path / "main_data.hdf5"
        with h5py.File(path, "r") as file:
            check_size(source, check_arrays(path, file, _UNPROVED), stored)
        yield from storage.get_episodes(range(count))
        return
    import pyarrow.dataset

    for episode in range(count):  # one by one: of many, Minari takes every batch for an episode
        # Refused is one that Minari would read only partly, or whose damage would crash Python.
        with _naming(f"{source}, episode {episode}"):
            dataset = pyarrow.dataset.dataset(
                storage.data_path / str(episode),
                format=storage.FORMAT,
                ignore_prefixes=["_", ".", "metadata.json"],
            )
            # By the count alone, before anything is decompressed.
            check_size(source, dataset.count_rows() * step_size, stored)
            size, batches = 0, 0
            for batch in dataset.to_batches(batch_readahead=0, fragment_readahead=0):
                batch.validate(full=True)
                size, batches = size + batch.nbytes, batches + 1
                check_size(source, size, stored)
            if batches != 1:
                raise InputError(
                    f"its rows are in {batches} batches, of which Minari reads the first; write the dataset "
                    "again, as hdf5"
                )
        yield from storage.get_episodes([episode])


@contextlib.contextmanager
def _naming(place: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _arrays(episode: dict[str, Any], count: int, space: Any, action_space: Any) -> tuple[NDArray[Any], ...]:
    """The observations, actions, rewards and terminations of an episode. [count, width] each, or images"""
    one_each = ("rewards", "terminations", "truncations")
    rewards, terminations, _ = (_column(episode, name, (count,)) for name in one_each)
    # The observation after the last action is excluded: no action follows it.
    if observations.is_image(space):
        observed = _images(episode["observations"], (count + 1, *space.shape))[:count]
    else:
        with np.errstate(over="ignore", invalid="ignore"):  # inf, which the checks report
            observed = observations.flatten_batch(space, episode["observations"], count + 1)[:count].astype(
                np.float32
            )
    actions = _column(episode, "actions", (count, *action_space.shape))
    if isinstance(action_space, spaces.Discrete):
        if actions.dtype.kind == "f":
            raise InputError(f"'actions' holds {actions.dtype}; {action_space} has integers")
        # An action outside the space stays outside, and the checks report its location.
        actions = (actions.astype(np.int64) - action_space.start).clip(-1, 2**31 - 1)
    dtype = np.int32 if isinstance(action_space, spaces.Discrete) else np.float32
    with np.errstate(over="ignore", invalid="ignore"):  # inf, which the checks report
        return observed, actions.astype(dtype), rewards.astype(np.float32), terminations


def _images(logged: Any, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The images of an episode, with at least one channel. [count, height, width, channel]"""
    values = np.asarray(logged)
    if values.shape != shape or values.dtype != np.uint8:
        raise InputError(f"'observation' has {values.dtype} of shape {values.shape}; expected uint8 {shape}")
    return values[..., None] if len(shape) == 3 else values


def _column(episode: dict[str, Any], name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """The numbers of each step. [count, width]"""
    values = np.asarray(episode[name])
    if values.shape[:1] != shape[:1] or values.size != math.prod(shape):
        raise InputError(f"'{name}' has values of shape {values.shape}; expected {shape}")
    if values.dtype.kind not in "fiub":
        raise InputError(f"'{name}' holds {values.dtype}; expected numbers")
    return values.reshape(shape[0], -1)


def export(data: Trajectories, dataset_id: str, overwrite: bool = False) -> Path:
    """Write a dataset to Minari's own folder."""
    check_id(dataset_id)
    check_place(dataset_id, overwrite)
    with warnings.catch_warnings(action="ignore"):  # about every field that is left out
        need_extra("minari", "minari", "Minari datasets")
        from minari.namespace import create_namespace, list_local_namespaces

        root().mkdir(parents=True, exist_ok=True)
        with folder_aside(root()) as aside:
            written = aside / "written"
            written.mkdir()
            _write(data, written / "data", dataset_id)
            namespace = dataset_id.rpartition("/")[0]
            if namespace and namespace not in list_local_namespaces():
                create_namespace(namespace)
            put(written, root() / dataset_id, aside / "replaced")
    return root() / dataset_id


def _write(data: Trajectories, path: Path, dataset_id: str) -> None:
    import minari
    from minari.dataset.minari_storage import MinariStorage

    shape = data.observations.shape[1:]
    pixels, vector = spaces.Box(0, 255, shape, np.uint8), spaces.Box(-np.inf, np.inf, shape, np.float32)
    storage = MinariStorage.new(
        path,
        observation_space=pixels if data.has_images else vector,
        action_space=_action_space(data),
        env_spec=_specification(data),
        data_format="hdf5",
        jpeg_encoding=False,  # it loses detail, and does not know images of one channel
    )
    storage.update_metadata(
        {
            "dataset_id": dataset_id,
            "minari_version": minari.__version__,
            "author": {f"cwbc {cwbc.__version__}"},
            "description": f"Exported by cwbc {cwbc.__version__} from {data.name} "
            f"(content hash {data.content_hash}). "
            "The observation after the last action of an episode is not in the logs: the last one is "
            "repeated.",
            **({"clipped_rewards": True} if data.clipped_rewards else {}),
        }
    )
    storage.update_episodes(_buffers(data))


def _buffers(data: Trajectories) -> Iterator[Any]:
    from minari.data_collector import EpisodeBuffer

    for start, length, terminated in zip(data.starts, data.lengths, data.terminated, strict=True):
        rows = slice(start, start + length)
        last = np.arange(length) == length - 1
        observed = data.observations[rows]
        yield EpisodeBuffer(
            observations=np.concatenate([observed, observed[-1:]]),
            actions=data.actions[rows].astype(np.int64) if data.discrete else data.actions[rows],
            rewards=data.rewards[rows],
            terminations=last & terminated,
            truncations=last & ~terminated,
        )


def _action_space(data: Trajectories) -> spaces.Space[Any]:
    if data.discrete:
        return spaces.Discrete(data.action_size)
    low, high = data.actions.min(axis=0), data.actions.max(axis=0)
    with contextlib.suppress(InputError):  # an environment of other dimensions
        if (known := compatibility.with_actions(data).action_bounds) is not None:
            # Both: no logged action is outside the declared space.
            low, high = np.minimum(low, known[0]), np.maximum(high, known[1])
    return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)


def _specification(data: Trajectories) -> Any:
    """Gymnasium's entry for the environment, with the time limit of the data, if JSON can represent it."""
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
