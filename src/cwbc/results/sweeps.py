"""The results of an evaluation: returns [seed, target, episode] and their CSV file."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.tasks import Task
from cwbc.results.paths import MazePath
from cwbc.system.errors import InputError
from cwbc.system.files import read_text
from cwbc.system.formatting import csv_text

_KINDS = {"seed": int, "target": float, "episode": int, "return": float, "normalized": float, "length": int}
COLUMNS = ("method", *_KINDS)
_Cell = tuple[int, float | None, int]  # seed, target, episode


@dataclasses.dataclass(frozen=True)
class Sweep:
    """The achieved returns of one method at every target return.

    A method that takes no target is evaluated once: its only target is NaN, and empty in results.csv.
    """

    method: str
    seeds: NDArray[np.int64]  # [seed]
    targets: NDArray[np.float64]  # [target], ascending
    returns: NDArray[np.float64]  # [seed, target, episode]
    lengths: NDArray[np.int64]  # [seed, target, episode]
    paths: Sequence[MazePath] = ()  # of a few episodes in a maze

    @property
    def means(self) -> NDArray[np.float64]:
        """The mean over episodes: those of one seed are no independent trainings. [seed, target]"""
        return np.asarray(self.returns.mean(axis=2))

    @property
    def broken(self) -> NDArray[np.int64]:
        """The number of episodes without a return, since their simulation broke down. [target]"""
        return np.count_nonzero(~np.isfinite(self.returns), axis=(0, 2))

    @property
    def episodes(self) -> int:
        """Of each seed and target."""
        return self.returns.shape[2]

    @property
    def takes_target(self) -> bool:
        """Whether the method is conditioned on a target return."""
        return bool(np.isfinite(self.targets).all())

    def includes(self, path: MazePath) -> bool:
        """Whether a path is of one of its episodes."""
        known = path.seed in self.seeds and self.index_of(path.target) is not None
        return known and 0 <= path.episode < self.episodes

    def index_of(self, target: float) -> int | None:
        """The index of a target, or None where it was not evaluated; a method without one has one index."""
        if not self.takes_target:
            return 0
        nearest = int(np.argmin(np.abs(self.targets - target)))
        return nearest if same_target(float(self.targets[nearest]), target) else None


def same_target(one: float, other: float) -> bool:
    """Whether two target returns mean the same one."""
    # The absolute tolerance is for sweeps that round their targets to six decimals, the relative one for
    # float32. Neither may be larger: returns of a million may differ by one, and all returns may be tiny.
    tiny = max(abs(one), abs(other)) < 0.01
    return math.isclose(one, other, rel_tol=1e-7, abs_tol=0.0 if tiny else 1e-6)


def is_beyond(target: float, best: float) -> bool:
    """Whether a target return exceeds another one; none (NaN) does not."""
    return target > best and not same_target(target, best)


def results_text(sweeps: Sequence[Sweep], task: Task) -> str:
    """One row per method, seed, target and episode; floats read back exactly."""
    methods = [sweep.method for sweep in sweeps]
    if twice := sorted({method for method in methods if methods.count(method) > 1}):
        raise InputError(f"two sweeps are called {twice[0]!r}; each needs a name of its own")
    rows: list[Sequence[object]] = [COLUMNS]
    for sweep in sweeps:
        seeds, targets = sweep.seeds.tolist(), sweep.targets.tolist() if sweep.takes_target else [""]
        places = itertools.product(seeds, targets, range(sweep.episodes))
        numbers = (sweep.returns, task.normalize(sweep.returns), sweep.lengths)
        outcomes = zip(places, *(each.ravel().tolist() for each in numbers), strict=True)
        rows += [(sweep.method, *place, *outcome) for place, *outcome in outcomes]
    return csv_text(rows)


def read_results(path: Path) -> list[Sweep]:
    """Read a results.csv; its rows may be in any order."""
    cells: dict[str, dict[_Cell, tuple[float, int]]] = {}
    try:
        text = read_text(path).removeprefix("\ufeff")  # spreadsheets write this byte order mark
        reader = csv.DictReader(io.StringIO(text, newline=""), restval="")
        found = reader.fieldnames or ()
        if missing := [column for column in COLUMNS if column not in found]:
            raise InputError(
                f"{path}, line 1: no column {', '.join(map(repr, missing))}; "
                f"found {','.join(found) or 'nothing'!r}, expected {','.join(COLUMNS)!r}"
            )
        for row in reader:
            place = f"{path}, line {reader.line_num}"
            cell, outcome = _episode(row, place)
            of_method = cells.setdefault(row["method"], {})
            if cell in of_method:
                raise InputError(f"{place}: {_name(row['method'], cell)} is there twice; expected once")
            of_method[cell] = outcome
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected the results.csv of a finished run") from None
    except csv.Error as error:
        raise InputError(f"{path} is not a text table ({error}); expected CSV in UTF-8") from None
    if not cells:
        raise InputError(f"{path}, line 2: no rows; expected one per method, seed, target and episode")
    return [_sweep(path, method, episodes) for method, episodes in cells.items()]


def _episode(row: dict[str, str], place: str) -> tuple[_Cell, tuple[float, int]]:
    """The cell of a row, with the return and the length of its episode."""
    numbers: dict[str, Any] = {"target": None}  # a method may take none
    for column, kind in _KINDS.items():
        try:
            if row[column] or column != "target":
                numbers[column] = kind(row[column])
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise InputError(f"{place}: {column} is {row[column]!r}; expected {wanted}") from None
    seed, target, episode, achieved, _, length = (numbers[column] for column in _KINDS)
    if target is not None and not math.isfinite(target):  # returns may be infinite, targets not
        raise InputError(f"{place}: target is {row['target']!r}; expected a finite number, or nothing")
    if max(abs(seed), abs(length)) >= 2**63:
        raise InputError(f"{place}: seed {seed}, length {length}; expected whole numbers below 2^63")
    return (seed, target, episode), (achieved, length)


def _name(method: str, cell: _Cell) -> str:
    return f"method {method!r}, seed {cell[0]}, target {cell[1]!r}, episode {cell[2]}"


def _sweep(path: Path, method: str, cells: dict[_Cell, tuple[float, int]]) -> Sweep:
    seeds = list(dict.fromkeys(seed for seed, _, _ in cells))
    distinct = {target for _, target, _ in cells}
    if None in distinct and len(distinct) > 1:
        raise InputError(
            f"{path}: method {method!r} has lines with and without a target; expected one or the other"
        )
    targets = sorted(distinct, key=lambda target: target or 0.0)
    episodes = sorted({episode for _, _, episode in cells})
    shape = (len(seeds), len(targets), len(episodes))
    grid = itertools.product(seeds, targets, episodes)  # not listed: it may be far larger than the file
    if len(cells) != math.prod(shape):
        missing = next(cell for cell in grid if cell not in cells)
        raise InputError(
            f"{path}: no line for {_name(method, missing)} ({len(cells)} of {math.prod(shape)} rows are "
            "there); expected every seed to have every target and episode"
        )
    returns, lengths = zip(*(cells[cell] for cell in grid), strict=True)
    return Sweep(
        method,
        np.array(seeds, np.int64),
        np.array(targets, np.float64),  # None becomes NaN
        np.array(returns, np.float64).reshape(shape),
        np.array(lengths, np.int64).reshape(shape),
    )
