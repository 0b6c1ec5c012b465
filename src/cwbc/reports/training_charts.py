"""Charts of training: the losses of methods, and the returns of the trajectories that they sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.charts import Axis, Chart, Curve, histogram_chart, line_chart
from cwbc.results.intervals import Array
from cwbc.runs.finished import TrainingHistory
from cwbc.system.formatting import percent

MOST_POINTS = 120
Histories = Mapping[str, TrainingHistory]  # by method


class Weighted(NamedTuple):
    """A weighting, the methods that have it, and the returns that it samples."""

    words: str
    methods: tuple[str, ...]
    sampled: tuple[float, ...]  # [bin]: fractions

    @property
    def name(self) -> str:
        """The weighting with its methods."""
        others = len(self.methods) - 3
        more = f" and {others} more" if others > 0 else ""
        return f"{self.words}: {', '.join(self.methods[:3])}{more}"


def training_chart(histories: Histories, names: Sequence[str] = ()) -> Chart | None:
    """Prediction losses by step, with their range over seeds; None where no run has recorded any."""
    curves = loss_curves(histories)
    if not curves:
        return None
    several = any(np.isfinite(curve.low).any() for curve in curves)
    remarks = [
        "Means over seeds; bands reach from the min to the max over seeds." if several else "One seed."
    ]
    if len(curves) > 1:  # or the lower line would be taken for the better method
        remarks.append("Without the loss of a regularizer, and on the trajectories that each method samples.")
    values = np.concatenate([curve.value for curve in curves])
    logarithmic = bool((values[np.isfinite(values)] > 0).all() and np.isfinite(values).any())
    return line_chart(
        "Prediction loss",
        curves,
        Axis("step", limits=(0, 1.01 * max(curve.x[-1] for curve in curves)), written="{:,.0f}".format),
        Axis(
            f"prediction loss{', logarithmic scale' * logarithmic}",
            logarithmic,
            written=lambda loss: f"{loss:.3g}".replace("-", "−"),
        ),
        names,
        " ".join(remarks),
    )


def sampled_chart(histories: Histories, dataset: DatasetSummary, names: Sequence[str] = ()) -> Chart | None:
    """The returns of the dataset and of what training samples with every weighting; None if unknown."""
    weightings = distinct_weightings(histories, dataset)
    if not weightings:
        return None
    order = list(names) or list(histories)
    return histogram_chart(
        "Returns in the data and in training",
        dataset.histogram_edges,
        (np.array(dataset.histogram_counts) / dataset.episodes).tolist(),
        {weighted.name: weighted.sampled for weighted in weightings},
        Axis("return"),
        {weighted.name: order.index(weighted.methods[0]) for weighted in weightings},
        "Bars: episodes of the dataset. Outlines: trajectories sampled in training, for every weighting.",
    )


def loss_curves(histories: Histories) -> list[Curve]:
    """Losses at the same steps for every method, so that they can be read side by side."""
    known = {name: history for name, history in histories.items() if np.isfinite(history.losses).any()}
    if not known:
        return []
    last = max(int(history.steps[-1]) for history in known.values())
    longest = max(int(np.diff(history.steps, prepend=0).max()) for history in known.values())
    edges = np.linspace(0, last, 1 + max(1, min(MOST_POINTS, last // longest)))
    return [_loss_curve(name, history, edges) for name, history in known.items()]


def _loss_curve(name: str, history: TrainingHistory, edges: Array) -> Curve:
    member = np.searchsorted(edges, history.steps) - 1  # a row is about the steps up to its own
    there = np.unique(member)
    losses = np.array([history.losses[member == index].mean(axis=0) for index in there])  # [point, seed]
    losses[~np.isfinite(losses)] = np.nan
    low, high = losses.min(axis=1), losses.max(axis=1)
    if losses.shape[1] == 1:
        low = high = np.full(len(there), np.nan)
    return Curve(name, edges[there + 1], losses.mean(axis=1), low, high)


def distinct_weightings(histories: Histories, dataset: DatasetSummary) -> list[Weighted]:
    """The weightings of the runs that have recorded what they sample in the bins of this very histogram."""
    found: dict[str, Weighted] = {}
    for name, history in histories.items():
        if history.sampled is None or len(history.sampled) != len(dataset.histogram_counts):
            continue
        key = repr(sorted(history.weighting.items()))
        before = found[key].methods if key in found else ()
        found[key] = Weighted(_words(history.weighting), (*before, name), history.sampled)
    return list(found.values())


def _words(weighting: Mapping[str, Any]) -> str:
    match weighting.get("kind"):
        case "ByLength":
            return "by length"
        case "ByReturn":
            return "by return"
        case "TopFraction" if "top_fraction" in weighting:
            return f"the best {percent(weighting['top_fraction'])}"
        case kind:
            return str(kind)
