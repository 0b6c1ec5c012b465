"""How long users wait before anything happens."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.rows import Row
from benchmarks.timing import Work, side_by_side

COMMANDS = {
    "import cwbc": ("-c", "import cwbc"),
    "cwbc --help": ("-m", "cwbc", "--help"),
    "cwbc data list": ("-m", "cwbc", "data", "list"),
}
PROMISE = 0.5  # seconds


def cpu_start() -> Iterator[Row]:
    """Each command as a process of its own, beside Python's own start."""
    with tempfile.TemporaryDirectory() as directory:
        environment = os.environ | {"CWBC_DATA": directory}

        def process(*arguments: str) -> Work:
            command = [sys.executable, *arguments]
            return lambda: subprocess.run(command, env=environment, check=True, capture_output=True)

        bare, *times = side_by_side(
            process("-c", ""), *(process(*each) for each in COMMANDS.values()), repeats=15
        )
    for name, took in zip(COMMANDS, times, strict=True):
        yield Row(name, took, "s", bare, "python alone", promise=PROMISE, promise_on="measured")
