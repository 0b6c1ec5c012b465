"""Marks of processes in the names of files, and whether a process is still running."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import socket
from pathlib import Path


@functools.cache
def host() -> str:
    """The machine and container within which process numbers are unique."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):  # containers on one machine may share its name, not its processes
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def is_running(pid: int, began: str | None) -> bool:
    """Whether a process of this host that started then is still running; True where that is unknown."""
    if os.name == "nt":  # where signal 0 would interrupt it
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's, whose start time may be hidden
        return True
    return started(pid) == began


def started(pid: int) -> str | None:
    """When a process started, which differs for a later one with its number; "" once it has ended."""
    try:
        # The name of the program, in brackets, may contain anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self/stat").exists() else None
    return "" if fields[0] in "ZX" else fields[19]


def mark() -> str:
    """A short name of this process, for files that only it writes."""
    return f"{_here()}-{os.getpid()}-{started(os.getpid()) or 0}"


def is_gone(mark: str) -> bool:
    """Whether the process of a mark has ended; False for marks of other hosts and other texts."""
    found = re.fullmatch(rf"{_here()}-(\d+)-(\d+)", mark)
    return found is not None and not is_running(int(found[1]), None if found[2] == "0" else found[2])


def _here() -> str:
    return hashlib.sha256(host().encode()).hexdigest()[:8]
