"""Charts of how methods came about: their losses, and what they drew from the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cwbc.dataset_summary import DatasetSummary
from cwbc.histories import History
from cwbc.intervals import Array
from cwbc.reporting.charts import Axis, histogram_chart, line_chart
from cwbc.reporting.interactive import Chart
from cwbc.reporting.panels import Curve
from cwbc.wording import percent

MOST_POINTS = 120
Histories = Mapping[str, History]  # by method


class Weighted(NamedTuple):
    """A weighting, the methods that have it, and what it draws."""

    words: str
    methods: tuple[str, ...]
    drawn: tuple[float, ...]  # [bin]

    @property
    def name(self) -> str:
        """The weighting with those that it is for."""
        others = len(self.methods) - 3
        more = f" and {others} more" if others > 0 else ""
        return f"{self.words}: {', '.join(self.methods[:3])}{more}"


def training_chart(histories: Histories, names: Sequence[str] = ()) -> Chart | None:
    """Prediction losses against steps, with their range over seeds; None where no run has recorded any."""
    curves = loss_curves(histories)
    if not curves:
        return None
    remarks = []
    if any(np.isfinite(curve.low).any() for curve in curves):
        remarks.append("Means over seeds; bands reach from the min to the max over seeds.")
    if len(curves) > 1:  # or the lower line would be taken for the better method
        remarks.append("Without the loss of a regularizer, and on the trajectories that each method samples.")
    logarithmic = all_positive(curves)
    return line_chart(
        "Prediction loss",
        curves,
        Axis("step", limits=(0, 1.01 * max(curve.x[-1] for curve in curves)), written="{:,.0f}".format),
        Axis(loss_title(logarithmic), logarithmic, written=lambda loss: f"{loss:.3g}".replace("-", "−")),
        names,
        " ".join(remarks),
    )


def drawn_chart(histories: Histories, dataset: DatasetSummary, names: Sequence[str] = ()) -> Chart | None:
    """The dataset's returns and those that training draws, for every distinct weighting; None if unknown."""
    weightings = distinct_weightings(histories, dataset)
    if not weightings:
        return None
    order = list(names) or list(histories)
    return histogram_chart(
        "Returns in the data and in training",
        dataset.histogram_edges,
        held(dataset).tolist(),
        {weighted.name: weighted.drawn for weighted in weightings},
        Axis("return"),
        {weighted.name: order.index(weighted.methods[0]) for weighted in weightings},
        "Bars: episodes of the dataset. Outlines: what training draws from them, for every weighting.",
    )


def held(dataset: DatasetSummary) -> Array:
    """The share of the dataset's episodes in each bin. [bin]"""
    return np.array(dataset.histogram_counts) / dataset.episodes


def loss_curves(histories: Histories) -> list[Curve]:
    """Losses at the same steps for every method, so that they can be read side by side."""
    known = {name: history for name, history in histories.items() if np.isfinite(history.losses).any()}
    if not known:
        return []
    last = max(int(history.steps[-1]) for history in known.values())
    longest = max(int(np.diff(history.steps, prepend=0).max()) for history in known.values())
    edges = np.linspace(0, last, 1 + max(1, min(MOST_POINTS, last // longest)))
    return [_loss_curve(name, history, edges) for name, history in known.items()]


def all_positive(curves: Sequence[Curve]) -> bool:
    """Whether losses can be shown by their logarithm."""
    values = np.concatenate([curve.value for curve in curves])
    known = values[np.isfinite(values)]
    return bool(known.size and (known > 0).all())


def loss_title(logarithmic: bool) -> str:
    """What an axis of losses shows."""
    return "prediction loss, logarithmic scale" if logarithmic else "prediction loss"


def _loss_curve(name: str, history: History, edges: Array) -> Curve:
    member = np.searchsorted(edges, history.steps) - 1  # a row is about the steps up to its own
    there = np.unique(member)
    losses = np.array([history.losses[member == index].mean(axis=0) for index in there])  # [point, seed]
    losses[~np.isfinite(losses)] = np.nan
    low, high = losses.min(axis=1), losses.max(axis=1)
    if losses.shape[1] == 1:
        low = high = np.full(len(there), np.nan)
    return Curve(name, edges[there + 1], losses.mean(axis=1), low, high)


def distinct_weightings(histories: Histories, dataset: DatasetSummary) -> list[Weighted]:
    """The weightings among methods, for those runs that have kept what they draw from this very histogram."""
    found: dict[str, Weighted] = {}
    for name, history in histories.items():
        if history.drawn is None or len(history.drawn) != len(dataset.histogram_counts):
            continue
        key = repr(sorted(history.weighting.items()))
        before = found[key].methods if key in found else ()
        found[key] = Weighted(_words(history.weighting), (*before, name), history.drawn)
    return list(found.values())


def _words(weighting: Mapping[str, Any]) -> str:
    match weighting.get("kind"):
        case "ByLength":
            return "every step alike"
        case "ByReturn":
            return "by return"
        case "TopFraction" if "top_fraction" in weighting:
            return f"the best {percent(weighting['top_fraction'])}"
        case kind:
            return str(kind)
