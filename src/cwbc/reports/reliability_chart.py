"""The reliability chart: achieved vs. target return of evaluated methods, above the dataset's returns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.chart import DATASET, Axis, Chart, Curve, Panel, Shade, Stairs, padded
from cwbc.reports.method_styles import looks_of
from cwbc.results.evaluated import EvaluatedMethod, Methods
from cwbc.results.intervals import Ends, band, bands, wider, within
from cwbc.system.formatting import PERCENT, listed, score


def reliability_chart(methods: Methods, names: Sequence[str] = (), title: str | None = None) -> Chart:
    """Achieved vs. target return with bands over seeds, above the dataset's returns."""
    first, *_ = methods.values()
    dataset, sweeps = first.dataset, [method.sweep for method in methods.values()]
    marks = sorted(first.landmarks, key=lambda mark: mark.target)
    named = np.array([mark.target for mark in marks])
    targets = [*(sweep.targets for sweep in sweeps), named, np.array(dataset.histogram_edges)]
    # By the seeds, not by the bands: of few seeds those may be several times as wide, and flatten all else.
    returns = [*(sweep.means.ravel() for sweep in sweeps), np.array([dataset.lowest, dataset.best])]
    limits = padded(np.concatenate(returns), 0.08)
    low, high = dataset.task.normalize(np.array(limits)).tolist()
    kind = "estimated" if dataset.is_estimated else "achieved"
    unit = ", of clipped rewards" if dataset.clipped_rewards else ""
    achieved = Panel(
        Axis(f"{kind} return", limits=limits),
        [Curve(method.sweep.method, method.sweep.targets, *_band(method)) for method in methods.values()],
        right=_right(dataset, (low, high)),
        diagonal="" if dataset.clipped_rewards else f"{kind} = target",
    )
    counts = dataset.histogram_counts
    histogram = Panel(
        Axis("episodes", limits=(0.0, 1.05 * max(counts)), most=2),
        [Stairs(DATASET, dataset.histogram_edges, counts)],
        f"returns of the dataset's {dataset.episodes:,} episodes",
    )
    flat = [sweep.method for sweep in sweeps if not sweep.takes_target]
    caption = [bands({len(sweep.seeds) for sweep in sweeps}, first.model_errors is not None)]
    caption += ["Returns are estimated with a model of the data."] if dataset.is_estimated else []
    caption += (
        [f"Flat lines: {listed(flat)} {'has' if len(flat) == 1 else 'have'} no target."] if flat else []
    )
    return Chart(
        title or f"{kind.capitalize()} vs. target return",
        Axis(f"target return{unit}", limits=padded(np.concatenate(targets), 0.02)),
        [achieved, histogram],
        looks_of(list(methods), names),
        " ".join([*caption, "Shaded: targets above the best return in the dataset."]),
        marks,
        [Shade(dataset.best, name="out-of-distribution")],
        f"{dataset.name}-reliability",
    )


def _band(method: EvaluatedMethod) -> Ends:
    found = band(method.sweep.means, method.sweep.episodes if method.dataset.counts_successes else None)
    if method.model_errors is not None:
        found = wider(found, method.model_errors)
    return within(found, 0.0, 1.0) if method.dataset.counts_successes else found


def _right(dataset: DatasetSummary, limits: tuple[float, float]) -> Axis:
    """The axis of the scores."""
    if dataset.counts_successes:
        return Axis("success rate, %", limits=limits, written=lambda value: f"{score(value)}{PERCENT}")
    return Axis("normalized score", limits=limits, written=lambda value: f"score {score(value)}")
