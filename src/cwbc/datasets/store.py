"""Datasets kept under a name, each with a manifest that says what it is and a hash that it must match."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cwbc.datasets import hdf5
from cwbc.datasets.tables import Recording
from cwbc.errors import InputError
from cwbc.files import write_atomically
from cwbc.findings import Origin
from cwbc.trajectories import Trajectories

VARIABLE = "CWBC_DATA"  # the environment variable that moves the store
MANIFEST = "manifest.json"

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*", re.ASCII)


def root() -> Path:
    """Where datasets are kept: $CWBC_DATA, or the platform's place for caches."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
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

    @property
    def folder(self) -> Path:
        return root() / self.name

    @property
    def path(self) -> Path:
        return self.folder / self.file

    def read(self) -> Recording:
        """The dataset, if it still is what was stored."""
        try:
            data = hdf5.read(self.path).data
        except (InputError, FileNotFoundError) as error:
            raise self._damaged(str(error)) from error
        data = dataclasses.replace(
            data,
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
        return Recording(data, Origin(self.name))

    def looks_whole(self) -> bool:
        """Whether the file is there with its size; only reading tells whether every byte is right."""
        return self.path.is_file() and self.path.stat().st_size == self.bytes

    def _damaged(self, why: str) -> InputError:
        return InputError(
            f"dataset {self.name} is damaged: {why}; get it again from {self.source} with --overwrite"
        )


def entries() -> Iterator[Entry]:
    """Every dataset of the store, by name."""
    for manifest in sorted(root().rglob(MANIFEST)):
        yield _entry(manifest)


def find(name: str) -> Entry | None:
    """The dataset of this name; D4RL's own spelling of its names finds them too."""
    from cwbc.datasets import d4rl

    published = d4rl.find(name)
    for known in (name, *([published.name] if published else [])):
        if _NAME.fullmatch(known) and (root() / known / MANIFEST).is_file():
            return _entry(root() / known / MANIFEST)
    return None


def check_name(name: str, overwrite: bool = False) -> None:
    """Refuse a name that cannot be, or that is taken."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a name for a dataset; it takes letters, digits and ._+- in parts divided by /"
        )
    folder = root() / name
    if (folder / MANIFEST).exists() and not overwrite:
        raise InputError(f"there is a dataset {name} already; --overwrite replaces it")
    for parent in folder.relative_to(root()).parents:
        if str(parent) != "." and (root() / parent / MANIFEST).exists():
            raise InputError(f"{parent} is a dataset; {name} cannot lie below it")
    if not (folder / MANIFEST).exists() and (below := sorted(folder.rglob(MANIFEST))):
        other = below[0].parent.relative_to(root()).as_posix()
        raise InputError(f"{other} is a dataset; {name} cannot lie above it")


def add(data: Trajectories, source: str, overwrite: bool = False) -> Entry:
    """Keep a dataset under its name."""
    check_name(data.name, overwrite)
    aside = part(data.name).with_name(".data.tmp")
    hdf5.write(aside, data)
    return adopt(data, aside, source, overwrite)


def part(name: str) -> Path:
    """A file to download a dataset into: a kill leaves it, and the next download goes on with it."""
    folder = root() / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder / ".data.part"


def adopt(data: Trajectories, aside: Path, source: str, overwrite: bool = False) -> Entry:
    """Keep a file that holds `data`, written aside before, under the name of the data."""
    check_name(data.name, overwrite)
    with aside.open("rb+") as file:
        os.fsync(file.fileno())
    folder = root() / data.name
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
        versions={p: importlib.metadata.version(p) for p in ("cwbc", "numpy", "h5py", "mujoco", "gymnasium")},
    )
    os.replace(aside, folder / name)
    write_atomically(folder / MANIFEST, json.dumps(dataclasses.asdict(entry), indent=2) + "\n")
    for old in folder.glob("*.hdf5"):
        if old.name != name:
            old.unlink()
    return entry


def _entry(manifest: Path) -> Entry:
    name = manifest.parent.relative_to(root()).as_posix()
    try:
        values: dict[str, Any] = json.loads(manifest.read_text())
        values = {field.name: values[field.name] for field in dataclasses.fields(Entry)}
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"dataset {name} is damaged: {manifest} cannot be read ({error}); remove {manifest.parent} "
            "and get the dataset again"
        ) from error
    return Entry(**values | {"name": name})
