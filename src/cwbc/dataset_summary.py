"""What a report says about its data, kept beside the results so that a report never needs the data."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from cwbc.errors import InputError
from cwbc.json_values import decode
from cwbc.tasks import Task, task_for
from cwbc.trajectories import Trajectories


@dataclasses.dataclass(frozen=True)
class DatasetSummary:
    """A dataset in a few numbers and the histogram of its episodes' returns."""

    name: str
    environment: str | None
    content_hash: str
    episodes: int
    steps: int
    lowest: float
    best: float
    mean_return: float
    histogram_edges: tuple[float, ...]  # [bin + 1]
    histogram_counts: tuple[int, ...]  # [bin]

    @classmethod
    def of(cls, data: Trajectories) -> DatasetSummary:
        """The summary of a dataset."""
        counts, edges = np.histogram(data.returns, bins=min(50, max(10, data.episodes // 4)))
        return cls(
            name=data.name,
            environment=data.environment,
            content_hash=data.content_hash,
            episodes=data.episodes,
            steps=data.steps,
            lowest=data.lowest,
            best=data.best,
            mean_return=float(data.returns.mean()),
            histogram_edges=tuple(edges.tolist()),
            histogram_counts=tuple(counts.tolist()),
        )

    @property
    def task(self) -> Task:
        """The yardsticks that scores on this data are measured with."""
        return task_for(self.environment, self.lowest, self.best)

    def to_json(self) -> dict[str, Any]:
        """The fields with lists for tuples, as JSON would hand them back."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> DatasetSummary:
        """The inverse of `to_json`; other keys are left alone."""
        names = [field.name for field in dataclasses.fields(cls)]
        if not isinstance(values, Mapping):
            raise InputError("the dataset's summary is no object")
        if missing := [name for name in names if name not in values]:
            raise InputError(f"the dataset's summary lacks {', '.join(missing)}; it needs {', '.join(names)}")
        place = "the dataset's summary"
        summary: DatasetSummary = decode(cls, {name: values[name] for name in names}, place)
        edges, counts = summary.histogram_edges, summary.histogram_counts
        if len(edges) != len(counts) + 1 or not counts or any(a > b for a, b in itertools.pairwise(edges)):
            raise InputError(f"{place}: histogram_edges are not the ascending edges of histogram_counts")
        if min(counts) < 0 or summary.episodes < 1 or summary.steps < 1:
            raise InputError(f"{place}: counts are negative, or there are no episodes")
        if not summary.lowest <= summary.best:
            raise InputError(f"{place}: lowest is {summary.lowest}, above best, {summary.best}")
        return summary
