"""Protection against damaged and hostile files, of which a few kilobytes can expand beyond the memory."""

from __future__ import annotations

import contextlib
import contextvars
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from cwbc.data.sources import size_text
from cwbc.system.errors import InputError, require

VARIABLE = "CWBC_MAX_GIGABYTES"  # the environment variable that sets the limit
_ALWAYS = 1e9  # bytes that any file may expand to: constant columns take almost no space in a file
_TIMES = 256  # times its own size that a larger file may expand to: uncompressed game frames reach 150

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # of a file that is written meanwhile

_chosen: contextvars.ContextVar[float | None] = contextvars.ContextVar("gigabytes", default=None)


@contextlib.contextmanager
def at_most(gigabytes: float | None) -> Iterator[None]:
    """Set the size limit in this block; None leaves it to the environment variable or the file's size."""
    if gigabytes is not None:
        require(gigabytes > 0, "--max-gigabytes", gigabytes, "more than 0")
    token = _chosen.set(gigabytes)
    try:
        yield
    finally:
        _chosen.reset(token)


def check_size(source: str | Path, size: int, stored: int, widened: float = 1.0) -> None:
    """Refuse a file of `stored` bytes that expands to `size` or more, its numbers made `widened` as wide."""
    gigabytes = _chosen.get()
    if gigabytes is None and (text := os.environ.get(VARIABLE)):
        try:
            gigabytes = float(text)
        except ValueError:
            raise InputError(f"{VARIABLE} must be a number, such as 8; got {text!r}") from None
        require(gigabytes > 0, VARIABLE, gigabytes, "more than 0")
    most = max(_ALWAYS, _TIMES * stored * widened) if gigabytes is None else gigabytes * 1e9
    if size > most:
        raise InputError(
            f"{source} takes {size_text(stored)} and expands to {size_text(size)} or more, beyond the limit "
            f"of {size_text(most)}; to allow N gigabytes, give --max-gigabytes N (`cwbc data check` and "
            f"`import`), max_gigabytes=N (`cwbc.load`) or {VARIABLE}=N"
        )


def check_regular(path: Path) -> None:
    """Refuse a pipe, a socket or a device: opening one may wait forever."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a pipe or a device, not a regular file")


@contextlib.contextmanager
def decoding(path: Path, format_name: str) -> Iterator[None]:
    """Turn whatever a decoder raises on damaged bytes into one clear error."""
    try:
        yield
    except (InputError, PermissionError, IsADirectoryError, FileNotFoundError):
        raise
    except Exception as error:  # decoders raise anything on damaged bytes, even SyntaxError
        if isinstance(error, OSError) and error.errno in _UNWRITABLE:
            raise
        text = " ".join(str(error).split())[:300] or type(error).__name__
        raise InputError(
            f"{path} cannot be read as {format_name} (truncated, damaged, or another format): {text}"
        ) from error
