"""The evaluated methods of many datasets, for tables, charts and verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from cwbc.core.tasks import TASKS, Landmark, landmarks
from cwbc.core.trajectories import Trajectories
from cwbc.results.dataset_names import distinct_names
from cwbc.results.evaluated import EvaluatedMethod, Methods, resampled
from cwbc.results.sentences import broken_in_words


class _EvaluatedCell(Protocol):
    """A cell of a grid with its results; its method is named by the cell's label."""

    @property
    def dataset_name(self) -> str: ...
    @property
    def method(self) -> EvaluatedMethod: ...


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Everything that was evaluated, by the datasets' short names and the methods' labels."""

    evaluated: Mapping[str, Methods]
    datasets: Sequence[str]  # all of them, evaluated or not
    data: Mapping[str, Trajectories] = dataclasses.field(default_factory=dict)
    is_resample: bool = False  # whether its seeds are resampled, so that no interval is needed

    @classmethod
    def of(
        cls,
        outcomes: Sequence[_EvaluatedCell],
        datasets: Sequence[str],
        data: Mapping[str, Trajectories] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> Evidence:
        """The evidence of a grid; `names` are the datasets' short ones, where there are more than these."""
        names = names or distinct_names(outcome.dataset_name for outcome in outcomes)
        evaluated: dict[str, dict[str, EvaluatedMethod]] = {}
        for outcome in outcomes:
            methods = evaluated.setdefault(names[outcome.dataset_name], {})
            methods[outcome.method.sweep.method] = outcome.method
        return cls(evaluated, tuple(datasets), data or {})

    def resampled(self, generator: np.random.Generator) -> Evidence:
        """The evidence with the seeds of every cell resampled; without the data, which has none."""
        evaluated: dict[str, dict[str, EvaluatedMethod]] = {}
        for dataset, label, each in self._cells():
            again = dataclasses.replace(each, scores=resampled(each.scores, generator))
            evaluated.setdefault(dataset, {})[label] = again
        return Evidence(evaluated, self.datasets, is_resample=True)

    def _cells(self) -> Iterator[tuple[str, str, EvaluatedMethod]]:
        """Every dataset and label with its method."""
        return ((name, label, of[label]) for name, of in self.evaluated.items() for label in of)

    def __iter__(self) -> Iterator[EvaluatedMethod]:
        """Every method on every dataset."""
        return (each for _, _, each in self._cells())

    @property
    def seeds(self) -> int:
        """The fewest seeds of any cell; 0 where nothing was trained."""
        return min((len(each.scores) for each in self), default=0)

    @property
    def labels(self) -> list[str]:
        """Every method, in order."""
        return list(dict.fromkeys(label for _, label, _ in self._cells()))

    @property
    def near(self) -> Landmark:
        """The return at which methods are compared: 1x expert, or the dataset's best without an expert."""
        return self._named(-2)

    @property
    def far(self) -> Landmark:
        """The return at which they may have collapsed: 2x expert, or its like without an expert."""
        return self._named(-1)

    def _named(self, place: int) -> Landmark:
        """A target return by all the names that the tasks have for it."""
        found = [each.landmarks[place] for each in self] or [landmarks(TASKS["hopper"], 0.0)[place]]
        labels, phrases = dict.fromkeys(m.label for m in found), dict.fromkeys(m.phrase for m in found)
        return dataclasses.replace(found[0], label=" or ".join(labels), phrase=" or ".join(phrases))

    @property
    def has_experts(self) -> bool:
        """Whether the experts of all tasks were published."""
        return all(each.task.published for each in self)

    @property
    def on_d4rl(self) -> bool:
        """Whether all was evaluated on D4RL's own data, so that published scores compare."""
        names = [each.dataset.name for each in self]
        return bool(names) and all(name.startswith("d4rl/") for name in names)

    def missing(self, found: Collection[str]) -> list[str]:
        """The datasets that are not among those found."""
        return [dataset for dataset in self.datasets if dataset not in found]

    def having(self, *labels: str) -> dict[str, Methods]:
        """The methods with these labels, by dataset; only datasets on which all of them were evaluated.

        A curve in which a simulation broke down does not count.
        """
        return {
            dataset: {label: methods[label] for label in labels}
            for dataset, methods in self.evaluated.items()
            if all(label in methods and methods[label].is_whole for label in labels)
        }

    @property
    def broken(self) -> list[str]:
        """The remark that simulations broke down, where some did."""
        return broken_in_words({f"{label} on {name}": each for name, label, each in self._cells()})
