"""The evaluated methods of many datasets, for tables, charts and verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from cwbc.core.tasks import TASKS, Landmark, landmarks
from cwbc.core.trajectories import Trajectories
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.dataset_names import distinct_names
from cwbc.results.evaluated import EvaluatedMethod, Methods, resampled
from cwbc.results.sentences import broken_in_words
from cwbc.results.sweeps import Sweep


class _EvaluatedCell(Protocol):
    """A cell of a grid with its results; its sweep is named by the cell's label."""

    @property
    def dataset_name(self) -> str: ...
    @property
    def sweep(self) -> Sweep: ...
    @property
    def dataset(self) -> DatasetSummary: ...
    @property
    def warnings(self) -> Sequence[str]: ...


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
            of_dataset = evaluated.setdefault(names[outcome.dataset_name], {})
            known = (outcome.sweep, outcome.dataset, outcome.warnings)
            of_dataset[outcome.sweep.method] = EvaluatedMethod.of(*known)
        return cls(evaluated, tuple(datasets), data or {})

    def resampled(self, generator: np.random.Generator) -> Evidence:
        """The evidence with the seeds of every cell resampled; without the data, which has none."""
        evaluated: dict[str, Methods] = {}
        for dataset, methods in self.evaluated.items():
            evaluated[dataset] = {
                label: dataclasses.replace(each, scores=resampled(each.scores, generator))
                for label, each in methods.items()
            }
        return Evidence(evaluated, self.datasets, is_resample=True)

    def __iter__(self) -> Iterator[EvaluatedMethod]:
        """Every method on every dataset."""
        return (each for methods in self.evaluated.values() for each in methods.values())

    @property
    def seeds(self) -> int:
        """The fewest seeds of any cell; 0 where nothing was trained."""
        return min((len(each.scores) for each in self), default=0)

    @property
    def labels(self) -> list[str]:
        """Every method, in order."""
        return list(dict.fromkeys(label for methods in self.evaluated.values() for label in methods))

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
        of_datasets = self.evaluated.items()
        return broken_in_words(
            {f"{label} on {name}": m for name, of in of_datasets for label, m in of.items()}
        )
