"""Where a few episodes of an evaluation went, for the picture of their maze."""

from __future__ import annotations

import csv
import io
import itertools
import math
import operator
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cwbc.system.errors import InputError
from cwbc.system.files import read_text
from cwbc.system.formatting import csv_text

_COLUMNS = ("seed", "target", "episode", "x", "y")
_DECIMALS = 2  # of a place: cells are 1 wide, or 4


class MazePath(NamedTuple):
    """The places of one episode, in order."""

    seed: int
    target: float  # NaN: none
    episode: int
    places: NDArray[np.float64]  # [point, (x, y)]


def paths_text(paths: Iterable[MazePath]) -> str:
    """One row per place."""
    rows: list[Any] = [_COLUMNS]
    for seed, target, episode, places in paths:
        named = (seed, "" if math.isnan(target) else target, episode)
        rows += [(*named, *place) for place in np.round(places, _DECIMALS).tolist()]
    return csv_text(rows)


def read_paths(path: Path) -> tuple[MazePath, ...]:
    """Read the file of a run; none where there is no file."""
    try:
        rows = list(csv.DictReader(io.StringIO(read_text(path), newline="")))
        found = []
        for (seed, target, episode), group in itertools.groupby(rows, operator.itemgetter(*_COLUMNS[:3])):
            places = np.array([(float(row["x"]), float(row["y"])) for row in group])
            if not np.isfinite(places).all():
                raise ValueError("places are numbers")
            found.append(MazePath(int(seed), float(target or "nan"), int(episode), places))
    except FileNotFoundError:
        return ()
    except (csv.Error, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged; expected a row {','.join(_COLUMNS)} per place") from error
    return tuple(found)
