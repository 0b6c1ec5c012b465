"""Which process did something, and whether it is still there: names that outlive those who left them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import socket
from pathlib import Path


@functools.cache
def host() -> str:
    """Where a process number means the same process."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):  # containers on one machine may share its name, not its processes
        parts += [
            Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            os.readlink("/proc/self/ns/pid"),
        ]
    return " ".join(parts)


def is_running(pid: int, began: str | None) -> bool:
    """Whether a process of this host that began then is still there; yes where that cannot be told."""
    if os.name == "nt":  # there, to ask would be to interrupt
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's, of whom a host may hide the rest
        return True
    return started(pid) == began


def started(pid: int) -> str | None:
    """When a process began, which tells it from a later one with its number; "" once it has ended."""
    try:
        # The name of the program, in brackets, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self/stat").exists() else None
    return "" if fields[0] in "ZX" else fields[19]


def mark() -> str:
    """This process in a few letters, for the names of files that only it writes."""
    pid = os.getpid()
    return f"{_digest()}-{pid}-{started(pid) or 0}"


def is_gone(mark: str) -> bool:
    """Whether the process that made a mark has ended; no where another host's did, or nobody's."""
    place, _, rest = mark.partition("-")
    pid, _, began = rest.partition("-")
    if place != _digest() or not pid.isdecimal():
        return False
    return not is_running(int(pid), None if began == "0" else began)


def _digest() -> str:
    return hashlib.sha256(host().encode()).hexdigest()[:8]
