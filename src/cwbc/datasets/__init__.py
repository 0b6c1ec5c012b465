"""From what users have to Trajectories: a name in the store, a Minari id, or a path."""

from __future__ import annotations

import dataclasses
import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.datasets.columns import BY_NAME, ColumnOptions
from cwbc.errors import InputError

if TYPE_CHECKING:
    from cwbc.datasets.source import Progress
    from cwbc.datasets.tables import Recording
    from cwbc.trajectories import Trajectories

__all__ = ["load", "read"]

_SIGNATURES = {b"\x89HDF": "hdf5", b"PAR1": "parquet", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz"}
_SUFFIXES = {
    ".hdf5": "hdf5", ".h5": "hdf5", ".npz": "npz", ".parquet": "parquet", ".csv": "csv", ".tsv": "csv"
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".zst")
# D4RL's v2 data was recorded with mujoco-py; Gymnasium's v4 rules are the closest to it.
_ENVIRONMENTS = {"hopper": "Hopper-v4", "walker2d": "Walker2d-v4", "halfcheetah": "HalfCheetah-v4"}


def load(dataset: str | os.PathLike[str], environment: str | None = None) -> Trajectories:
    """The trajectories of a dataset, checked.

    Args:
        dataset: a name (`cwbc data list`), a Minari id, or the path of a file or folder.
        environment: a Gymnasium id; without it, the one that the dataset or its name tells.
    """
    from cwbc.checks import demand

    recording = read(dataset, environment)
    return demand(recording.data, recording.origin)


def read(
    dataset: str | os.PathLike[str],
    environment: str | None = None,
    options: ColumnOptions = BY_NAME,
    time_limit: int | None = None,
    action_count: int | None = None,
    progress: Progress | None = None,
) -> Recording:
    """A dataset as it is, with where it is from and what reading it showed; its values are not checked."""
    from cwbc import simulators

    recording = _found(dataset, options, progress)
    data = recording.data
    environment = environment or data.environment or _environment_of(Path(dataset))
    limit = time_limit or (simulators.time_limit(environment) if environment else None) or data.time_limit
    changed = dataclasses.replace(
        data,
        environment=environment,
        time_limit=limit,
        action_count=action_count or data.action_count,
    )
    return dataclasses.replace(recording, data=changed)


def _found(dataset: str | os.PathLike[str], options: ColumnOptions, progress: Progress | None) -> Recording:
    path, name = Path(dataset), os.fspath(dataset)
    if path.is_dir():
        return _read_folder(path, options, progress)
    if path.exists():
        return _read_file(path, options, progress)
    from cwbc.datasets import store
    from cwbc.datasets.minari import places

    if options != BY_NAME:
        raise InputError(f"{name} is not a file of yours, whose columns could be named")
    if (entry := store.find(name)) is not None:
        return entry.read()
    if (folder := places.local(name)) is not None:
        from cwbc.datasets.minari import reading

        return reading.read(folder, name)
    raise _unknown(name)


def _read_folder(path: Path, options: ColumnOptions, progress: Progress | None) -> Recording:
    from cwbc.datasets import arrow
    from cwbc.datasets.minari import places, reading

    if places.is_dataset(path):
        return reading.read(path)
    if any(path.glob("*.parquet")):
        return arrow.read_parquet(path, options, progress)
    raise InputError(f"{path} is a folder with neither Parquet files nor a Minari dataset in it")


def _read_file(path: Path, options: ColumnOptions, progress: Progress | None) -> Recording:
    from cwbc.datasets import arrow, hdf5, npz

    readers = {"hdf5": hdf5.read, "npz": npz.read, "parquet": arrow.read_parquet, "csv": arrow.read_csv}
    return readers[_format(path)](path, options, progress)


def _format(path: Path) -> str:
    """What a file is by its first bytes, or else by its name."""
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
    if (suffixes and suffixes[-1] in (".pkl", ".pickle", ".pt")) or start[:2] in (b"\x80\x03", b"\x80\x04"):
        raise InputError(
            f"{path} looks like a pickle, which runs code when it is loaded, and is never read; "
            "write its arrays with numpy.savez"
        )
    raise InputError(f"{path}: unknown format; expected HDF5, NPZ, Parquet (.parquet) or CSV (.csv)")


def _unknown(name: str) -> InputError:
    from cwbc.datasets import d4rl, store
    from cwbc.datasets.minari import places

    if published := d4rl.find(name):
        return InputError(
            f"{published.name} is not here yet; `cwbc data download {published.d4rl_name}` gets it"
        )
    path = Path(name)
    beside = [str(p) for p in path.parent.iterdir() if p.suffix in _SUFFIXES] if path.parent.is_dir() else []
    names = [e.name for e in store.entries()] + [p.d4rl_name for p in d4rl.CATALOGUE] + places.local_names()
    if near := difflib.get_close_matches(name, [*names, *beside], n=3):
        hint = f"did you mean {' or '.join(map(repr, near))}?"
    elif path.suffix in _SUFFIXES:
        there = f"; beside it: {', '.join(sorted(beside)[:5])}" if beside else ""
        return InputError(f"unknown dataset {name!r}: no such file{there}")
    else:
        hint = "`cwbc data list` shows what there is"
    return InputError(f"unknown dataset {name!r}; {hint}")


def _environment_of(path: Path) -> str | None:
    return _ENVIRONMENTS.get(path.stem.replace("_", "-").split("-")[0].lower())
