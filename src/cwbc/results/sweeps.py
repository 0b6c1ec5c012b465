"""The results of an evaluation: returns [seed, target, episode], their CSV file and their summary."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from cwbc.core.tasks import Task, landmarks
from cwbc.results.intervals import Array, interval
from cwbc.results.metrics import best_point, calibration_error, monotonicity, retention
from cwbc.system.errors import InputError
from cwbc.system.files import read_text

COLUMNS = ("method", "seed", "target", "episode", "return", "normalized", "length")

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

    @property
    def broken(self) -> NDArray[np.int64]:
        """The number of episodes without a return, since their simulation broke down. [target]"""
        return np.count_nonzero(~np.isfinite(self.returns), axis=(0, 2))

    @property
    def takes_target(self) -> bool:
        """Whether the method is conditioned on a target return."""
        return bool(np.isfinite(self.targets).all())

    def once(self) -> Sweep:
        """The sweep of a method that takes no target, which may have been evaluated at several: one of them.

        Episode e begins in the same state for every target, so the others are the same episodes again.
        """
        if not self.takes_target:
            return self
        returns, lengths = self.returns[:, :1], self.lengths[:, :1]
        return Sweep(self.method, self.seeds, np.array([np.nan]), returns, lengths)

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


class Measure(TypedDict):
    """A number with its 95 % interval over seeds (None for fewer than three)."""

    value: float | None
    low: float | None
    high: float | None


class Point(Measure):
    """A number at a target return; None for a method that takes no target."""

    target: float | None


CurvePoint = TypedDict(
    "CurvePoint",
    {
        "target": float | None,
        "return": float | None,
        "return_low": float | None,
        "return_high": float | None,
        "normalized": float | None,
        "normalized_low": float | None,
        "normalized_high": float | None,
    },
)


class MethodSummary(TypedDict):
    """One method in summary.json; the points are normalized scores, None where not evaluated.

    OOD retention, calibration error and monotonicity are None for a method that takes no target.
    """

    seeds: int
    episodes: int  # per seed and target
    takes_target: bool
    at_dataset_best: Point | None
    at_expert: NotRequired[Point | None]  # where an expert is published
    at_twice_expert: NotRequired[Point | None]
    at_best_plus_range: NotRequired[Point | None]  # where none is
    best_point: Point
    ood_retention: Point | None  # a fraction: the score at the farthest of these targets / best_point
    # in points of score: the mean of |achieved - target| over the targets up to the dataset's best
    calibration_error: Measure | None
    # a fraction: 1 - the largest loss from a higher target anywhere on the curve / best_point, at least 0
    monotonicity: Measure | None
    training_warnings: list[str]
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
        length, target_text = int(sweep.lengths[s, t, e]), repr(target) if sweep.takes_target else ""
        yield (sweep.method, seed, target_text, e, repr(achieved), repr(score), length)


def read_results(path: Path) -> list[Sweep]:
    """Read a results.csv; its rows may be in any order."""
    cells: dict[str, dict[_Cell, tuple[float, int]]] = {}
    try:
        for line, method, cell, episode in _rows(path):
            of_method = cells.setdefault(method, {})
            if cell in of_method:
                raise InputError(f"{path}, line {line}: {_name(method, cell)} is there twice; expected once")
            of_method[cell] = episode
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected the results.csv of a finished run") from None
    except csv.Error as error:
        raise InputError(f"{path} is not a text table ({error}); expected CSV in UTF-8") from None
    if not cells:
        raise InputError(f"{path}, line 2: no rows; expected one per method, seed, target and episode")
    return [_sweep(path, method, episodes) for method, episodes in cells.items()]


def _rows(path: Path) -> Iterator[tuple[int, str, _Cell, tuple[float, int]]]:
    text = read_text(path).removeprefix("\ufeff")  # spreadsheets write this byte order mark
    reader = csv.reader(io.StringIO(text, newline=""))
    found = next(reader, [])
    if missing := [column for column in COLUMNS if column not in found]:
        raise InputError(
            f"{path}, line 1: no column {', '.join(map(repr, missing))}; "
            f"found {','.join(found) or 'nothing'!r}, expected {','.join(COLUMNS)!r}"
        )
    pick = operator.itemgetter(*map(found.index, COLUMNS))
    for row in filter(None, reader):  # without empty lines
        try:
            method, seed, target, episode, achieved, score, length = pick(row)
            cell = int(seed), float(target) if target else None, int(episode)
            outcome, _ = (float(achieved), int(length)), float(score)
        except (ValueError, IndexError):  # the latter where a row is too short
            mistake = _mistake(dict(zip(found, row, strict=False)))
            raise InputError(f"{path}, line {reader.line_num}: {mistake}") from None
        place = f"{path}, line {reader.line_num}"
        if cell[1] is not None and not math.isfinite(cell[1]):  # returns may be infinite, targets not
            raise InputError(f"{place}: target is {target!r}; expected a finite number, or nothing")
        if max(abs(cell[0]), abs(outcome[1])) >= 2**63:
            raise InputError(f"{place}: seed {seed}, length {length}; expected whole numbers below 2^63")
        yield reader.line_num, method, cell, outcome


def _mistake(row: dict[str, str]) -> str:
    """The mistake in a row that cannot be read, in words."""
    for column in COLUMNS[1:]:
        text, is_whole = row.get(column, ""), column in ("seed", "episode", "length")
        if column == "target" and not text:  # a method may take none
            continue
        try:
            int(text) if is_whole else float(text)
        except ValueError:
            return f"{column} is {text!r}; expected {'a whole number' if is_whole else 'a number'}"
    return "the line is too short"


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


def summarize(sweep: Sweep, task: Task, best: float, training_warnings: Sequence[str] = ()) -> MethodSummary:
    """The numbers of summary.json; `best` is the dataset's best return."""
    returns = sweep.returns.mean(axis=2)  # [seed, target]: episodes of one seed are not independent trainings
    scores = task.normalize(returns)
    score_ends, top = interval(scores), best_point(scores)

    def at(index: int | None) -> Point | None:
        return None if index is None else _point(sweep.targets[index], [end[index] for end in score_ends])

    summary: dict[str, object] = {
        "seeds": len(sweep.seeds),
        "episodes": sweep.returns.shape[2],
        "takes_target": sweep.takes_target,
        **{mark.key: at(sweep.index_of(mark.target)) for mark in landmarks(task, best)},
        "best_point": at(top),
        **_following(sweep, task, best, scores),
        "training_warnings": list(training_warnings),
        "curve": _curve(sweep.targets, interval(returns), score_ends),
    }
    return cast(MethodSummary, summary)


