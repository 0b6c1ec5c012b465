"""From the name or path of a dataset to Trajectories."""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.data import d4rl, dqn_replay, formats, generated, minari, store, unpacked
from cwbc.data.dqn_replay import ReplayOptions
from cwbc.data.formats.columns import BY_NAME
from cwbc.data.sources import DatasetSource
from cwbc.system.errors import InputError

if TYPE_CHECKING:
    from cwbc.core.trajectories import Trajectories
    from cwbc.data.checks import Recording
    from cwbc.data.sources import ReadOptions
    from cwbc.system.progress import Progress

__all__ = ["SOURCES", "activity", "is_reserved", "load", "read", "stored_name"]


def load(
    dataset: str | os.PathLike[str],
    environment: str | None = None,
    max_gigabytes: float | None = None,
    on_disk: bool | None = None,
) -> Trajectories:
    """The trajectories of a dataset, checked.

    Args:
        dataset: a name (`cwbc data list`), a Minari id, or the path of a file or folder.
        environment: a Gymnasium id, or "none"; by default, the one that the dataset or its name implies.
        max_gigabytes: what a file may expand to; by default 1, or 256 times the file's size.
        on_disk: whether images of the store stay there, in a raw file that is mapped; by default those that
            exceed half of the memory that this process may use.
    """
    return read(dataset, environment, max_gigabytes=max_gigabytes, on_disk=on_disk).trusted()


def read(
    dataset: str | os.PathLike[str],
    environment: str | None = None,
    options: ReadOptions = BY_NAME,
    time_limit: int | None = None,
    action_count: int | None = None,
    progress: Progress | None = None,
    max_gigabytes: float | None = None,
    on_disk: bool | None = None,
) -> Recording:
    """A dataset with its origin and the issues of reading it; its values are not checked."""
    from cwbc import envs
    from cwbc.data.formats import protection

    envs.allow(environment)
    name = os.fspath(dataset)
    with protection.at_most(max_gigabytes), unpacked.mapping(on_disk):
        if (source := _source_of(name)) is None:
            raise _unknown(name)
        _check_options(name, source, options)
        recording = source.read(name, options, progress)
    data = recording.data
    if on_disk:
        unpacked.check_mapped(data)
    if time_limit is not None and time_limit < (longest := int(data.lengths.max())):
        raise InputError(f"--time-limit {time_limit} is shorter than an episode of {longest} steps")
    known = data.environment if environment is None else environment
    known = None if known == "none" else known
    limit = time_limit or (data.time_limit if known == data.environment else None)
    limit = limit or (envs.time_limit(known) if known else None)
    if recording.origin.only_done and limit:  # an episode that reached the limit was truncated by it
        data = dataclasses.replace(data, terminated=data.terminated & (data.lengths < limit))
    data = data.described(environment=known, time_limit=limit, action_count=action_count or data.action_count)
    return dataclasses.replace(recording, data=data)


def activity(dataset: str | os.PathLike[str]) -> tuple[str, str]:
    """What reading a dataset does, in words, and the unit of its progress."""
    name = os.fspath(dataset)
    verb, unit = (_source_of(name) or _FILES).activity
    return f"{verb} {name}", unit


def stored_name(name: str) -> str | None:
    """The name in the store of a dataset, given in any spelling; None if the store does not have it."""
    return next(filter(store.has, (source.stored_name(name) for source in SOURCES)), None)


def is_reserved(name: str) -> bool:
    """Whether a name belongs to the datasets of a source, so that no other dataset may have it."""
    reserved = (known for source in SOURCES if source.reserved for known in source.names())
    return any(known == name or known.startswith(f"{name}/") for known in reserved)


def _source_of(name: str) -> DatasetSource | None:
    # A bare word is a name first, also where a folder has that name; ./word is the folder.
    bare = Path(name).name == name and not Path(name).suffix
    order = SOURCES if bare else (_FILES, *SOURCES)
    return next((source for source in order if source.has(name)), None)


def _check_options(name: str, source: DatasetSource, options: ReadOptions) -> None:
    """Refuse options of tables, or of DQN-replay files, for anything else."""
    path = Path(name)
    is_replay = source is _FILES and dqn_replay.is_dataset(path)
    if isinstance(options, ReplayOptions):
        if not is_replay:
            raise InputError(f"{name} is no folder of DQN-replay files; expected {dqn_replay.LAYOUT}")
    elif options != BY_NAME and (is_replay or source is not _FILES or minari.is_dataset(path)):
        only = "column options are for tables only"
        raise InputError(f"the columns of {name} have their roles already; {only}")


def _unknown(name: str) -> InputError:
    if hint := next(filter(None, (source.hint(name) for source in SOURCES)), None):
        return InputError(hint)
    is_file = Path(name).suffix in formats.SUFFIXES
    beside = sorted(str(path) for path in Path(name).parent.glob("*") if path.suffix in formats.SUFFIXES)
    hint = "; `cwbc data list` shows the available ones"
    names = {*beside, *(known for source in SOURCES for known in source.names())}
    if near := difflib.get_close_matches(name, sorted(names), n=3):
        hint = f"; did you mean {' or '.join(map(repr, near))}?"
    elif is_file:
        hint = f"; beside it: {', '.join(beside[:5])}" if beside else ""
    return InputError(f"unknown dataset {name!r}{': no such file' * is_file}{hint}")


def _has_file(name: str) -> bool:
    """Whether there is a file, or a folder with a dataset."""
    path = Path(name)
    if path.is_dir():
        return minari.is_dataset(path) or dqn_replay.is_dataset(path) or any(path.rglob("*.parquet"))
    return path.exists()


def _read_file(name: str, options: ReadOptions, progress: Progress | None) -> Recording:
    """The episodes of a file or folder; its name may imply the environment, as D4RL's do."""
    path = Path(name)
    if minari.is_dataset(path):
        recording = minari.adapter().read(path)
    elif dqn_replay.is_dataset(path):
        from cwbc.data.formats import dqn_replay as reader

        return reader.read(path, options if isinstance(options, ReplayOptions) else ReplayOptions(), progress)
    else:
        recording = formats.reader(path)(path, options, progress)
    data = recording.data
    if data.environment is not None:
        return recording
    sizes = (math.prod(data.observations.shape[1:]), 0 if data.discrete else data.action_size)
    return recording.described(environment=d4rl.environment_of(path.stem, *sizes))


def _folder_hint(name: str) -> str | None:
    is_folder = Path(name).is_dir()
    neither = f"Parquet files nor a Minari dataset in it, nor DQN-replay files ({dqn_replay.LAYOUT})"
    return f"{name} is a folder with neither {neither}" if is_folder else None


# Files and folders of the user: HDF5, NPZ, Parquet, CSV, or in the layout of Minari or of DQN-replay.
_FILES = DatasetSource(has=_has_file, read=_read_file, hint=_folder_hint)
# In the order in which a name is looked up; one that looks like a path is looked up as a file first.
SOURCES = (store.SOURCE, generated.SOURCE, d4rl.SOURCE, _FILES, minari.SOURCE)
