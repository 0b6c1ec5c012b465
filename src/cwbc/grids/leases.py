"""Who works on a cell: a lock that its owner renews, and that a dead or frozen owner loses.

Owners follow each other as numbered files in a folder of the cell's, `1`, `2`, ...: the highest number is the
owner. To create the next number is to take over, and a file system lets only one process create a file. What
is released keeps its number, with no sign of life, so a slow process cannot oust an owner whom it never saw.
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
from types import TracebackType
from typing import Any

from cwbc import processes

SECONDS = 60.0  # without a sign of life, after which a lease is lost
_BEATS = 6  # signs of life in that time


class LeaseLost(RuntimeError):
    """Another process has taken over, since this one gave no sign of life."""


def acquire(folder: Path, seconds: float = SECONDS) -> Lease | None:
    """The lease of what the folder stands for, or None while another process holds it."""
    last, path = _last(folder)
    if path is not None and _is_held(path, seconds):
        return None
    path, owner = folder / str(last + 1), {**_myself(), "seconds": seconds, "token": uuid.uuid4().hex}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x") as file:
            json.dump(owner, file)
    except (FileExistsError, FileNotFoundError):  # another was quicker, to take it or to finish all
        return None
    if _last(folder)[0] != last + 1:  # what was seen above was long over
        path.unlink(missing_ok=True)
        return None
    for old in _numbered(folder)[:-1]:
        # From the first on: an owner who finds his file finds that of his successor, too.
        old.unlink(missing_ok=True)
    return Lease(path, owner["token"], seconds)


def is_held(folder: Path, seconds: float = SECONDS) -> bool:
    """Whether some process has the lease."""
    path = _last(folder)[1]
    return path is not None and _is_held(path, seconds)


@dataclasses.dataclass
class Lease:
    """A lease while it is held; a thread renews it."""

    path: Path
    token: str
    seconds: float

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._beat = threading.Thread(target=self._renew, daemon=True, name=f"lease {self.path.parent.name}")
        self._beat.start()

    def check(self) -> None:
        """Raise LeaseLost if another process has taken over."""
        if self.is_lost():
            raise LeaseLost(f"another process has taken over {self.path.parent.name}")

    def is_lost(self) -> bool:
        """Whether another process has taken over."""
        successor = self.path.with_name(str(int(self.path.name) + 1))
        try:
            return os.path.lexists(successor) or json.loads(self.path.read_text())["token"] != self.token
        except OSError as error:
            # A file system that is away for a moment has given it to nobody.
            return error.errno in (errno.ENOENT, errno.ESTALE)
        except (ValueError, KeyError, TypeError):  # damaged, so that nobody sees whose it is
            return True

    def release(self, finished: bool = False) -> None:
        """Let others have it; where all is finished, nothing stays behind."""
        if self._over.is_set():
            return
        self._over.set()
        self._beat.join()
        with contextlib.suppress(LeaseLost, OSError):
            self.check()
            if not finished:
                os.utime(self.path, (0, 0))
                return
            self.path.unlink()
            self.path.parent.rmdir()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _renew(self) -> None:
        while not self._over.wait(self.seconds / _BEATS):
            with contextlib.suppress(OSError):  # a file system that is away for a moment is no reason to stop
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


def _is_held(path: Path, seconds: float) -> bool:
    owner = _owner(path)
    try:
        here = owner["host"] == processes.host()
        if here and not processes.is_running(int(owner["pid"]), owner["started"]):
            return False
        seconds = float(owner["seconds"])
    except (KeyError, TypeError, ValueError):
        pass  # told by half, or by another version: the clock decides
    try:
        silent = _now(path.parent) - path.stat().st_mtime
    except FileNotFoundError:
        return False
    return silent <= seconds


def _owner(path: Path) -> dict[str, Any]:
    """What an owner tells of himself; nothing, where he was killed in the middle of it or is gone."""
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
