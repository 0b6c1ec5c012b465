"""Datasets stored under names, each with a manifest that describes it and a hash that it must match."""

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
from typing import TYPE_CHECKING, Any

from cwbc.data import unpacked
from cwbc.data.sources import DatasetSource, Offer, size_text
from cwbc.system.errors import InputError, unknown
from cwbc.system.files import LOCK, is_aside, locked, replace_atomically, write_atomically
from cwbc.system.typed_json import decode
from cwbc.system.versions import versions

if TYPE_CHECKING:  # listing datasets needs no numpy, so nothing that imports it is imported here
    from cwbc.core.trajectories import Trajectories
    from cwbc.data.checks import Recording

VARIABLE = "CWBC_DATA"  # the environment variable that moves the store
MANIFEST = "cwbc-manifest.json"
PART = ".data.part"  # an unfinished download, with a note beside it
_OWN = (PART, f"{PART}.json", MANIFEST)

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*", re.ASCII)
# What a terminal or a file system acts upon: control characters, halves of characters, signs of paths.
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]+")
_FORMAT = 1  # of the manifest
_LONGEST = 100  # letters of a name; folders take no more than 255
_FILE = re.compile(r"[0-9a-f]{16}\.hdf5")  # the files that adopt writes
_UNPACKED = re.compile(rf"[0-9a-f]{{16}}\{unpacked.SUFFIX}")  # and those beside them


def contained(name: str) -> str:
    """The name as a relative path that stays below its folder, whatever a file contains."""
    parts = (_ODD.sub("-", part) for part in name.split("/"))
    return "/".join(part for part in parts if part.strip(" .")) or "data"


def root() -> Path:
    """The folder of all datasets: $CWBC_DATA, or below the platform's folder for caches."""
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
    """One dataset of the store, as its manifest describes it."""

    name: str
    source: str  # the file, address or command that it is from
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
    download_hash: str | None = None  # SHA-256 of the downloaded file

    @property
    def path(self) -> Path:
        return root() / self.name / self.file

    @property
    def unpacked(self) -> Path:
        """The raw file of images that exceed the memory, once they were read."""
        return self.path.with_suffix(unpacked.SUFFIX)

    @property
    def disk_space(self) -> int:
        """Bytes of its files."""
        return self.bytes + (self.unpacked.stat().st_size if self.unpacked.is_file() else 0)

    def read(self) -> Recording:
        """The dataset, if its hash is right."""
        from cwbc.data.checks import Recording
        from cwbc.data.issues import Origin

        try:
            data = self._read()
            if data.is_mapped and data.content_hash != self.content_hash:
                self.unpacked.unlink(missing_ok=True)
                data = self._read()  # which writes it again
            if (found := data.content_hash) != (expected := self.content_hash):
                raise InputError(f"{self.path} has the hash {found[:12]}, expected {expected[:12]}")
        except (InputError, FileNotFoundError) as error:
            raise InputError(
                f"dataset {self.name} is damaged: {error}; get it again from {self.source} with --overwrite"
            ) from error
        return Recording(data, Origin(self.name), stored=True)

    def _read(self) -> Trajectories:
        from cwbc.data.formats import hdf5

        data = hdf5.read(self.path, images=lambda images: unpacked.read_or_map(images, self.unpacked)).data
        # What its file does not contain.
        fields = {field.name for field in dataclasses.fields(data)} & vars(self).keys()
        return data.described(**{name: getattr(self, name) for name in fields})

    def looks_whole(self) -> bool:
        """Whether the file exists with its size; only reading it verifies every byte."""
        return self.path.is_file() and self.path.stat().st_size == self.bytes


def names() -> list[str]:
    """Every dataset of the store, including damaged ones."""
    found = (path.parent.relative_to(root()).as_posix() for path in root().rglob(MANIFEST))
    return sorted(filter(has, found))


def has(name: str) -> bool:
    """Whether the store has a dataset of this name, damaged or not."""
    return bool(_NAME.fullmatch(name)) and (root() / name / MANIFEST).is_file()


def find(name: str) -> Entry | None:
    """The dataset of this name."""
    return _entry(name) if has(name) else None


def readable(name: str) -> Entry | None:
    """The dataset of this name, if its manifest can be read."""
    try:
        return find(name)
    except InputError:
        return None


