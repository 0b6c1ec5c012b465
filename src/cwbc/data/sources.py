"""The interface of everything that datasets come from: the store, generators, downloads, files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cwbc.data.checks import Recording
    from cwbc.data.dqn_replay import ReplayOptions
    from cwbc.data.formats.columns import ColumnOptions
    from cwbc.data.store import Entry
    from cwbc.system.progress import Progress

    ReadOptions = ColumnOptions | ReplayOptions  # of tables, or of DQN-replay files


@dataclasses.dataclass(frozen=True)
class Offer:
    """One dataset of a source, as `cwbc data list` shows it."""

    name: str
    cells: tuple[str, ...] = ()  # beside its name, one per heading
    facts: dict[str, Any] | None = None  # for --json; None: only its name


@dataclasses.dataclass(frozen=True)
class Remote:
    """Datasets of a source that are available from the network."""

    knows: Callable[[str], bool]
    download: Callable[[str, str | None, bool, Progress | None], tuple[Entry, str]]
    """From a name, another address of the same file, overwrite and progress: the entry and a remark."""
    unit: str | None = "bytes"  # of its progress; None: it shows its own


@dataclasses.dataclass(frozen=True)
class DatasetSource:
    """Where datasets come from. Only `read` and `Remote.download` may import numpy: all else is fast."""

    has: Callable[[str], bool]  # whether a dataset can be read, or generated, on this machine
    read: Callable[[str, ReadOptions, Progress | None], Recording]
    names: Callable[[], Iterable[str]] = tuple  # of its datasets, to suggest for a misspelled name
    hint: Callable[[str], str | None] = lambda name: None  # why a dataset of this name cannot be read here
    stored_name: Callable[[str], str] = lambda name: name  # the store's spelling of a name
    key: str = ""  # of its list in `cwbc data list --json`
    headings: tuple[str, ...] = ()  # of its table in `cwbc data list`
    offers: Callable[[], Iterable[Offer]] = tuple
    remote: Remote | None = None
    activity: tuple[str, str] = ("reading", "values")  # what `read` does, and the unit of its progress
    reserved: bool = False  # no other dataset may have one of its names


def size_text(count: float) -> str:
    """The size of a file, such as 237.7 MB."""
    unit, size = ("kB", 1e3) if count < 1e6 else ("MB", 1e6) if count < 1e9 else ("GB", 1e9)
    return f"{count / size:,.{2 if unit == 'GB' else 1}f} {unit}"
