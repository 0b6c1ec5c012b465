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
from pathlib import Path

from cwbc.system import processes
from cwbc.system.errors import InputError

FOLDER = ".owners"  # in a run directory
SECONDS = 60.0  # without renewal, after which a lock is lost
_BEATS = 6  # renewals in that time


class LockLost(RuntimeError):
    """Another process has taken over, since this one did not renew its lock."""


def acquire(directory: Path, seconds: float = SECONDS) -> Lock | None:
    """The lock of a run directory, or None while it is locked by another process."""
    folder = directory / FOLDER
    if folder.is_symlink():
        raise InputError(f"{folder} is a symbolic link, and is not written to; remove it")
    found = _numbers(folder)
    if found and _is_locked(folder / str(found[-1]), seconds):
        return None
    number, pid, token = (found or [0])[-1] + 1, os.getpid(), uuid.uuid4().hex
    path = folder / str(number)
    owner = {"host": processes.host(), "pid": pid, "started": processes.started(pid)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x") as file:
            json.dump({**owner, "seconds": seconds, "token": token}, file)
    except (FileExistsError, FileNotFoundError):  # another process was faster, to lock or to finish
        return None
    *earlier, last = _numbers(folder) or [0]
    if last != number:  # others have locked it since it was read above
        path.unlink(missing_ok=True)
        return None
    for old in earlier:
        # In ascending order: an owner whose file still exists then also sees its successor's.
        (folder / str(old)).unlink(missing_ok=True)
    return Lock(path, token, seconds)


def acquire_at_once(directory: Path, seconds: float = SECONDS) -> Lock:
    """The lock of a run directory, which no other process may have."""
    lock = acquire(directory, seconds)
    if lock is None:
        raise InputError(f"another process is working in {directory}; wait for it")
    return lock


def is_locked(directory: Path) -> bool:
    """Whether a process has locked the directory."""
    found = _numbers(directory / FOLDER)
    return bool(found) and _is_locked(directory / FOLDER / str(found[-1]), SECONDS)


@dataclasses.dataclass
class Lock:
    """A lock of this process, renewed by a thread."""

    path: Path
    token: str
    seconds: float

    def __post_init__(self) -> None:
        self._directory, self._over = self.path.parent.parent, threading.Event()
        self._beat = threading.Thread(target=self._renew, daemon=True, name=f"lock {self._directory.name}")
        self._beat.start()

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

    def __exit__(self, *error: object) -> None:
        self.release()

    def _renew(self) -> None:
        while not self._over.wait(self.seconds / _BEATS):
            with contextlib.suppress(OSError):  # the file system may be unavailable for a moment
                os.utime(self.path)


def _numbers(folder: Path) -> list[int]:
    """The numbers of all owners, the latest last."""
    try:
        return sorted(int(name) for name in os.listdir(folder) if name.isdecimal())
    except FileNotFoundError:
        return []


def _is_locked(path: Path, seconds: float) -> bool:
    """Whether the owner in this file has the lock; `seconds` are those of an owner whose file has none."""
    try:
        owner = json.loads(path.read_text())
        is_here = owner["host"] == processes.host()
        if is_here and not processes.is_running(int(owner["pid"]), owner["started"]):
            return False
        seconds = float(owner["seconds"])
    except (OSError, KeyError, TypeError, ValueError):
        pass  # incomplete, or of another version: the time since its last renewal decides
    # By the clock of the file system: those of two hosts may differ.
    probe = path.with_name(f".now-{uuid.uuid4().hex}")
    try:
        probe.touch(exist_ok=False)
        return probe.stat().st_mtime - path.stat().st_mtime <= seconds
    except FileNotFoundError:
        return False
    finally:
        probe.unlink(missing_ok=True)
