"""The chart of reliability: achieved vs. target return, above the histogram of the dataset's returns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cwbc.core.tasks import landmarks
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.charts import DATASET, Axis, Chart, Curve, Panel, Shade, Stairs, padded
from cwbc.reports.looks import looks_of
from cwbc.results.intervals import band, bands
from cwbc.results.sweeps import Sweep
from cwbc.system.formatting import listed, score


def reliability_chart(
    sweeps: Sequence[Sweep],
    dataset: DatasetSummary,
    names: Sequence[str] = (),
    title: str = "Achieved vs. target return",
) -> Chart:
    """Achieved vs. target return with bands over seeds, above the dataset's returns."""
    marks = sorted(landmarks(dataset.task, dataset.best), key=lambda mark: mark.target)
    named = np.array([mark.target for mark in marks])
    targets = [*(sweep.targets for sweep in sweeps), named, np.array(dataset.histogram_edges)]
    # By the seeds, not by the bands: of few seeds those may be several times as wide, and flatten all else.
    returns = [
        *(sweep.means.ravel() for sweep in sweeps),
        np.array([dataset.lowest, dataset.best]),
    ]
    limits = padded(np.concatenate(returns), 0.08)
    scores = dataset.task.normalize(np.array(limits))
    curves = [Curve(sweep.method, sweep.targets, *band(sweep.means)) for sweep in sweeps]
    achieved = Panel(
        Axis("achieved return", limits=limits),
        curves,
        right=Axis(
            "normalized score",
            limits=(float(scores[0]), float(scores[1])),
            written=lambda value: f"score {score(value)}",
        ),
        diagonal="achieved = target",
    )
    counts = dataset.histogram_counts
    histogram = Panel(
        Axis("episodes", limits=(0.0, 1.05 * max(counts)), most=2),
        [Stairs(DATASET, dataset.histogram_edges, counts)],
        f"returns of the dataset's {dataset.episodes:,} episodes",
    )
    return Chart(
        title,
        Axis("target return", limits=padded(np.concatenate(targets), 0.02)),
        [achieved, histogram],
        looks_of([sweep.method for sweep in sweeps], names),
        _caption(sweeps),
        marks,
        [Shade(dataset.best, name="out-of-distribution")],
        f"{dataset.name}-reliability",
    )


def _caption(sweeps: Sequence[Sweep]) -> str:
    flat = [sweep.method for sweep in sweeps if not sweep.takes_target]
    counts = sorted({len(sweep.seeds) for sweep in sweeps})
    drawn = bands(counts)
    sentences = [
        f"Means over {' or '.join(map(str, counts))} seeds. {drawn}" if drawn else "",
        "" if drawn else "One seed: too few seeds for an interval.",
        f"Flat lines: {listed(flat)} take{'s' * (len(flat) == 1)} no target." if flat else "",
        "Shaded: targets above the best return in the dataset.",
    ]
    return " ".join(filter(None, sentences))
