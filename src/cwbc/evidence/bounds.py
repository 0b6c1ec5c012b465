"""The appendix's bound on what training on another distribution of returns than the ideal one costs.

With high confidence, for some constants C1, C2 and C3 that nobody knows,

    E |grad L_q - grad L_p*|^2  <=  C1 E_q[1 / N_r]  +  C2 d2(q || p_D) / |D|  +  C3 TV(p*, q)^2

where q is the distribution of returns that is trained on, p_D that of the data, p* the ideal one, and N_r the
number of trajectories with return r. The first two terms are variance, the third is bias.

No two returns of a robot are equal, so a "return" is a bin, as in the weighting: 20 of equal width. p* is all
on the bin of the highest return, which the weighting takes for r*, too. d2 needs no bins: by trajectories it
is the same where q is even within bins, and sees filters that cut through one. So it is there in both ways.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from cwbc.intervals import Array

BINS = 20


@dataclasses.dataclass(frozen=True)
class Bound:
    """The bound's three terms without their constants."""

    scarcity: float  # E_q[1 / N_r]: how few trajectories there are of what is drawn
    divergence: float  # d2(q || p_D) / |D| by trajectories: how unevenly the data is used
    binned_divergence: float  # the same by bins, blind to what happens within one
    bias: float  # TV(p*, q)^2: how far what is drawn is from the best


def bound(returns: Array, probabilities: Array, bins: int = BINS) -> Bound:
    """The terms for trajectories [episode] that are drawn with probabilities [episode]."""
    member = return_bins(returns, bins)
    counts = np.bincount(member, minlength=bins)
    there = counts > 0
    drawn = np.bincount(member, weights=probabilities, minlength=bins)[there]
    counts = counts[there]
    return Bound(
        scarcity=float((drawn / counts).sum()),
        divergence=float(np.square(probabilities).sum()),  # p_D is 1 / |D| for each, so |D| cancels
        binned_divergence=float((np.square(drawn) / counts).sum()),  # p_D is count / |D|
        bias=float(drawn[:-1].sum()) ** 2,  # the best return is in the last bin, which is never empty
    )


def return_bins(returns: Array, bins: int = BINS) -> NDArray[np.int64]:
    """The bin of every trajectory, among bins of equal width between the lowest and the highest return."""
    if returns.min() == returns.max():
        return np.full(len(returns), bins - 1)
    edges = np.linspace(returns.min(), returns.max(), bins + 1)[1:-1]
    return np.searchsorted(edges, returns, side="right")


def uniform(returns: Array) -> Array:
    """Every trajectory as often as any other: q is p_D."""
    return np.full(len(returns), 1 / len(returns))


def only_best(returns: Array) -> Array:
    """Only trajectories with the highest return: the appendix's extreme case, q(r) = 1[r = r*]."""
    kept = returns == returns.max()
    return np.asarray(kept / kept.sum())


def effective_episodes(probabilities: Array) -> float:
    """How many trajectories, drawn equally often, would be drawn as unevenly: 1 / sum of squares."""
    return float(1 / np.square(probabilities).sum())
