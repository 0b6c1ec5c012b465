"""What an evaluation measured: one array [seed, target, episode], its file, and the numbers made from it."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from cwbc.errors import InputError
from cwbc.files import read_text
from cwbc.intervals import Array, interval
from cwbc.reliability import best_point, calibration_error, monotonicity, retention
from cwbc.tasks import Task

COLUMNS = ("method", "seed", "target", "episode", "return", "normalized", "length")

_Cell = tuple[int, float, int]  # seed, target, episode


@dataclasses.dataclass(frozen=True)
class Sweep:
    """The achieved returns of one method at every asked return."""

    method: str
    seeds: NDArray[np.int64]  # [seed]
    targets: NDArray[np.float64]  # [target], ascending
    returns: NDArray[np.float64]  # [seed, target, episode]
    lengths: NDArray[np.int64]  # [seed, target, episode]

    @property
    def broken(self) -> NDArray[np.int64]:
        """How many episodes have no return, since their simulation broke down. [target]"""
        return np.count_nonzero(~np.isfinite(self.returns), axis=(0, 2))

    def asked(self, target: float) -> int | None:
        """The index of a target, or None where it was not asked."""
        nearest = int(np.argmin(np.abs(self.targets - target)))
        return nearest if same_target(float(self.targets[nearest]), target) else None


def same_target(one: float, other: float) -> bool:
    """Whether two asked returns mean the same one."""
    # The absolute part forgives that sweeps round their targets to six decimals, the relative one what
    # 32 bits leave out. More it must not: returns of a million may well differ by one.
    return math.isclose(one, other, rel_tol=1e-7, abs_tol=1e-6)


class Measure(TypedDict):
    """A number with its 95 % interval over seeds (None for one seed)."""

    value: float | None
    low: float | None
    high: float | None


class Point(Measure):
    """A number at an asked return."""

    target: float


CurvePoint = TypedDict(
    "CurvePoint",
    {
        "target": float,
        "return": float | None,
        "return_low": float | None,
        "return_high": float | None,
        "normalized": float | None,
        "normalized_low": float | None,
        "normalized_high": float | None,
    },
)


class MethodSummary(TypedDict):
    """One method in summary.json; the points are normalized scores, None where not asked."""

    seeds: int
    episodes: int  # per seed and target
    at_dataset_best: Point | None
    at_expert: Point | None
    at_twice_expert: Point | None
    best_point: Point
    ood_retention: Point | None  # a fraction: at_twice_expert / best_point
    # in points of score: the mean of |achieved - asked| over the targets up to the dataset's best
    calibration_error: Measure | None
    # a fraction: 1 - the most that asking for more loses anywhere on the curve / best_point, at least 0
    monotonicity: Measure | None
    curve: list[CurvePoint]


def results_text(sweeps: Sequence[Sweep], task: Task) -> str:
    """One row per method, seed, target and episode; floats read back exactly."""
    methods = [sweep.method for sweep in sweeps]
    if twice := sorted({method for method in methods if methods.count(method) > 1}):
        raise InputError(f"two sweeps are called {twice[0]!r}; each needs a name of its own")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for sweep in sweeps:
        writer.writerows(_episodes(sweep, task))
    return text.getvalue()


def _episodes(sweep: Sweep, task: Task) -> Iterator[tuple[object, ...]]:
    """Every episode, as COLUMNS."""
    scores = task.normalize(sweep.returns)
    for s, t, e in np.ndindex(sweep.returns.shape):
        # float() and int(): NumPy's own scalars would print as np.float64(...)
        seed, target = int(sweep.seeds[s]), float(sweep.targets[t])
        achieved, score = float(sweep.returns[s, t, e]), float(scores[s, t, e])
        length = int(sweep.lengths[s, t, e])
        yield (sweep.method, seed, repr(target), e, repr(achieved), repr(score), length)


def read_results(path: Path) -> list[Sweep]:
    """Read what `results_text` gave; rows may stand in any order."""
    cells: dict[str, dict[_Cell, tuple[float, int]]] = {}
    try:
        for line, method, cell, measured in _rows(path):
            of_method = cells.setdefault(method, {})
            if cell in of_method:
                raise InputError(f"{path}, line {line}: {_name(method, cell)} is there twice; expected once")
            of_method[cell] = measured
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected the results.csv of a finished run") from None
    except csv.Error as error:
        raise InputError(f"{path} is not a text table ({error}); expected CSV in UTF-8") from None
    if not cells:
        raise InputError(f"{path}, line 2: no rows; expected one per method, seed, target and episode")
    return [_sweep(path, method, measured) for method, measured in cells.items()]


def _rows(path: Path) -> Iterator[tuple[int, str, _Cell, tuple[float, int]]]:
    text = read_text(path).removeprefix("\ufeff")  # which spreadsheets begin with
    reader = csv.reader(io.StringIO(text, newline=""))
    found = next(reader, [])
    if missing := [column for column in COLUMNS if column not in found]:
        raise InputError(
            f"{path}, line 1: no column {', '.join(map(repr, missing))}; "
            f"found {','.join(found) or 'nothing'!r}, expected {','.join(COLUMNS)!r}"
        )
    pick = operator.itemgetter(*map(found.index, COLUMNS))
    for row in filter(None, reader):  # empty lines are none
        try:
            method, seed, target, episode, achieved, score, length = pick(row)
            cell = int(seed), float(target), int(episode)
            measured, _ = (float(achieved), int(length)), float(score)
        except (ValueError, IndexError):  # the latter where a row is too short
            mistake = _mistake(dict(zip(found, row, strict=False)))
            raise InputError(f"{path}, line {reader.line_num}: {mistake}") from None
        place = f"{path}, line {reader.line_num}"
        if not math.isfinite(cell[1]):  # a simulator may explode, but nobody asks for NaN
            raise InputError(f"{place}: target is {target!r}; expected a finite number")
        if max(abs(cell[0]), abs(measured[1])) >= 2**63:
            raise InputError(f"{place}: seed {seed}, length {length}; expected whole numbers below 2^63")
        yield reader.line_num, method, cell, measured


def _mistake(row: dict[str, str]) -> str:
    """What is wrong in a row that cannot be read."""
    for column in COLUMNS[1:]:
        text, is_whole = row.get(column, ""), column in ("seed", "episode", "length")
        try:
            int(text) if is_whole else float(text)
        except ValueError:
            return f"{column} is {text!r}; expected {'a whole number' if is_whole else 'a number'}"
    return "the line is too short"


def _name(method: str, cell: _Cell) -> str:
    return f"method {method!r}, seed {cell[0]}, target {cell[1]!r}, episode {cell[2]}"


def _sweep(path: Path, method: str, cells: dict[_Cell, tuple[float, int]]) -> Sweep:
    seeds = list(dict.fromkeys(seed for seed, _, _ in cells))
    targets = sorted({target for _, target, _ in cells})
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
        np.array(targets, np.float64),
        np.array(returns, np.float64).reshape(shape),
        np.array(lengths, np.int64).reshape(shape),
    )


def summarize(sweep: Sweep, task: Task, best: float) -> MethodSummary:
    """The numbers of summary.json; `best` is the dataset's best return."""
    returns = sweep.returns.mean(axis=2)  # [seed, target]: episodes of one seed are not independent trainings
    scores = task.normalize(returns)
    return_ends, score_ends = interval(returns), interval(scores)

    def at(index: int | None) -> Point | None:
        return None if index is None else _point(sweep.targets[index], [end[index] for end in score_ends])

    far, top = sweep.asked(task.far_return), best_point(scores)
    within = np.array([target <= best or same_target(target, best) for target in sweep.targets.tolist()])
    asked = task.normalize(sweep.targets[within])
    points = zip(sweep.targets, *return_ends, *score_ends, strict=True)
    return {
        "seeds": len(sweep.seeds),
        "episodes": sweep.returns.shape[2],
        "at_dataset_best": at(sweep.asked(best)),
        "at_expert": at(sweep.asked(task.expert_return)),
        "at_twice_expert": at(far),
        "best_point": _point(sweep.targets[top], [end[top] for end in score_ends]),
        "ood_retention": None if far is None else _retention(scores, far, sweep.targets[far]),
        "calibration_error": _measure(calibration_error(scores[:, within], asked)),
        "monotonicity": _measure(monotonicity(scores)),
        "curve": [
            {
                "target": float(target),
                "return": _finite(value),
                "return_low": _finite(low),
                "return_high": _finite(high),
                "normalized": _finite(score),
                "normalized_low": _finite(score_low),
                "normalized_high": _finite(score_high),
            }
            for target, value, low, high, score, score_low, score_high in points
        ],
    }


def _retention(scores: Array, far: int, target: float) -> Point | None:
    ends = retention(scores, far)
    return _point(target, ends) if np.isfinite(ends[0]) else None


def _measure(ends: Sequence[Array]) -> Measure | None:
    value, low, high = map(_finite, ends)
    return None if value is None else {"value": value, "low": low, "high": high}


def _point(target: float, ends: Sequence[Array]) -> Point:
    value, low, high = map(_finite, ends)
    return {"target": float(target), "value": value, "low": low, "high": high}


def _finite(number: Array) -> float | None:
    return float(number) if np.isfinite(number) else None
