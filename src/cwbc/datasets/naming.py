"""Names of datasets that files tell, made fit to be a place on disk."""

from __future__ import annotations

import re

# What a terminal or a file system acts upon: control characters, halves of characters, signs of paths.
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]+")


def contained(name: str) -> str:
    """The name, which as a path stays below the folder that it is put in, whatever a file tells."""
    parts = (_ODD.sub("-", part) for part in name.split("/"))
    return "/".join(part for part in parts if part.strip(" .")) or "data"
