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
