"""What a process takes of the machine's memory."""

from __future__ import annotations

import contextlib
import resource
import sys
from pathlib import Path


def peak() -> int:
    """The most bytes that this process has had in memory."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    # Elsewhere than on Linux, where this one would begin with the peak of the process that started it.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
