"""Removes datasets from the store, and nothing but what is theirs."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

from cwbc.datasets import store
from cwbc.errors import InputError, unknown
from cwbc.files import LOCK, locked


@dataclasses.dataclass(frozen=True)
class Removed:
    """What the removal of a dataset took away, and what it left."""

    folder: Path
    bytes: int
    others: tuple[str, ...]  # names of files that are not the store's: they stay, and so does the folder


def remove(name: str) -> Removed:
    """Remove a dataset: the file that its manifest names, the manifest, and what a download left there."""
    if (manifest := store.find_manifest(name)) is None:
        raise _not_held(name)
    folder = manifest.parent
    with locked(folder / LOCK, f"another process is writing the dataset {name}; wait for it"):
        try:
            entry = store.find(name)
            assert entry is not None
        except InputError as error:
            unknown_files = f"which files are its own is not known: delete {folder} yourself"
            raise InputError(f"{error}; {unknown_files}") from error
        # The manifest last: after a kill, the same command removes the rest.
        own = (entry.path, folder / store.PART, folder / f"{store.PART}.json", manifest)
        size = 0
        for path in own:
            with contextlib.suppress(FileNotFoundError):
                size += path.lstat().st_size
                path.unlink()
        others = tuple(sorted(path.name for path in folder.iterdir() if path.name != LOCK))
        if not others:  # last, and only then: who waits for this lock finds the folder gone
            (folder / LOCK).unlink(missing_ok=True)
            _remove_empty(folder)
    return Removed(folder, size, others)


def _not_held(name: str) -> InputError:
    near = unknown("dataset", name, store.names())
    hint = str(near).split("; ", 1)[1] if store.names() else "it is empty"
    return InputError(f"the store holds no dataset {name!r}; {hint}")


def _remove_empty(folder: Path) -> None:
    """Remove a folder of the store, and those above it that it leaves empty."""
    with contextlib.suppress(OSError):  # a link, or another process is at work there
        while folder != store.root():
            folder.rmdir()
            folder = folder.parent
