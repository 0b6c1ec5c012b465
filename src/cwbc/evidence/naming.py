"""The paper's datasets by short names, and what they are called in the store."""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Literal

from cwbc.evidence.published import QUALITIES, ROBOTS

Datasets = Literal["ours", "d4rl"]

WALKERS = ("walker2d-medium-replay", "walker2d-medium", "walker2d-medium-expert")  # the figures' order
REPLAYS = tuple(f"{robot}-medium-replay" for robot in ROBOTS)
_STORED = re.compile(r"(?:cwbc|d4rl)/([^/]+)/(.+)-v\d+")
_LONGEST = 60  # characters of a file's name, which some file systems hold to 255 bytes


def named(dataset: str, datasets: Datasets) -> str:
    """The name in the store of a dataset such as walker2d-medium."""
    robot, quality = dataset.split("-", 1)
    return f"cwbc/{robot}/{quality}-v0" if datasets == "ours" else f"d4rl/{robot}/{quality}-v2"


def short_name(name: str) -> str:
    """The inverse of `named`; of other names and paths, the last part."""
    parts = _STORED.fullmatch(name)
    return "-".join(parts.groups()) if parts else PurePath(name).stem


def distinct_names(names: Iterable[str]) -> dict[str, str]:
    """Short names that tell datasets apart, by name; where two would be the same, as much as it takes."""
    choices = {name: _choices(name) for name in names}
    had = collections.Counter(itertools.chain.from_iterable(map(set, choices.values())))
    return {name: next((c for c in mine if had[c] == 1), name) for name, mine in choices.items()}


def _choices(name: str) -> list[str]:
    """What a dataset may be called: by its short name, by more and more of its path, by all of its name."""
    parts = () if _STORED.fullmatch(name) else PurePath(name).parts
    tails = ("/".join(parts[-count:]) for count in range(1, len(parts)))
    return [choice for choice in (short_name(name), *tails, name) if choice]


def file_names(names: Iterable[str]) -> dict[str, str]:
    """What files about things with these names are called: nothing strange in it, and no two alike."""
    found: dict[str, str] = {}
    taken: set[str] = set()  # in small letters: to some file systems, large ones are the same
    for name in dict.fromkeys(names):
        plain = re.sub(r"[^\w.+-]+", "-", name).strip(".-")[:_LONGEST] or "dataset"
        numbered = (f"{plain}-{number}" for number in itertools.count(2))
        choices = itertools.chain([plain], numbered)
        found[name] = next(file for file in choices if file.lower() not in taken)
        taken.add(found[name].lower())
    return found


def quality(dataset: str) -> str | None:
    """medium, medium-replay or medium-expert; None for a dataset of another kind."""
    found = dataset.split("-", 1)[-1]
    return found if found in QUALITIES else None
