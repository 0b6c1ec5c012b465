"""How files are written: aside, then renamed, so that a reader or a crash never meets half a file."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, data: bytes | str) -> None:
    """Replace the file at `path` in one step; on failure the old file stays and nothing else is left."""
    # Not tempfile: its files are private (0600) whatever the umask says, and the rename would keep that.
    # One name per file: what a kill leaves behind is replaced by the next write, and never piles up.
    aside = path.with_name(f".{path.name}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def replace_atomically(aside: Path, path: Path) -> None:
    """Put a file that was written aside in its place in one step, once it is safe on disk."""
    with aside.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(aside, path)


def is_aside(path: Path) -> bool:
    """Whether a file is what a kill in the middle of a write left behind."""
    return path.name.startswith(".") and path.name.endswith(".tmp")
