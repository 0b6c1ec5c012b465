"""Names of datasets from files, which become paths on disk."""

from __future__ import annotations

import re

# What a terminal or a file system acts upon: control characters, halves of characters, signs of paths.
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]+")


def contained(name: str) -> str:
    """The name as a relative path that stays below its folder, whatever a file contains."""
    parts = (_ODD.sub("-", part) for part in name.split("/"))
    return "/".join(part for part in parts if part.strip(" .")) or "data"
