"""The lock of a run directory: its owner renews it, and a dead or frozen owner loses it.

Owners are numbered files in a folder of the directory, `1`, `2`, ...: the highest number is the owner. A
process takes over by creating the next number, and a file system lets only one process create a file. A
released lock leaves its file, with an old time, so that a slow process cannot replace an owner that it has
not seen.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from cwbc.system import processes
from cwbc.system.errors import InputError

FOLDER = ".owners"  # in a run directory
SECONDS = 60.0  # without renewal, after which a lock is lost
_BEATS = 6  # renewals in that time


class LockLost(RuntimeError):
    """Another process has taken over, since this one did not renew its lock."""


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[Lock]:
    """Lock a run directory against other processes; the lock of a killed process is free."""
    lock = acquire(directory)
    if lock is None:
        raise InputError(f"another process is working in {directory}; wait for it")
    with lock:
        yield lock


def acquire(directory: Path, seconds: float = SECONDS) -> Lock | None:
    """The lock of a run directory, or None while it is locked by another process."""
    folder = directory / FOLDER
    if folder.is_symlink():
        raise InputError(f"{folder} is a symbolic link, and is not written to; remove it")
    last, path = _last(folder)
    if path is not None and _is_locked(path, seconds):
        return None
    path, owner = folder / str(last + 1), {**_myself(), "seconds": seconds, "token": uuid.uuid4().hex}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x") as file:
            json.dump(owner, file)
    except (FileExistsError, FileNotFoundError):  # another process was faster, to lock or to finish
        return None
    if _last(folder)[0] != last + 1:  # others have locked it since it was read above
        path.unlink(missing_ok=True)
        return None
    for old in _numbered(folder)[:-1]:
        # In ascending order: an owner whose file still exists then also sees its successor's.
        old.unlink(missing_ok=True)
    return Lock(path, owner["token"], seconds)


def is_locked(directory: Path, seconds: float = SECONDS) -> bool:
    """Whether a process has locked the directory."""
    path = _last(directory / FOLDER)[1]
    return path is not None and _is_locked(path, seconds)


@dataclasses.dataclass
class Lock:
    """A lock of this process, renewed by a thread."""

    path: Path
    token: str
    seconds: float

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._beat = threading.Thread(target=self._renew, daemon=True, name=f"lock {self._directory.name}")
        self._beat.start()

    @property
    def _directory(self) -> Path:
        return self.path.parent.parent

    def check(self) -> None:
        """Raise LockLost if another process has taken over."""
        if self.is_lost():
            raise LockLost(f"another process has taken over {self._directory.name}")

    def is_lost(self) -> bool:
        """Whether another process has taken over."""
        successor = self.path.with_name(str(int(self.path.name) + 1))
        try:
            return os.path.lexists(successor) or json.loads(self.path.read_text())["token"] != self.token
        except OSError as error:
            # A file system that is unavailable for a moment does not change the owner.
            return error.errno in (errno.ENOENT, errno.ESTALE)
        except (ValueError, KeyError, TypeError):  # damaged: its owner is unknown
            return True

    def release(self, finished: bool = False) -> None:
        """Unlock the directory; where the work is finished or has failed, the lock's files are removed."""
        if self._over.is_set():
            return
        self._over.set()
        self._beat.join()
        with contextlib.suppress(LockLost, OSError):
            self.check()
            if not finished:
                os.utime(self.path, (0, 0))
                return
            self.path.unlink()
            self.path.parent.rmdir()
            self._directory.rmdir()  # only if nothing was written

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _renew(self) -> None:
        while not self._over.wait(self.seconds / _BEATS):
            with contextlib.suppress(OSError):  # the file system may be unavailable for a moment
                os.utime(self.path)


def _numbered(folder: Path) -> list[Path]:
    """The files of all owners, the latest last."""
    try:
        names = [name for name in os.listdir(folder) if name.isdecimal()]
    except FileNotFoundError:
        return []
    return [folder / name for name in sorted(names, key=int)]


def _last(folder: Path) -> tuple[int, Path | None]:
    """The highest number, and its file."""
    files = _numbered(folder)
    return (int(files[-1].name), files[-1]) if files else (0, None)


def _is_locked(path: Path, seconds: float) -> bool:
    owner = _owner(path)
    try:
        here = owner["host"] == processes.host()
        if here and not processes.is_running(int(owner["pid"]), owner["started"]):
            return False
        seconds = float(owner["seconds"])
    except (KeyError, TypeError, ValueError):
        pass  # incomplete, or of another version: the time since its last renewal decides
    try:
        silent = _now(path.parent) - path.stat().st_mtime
    except FileNotFoundError:
        return False
    return silent <= seconds


def _owner(path: Path) -> dict[str, Any]:
    """The contents of an owner's file; empty where it is incomplete or gone."""
    try:
        owner = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _now(folder: Path) -> float:
    """The time by the clock of the file system: those of two hosts may differ."""
    probe = folder / f".now-{uuid.uuid4().hex}"
    probe.touch(exist_ok=False)
    try:
        return probe.stat().st_mtime
    finally:
        probe.unlink()


def _myself() -> dict[str, Any]:
    pid = os.getpid()
    return {"host": processes.host(), "pid": pid, "started": processes.started(pid)}
