"""Datasets kept under a name, each with a manifest that says what it is and a hash that it must match.

What only reading and keeping one need is imported there: to list them takes no numpy.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin, get_type_hints

from cwbc.datasets import d4rl
from cwbc.errors import InputError
from cwbc.files import LOCK, is_aside, locked, replace_atomically, write_atomically

if TYPE_CHECKING:
    from cwbc.recordings import Recording
    from cwbc.trajectories import Trajectories

VARIABLE = "CWBC_DATA"  # the environment variable that moves the store
MANIFEST = "cwbc-manifest.json"
PART = ".data.part"  # a download on its way, with a note beside it

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*", re.ASCII)
RESERVED = ("cwbc", "d4rl")
_FORMAT = 1  # of the manifest
_LONGEST = 100  # letters of a name; folders take no more than 255
_FILE = re.compile(r"[0-9a-f]{16}\.hdf5")  # what adopt calls a file


def root() -> Path:
    """Where datasets are kept: $CWBC_DATA, or the platform's place for caches."""
    if chosen := os.environ.get(VARIABLE):
        return Path(os.path.expanduser(chosen))
    if sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "cwbc" / "datasets"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One dataset of the store, as its manifest has it."""

    name: str
    source: str  # what it was made from
    file: str
    content_hash: str
    bytes: int
    episodes: int
    steps: int
    lowest: float
    best: float
    environment: str | None
    time_limit: int | None
    action_count: int | None
    unfinished_steps: int
    observation_names: tuple[str, ...]
    action_names: tuple[str, ...]
    created: str
    versions: dict[str, str]
    download_hash: str | None = None  # SHA-256 of the file as it came, for one that was downloaded

    @property
    def folder(self) -> Path:
        return root() / self.name

    @property
    def path(self) -> Path:
        return self.folder / self.file

    def read(self) -> Recording:
        """The dataset, if it still is what was stored."""
        from cwbc.datasets import hdf5
        from cwbc.findings import Origin
        from cwbc.recordings import Recording

        try:
            data = hdf5.read(self.path).data
        except (InputError, FileNotFoundError) as error:
            raise self._damaged(str(error)) from error
        data = data.described(
            name=self.name,
            environment=self.environment,
            time_limit=self.time_limit,
            action_count=self.action_count,
            unfinished_steps=self.unfinished_steps,
            observation_names=self.observation_names,
            action_names=self.action_names,
        )
        if data.content_hash != self.content_hash:
            raise self._damaged(
                f"{self.path} has the hash {data.content_hash[:12]}, expected {self.content_hash[:12]}"
            )
        return Recording(data, Origin(self.name), kept=True)

    def looks_whole(self) -> bool:
        """Whether the file is there with its size; only reading tells whether every byte is right."""
        return self.path.is_file() and self.path.stat().st_size == self.bytes

    def _damaged(self, why: str) -> InputError:
        return InputError(
            f"dataset {self.name} is damaged: {why}; get it again from {self.source} with --overwrite"
        )


def names() -> list[str]:
    """Every dataset of the store, damaged ones too."""
    manifests = (path for path in root().rglob(MANIFEST) if path.is_file())
    found = (path.parent.relative_to(root()).as_posix() for path in manifests)
    return sorted(name for name in found if _NAME.fullmatch(name))


def find(name: str) -> Entry | None:
    """The dataset of this name; D4RL's own spelling of its names finds them too."""
    manifest = find_manifest(name)
    return None if manifest is None else _entry(manifest)


def find_manifest(name: str) -> Path | None:
    """Where the manifest of a dataset lies, whatever is in it."""
    published = d4rl.find(name)
    for known in (name, *([published.name] if published else [])):
        if _NAME.fullmatch(known) and (root() / known / MANIFEST).is_file():
            return root() / known / MANIFEST
    return None


def is_name(name: str) -> bool:
    """Whether a dataset can be called so."""
    return bool(_NAME.fullmatch(name)) and len(name) <= _LONGEST and MANIFEST not in name.split("/")


def check_name(name: str, overwrite: bool = False) -> None:
    """Refuse a name that cannot be, or that is taken."""
    if not is_name(name):
        raise InputError(
            f"{name!r} is not a name for a dataset: that has up to {_LONGEST} letters, digits and ._+- "
            "in parts divided by /"
        )
    if name in RESERVED:
        raise InputError(f"{name} is where other datasets lie; choose another --name")
    folder = root() / name
    if (folder / MANIFEST).exists() and not overwrite:
        raise InputError(f"there is a dataset {name} already; --overwrite replaces it")
    for parent in folder.relative_to(root()).parents:
        if str(parent) != "." and (root() / parent / MANIFEST).exists():
            raise InputError(f"{parent} is a dataset; {name} cannot lie below it")
    if not (folder / MANIFEST).exists() and (below := sorted(folder.rglob(MANIFEST))):
        other = below[0].parent.relative_to(root()).as_posix()
        raise InputError(f"{other} is a dataset; {name} cannot lie above it")
    if not (folder / MANIFEST).exists() and (others := _others(folder)):
        raise InputError(
            f"{folder} holds files that are not the store's ({_some(others)}); choose another --name, or "
            "move them"
        )


