"""Writes datasets in Minari's layout, with the minari package itself."""

from __future__ import annotations

import contextlib
import copy
import importlib.metadata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium import Space, registry, spaces

from cwbc.core.trajectories import Trajectories
from cwbc.data import compatibility
from cwbc.data.checks import has_images
from cwbc.data.minari import check_id, check_place, put, root, without_warnings
from cwbc.system.errors import InputError, need_extra
from cwbc.system.files import folder_aside

_BATCH = 1 << 15  # rows; of a longer episode, Minari's arrow storage writes all and reads only these


def export(
    data: Trajectories,
    dataset_id: str,
    overwrite: bool = False,
    data_format: Literal["hdf5", "arrow"] = "hdf5",
) -> Path:
    """Write a dataset to Minari's own folder."""
    check_id(dataset_id)
    folder = root() / dataset_id
    check_place(dataset_id, overwrite)
    if data_format == "arrow" and (longest := int(data.lengths.max())) >= _BATCH:
        raise InputError(
            f"an episode of {longest:,} steps cannot be exported as arrow: Minari would not read beyond "
            f"{_BATCH - 1:,}; hdf5 has no such limit"
        )
    with without_warnings():
        need_extra("minari", "minari", "Minari datasets")
        root().mkdir(parents=True, exist_ok=True)
        with folder_aside(root()) as aside:
            written = aside / "written"
            written.mkdir()
            _write(data, written / "data", dataset_id, data_format)
            _make_namespace(dataset_id)
            put(written, folder, aside / "replaced")
    return folder


def _write(data: Trajectories, path: Path, dataset_id: str, data_format: str) -> None:
    import minari
    from minari.dataset.minari_storage import MinariStorage

    storage = MinariStorage.new(
        path,
        observation_space=_observation_space(data),
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
            "The observation after the last action of an episode is not in the logs: the last one is "
            "repeated.",
        }
    )
    # After each arrow episode, Minari adds up the sizes of all before: 2,000 of them would take minutes.
    storage.get_size = lambda: 0.0
    storage.update_episodes(_buffers(data))
    del storage.get_size
    storage.update_metadata({"dataset_size": storage.get_size()})


def _buffers(data: Trajectories) -> Iterable[Any]:
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


def _observation_space(data: Trajectories) -> Space[Any]:
    if has_images(data):
        return spaces.Box(0, 255, data.observations.shape[1:], np.uint8)
    return spaces.Box(-np.inf, np.inf, data.observations.shape[1:], np.float32)


def _action_space(data: Trajectories) -> Space[Any]:
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


def _make_namespace(dataset_id: str) -> None:
    from minari.namespace import create_namespace, list_local_namespaces

    namespace = dataset_id.rpartition("/")[0]
    if namespace and namespace not in list_local_namespaces():
        create_namespace(namespace)
