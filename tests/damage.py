"""Ways to damage files, from a seed: for tests that nothing damaged ends in a traceback."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    float("nan"),
    "",
    "\x1b[2J",
    [],
    [None],
    {},
    {"a": 1},
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside a JSON value, itself first; of long lists only the first."""
    yield path
    if isinstance(value, dict):
        for name, each in value.items():
            yield from places(each, (*path, name))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def changed(value: Any, generator: np.random.Generator) -> Any:
    """A JSON value in which one value is another, or is gone."""
    value = copy.deepcopy(value)
    found = list(places(value))
    *parents, last = found[generator.integers(1, len(found))]
    branch = value
    for name in parents:
        branch = branch[name]
    if generator.random() < 0.3:
        del branch[last]
    else:
        branch[last] = VALUES[generator.integers(len(VALUES))]
    return value


def flipped(data: bytes, generator: np.random.Generator) -> bytes:
    """With one bit that is another."""
    damaged = bytearray(data)
    damaged[generator.integers(len(damaged))] ^= 1 << int(generator.integers(8))
    return bytes(damaged)


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    """Put something else in the place of a file."""
    path.unlink()
    make(path)


def damage(path: Path, generator: np.random.Generator) -> None:
    """Do something to a file that a disk, an editor or an attacker could do."""
    data = path.read_bytes()
    ways: list[Callable[[], object]] = [
        lambda: path.write_bytes(flipped(data, generator)),
        lambda: path.write_bytes(data[: generator.integers(len(data))]),
        lambda: path.write_bytes(b""),
        lambda: replaced(path, Path.mkdir),
        lambda: replaced(path, os.mkfifo),
        lambda: replaced(path, lambda link: link.symlink_to(link.name)),
        lambda: path.write_bytes(data + data[-40:]),
    ]
    if path.suffix == ".json":
        ways += [lambda: path.write_text(json.dumps(changed(json.loads(data), generator)))] * 12
    if path.suffix == ".jsonl":
        rows = data.decode().splitlines()
        ways += [
            lambda: path.write_text("\n".join(json.dumps(changed(json.loads(r), generator)) for r in rows))
        ] * 4
    if path.suffix == ".csv":
        ways += [lambda: path.write_bytes(flipped(flipped(data, generator), generator))] * 4
    ways[generator.integers(len(ways))]()
