"""The summary of a dataset that is stored beside results, so that a report never needs the data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cwbc.core.simulation import is_offline
from cwbc.core.tasks import Task, task_for
from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import InputError
from cwbc.system.typed_json import decode


@dataclasses.dataclass(frozen=True)
class DatasetSummary:
    """The statistics of a dataset that reports show, and the histogram of its episodes' returns."""

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
    sampled_actions: bool = False  # in the evaluation of results
    clipped_rewards: bool = False  # in which case targets are sums of clipped rewards

    @classmethod
    def of(cls, data: Trajectories) -> DatasetSummary:
        """The summary of a dataset."""
        counts, edges = np.histogram(data.returns, bins=min(50, max(10, data.episodes // 4)))
        same = ("name", "environment", "content_hash", "episodes", "steps", "lowest", "best")
        return cls(
            **{name: getattr(data, name) for name in same},
            mean_return=float(data.returns.mean()),
            histogram_edges=tuple(edges.tolist()),
            histogram_counts=tuple(counts.tolist()),
            clipped_rewards=data.clipped_rewards,
        )

    @property
    def task(self) -> Task:
        """The reference returns for scores on this data."""
        return task_for(self.environment, self.lowest, self.best)

    @property
    def counts_successes(self) -> bool:
        """Whether every return is 0 or 1, so that scores are success rates in percent."""
        is_unit = self.lowest == self.task.random_score == 0 and self.best == self.task.expert_score == 1
        rate = self.histogram_counts[-1] / self.episodes
        at_ends = not any(self.histogram_counts[1:-1]) and math.isclose(self.mean_return, rate, abs_tol=1e-9)
        return is_unit and at_ends

    @property
    def is_estimated(self) -> bool:
        """Whether the returns of results are estimates with a model of the data."""
        return is_offline(self.environment)

    def to_json(self) -> dict[str, Any]:
        """The fields, with lists for tuples; without a flag that is not set, as in earlier versions."""
        found = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}
        return {name: value for name, value in found.items() if value is not False}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> DatasetSummary:
        """The inverse of `to_json`; other keys are ignored."""
        place = "the dataset's summary"
        given = decode(dict[str, Any], values, place)
        known = {field.name: given[field.name] for field in dataclasses.fields(cls) if field.name in given}
        summary: DatasetSummary = decode(cls, known, place)
        edges, counts = summary.histogram_edges, summary.histogram_counts
        if len(edges) != len(counts) + 1 or not counts or list(edges) != sorted(edges):
            raise InputError(f"{place}: histogram_edges are not the ascending edges of histogram_counts")
        if min(counts) < 0 or summary.episodes < 1 or summary.steps < 1:
            raise InputError(f"{place}: counts are negative, or there are no episodes")
        if not summary.lowest <= summary.best:
            raise InputError(f"{place}: lowest is {summary.lowest}, above best, {summary.best}")
        return summary
