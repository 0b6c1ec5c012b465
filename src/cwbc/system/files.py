"""Atomic writes, locks and safe reads: a reader or a crash never meets half a file."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from cwbc.system import processes
from cwbc.system.errors import InputError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".tmp"
LOCK = ".lock"
# Flags that Windows does not have are left out there.
_GUARDED = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)  # file systems of some clusters


def write_atomically(
    path: Path, data: bytes | str, before_replacing: Callable[[], None] = lambda: None
) -> None:
    """Replace the file at `path` in one step; on failure the old file stays and nothing else is left."""
    write_together({path: data}, before_replacing)


def write_together(
    contents: Mapping[Path, bytes | str | None],
    before_replacing: Callable[[], None] = lambda: None,
    withdrawn: Iterable[Path] = (),
) -> None:
    """Replace several files once all of them are written; on failure before that, every old file stays.

    Args:
        contents: in the order in which they are replaced; None removes a file.
        before_replacing: may raise, and then the old files stay as well.
        withdrawn: removed before any is replaced, so that a kill leaves no summary of a mixture.
    """
    asides: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "is a folder, where a file is to be written", str(path))
            if data is not None:
                asides[path] = _aside(path)
                with create(asides[path]) as file:
                    file.write(data.encode() if isinstance(data, str) else data)
                    file.flush()
                    os.fsync(file.fileno())
        before_replacing()
        for path in withdrawn:
            path.unlink(missing_ok=True)
        for path in contents:
            if path in asides:
                os.replace(asides[path], path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        if not error.errno or str(error.filename) not in ("None", str(asides.get(path))):
            raise
        # For the file that is written, rather than for the temporary one beside it.
        reason = f"cannot be written ({os.strerror(error.errno)})"
        raise OSError(error.errno, reason, str(path)) from error
    finally:
        for aside in asides.values():
            with contextlib.suppress(OSError):
                aside.unlink()


def _aside(path: Path) -> Path:
    """A new temporary name beside a file or folder; what killed processes left there is removed."""
    for old in path.parent.glob(f".{glob.escape(path.name)}.*{_SUFFIX}"):
        if processes.is_gone(old.name.split(".")[-3]):
            with contextlib.suppress(OSError):
                shutil.rmtree(old) if old.is_dir() else old.unlink()
    # Not tempfile: its files are private (0600) whatever the umask, also after the rename.
    # An unpredictable name: two writers never share it, and nobody can place a link there before.
    return path.with_name(f".{path.name}.{processes.mark()}.{secrets.token_hex(8)}{_SUFFIX}")


def create(path: Path) -> BinaryIO:
    """Open a new file for writing; an existing file or link is refused."""
    return os.fdopen(_opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")


def open_to_append(path: Path) -> BinaryIO:
    """Open a file for appending, created where there is none; a link is refused."""
    return os.fdopen(_opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")


def _opened(path: Path, flags: int) -> int:
    """A descriptor for writing to a plain file; links, pipes and devices are refused."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        what = "a symbolic link" if path.is_symlink() else "no plain file"
        raise InputError(f"{path} is {what}, and is not written to; remove it, and run the command again")
    # The flags guard against a link or a pipe that is placed there meanwhile.
    return os.open(path, flags | _GUARDED, 0o666)


def read_text(path: Path) -> str:
    """The text of a file; an error names a file that is not text or not a plain file."""
    if path.exists() and not path.is_file():  # reading a pipe would wait
        raise InputError(f"{path} is no plain file")
    try:
        data = path.read_bytes()
        return data.decode()
    except UnicodeDecodeError as error:
        line, byte = data[: error.start].count(b"\n") + 1, data[error.start]
        raise InputError(
            f"{path} is damaged: line {line} has a byte that is no text, 0x{byte:02x}"
        ) from error
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise InputError(f"{path} is a symbolic link that leads nowhere") from error


def read_json(path: Path) -> Any:
    """The value in a JSON file; an error names the place of what is wrong."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}") from error


def replace_atomically(aside: Path, path: Path) -> None:
    """Move a temporary file to its place in one step, once it is synced to disk."""
    with os.fdopen(_opened(aside, os.O_RDWR), "rb+") as file:
        os.fsync(file.fileno())
    os.replace(aside, path)


@contextlib.contextmanager
def locked(path: Path, busy: str, wait: bool = False) -> Iterator[None]:
    """Lock a file; if another process has locked it, wait or raise an error with the text `busy`."""
    # Never truncated: its content is not ours.
    with os.fdopen(_opened(path, os.O_RDWR | os.O_CREAT), "rb+") as file:
        if fcntl is not None:  # Windows has no fcntl; there, two commands at once are not detected
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                raise InputError(busy) from None
            except OSError as error:
                if error.errno not in _WITHOUT_LOCKS:
                    raise
        yield


def is_aside(path: Path) -> bool:
    """Whether a file is a temporary file, which a kill may leave behind, or a lock."""
    return path.name == LOCK or (path.name.startswith(".") and path.name.endswith(_SUFFIX))


_folders: set[Path] = set()


@contextlib.contextmanager
def folder_aside(parent: Path) -> Iterator[Path]:
    """A temporary folder, removed at the end; those that killed processes left are removed, too."""
    folder = _aside(parent / "cwbc")
    folder.mkdir(parents=True)
    _folders.add(folder)
    try:
        yield folder
    finally:
        remove_folders_aside()


def remove_folders_aside() -> None:
    """Remove the temporary folders of this process, before it is ended without cleanup."""
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
