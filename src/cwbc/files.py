"""How files are written: aside, then renamed, so that a reader or a crash never meets half a file."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from cwbc.errors import InputError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    fcntl = None


def write_atomically(path: Path, data: bytes | str) -> None:
    """Replace the file at `path` in one step; on failure the old file stays and nothing else is left."""
    # Not tempfile: its files are private (0600) whatever the umask says, and the rename would keep that.
    # One name per file: what a kill leaves behind is replaced by the next write, and never piles up.
    aside = path.with_name(f".{path.name}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def replace_atomically(aside: Path, path: Path) -> None:
    """Put a file that was written aside in its place in one step, once it is safe on disk."""
    with aside.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(aside, path)


@contextlib.contextmanager
def locked(path: Path, busy: str, wait: bool = False) -> Iterator[None]:
    """Hold a file that says that this process works here; another one waits, or is told that it is busy."""
    with path.open("w") as file:
        if fcntl is not None:  # there is none on Windows, where one person's two commands are left to luck
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                raise InputError(busy) from None
        yield


def is_aside(path: Path) -> bool:
    """Whether a file is what a kill in the middle of a write left behind."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


_PREFIX = ".cwbc-"  # of folders to write in, followed by the number of the process
_folders: set[Path] = set()


@contextlib.contextmanager
def folder_aside(parent: Path) -> Iterator[Path]:
    """A folder beside what is to be written, removed at the end; what a dead process left goes too."""
    for old in parent.glob(f"{_PREFIX}*"):
        if not _is_alive(old.name.removeprefix(_PREFIX)):
            shutil.rmtree(old, ignore_errors=True)
    folder = parent / f"{_PREFIX}{os.getpid()}"
    folder.mkdir(parents=True)
    _folders.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _folders.discard(folder)


def remove_folders_aside() -> None:
    """Remove what this process was writing in, before it ends at once."""
    for folder in _folders:
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except (OSError, OverflowError):  # somebody else's
        return True
    return True
