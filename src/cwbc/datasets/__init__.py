"""From what users have to Trajectories: a name in the store, a Minari id, or a path."""

from __future__ import annotations

import dataclasses
import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.datasets.columns import BY_NAME, ColumnOptions
from cwbc.errors import InputError, unknown

if TYPE_CHECKING:
    from cwbc.datasets.source import Progress
    from cwbc.recordings import Recording
    from cwbc.trajectories import Trajectories

__all__ = ["load", "read"]

_SIGNATURES = {b"\x89HDF": "hdf5", b"PAR1": "parquet", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz"}
_SUFFIXES = {
    ".hdf5": "hdf5", ".h5": "hdf5", ".npz": "npz", ".parquet": "parquet", ".csv": "csv", ".tsv": "csv"
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".zst")
_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
NO_ENVIRONMENT = "none"


def load(
    dataset: str | os.PathLike[str], environment: str | None = None, max_gigabytes: float | None = None
) -> Trajectories:
    """The trajectories of a dataset, checked.

    Args:
        dataset: a name (`cwbc data list`), a Minari id, or the path of a file or folder.
        environment: a Gymnasium id, or "none"; without it, the one that the dataset or its name tells.
        max_gigabytes: what a file may unfold to; by default 1, or 256 times the file's size.
    """
    return read(dataset, environment, max_gigabytes=max_gigabytes).trusted()


def read(
    dataset: str | os.PathLike[str],
    environment: str | None = None,
    options: ColumnOptions = BY_NAME,
    time_limit: int | None = None,
    action_count: int | None = None,
    progress: Progress | None = None,
    max_gigabytes: float | None = None,
) -> Recording:
    """A dataset as it is, with where it is from and what reading it showed; its values are not checked."""
    from cwbc import simulators
    from cwbc.datasets import limits

    simulators.allow(environment)
    with limits.at_most(max_gigabytes):
        recording = _found(dataset, options, progress)
    data = recording.data
    if time_limit is not None and time_limit < (longest := int(data.lengths.max())):
        raise InputError(f"--time-limit {time_limit} is shorter than an episode of {longest} steps")
    if environment is None:
        known = data.environment or (None if recording.kept else _environment_of(Path(dataset), data))
    else:
        known = None if environment == NO_ENVIRONMENT else environment
    same = known == data.environment  # then its limit is the data's, if that has one
    limit = time_limit or (data.time_limit if same else None)
    limit = limit or (simulators.time_limit(known) if known else None)
    if recording.origin.only_done and limit:  # what reached the limit was cut off by it
        data = dataclasses.replace(data, terminated=data.terminated & (data.lengths < limit))
    data = data.described(environment=known, time_limit=limit, action_count=action_count or data.action_count)
    return dataclasses.replace(recording, data=data)


def _found(dataset: str | os.PathLike[str], options: ColumnOptions, progress: Progress | None) -> Recording:
    from cwbc.datasets import store

    path, name = Path(dataset), os.fspath(dataset)
    # A bare word is a name first, also where a folder is called so; ./word is the folder.
    if path.name == name and not path.suffix and (entry := store.find(name)) is not None:
        _check_no_options(name, options)
        return entry.read()
    if path.is_dir() and (recording := _read_folder(path, options, progress)):
        return recording
    if path.exists() and not path.is_dir():
        return _read_file(path, options, progress)
    from cwbc.datasets import made
    from cwbc.datasets.minari import places

    if (entry := store.find(name)) is not None:
        _check_no_options(name, options)
        return entry.read()
    if name in made.CATALOGUE:
        _check_no_options(name, options)
        return made.Order.of(name).make(progress=progress).read()
    if (folder := places.local(name)) is not None:
        _check_no_options(name, options)
        from cwbc.datasets.minari import reading

        return reading.read(folder, name)
    raise _unknown(name)


def _check_no_options(name: str, options: ColumnOptions) -> None:
    if options != BY_NAME:
        raise InputError(f"the columns of {name} have their meaning already; only those of a table are named")


def _read_folder(path: Path, options: ColumnOptions, progress: Progress | None) -> Recording | None:
    from cwbc.datasets import arrow
    from cwbc.datasets.minari import places, reading

    if places.is_dataset(path):
        _check_no_options(str(path), options)
        return reading.read(path)
    if any(path.rglob("*.parquet")):
        return arrow.read_parquet(path, options, progress)
    return None


def _read_file(path: Path, options: ColumnOptions, progress: Progress | None) -> Recording:
    from cwbc.datasets import arrow, hdf5, npz

    readers = {"hdf5": hdf5.read, "npz": npz.read, "parquet": arrow.read_parquet, "csv": arrow.read_csv}
    return readers[_format(path)](path, options, progress)


def _format(path: Path) -> str:
    """What a file is by its first bytes, or else by its name."""
    from cwbc.datasets.decoding import check_regular

    check_regular(path)
    with path.open("rb") as file:
        start = file.read(4)
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    named = _SUFFIXES.get(suffixes[-1] if suffixes else "")
    if not start:
        raise InputError(f"{path} is empty; expected one row per step")
    if found := _SIGNATURES.get(start) or named:
        return found
    if (suffixes and suffixes[-1] in (".pkl", ".pickle", ".pt")) or start[:2] in _PICKLES:
        raise InputError(
            f"{path} looks like a pickle, which runs code when it is loaded, and is never read; "
            "write its arrays with numpy.savez"
        )
    raise InputError(f"{path}: unknown format; expected HDF5, NPZ, Parquet (.parquet) or CSV (.csv)")


def _unknown(name: str) -> InputError:
    from cwbc.datasets import d4rl, made, store
    from cwbc.datasets.minari import places

    if published := d4rl.find(name):
        return InputError(
            f"{published.name} is not here yet; `cwbc data download {published.d4rl_name}` gets it"
        )
    if name.startswith("cwbc/"):
        return unknown("dataset", name, made.CATALOGUE)
    path = Path(name)
    if path.is_dir():
        return InputError(f"{path} is a folder with neither Parquet files nor a Minari dataset in it")
    beside = [str(p) for p in path.parent.iterdir() if p.suffix in _SUFFIXES] if path.parent.is_dir() else []
    missing = ": no such file" if path.suffix in _SUFFIXES else ""
    names = [*store.names(), *made.CATALOGUE, *(p.d4rl_name for p in d4rl.CATALOGUE), *places.local_names()]
    if places.is_id(name) and "/" in name:
        hint = f"`cwbc data download {name}` gets it, if it is one of Minari's"
    elif near := difflib.get_close_matches(name, sorted({*names, *beside}), n=3):
        hint = f"did you mean {' or '.join(map(repr, near))}?"
    elif path.suffix in _SUFFIXES:
        there = f"; beside it: {', '.join(sorted(beside)[:5])}" if beside else ""
        return InputError(f"unknown dataset {name!r}: no such file{there}")
    else:
        hint = "`cwbc data list` shows what there is"
    return InputError(f"unknown dataset {name!r}{missing}; {hint}")


def _environment_of(path: Path, data: Trajectories) -> str | None:
    """The robot that the name of a file tells, if the data has its dimensions."""
    from cwbc.datasets import d4rl

    robot = path.stem.replace("_", "-").split("-")[0].lower()
    sizes = (data.observations.shape[1], 0 if data.discrete else data.action_size)
    for each in d4rl.CATALOGUE:
        # Of its mazes, the robot alone does not tell which.
        fits = (each.observation_size, each.action_size) == sizes and "/" not in each.environment
        if fits and each.d4rl_name.startswith(f"{robot}-"):
            return each.environment
    return None