def _others(folder: Path) -> list[str]:
    """The files of a dataset's folder that the store cannot have left there."""
    found = sorted(p for p in folder.iterdir() if not p.is_dir()) if folder.is_dir() else []
    own = (MANIFEST, PART, f"{PART}.json")
    return [p.name for p in found if not (p.name in own or is_aside(p) or _FILE.fullmatch(p.name))]


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@contextlib.contextmanager
def place(name: str, overwrite: bool = False, wait: bool = False) -> Iterator[Path]:
    """The folder of a dataset that is to be kept, for this process alone until the end of the block."""
    check_name(name, overwrite)
    folder = root() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{folder} cannot be made: {error.strerror}"
        raise InputError(f"{reason}; the variable {VARIABLE} names another place for datasets") from error
    with locked(folder / LOCK, f"another process is writing the dataset {name}; wait for it", wait):
        check_name(name, overwrite)  # again: it may have been written up to now
        yield folder


def add(data: Trajectories, source: str, overwrite: bool = False) -> Entry:
    """Keep a dataset under its name."""
    from cwbc.datasets import hdf5

    with place(data.name, overwrite) as folder:
        aside = folder / ".data.tmp"
        hdf5.write(aside, data)
        return adopt(data, aside, source)


def adopt(data: Trajectories, aside: Path, source: str, download_hash: str | None = None) -> Entry:
    """Keep a file that holds `data`, written aside in its place before, under the name of the data."""
    from importlib.metadata import version

    folder = root() / data.name
    before = readable(data.name)
    # Named by content: until the manifest is replaced, in one step, it names the old file, which is there.
    name = f"{data.content_hash[:16]}.hdf5"
    entry = Entry(
        name=data.name,
        source=source,
        file=name,
        content_hash=data.content_hash,
        bytes=aside.stat().st_size,
        episodes=data.episodes,
        steps=data.steps,
        lowest=data.lowest,
        best=data.best,
        environment=data.environment,
        time_limit=data.time_limit,
        action_count=data.action_count,
        unfinished_steps=data.unfinished_steps,
        observation_names=data.observation_names,
        action_names=data.action_names,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions={p: version(p) for p in ("cwbc", "numpy", "h5py", "mujoco", "gymnasium")},
        download_hash=download_hash,
    )
    replace_atomically(aside, folder / name)
    values = {"format": _FORMAT} | dataclasses.asdict(entry)
    sealed = values | {"seal": _seal(values)}
    write_atomically(folder / MANIFEST, json.dumps(sealed, indent=2) + "\n")
    if before is not None and before.file != name:  # of all other files, none is known to be the store's
        before.path.unlink(missing_ok=True)
    return entry


def readable(name: str) -> Entry | None:
    """The dataset of this name, where there is one whose manifest can be read."""
    try:
        return find(name)
    except InputError:
        return None


def _entry(manifest: Path) -> Entry:
    name = manifest.parent.relative_to(root()).as_posix()
    try:
        values: dict[str, Any] = json.loads(manifest.read_bytes())
        seal = values.pop("seal")
        if values.get("format") == _FORMAT and seal != _seal(values):
            raise ValueError("it was changed after it was written")
        if values.pop("format") != _FORMAT:
            raise ValueError("another version of cwbc wrote it")
        kinds = get_type_hints(Entry)
        entry = Entry(**{field: _checked(field, values.get(field), kinds[field]) for field in kinds})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"dataset {name} is damaged: {manifest} cannot be read ({error}); get the dataset again, "
            "with --overwrite"
        ) from error
    return dataclasses.replace(entry, name=name)


def _seal(values: dict[str, Any]) -> str:
    """A hash of a manifest, so that a changed one is found as a changed dataset is."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _checked(field: str, value: Any, kind: Any) -> Any:
    """A value of a manifest, if it is of its kind."""
    if get_origin(kind) is tuple and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return tuple(value)
    plain = dict if get_origin(kind) is dict else kind
    if get_origin(plain) is tuple or not isinstance(value, plain):
        raise ValueError(f"{field} is {value!r}")
    if field == "file" and not _FILE.fullmatch(str(value)):  # it is read, and removed: never another one's
        raise ValueError(f"file is {value!r}")
    return value