def _following(sweep: Sweep, task: Task, best: float, scores: Array) -> dict[str, Measure | None]:
    """The metrics of following a target; None for a method that takes none."""
    if not sweep.takes_target:
        return dict.fromkeys(("ood_retention", "calibration_error", "monotonicity"))
    far = sweep.index_of(task.far_return)
    within = np.array([target <= best or same_target(target, best) for target in sweep.targets.tolist()])
    target_scores = task.normalize(sweep.targets[within])
    return {
        "ood_retention": None if far is None else _retention(scores, far, sweep.targets[far]),
        "calibration_error": _measure(calibration_error(scores[:, within], target_scores)),
        "monotonicity": _measure(monotonicity(scores)),
    }


def _curve(targets: Array, returns: Sequence[Array], scores: Sequence[Array]) -> list[CurvePoint]:
    return [
        {
            "target": _finite(target),
            "return": _finite(value),
            "return_low": _finite(low),
            "return_high": _finite(high),
            "normalized": _finite(score),
            "normalized_low": _finite(score_low),
            "normalized_high": _finite(score_high),
        }
        for target, value, low, high, score, score_low, score_high in zip(
            targets, *returns, *scores, strict=True
        )
    ]


def _retention(scores: Array, far: int, target: float) -> Point | None:
    ends = retention(scores, far)
    return _point(target, ends) if np.isfinite(ends[0]) else None


def _measure(ends: Sequence[Array]) -> Measure | None:
    value, low, high = map(_finite, ends)
    return None if value is None else {"value": value, "low": low, "high": high}


def _point(target: float, ends: Sequence[Array]) -> Point:
    value, low, high = map(_finite, ends)
    return {"target": _finite(np.asarray(target)), "value": value, "low": low, "high": high}


def _finite(number: Array) -> float | None:
    return float(number) if np.isfinite(number) else None
