"""The versions of packages, on which results may depend."""

from __future__ import annotations

import contextlib


def versions(*packages: str) -> dict[str, str]:
    """The version of each package that is installed."""
    import importlib.metadata  # takes a while

    found: dict[str, str] = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
