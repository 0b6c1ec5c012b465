"""Where other libraries decode bytes that nobody has vouched for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cwbc.errors import InputError


def check_regular(path: Path) -> None:
    """Refuse a pipe, a socket or a device in the place of a file: to open one may wait forever."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a pipe or a device, not a regular file")


@contextlib.contextmanager
def decoding(path: Path, format_name: str) -> Iterator[None]:
    """Turn whatever a decoder raises over damaged bytes into one clear error."""
    try:
        yield
    except (InputError, PermissionError, IsADirectoryError, FileNotFoundError):
        raise
    except Exception as error:  # decoders raise anything at all over damaged bytes, down to SyntaxError
        text = " ".join(str(error).split())[:300] or type(error).__name__
        raise InputError(
            f"{path} cannot be read as {format_name} (truncated, damaged, or another format): {text}"
        ) from error
