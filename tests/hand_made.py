"""Outcomes of experiments made by hand: curves whose scores are given, so that verdicts are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cwbc.core.tasks import GAMES, TASKS
from cwbc.core.trajectories import Trajectories
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.grids.cells import Scale, grid
from cwbc.grids.outcomes import Outcome
from cwbc.paper import ITEMS
from cwbc.paper.published import WALKERS, named
from cwbc.paper.verdicts import Claim
from cwbc.reports.chart import Chart
from cwbc.reports.tables import ReportTable
from cwbc.results.evidence import Evidence
from cwbc.results.sweeps import Sweep

SCALE = Scale("small", steps=1, seeds=2, episodes=1, precision="float32")
ENVIRONMENTS = {
    "antmaze": "d4rl/antmaze-umaze-v2",
    "walker2d": "Walker2d-v4",
    "hopper": "Hopper-v4",
    "halfcheetah": "HalfCheetah-v4",
}
ENVIRONMENTS |= {game: f"ALE/{game.capitalize()}-v5" for game in GAMES}
MARKS = ("low", "data's best", "1x expert", "2x expert")  # the target returns of a curve
LOW, BEST = 0.4, 0.8  # of the expert return
HOLDS = (20.0, 50.0, 50.0, 50.0)  # scores at MARKS
FALLS = (20.0, 50.0, 10.0, 0.0)


def summary(dataset: str, counts: Sequence[int] = (6, 2, 1, 1), mean: float = 1000.0) -> DatasetSummary:
    """A dataset whose best return is 0.8x expert, of a game 100, with this histogram; of mazes, successes."""
    robot = dataset.split("-")[0]
    best = BEST * TASKS[robot].expert_return if robot in TASKS else 100.0
    if robot == "antmaze":
        counts, best, mean = (6, 4), 1.0, 0.4
    edges = tuple(np.linspace(0, best, len(counts) + 1).tolist())
    episodes = sum(counts)
    return DatasetSummary(
        named(dataset, "ours"), ENVIRONMENTS[robot], "0" * 64, episodes, 1000 * episodes, 0.0, best, mean,
        edges, tuple(counts), clipped_rewards=robot in GAMES,
    )  # fmt: skip


def outcome(
    dataset: str,
    label: str,
    scores: Sequence[float],
    apart: float = 0.0,
    about: DatasetSummary | None = None,
    extra: Mapping[float, float] | None = None,
) -> Outcome:
    """A curve with these mean scores at MARKS, of a game at 0.4, 0.8, 1 and 2 times the dataset's best.

    Args:
        apart: how far the two seeds are from the mean, at every point.
        extra: scores at further target returns, by their fraction of the dataset's best.
    """
    about = about or summary(dataset)
    task = about.task
    points = dict(zip((LOW, BEST, 1.0, 2.0), scores, strict=True))
    by_target = {each * task.expert_return: found for each, found in points.items()}
    by_target |= {each * about.best: found for each, found in (extra or {}).items()}
    targets = np.array(sorted(by_target))
    means = task.random_score + np.array([by_target[t] for t in targets]) / 100 * _range(about)
    spread = apart / 100 * _range(about)
    returns = np.stack([means - spread, means + spread])[:, :, None]
    (cell,) = grid([about.name], ["rvs"], SCALE)
    sweep = Sweep(label, np.arange(2), targets, returns, np.ones(returns.shape, np.int64))
    return Outcome(dataclasses.replace(cell, label=label), Path(label), sweep, about)


def _range(about: DatasetSummary) -> float:
    return about.task.expert_score - about.task.random_score


class Findings(NamedTuple):
    """What came of an item."""

    claims: Sequence[Claim]
    tables: Mapping[str, ReportTable]
    charts: Sequence[Chart]
    distributions: Mapping[str, Chart]  # by dataset


def found(
    name: str, outcomes: Sequence[Outcome], datasets: Sequence[str] = (), **data: Trajectories
) -> Findings:
    """What an item makes of outcomes; its claims are about these datasets, or about all of the item's."""
    given = {key.replace("_", "-"): value for key, value in data.items()}
    evidence = Evidence.of(outcomes, datasets or ITEMS[name].datasets, given)
    shown = ITEMS[name].exhibits(evidence)
    return Findings(ITEMS[name].claims(evidence), shown.tables, shown.charts, shown.distributions)


def claim(findings: Findings, words: str) -> Claim:
    """The one claim whose text has these words."""
    (wanted,) = [each for each in findings.claims if words in each.text]
    return wanted


def verdicts(findings: Findings) -> list[bool | None]:
    """Whether its claims hold by their rules, in their order."""
    return [each.holds for each in findings.claims]


def curves(
    datasets: Sequence[str], apart: float = 0.0, **scores: tuple[float, float, float, float]
) -> list[Outcome]:
    """The same curves on all datasets; a method's + is written as two underscores."""
    return [
        outcome(dataset, label.replace("__", "+").replace("_", "-"), points, apart)
        for dataset in datasets
        for label, points in scores.items()
    ]


def at_expert(dataset: str, scores: Mapping[str, float]) -> list[Outcome]:
    """Methods with these scores at the expert return and beyond."""
    return [outcome(dataset, label, (20, 50, at, at)) for label, at in scores.items()]


def on_all(data: Trajectories, datasets: Sequence[str] = WALKERS) -> dict[str, Any]:
    """The same data as all datasets, as arguments of `found`."""
    return {dataset.replace("-", "_"): data for dataset in datasets}
