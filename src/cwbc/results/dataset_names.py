"""Short names of datasets for tables and sentences, and names of files about them."""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable
from pathlib import PurePath

_STORED = re.compile(r"(?:cwbc|d4rl)/([^/]+)/(.+)-v\d+")
_LONGEST = 60  # characters of a file's name, which some file systems limit to 255 bytes


def short_name(name: str) -> str:
    """hopper-medium for cwbc/hopper/medium-v0; of other names and paths, the last part."""
    parts = _STORED.fullmatch(name)
    return "-".join(parts.groups()) if parts else PurePath(name).stem


def distinct_names(names: Iterable[str]) -> dict[str, str]:
    """Distinct short names, by name; where two would be equal, more of the name is added."""
    choices = {}  # its short name, more and more of its path, its whole name
    for name in names:
        parts = () if _STORED.fullmatch(name) else PurePath(name).parts
        tails = ("/".join(parts[-count:]) for count in range(1, len(parts)))
        choices[name] = [choice for choice in (short_name(name), *tails, name) if choice]
    had = collections.Counter(itertools.chain.from_iterable(map(set, choices.values())))
    return {name: next((c for c in mine if had[c] == 1), name) for name, mine in choices.items()}


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Names of files about things with these names: without special characters, and no two alike."""
    found: dict[str, str] = {}
    taken: set[str] = set()  # in small letters: to some file systems, large ones are the same
    for name in dict.fromkeys(names):
        plain = re.sub(r"[^\w.+-]+", "-", name).strip(".-")[:_LONGEST] or "dataset"
        choices = (f"{plain}-{number}" if number > 1 else plain for number in itertools.count(1))
        found[name] = next(file for file in choices if file.lower() not in taken)
        taken.add(found[name].lower())
    return found
