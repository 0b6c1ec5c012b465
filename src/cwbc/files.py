"""How files are written: aside, then renamed, so that a reader or a crash never meets half a file."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from cwbc import processes
from cwbc.errors import InputError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    fcntl = None

_SUFFIX = ".tmp"
LOCK = ".lock"
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)  # file systems of some clusters


def write_atomically(
    path: Path, data: bytes | str, before_replacing: Callable[[], None] = lambda: None
) -> None:
    """Replace the file at `path` in one step; on failure the old file stays and nothing else is left.

    Args:
        before_replacing: may raise, and then the old file stays as well.
    """
    # Not tempfile: its files are private (0600) whatever the umask says, and the rename would keep that.
    # A name of this process and thread alone: what two write at once would be a mixture.
    aside = path.with_name(f".{path.name}.{processes.mark()}.{threading.get_ident()}{_SUFFIX}")
    for old in path.parent.glob(f".{glob.escape(path.name)}.*{_SUFFIX}"):
        if processes.is_gone(old.name.split(".")[-3]):  # left behind by a kill
            old.unlink(missing_ok=True)
    try:
        with aside.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        before_replacing()
        os.replace(aside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):  # where nothing could be made, there is nothing to remove
            aside.unlink()
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(aside)):
            # People know the file that they asked for, not the one beside it.
            reason = f"cannot be written ({os.strerror(error.errno)})"
            raise OSError(error.errno, reason, str(path)) from error
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
            except OSError as error:
                if error.errno not in _WITHOUT_LOCKS:
                    raise
        yield


def is_aside(path: Path) -> bool:
    """Whether a file is what a kill in the middle of a write left behind, or a lock, held or not."""
    return path.name == LOCK or (path.name.startswith(".") and path.name.endswith(_SUFFIX))


_PREFIX = ".cwbc-"  # of folders to write in, followed by the mark of the process
_folders: set[Path] = set()


@contextlib.contextmanager
def folder_aside(parent: Path) -> Iterator[Path]:
    """A folder beside what is to be written, removed at the end; what a dead process left goes too."""
    for old in parent.glob(f"{_PREFIX}*"):
        if processes.is_gone(old.name.removeprefix(_PREFIX)):
            shutil.rmtree(old, ignore_errors=True)
    folder = parent / f"{_PREFIX}{processes.mark()}"
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
