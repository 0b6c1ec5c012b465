"""Charts of losses, and of the returns in a dataset and in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cwbc.core.tasks import landmarks, task_for
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.data.statistics import DatasetStatistics
from cwbc.reports.chart import Axis, Chart, Curve, Panel, Shade, Stairs, histogram_chart, line_chart, padded
from cwbc.reports.description import regularized
from cwbc.results.intervals import Array
from cwbc.runs.finished import TrainingHistory
from cwbc.system.formatting import percent

MOST_POINTS = 120  # of a loss curve
Histories = Mapping[str, TrainingHistory]  # by method
_WEIGHTINGS = {"ByLength": "by length", "ByReturn": "by return"}
WITHOUT, WITH = "sampled without +w (by length)", "sampled with +w (by return)"
TARGETS = "their noisy targets"


def training_chart(histories: Histories, names: Sequence[str] = ()) -> Chart | None:
    """Prediction losses by step, with their range over seeds; None where no run has recorded any."""
    curves = loss_curves(histories)
    if not curves:
        return None
    several = any(np.isfinite(curve.low).any() for curve in curves)
    caption = "Means over seeds; bands reach from the min to the max over seeds." if several else "One seed."
    if len(curves) > 1:  # or the lower line would be taken for the better method
        caption += " Without the loss of a regularizer, and on the trajectories that each method samples."
    known = np.concatenate([curve.value[np.isfinite(curve.value)] for curve in curves])
    is_positive = bool(known.size and known.min() > 0)
    title = "prediction loss" + ", logarithmic scale" * is_positive
    across = Axis("step", limits=(0, 1.01 * max(curve.x[-1] for curve in curves)), written="{:,.0f}".format)
    up = Axis(title, is_positive, written=lambda loss: f"{loss:.3g}".replace("-", "−"))
    return line_chart("Prediction loss", curves, across, up, names, caption)


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
        {name: sampled for name, (_, sampled) in weightings.items()},
        Axis("return"),
        {name: order.index(methods[0]) for name, (methods, _) in weightings.items()},
        "Bars: episodes of the dataset. Outlines: trajectories sampled in training, for every weighting.",
    )


def distinct_weightings(
    histories: Histories, dataset: DatasetSummary
) -> dict[str, tuple[list[str], tuple[float, ...]]]:
    """By weighting and methods in words: the methods, and the fractions [bin] of returns that they sample.

    Only of runs that have recorded what they sample in the bins of this very histogram.
    """
    alike: dict[str, list[str]] = {}  # methods by weighting
    for name, history in histories.items():
        if len(history.sampled or ()) == len(dataset.histogram_counts):
            alike.setdefault(repr(sorted(history.weighting.items())), []).append(name)
    named = {}
    for methods in alike.values():
        weighting, sampled = histories[methods[0]].weighting, histories[methods[0]].sampled or ()
        words = str(_WEIGHTINGS.get(weighting.get("kind", ""), weighting.get("kind")))
        if "top_fraction" in weighting:
            words = f"the best {percent(weighting['top_fraction'])}"
        more = f" and {len(methods) - 3} more" if len(methods) > 3 else ""
        named[f"{words}: {', '.join(methods[:3])}{more}"] = methods, sampled
    return named


def description_chart(description: DatasetStatistics) -> Chart:
    """The chart of `cwbc data show --plot`: the returns with and without weighting, and noisy targets."""
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
    targets = Stairs(TARGETS, (returns.best, max(noise.max_target, returns.best + hair)), (1.0,), filled=True)
    return Chart(
        description.name,
        Axis("return", limits=(low, high)),
        [
            Panel(Axis("fraction of samples, %", limits=(0.0, top)), sampled),
            Panel(Axis("", limits=(0.0, 1.4), most=0), [targets], f"+c {regularized(description)}"),
        ],
        {WITHOUT: None, WITH: 0, TARGETS: 1},
        marks=sorted(marks, key=lambda mark: mark.target),
        shades=[
            Shade(returns.best),
            Shade(min(noise.min_return, returns.best - hair), returns.best, "regularized by +c", 1),
        ],
    )
