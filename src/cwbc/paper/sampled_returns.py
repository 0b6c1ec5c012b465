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

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from cwbc.core.trajectories import Trajectories
from cwbc.reports.chart import Axis, Chart, histogram_chart
from cwbc.results.evidence import Evidence
from cwbc.results.intervals import Array

BINS = 20
Sampled = Callable[[Trajectories], Mapping[str, Array]]  # probabilities [episode] by name


class Bound(NamedTuple):
    """The bound's three terms without their constants."""

    scarcity: float  # E_q[1 / N_r]: how few trajectories have the sampled returns
    divergence: float  # d2(q || p_D) / |D| by trajectories: how unevenly the data is used
    binned_divergence: float  # the same by bins, blind to what happens within one
    bias: float  # TV(p*, q)^2: how far the sampled returns are from the best


def bound(returns: Array, probabilities: Array, bins: int = BINS) -> Bound:
    """The terms for trajectories [episode] that are sampled with probabilities [episode]."""
    counts = np.histogram(returns, bins)[0]
    there = counts > 0
    sampled, counts = binned(returns, probabilities, bins)[there], counts[there]
    return Bound(
        scarcity=float((sampled / counts).sum()),
        divergence=float(np.square(probabilities).sum()),  # p_D is 1 / |D| for each, so |D| cancels
        binned_divergence=float((np.square(sampled) / counts).sum()),  # p_D is count / |D|
        bias=float(sampled[:-1].sum()) ** 2,  # the best return is in the last bin, which is never empty
    )


def binned(returns: Array, probabilities: Array, bins: int = BINS) -> Array:
    """How often each bin [bin] is sampled from returns [episode] with probabilities [episode]."""
    return np.histogram(returns, bins, weights=probabilities)[0]


def distributions(evidence: Evidence, sampled: Sampled, remark: str = "") -> dict[str, Chart]:
    """The fractions of every bin, in each dataset and as sampled."""
    charts = {}
    for dataset, data in evidence.data.items():
        counts, edges = np.histogram(data.returns, BINS)
        held = (counts / len(data.returns)).tolist()
        drawn = {name: binned(data.returns, each).tolist() for name, each in sampled(data).items()}
        looks = {name: number for number, name in enumerate(drawn)}
        axis = Axis("return of the episode")
        charts[dataset] = histogram_chart(dataset + remark, edges.tolist(), held, drawn, axis, looks)
    return charts


def effective_sample_size(probabilities: Array) -> float:
    """The number of trajectories that are sampled in effect: 1 / sum of squared probabilities."""
    return float(1 / np.square(probabilities).sum())
