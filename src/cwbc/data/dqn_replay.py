"""Folders of Google's DQN-replay files: which checkpoints they have, and which of these are read."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Literal, get_args

from cwbc.system.errors import InputError, require

Part = Literal["observation", "action", "reward", "terminal"]
PARTS: tuple[Part, ...] = get_args(Part)
LAYOUT = f"for each checkpoint N, $store$_{PARTS[0]}_ckpt.N.gz and those of {', '.join(PARTS[1:])}"
_FILE = re.compile(rf"\$store\$_({'|'.join(PARTS)})_ckpt\.(0|[1-9]\d{{0,8}})\.gz")
_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")


@dataclasses.dataclass(frozen=True)
class ReplayOptions:
    """Which steps of a folder of DQN-replay files are read.

    Args:
        checkpoints: numbers of the DQN-replay checkpoints to read, such as 0,4,10-19 (default: all).
        checkpoint_steps: steps to read of each DQN-replay checkpoint, the first ones (default: all).
    """

    checkpoints: str | None = None
    checkpoint_steps: int | None = None

    def __post_init__(self) -> None:
        steps = self.checkpoint_steps
        require(steps is None or steps >= 1, "--checkpoint-steps", steps, "at least 1")


def is_dataset(path: Path) -> bool:
    """Whether a folder has DQN-replay files."""
    return path.is_dir() and any(_FILE.fullmatch(file.name) for file in path.iterdir())


def files(folder: Path, options: ReplayOptions) -> dict[int, dict[Part, Path]]:
    """The four files of each checkpoint that is to be read, by their numbers."""
    found = {int(match[2]) for file in folder.iterdir() if (match := _FILE.fullmatch(file.name))}
    chosen = sorted(found if options.checkpoints is None else _numbers(options.checkpoints, found, folder))
    return {number: _parts(folder, number) for number in chosen}


def _parts(folder: Path, number: int) -> dict[Part, Path]:
    parts: dict[Part, Path] = {part: folder / f"$store$_{part}_ckpt.{number}.gz" for part in PARTS}
    if missing := [path.name for path in parts.values() if not path.exists()]:
        there = ", ".join(path.name for path in parts.values() if path.exists())
        raise InputError(f"{folder} lacks {', '.join(missing)}, but has {there}; expected {LAYOUT}")
    return parts


def _numbers(text: str, found: set[int], folder: Path) -> set[int]:
    """The numbers in a text such as 0,4,10-19, all of which are found."""
    numbers: set[int] = set()
    for each in text.split(","):
        if not (match := _RANGE.fullmatch(each)):
            raise InputError(f"--checkpoints takes numbers such as 0,4,10-19; got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        within = {number for number in found if first <= number <= last}
        if len(within) != last - first + 1:
            there = ", ".join(map(str, sorted(found)))
            raise InputError(f"{folder} does not have all of the checkpoints {each.strip()}; it has {there}")
        numbers |= within
    return numbers
