"""The command line, called as users call it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cwbc.cli.main import main

TINY = [
    "--preset=small",
    "--device=cpu",
    "--seeds=2",
    "--steps=20",
    "--width=16",
    "--batch-size=4",
    "--episodes=2",
]
# Of `cwbc behaviours train`: what one test has compiled serves the others.
SMALL_SAC = ["--copies", "8", "--updates", "4", "--batch", "64", "--capacity", "2000", "--warmup", "400"]
SMALL_SAC += ["--actor-width", "16", "--critic-width", "32", "--actor-rate", "3e-3", "--critic-rate", "3e-3"]


def run(*arguments: str | Path) -> int:
    """The exit status of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def modules_of(code: str) -> set[str]:
    """The packages beyond Python's own that a program has imported when it ends."""
    report = "print(*{name.split('.')[0] for name in {*sys.modules} - before} - sys.stdlib_module_names)"
    program = f"import sys\nbefore = {{*sys.modules}}\ntry: {code}\nfinally: {report}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ended.stdout.splitlines()[-1].split())
