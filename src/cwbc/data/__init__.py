"""From the name or path of a dataset to Trajectories."""

from __future__ import annotations

import dataclasses
import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.data import d4rl, files, generated, minari, store
from cwbc.data.formats.columns import BY_NAME, ColumnOptions
from cwbc.data.sources import DatasetSource
from cwbc.system.errors import InputError

if TYPE_CHECKING:
    from cwbc.core.trajectories import Trajectories
    from cwbc.data.checks import Recording
    from cwbc.system.progress import Progress

__all__ = ["SOURCES", "activity", "is_reserved", "load", "read", "stored_name"]

# In the order in which a name is looked up; one that looks like a path is looked up as a file first.
SOURCES: tuple[DatasetSource, ...] = (
    store.SOURCE,
    generated.SOURCE,
    d4rl.SOURCE,
    files.SOURCE,
    minari.SOURCE,
)
NO_ENVIRONMENT = "none"


def load(
    dataset: str | os.PathLike[str], environment: str | None = None, max_gigabytes: float | None = None
) -> Trajectories:
    """The trajectories of a dataset, checked.

    Args:
        dataset: a name (`cwbc data list`), a Minari id, or the path of a file or folder.
        environment: a Gymnasium id, or "none"; by default, the one that the dataset or its name implies.
        max_gigabytes: what a file may expand to; by default 1, or 256 times the file's size.
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
    """A dataset with its origin and the issues of reading it; its values are not checked."""
    from cwbc import envs
    from cwbc.data.formats import protection

    envs.allow(environment)
    name = os.fspath(dataset)
    with protection.at_most(max_gigabytes):
        if (source := _source_of(name)) is None:
            raise _unknown(name)
        if options != BY_NAME and not source.tables:
            raise files.options_not_allowed(name)
        recording = source.read(name, options, progress)
    data = recording.data
    if time_limit is not None and time_limit < (longest := int(data.lengths.max())):
        raise InputError(f"--time-limit {time_limit} is shorter than an episode of {longest} steps")
    known = data.environment if environment is None else environment
    known = None if known == NO_ENVIRONMENT else known
    limit = time_limit or (data.time_limit if known == data.environment else None)
    limit = limit or (envs.time_limit(known) if known else None)
    if recording.origin.only_done and limit:  # an episode that reached the limit was truncated by it
        data = dataclasses.replace(data, terminated=data.terminated & (data.lengths < limit))
    data = data.described(environment=known, time_limit=limit, action_count=action_count or data.action_count)
    return dataclasses.replace(recording, data=data)


def activity(dataset: str | os.PathLike[str]) -> tuple[str, str]:
    """What reading a dataset does, in words, and the unit of its progress."""
    name = os.fspath(dataset)
    verb, unit = (_source_of(name) or files.SOURCE).activity
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
    order = SOURCES if bare else (files.SOURCE, *SOURCES)
    return next((source for source in order if source.has(name)), None)


def _unknown(name: str) -> InputError:
    if hint := next(filter(None, (source.hint(name) for source in SOURCES)), None):
        return InputError(hint)
    beside, is_file = files.beside(name), Path(name).suffix in files.SUFFIXES
    hint = "; `cwbc data list` shows the available ones"
    names = {*beside, *(known for source in SOURCES for known in source.names())}
    if near := difflib.get_close_matches(name, sorted(names), n=3):
        hint = f"; did you mean {' or '.join(map(repr, near))}?"
    elif is_file:
        hint = f"; beside it: {', '.join(beside[:5])}" if beside else ""
    return InputError(f"unknown dataset {name!r}{': no such file' * is_file}{hint}")
