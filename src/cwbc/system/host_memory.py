"""How much of the machine's memory this process may use."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # as on Windows
    resource = None  # type: ignore[assignment]

_OWN, _ALL = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")  # control groups
# By controller, the folder of groups and the file with a group's limit: of version 2, and of version 1.
_LIMITS = {"": (".", "memory.max"), "memory": ("memory", "memory.limit_in_bytes")}


def host_memory() -> float:
    """Bytes: the machine's memory, or what a container, a batch system or `ulimit -d` allows of it."""
    return min([math.inf, *_machine(), *_groups(), *_process()])


def _machine() -> Iterator[float]:
    with contextlib.suppress(AttributeError, ValueError, OSError):  # as on Windows
        yield float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _groups() -> Iterator[float]:
    """The limits of this process' control group and those around it; a container's own is the root there."""
    groups = {("", "/"), ("memory", "/")}
    with contextlib.suppress(OSError, ValueError):
        for line in _OWN.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            groups |= {(each, group) for each in controllers.split(",")}
    for controller, group in groups:
        if controller not in _LIMITS:
            continue
        folder, name = _LIMITS[controller]
        inside = Path(group.lstrip("/"))
        for place in (inside, *inside.parents):
            with contextlib.suppress(OSError, ValueError):  # "max" where there is no limit
                yield float(int((_ALL / folder / place / name).read_text()))


def _process() -> Iterator[float]:
    if resource is not None:
        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
        if limit != resource.RLIM_INFINITY:
            yield float(limit)
