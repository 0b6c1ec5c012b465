"""The evaluated curves of many cells, by dataset and method, for tables, charts and verdicts."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from cwbc.core.tasks import TASKS, landmarks
from cwbc.results.dataset_names import distinct_names
from cwbc.results.intervals import NORMAL, Array, student_t
from cwbc.results.metrics import best_point, retained
from cwbc.results.sentences import broken_in_words
from cwbc.results.sweeps import same_target

if TYPE_CHECKING:
    from cwbc.core.tasks import Task
    from cwbc.core.trajectories import Trajectories
    from cwbc.data.dataset_summary import DatasetSummary
    from cwbc.results.sweeps import Sweep


@dataclasses.dataclass(frozen=True)
class EvaluatedMethod:
    """The curve of one method on one dataset, in normalized scores."""

    sweep: Sweep
    dataset: DatasetSummary
    scores: Array  # [seed, target], the mean over episodes; NaN where a simulation broke down

    @classmethod
    def of(cls, sweep: Sweep, dataset: DatasetSummary) -> EvaluatedMethod:
        """The curve of a sweep."""
        scores = dataset.task.normalize(sweep.returns.mean(axis=2))
        return cls(sweep, dataset, np.where(np.isfinite(scores), scores, np.nan))

    def resampled(self, generator: np.random.Generator) -> EvaluatedMethod:
        """The curve with resampled seeds."""
        return dataclasses.replace(self, scores=resampled(self.scores, generator))

    @functools.cached_property
    def task(self) -> Task:
        return self.dataset.task

    @functools.cached_property
    def curve(self) -> Array:
        """The mean over seeds. [target]"""
        return np.asarray(self.scores.mean(axis=0))

    @functools.cached_property
    def is_whole(self) -> bool:
        """Whether no simulation broke down."""
        return bool(np.isfinite(self.curve).all())

    @functools.cached_property
    def top(self) -> float:
        """The best point of the curve."""
        return float(self.curve[best_point(self.scores)])

    @functools.cached_property
    def retention(self) -> float:
        """OOD retention: the score at 2x expert / the best point.

        NaN where 2x expert was not evaluated or broke down, where the best point is not clearly above 0, and
        for methods that take no target.
        """
        far = self.sweep.index_of(self.task.far_return) if self.sweep.takes_target else None
        return float("nan") if far is None else float(retained(self.scores, far))

    @functools.cached_property
    def at_expert(self) -> float:
        return self.at(self.task.expert_return)

    @property
    def at_twice_expert(self) -> float:
        return self.at(self.task.far_return)

    @property
    def at_best(self) -> float:
        """The score at the dataset's best return."""
        return self.at(self.dataset.best)

    @property
    def beyond(self) -> Array:
        """The scores at OOD targets. [target]"""
        best = self.dataset.best
        beyond = [target > best and not same_target(target, best) for target in self.sweep.targets.tolist()]
        return self.curve[np.array(beyond)]

    def at(self, target: float) -> float:
        """The mean score at a target return; NaN where it was not evaluated or broke down."""
        index = self.sweep.index_of(target)
        return float("nan") if index is None else float(self.curve[index])

    def of_seeds(self, target: float) -> Array:
        """The scores at a target return; none where it was not evaluated. [seed]"""
        index = self.sweep.index_of(target)
        return np.empty(0) if index is None else self.scores[:, index]


def resampled(scores: Array, generator: np.random.Generator) -> Array:
    """As many seeds, sampled with replacement from scores [seed, target], each with its whole curve.

    Means of such seeds vary too little: by the root of (n - 1) / n, and as if a few seeds gave their spread
    for certain. So all are moved away from their mean, until 95 % of the means lie within Student's
    interval. There must be two seeds at least.
    """
    seeds, mean = len(scores), scores.mean(axis=0)
    stretch = math.sqrt(seeds / (seeds - 1)) * student_t(seeds - 1) / NORMAL
    return np.asarray(mean + stretch * (scores[generator.integers(seeds, size=seeds)] - mean))


class Mark(NamedTuple):
    """The names of a target return, on tasks that may name it differently."""

    label: str
    phrase: str  # completes "at ..."