def check_name(name: str, overwrite: bool = False) -> None:
    """Refuse a name that is invalid or taken."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or MANIFEST in name.split("/"):
        raise InputError(
            f"{name!r} is not a name for a dataset: it has up to {_LONGEST} letters, digits and ._+- "
            "in parts divided by /; choose another one (of an import, with --name)"
        )
    folder = root() / name
    if (folder / MANIFEST).exists():
        if overwrite:
            return
        raise InputError(f"there is a dataset {name} already; --overwrite replaces it")
    for parent in list(Path(name).parents)[:-1]:
        if (root() / parent / MANIFEST).exists():
            raise InputError(f"{parent} is a dataset; {name} cannot be below it")
    if below := sorted(folder.rglob(MANIFEST)):
        other = below[0].parent.relative_to(root()).as_posix()
        raise InputError(f"{other} is a dataset; {name} cannot be above it")
    files = (path for path in sorted(folder.glob("*")) if not path.is_dir() and not is_aside(path))
    if others := [
        p.name
        for p in files
        if not (p.name in _OWN or _FILE.fullmatch(p.name) or _UNPACKED.fullmatch(p.name))
    ]:
        some = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise InputError(
            f"{folder} has files that are not the store's ({some}); choose another --name, or move them"
        )


@contextlib.contextmanager
def place(name: str, overwrite: bool = False, wait: bool = False) -> Iterator[Path]:
    """The folder for a new dataset, locked for this process until the end of the block."""
    check_name(name, overwrite)
    folder = root() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{folder} cannot be created: {error.strerror}"
        raise InputError(f"{reason}; the variable {VARIABLE} names another folder for datasets") from error
    with locked(folder / LOCK, f"another process is writing the dataset {name}; wait for it", wait):
        check_name(name, overwrite)  # again: it may have been written in between
        yield folder


def add(data: Trajectories, source: str, overwrite: bool = False) -> Entry:
    """Store a dataset under its name."""
    with place(data.name, overwrite) as folder:
        return write(data, folder, source)


def write(data: Trajectories, folder: Path, source: str) -> Entry:
    """Store a dataset in the locked folder of its name."""
    from cwbc.data.formats import hdf5

    aside = folder / ".data.tmp"
    hdf5.write(aside, data)
    return adopt(data, aside, source)


def adopt(data: Trajectories, aside: Path, source: str, download_hash: str | None = None) -> Entry:
    """Store a file that contains `data` and was written aside in the locked folder of its name."""
    folder, before = root() / data.name, readable(data.name)
    common = [field.name for field in dataclasses.fields(Entry) if hasattr(data, field.name)]
    entry = Entry(
        **{name: getattr(data, name) for name in common},
        source=source,
        # Named by content: until the manifest is replaced, in one step, it names the old file, which exists.
        file=f"{data.content_hash[:16]}.hdf5",
        bytes=aside.stat().st_size,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions=versions("cwbc", "numpy", "h5py", "mujoco", "gymnasium"),
        download_hash=download_hash,
    )
    replace_atomically(aside, entry.path)
    values = {"format": _FORMAT} | dataclasses.asdict(entry)
    write_atomically(folder / MANIFEST, json.dumps(values | {"seal": _seal(values)}, indent=2) + "\n")
    if before is not None and before.file != entry.file:  # no other file is known to be the store's
        before.path.unlink(missing_ok=True)
        before.unpacked.unlink(missing_ok=True)
    return entry


def _entry(name: str) -> Entry:
    manifest = root() / name / MANIFEST
    try:
        values: dict[str, Any] = json.loads(manifest.read_bytes())
        seal = values.pop("seal")
        if values.get("format") != _FORMAT:
            raise ValueError("another version of cwbc wrote it")
        if seal != _seal(values):
            raise ValueError("it was changed after it was written")
        del values["format"]
        entry: Entry = decode(Entry, values, "it")
        if not _FILE.fullmatch(entry.file):  # it is read and removed, so it must be the store's own
            raise ValueError(f"file is {entry.file!r}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        cause = f"{manifest} cannot be read ({error})"
        raise InputError(
            f"dataset {name} is damaged: {cause}; get the dataset again, with --overwrite"
        ) from error
    return dataclasses.replace(entry, name=name)


def _seal(values: dict[str, Any]) -> str:
    """A hash of a manifest, so that a changed one is detected as a changed dataset is."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def remove(name: str) -> tuple[int, list[str]]:
    """Remove a dataset; how many bytes that freed, and the files that remain, as they are not the store's."""
    if not has(name):
        near = unknown("dataset", name, names())
        hint = str(near).split("; ", 1)[1] if names() else "it is empty"
        raise InputError(f"the store has no dataset {name!r}; {hint}")
    folder = root() / name
    with locked(folder / LOCK, f"another process is writing the dataset {name}; wait for it"):
        try:
            entry = _entry(name)
        except InputError as error:
            raise InputError(f"{error}; its files are not known: delete {folder} yourself") from error
        size = 0
        # The manifest last: after a kill, the same command removes the rest.
        for path in (entry.path, entry.unpacked, *(folder / name for name in _OWN)):
            with contextlib.suppress(FileNotFoundError):
                size += path.lstat().st_size
                path.unlink()
        others = sorted(path.name for path in folder.iterdir() if path.name != LOCK)
        if not others:  # only then: a process that waits for this lock finds the folder gone
            (folder / LOCK).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # a parent with others in it, or another process writes there
                while folder != root():
                    folder.rmdir()
                    folder = folder.parent
    return size, others


def _offers() -> Iterator[Offer]:
    for name in names():
        if (entry := readable(name)) and entry.looks_whole():
            size, environment = size_text(entry.disk_space), entry.environment or "-"
            cells = (f"{entry.episodes:,}", f"{entry.steps:,}", size, environment)
            yield Offer(
                name, cells, {"whole": True, "disk_space": entry.disk_space} | dataclasses.asdict(entry)
            )
        else:
            cells = ("damaged", "", "", f"`cwbc data check {name}` shows how")
            yield Offer(name, cells, {"name": name, "whole": False})


SOURCE = DatasetSource(
    key="here",
    headings=("dataset", "episodes", "steps", "size", "environment"),
    offers=_offers,
    names=names,
    has=has,
    read=lambda name, options, progress: _entry(name).read(),
)
