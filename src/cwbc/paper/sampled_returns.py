"""Returns as a dataset has them and as they are sampled: in bins, as a chart, and in the appendix's bound.

The bound is on the error of training on another distribution of returns than the ideal one. With high
confidence, for some unknown constants C1, C2 and C3,

    E |grad L_q - grad L_p*|^2  <=  C1 E_q[1 / N_r]  +  C2 d2(q || p_D) / |D|  +  C3 TV(p*, q)^2

where q is the distribution of returns in training, p_D that of the data, p* the ideal one, and N_r the number
of trajectories with return r. The first two terms are variance, the third is bias.

No two returns of a robot are equal, so a "return" is a bin, as in the weighting: 20 of equal width. p* is all
on the bin of the max return, which the weighting takes for r*, too. d2 needs no bins: by trajectories it has
the same value if q is uniform within bins, and it detects filters that divide one. So both values are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cwbc.reports.chart import Axis, Chart, histogram_chart
from cwbc.results.intervals import Array

BINS = 20


class Bound(NamedTuple):
    """The bound's three terms without their constants."""

    scarcity: float  # E_q[1 / N_r]: how few trajectories have the sampled returns
    divergence: float  # d2(q || p_D) / |D| by trajectories: how unevenly the data is used
    binned_divergence: float  # the same by bins, blind to what happens within one
    bias: float  # TV(p*, q)^2: how far the sampled returns are from the best


def bound(returns: Array, probabilities: Array, bins: int = BINS) -> Bound:
    """The terms for trajectories [episode] that are sampled with probabilities [episode]."""
    member = return_bins(returns, bins)
    counts = np.bincount(member, minlength=bins)
    there = counts > 0
    sampled, counts = np.bincount(member, probabilities, bins)[there], counts[there]
    return Bound(
        scarcity=float((sampled / counts).sum()),
        divergence=float(np.square(probabilities).sum()),  # p_D is 1 / |D| for each, so |D| cancels
        binned_divergence=float((np.square(sampled) / counts).sum()),  # p_D is count / |D|
        bias=float(sampled[:-1].sum()) ** 2,  # the best return is in the last bin, which is never empty
    )


def return_bins(returns: Array, bins: int = BINS) -> NDArray[np.int64]:
    """The bin of every trajectory, among bins of equal width between the min and the max return."""
    if returns.min() == returns.max():
        return np.full(len(returns), bins - 1)
    edges = np.linspace(returns.min(), returns.max(), bins + 1)[1:-1]
    return np.searchsorted(edges, returns, side="right")


def binned(returns: Array, sampled: Mapping[str, Array]) -> tuple[Array, dict[str, Array]]:
    """The fractions [bin] of returns [episode], and of those sampled with probabilities [episode]."""
    member = return_bins(returns)
    held = np.bincount(member, minlength=BINS) / len(returns)
    return held, {name: np.bincount(member, p, BINS).astype(np.float64) for name, p in sampled.items()}


def distribution_chart(title: str, returns: Array, sampled: Mapping[str, Array]) -> Chart:
    """The fractions of every bin, in the dataset and sampled with probabilities [episode]."""
    low, high = float(returns.min()), float(returns.max())
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1).tolist()
    held, drawn = binned(returns, sampled)
    fractions = {name: found.tolist() for name, found in drawn.items()}
    looks = {name: number for number, name in enumerate(drawn)}
    return histogram_chart(title, edges, held.tolist(), fractions, Axis("return of the episode"), looks)


def uniform(returns: Array) -> Array:
    """Every trajectory with the same probability: q is p_D."""
    return np.full(len(returns), 1 / len(returns))


def only_best(returns: Array) -> Array:
    """Only trajectories with the max return: the appendix's extreme case, q(r) = 1[r = r*]."""
    is_best = returns == returns.max()
    return np.asarray(is_best / is_best.sum())


def effective_sample_size(probabilities: Array) -> float:
    """The number of trajectories that are sampled in effect: 1 / sum of squared probabilities."""
    return float(1 / np.square(probabilities).sum())