class EvaluatedCell(Protocol):
    """A cell of a grid with its results; its sweep is named by the cell's label."""

    @property
    def dataset_name(self) -> str:
        """The full name of the dataset, or its path."""

    @property
    def sweep(self) -> Sweep:
        """The results of its evaluation."""

    @property
    def dataset(self) -> DatasetSummary:
        """The dataset it was trained on."""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Everything that was evaluated, by the datasets' short names and the methods' labels.

    Args:
        datasets: all of them, evaluated or not.
        is_resample: whether its seeds are resampled, so that no interval is needed.
    """

    evaluated: Mapping[str, Mapping[str, EvaluatedMethod]]
    datasets: Sequence[str]
    data: Mapping[str, Trajectories] = dataclasses.field(default_factory=dict)
    is_resample: bool = False

    @classmethod
    def of(
        cls,
        outcomes: Sequence[EvaluatedCell],
        datasets: Sequence[str],
        data: Mapping[str, Trajectories] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> Evidence:
        """The evidence of a grid; `names` are the datasets' short ones, where there are more than these."""
        names = names or distinct_names(outcome.dataset_name for outcome in outcomes)
        evaluated: dict[str, dict[str, EvaluatedMethod]] = {}
        for outcome in outcomes:
            of_dataset = evaluated.setdefault(names[outcome.dataset_name], {})
            of_dataset[outcome.sweep.method] = EvaluatedMethod.of(outcome.sweep, outcome.dataset)
        return cls(evaluated, tuple(datasets), data or {})

    def resampled(self, generator: np.random.Generator) -> Evidence:
        """The evidence with the seeds of every cell resampled; without the data, which has none."""
        evaluated = {
            dataset: {label: each.resampled(generator) for label, each in methods.items()}
            for dataset, methods in self.evaluated.items()
        }
        return Evidence(evaluated, self.datasets, is_resample=True)

    @property
    def seeds(self) -> int:
        """The fewest seeds of any cell; 0 where nothing was trained."""
        return min((len(each.scores) for of in self.evaluated.values() for each in of.values()), default=0)

    @property
    def labels(self) -> list[str]:
        """Every method, in order."""
        return list(dict.fromkeys(label for of_dataset in self.evaluated.values() for label in of_dataset))

    @property
    def near(self) -> Mark:
        """The return at which methods are compared: 1x expert, or the dataset's best without an expert."""
        return self._mark(-2)

    @property
    def far(self) -> Mark:
        """The return at which they may have collapsed: 2x expert, or its like without an expert."""
        return self._mark(-1)

    def _mark(self, place: int) -> Mark:
        tasks = [(each.task, each.dataset.best) for of in self.evaluated.values() for each in of.values()]
        found = [landmarks(*task)[place] for task in tasks or [(TASKS["hopper"], 0.0)]]
        labels, phrases = dict.fromkeys(m.label for m in found), dict.fromkeys(m.phrase for m in found)
        return Mark(" or ".join(labels), " or ".join(phrases))

    @property
    def has_experts(self) -> bool:
        """Whether the experts of all tasks were published."""
        return all(each.task.published for of in self.evaluated.values() for each in of.values())

    @property
    def on_d4rl(self) -> bool:
        """Whether all was evaluated on D4RL's own data, so that published scores compare."""
        names = [each.dataset.name for of in self.evaluated.values() for each in of.values()]
        return bool(names) and all(name.startswith("d4rl/") for name in names)

    def of_quality(self, *kinds: str) -> list[str]:
        """The datasets of one of these kinds, as hopper-medium-replay is one of medium-replay."""
        return [dataset for dataset in self.datasets if dataset.partition("-")[2] in kinds]

    def missing(self, found: Collection[str]) -> list[str]:
        """The datasets that are not among those found."""
        return [dataset for dataset in self.datasets if dataset not in found]

    def at_expert(self, *labels: str) -> dict[str, dict[str, float]]:
        """The scores at 1x expert of these methods, by dataset, where all of them were evaluated."""
        return {
            dataset: {label: each.at_expert for label, each in zip(labels, methods, strict=True)}
            for dataset, methods in self.having(*labels).items()
        }

    def pairs(self, ours: str, theirs: str) -> dict[str, tuple[float, float]]:
        """The scores at 1x expert of two methods, by dataset, where both were evaluated."""
        return {dataset: (of[ours], of[theirs]) for dataset, of in self.at_expert(ours, theirs).items()}

    def having(self, *labels: str) -> dict[str, tuple[EvaluatedMethod, ...]]:
        """The methods with these labels, by dataset; only datasets on which all of them were evaluated.

        A curve in which a simulation broke down does not count.
        """
        return {
            dataset: tuple(methods[label] for label in labels)
            for dataset, methods in self.evaluated.items()
            if all(label in methods and methods[label].is_whole for label in labels)
        }

    @property
    def broken(self) -> list[str]:
        """The remark that simulations broke down, where some did."""
        return broken_in_words(
            {
                f"{label} on {dataset}": each.sweep
                for dataset, methods in self.evaluated.items()
                for label, each in methods.items()
            }
        )
