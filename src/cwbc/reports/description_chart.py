"""The chart of `cwbc data show --plot`: the returns that are sampled, and those that are regularized."""

from __future__ import annotations

import numpy as np

from cwbc.core.tasks import landmarks, task_for
from cwbc.data.statistics import DatasetStatistics
from cwbc.reports.charts import Axis, Chart, Panel, Shade, Stairs, padded
from cwbc.reports.description import regularized

WITHOUT, WITH, TARGETS = (
    "sampled without +w (by length)",
    "sampled with +w (by return)",
    "their noisy targets",
)


def description_chart(description: DatasetStatistics) -> Chart:
    """The returns with and without weighting, and the targets that the regularizer adds."""
    returns, noise = description.returns, description.noise
    task = task_for(description.environment, returns.min, returns.best)
    marks = landmarks(task, returns.best)[:-1]
    ends = np.array([returns.min, noise.max_target, *(mark.target for mark in marks)])
    # Returns that differ by rounding only would make an axis of no width.
    distinct = np.ptp(ends) > 1e-6 * np.abs(ends).max()
    low, high = padded(ends if distinct else ends[:1], 0.02)
    hair = 0.004 * (high - low)  # what has no width must be seen as well
    edges = description.bin_edges
    masses = {WITHOUT: description.by_length.probabilities, WITH: description.by_return.probabilities}
    if returns.equal:
        edges, masses = (returns.best - 2 * hair, returns.best + 2 * hair), dict.fromkeys(masses, (1.0,))
    sampled = [Stairs(name, edges, [100 * each for each in of]) for name, of in masses.items()]
    top = 1.05 * max(max(stairs.heights) for stairs in sampled)
    far = max(noise.max_target, returns.best + hair)
    return Chart(
        description.name,
        Axis("return", limits=(low, high)),
        [
            Panel(Axis("fraction of samples, %", limits=(0.0, top)), sampled),
            Panel(
                Axis("", limits=(0.0, 1.4), most=0),
                [Stairs(TARGETS, (returns.best, far), (1.0,), filled=True)],
                f"+c {regularized(description)}",
            ),
        ],
        {WITHOUT: None, WITH: 0, TARGETS: 1},
        marks=sorted(marks, key=lambda mark: mark.target),
        shades=[
            Shade(returns.best),
            Shade(min(noise.min_return, returns.best - hair), returns.best, "regularized by +c", 1),
        ],
    )
