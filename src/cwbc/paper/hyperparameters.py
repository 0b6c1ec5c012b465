"""Figures 7 to 10: how much the hyper-parameters of CWBC matter, on the walker2d datasets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByReturn
from cwbc.grids.cells import Variant
from cwbc.paper import rules
from cwbc.paper.item import Exhibits, Item
from cwbc.paper.published import EXPERTS, REPLAYS, WALKERS
from cwbc.paper.rules import COMPARABLE, SIMILAR, WELL, Comparison, Curves, Found, Results, on_each
from cwbc.paper.sampled_returns import BINS, Sampled, binned, distributions
from cwbc.reports import showing
from cwbc.results.dataset_names import short_name
from cwbc.results.evidence import Evidence
from cwbc.results.intervals import Array
from cwbc.system.formatting import amount, percent


def _variants(symbol: str, option: str, values: Sequence[float]) -> dict[str, Variant]:
    labels = {f"{symbol} = {value}": float(value) for value in values}
    return {label: Variant(label, "rvs+cwbc", {option: value}) for label, value in labels.items()}


def _exhibits(evidence: Evidence, name: str, sampled: Sampled | None = None, by: str = "") -> Exhibits:
    """The scores, the curves, and the sampled returns where the hyper-parameter changes them."""
    table = showing.expert_table(evidence, evidence.labels)
    charts = distributions(evidence, sampled, f": returns sampled with {by}") if sampled else {}
    return Exhibits({name: table}, showing.curves(evidence), charts)


def _decimals(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


PERCENTILES = (99, 90, 50, 0)  # z; kappa grows as it falls, except for ties at the top
KAPPA = _variants("z", "temperature_percentile", PERCENTILES)
SMALL = ("z = 99", "z = 90", "z = 50")


def _by_kappa(data: Trajectories) -> dict[str, Array]:
    weightings = {z: ByReturn(temperature_percentile=z) for z in PERCENTILES}
    kappas = {z: each.resolved_temperature(data.returns) for z, each in weightings.items()}
    ascending = sorted(kappas, key=kappas.__getitem__)
    return {f"z = {z}, kappa {amount(kappas[z])}": weightings[z].probabilities(data) for z in ascending}


def _is_more_uniform(data: Trajectories) -> Found:
    sampled = [binned(data.returns, probabilities) for probabilities in _by_kappa(data).values()]
    nearness = [1 - float(np.abs(fractions - 1 / BINS).sum() / 2) for fractions in sampled]
    # The low fraction follows from the formula; whether bins come closer to each other is up to the data.
    low = [float(fractions[: BINS // 2].sum()) for fractions in sampled]
    numbers = f"distance {_decimals([1 - value for value in nearness])}; low returns {_decimals(low)}"
    return rules.rises(nearness) and rules.rises(low), numbers


def _is_robust(curves: Curves) -> Found:
    scores = {label: curve.at_expert for label, curve in curves.items()}
    excepts = short_name(curves["z = 0"].dataset.name) in EXPERTS
    return rules.similar([scores[label] for label in (SMALL if excepts else scores)]), rules.listed(scores)


FIGURE_7 = Item(
    "kappa",
    "Figure 7",
    "CWBC with kappa = best - z-th percentile, z = 99, 90, 50, 0, and RvS+C on walker2d",
    ("rvs+c", *KAPPA.values()),
    {
        (
            "Small kappa concentrates on high returns; as it grows, the density for low returns increases "
            "and the distribution becomes more and more uniform."
        ): (
            "From one kappa to the next larger one, the fraction of the lower half of the returns never "
            "falls, and the distance (total variation) from the uniform distribution over bins never grows, "
            f"by more than {rules.STEP:g}",
            on_each(_is_more_uniform),
        ),
        "The performance of CWBC is considerably robust to a wide range of values of kappa.": (
            f"At 1x expert the max and the min score are at most {SIMILAR:g} points apart (without z = 0 on "
            "medium-expert, which the paper itself excepts)",
            on_each(_is_robust, KAPPA),
        ),
        "Relatively small kappa (z = 99, 90, 50) performs well on all three datasets.": (
            f"Each scores at least {percent(WELL)} of the best value of kappa at 1x expert",
            on_each(
                Comparison(lambda of: rules.well([of[label] for label in SMALL], max(of.values()))), KAPPA
            ),
        ),
        "Large kappa (z = 0) hurts on medium-expert, and even underperforms RvS+C.": (
            "At 1x expert, z = 0 scores below z = 90 and below RvS+C",
            on_each(
                Comparison(lambda of: of["z = 0"] < min(of["z = 90"], of["rvs+c"])),
                ["z = 0", "z = 90", "rvs+c"],
                among=EXPERTS,
            ),
        ),
    },
    lambda evidence: _exhibits(evidence, "kappa", _by_kappa, "kappa by z"),
    quick_datasets=(WALKERS[0], WALKERS[2]),
    needs_data=True,
)


SMOOTHINGS = (0, 0.01, 0.1, 1, 10)  # the paper shows its values in the figure alone
LAMBDA = _variants("lambda", "smoothing", SMOOTHINGS)


def _by_lambda(data: Trajectories) -> dict[str, Array]:
    return {f"lambda = {value}": ByReturn(smoothing=value).probabilities(data) for value in SMOOTHINGS}


def _is_more_correlated(data: Trajectories) -> Found:
    original, returns = np.histogram(data.returns, BINS)[0], data.returns
    sampled = [binned(returns, probabilities) for probabilities in _by_lambda(data).values()]
    found = [float(np.corrcoef(original, fractions)[0, 1]) for fractions in sampled]
    return rules.rises(found), _decimals(found)


def _is_still_higher(data: Trajectories) -> Found:
    lowest = min(float(probabilities @ data.returns) for probabilities in _by_lambda(data).values())
    mean = float(data.returns.mean())
    return lowest > mean, f"min {lowest:,.0f} against {mean:,.0f}"


FIGURE_8 = Item(
    "lambda",
    "Figure 8",
    "CWBC with lambda = 0, 0.01, 0.1, 1, 10, and RvS+C on walker2d",
    ("rvs+c", *LAMBDA.values()),
    {
        "As lambda increases, the distributions are more correlated with the original one.": (
            "The correlation with the dataset's fractions of bins never falls with lambda, by more than "
            f"{rules.STEP:g} from one value to the next",
            on_each(_is_more_correlated),
        ),
        "Whatever lambda, the high-return region still weighs more than in the original distribution.": (
            "The mean return of sampled trajectories is above the dataset's for every lambda",
            on_each(_is_still_higher),
        ),
        "All values of lambda produce similar results.": (
            f"At 1x expert the max and the min score are at most {SIMILAR:g} points apart",
            on_each(Comparison(lambda of: rules.similar(of.values())), LAMBDA),
        ),
        "All values of lambda are better than or comparable to training without weighting, RvS+C.": (
            f"At 1x expert each reaches {percent(COMPARABLE)} of RvS+C",
            on_each(
                Comparison(lambda of: rules.comparable(min(of.values()), of["rvs+c"])), ["rvs+c", *LAMBDA]
            ),
        ),
    },
    lambda evidence: _exhibits(evidence, "lambda", _by_lambda, "lambda"),
    quick_datasets=WALKERS[:1],
    needs_data=True,
)


Q = _variants("q", "percentile", (0, 50, 95, 99))
POOR = 0.8  # of the default's score


def _is_less_sensitive(replay: str, results: Results) -> Found:
    scores = {dataset: [curve.at_expert for curve in of.values()] for dataset, of in results.items()}
    ranges = {dataset: float(np.ptp(each)) for dataset, each in scores.items()}
    others = [width for dataset, width in ranges.items() if dataset != replay]
    return max(others) < ranges[replay], f"Points: {rules.listed(ranges)}"


FIGURE_9 = Item(
    "q",
    "Figure 9",
    "CWBC that regularizes trajectories from the q-th percentile up, q = 0, 50, 95, 99, on walker2d",
    tuple(Q.values()),
    {
        "q = 95 and q = 99 perform well on all three datasets.": (
            f"Both score at least {percent(WELL)} of the best q at 1x expert",
            on_each(Comparison(lambda of: rules.well((of["q = 95"], of["q = 99"]), max(of.values()))), Q),
        ),
        "q = 50 and q = 0 lead to poor results for the medium-replay dataset.": (
            f"Both score below {percent(POOR)} of q = 95 at 1x expert",
            on_each(
                Comparison(lambda of: max(of["q = 0"], of["q = 50"]) < POOR * of["q = 95"]), Q, among=REPLAYS
            ),
        ),
        "The medium and medium-expert datasets are less sensitive to the choice of q.": (
            "At 1x expert the range of scores over q is widest on medium-replay",
            rules.against_replay(_is_less_sensitive, Q),
        ),
    },
    lambda evidence: _exhibits(evidence, "q"),
    quick_datasets=(WALKERS[0], WALKERS[2]),
)


ALPHA = _variants("alpha", "coefficient", (0, 0.01, 0.1, 1, 10))  # 0 and 10 apart, shown in the figure alone
MODERATE = ("alpha = 0.01", "alpha = 0.1", "alpha = 1")

FIGURE_10 = Item(
    "alpha",
    "Figure 10",
    "CWBC with the conservative loss weighted by alpha = 0, 0.01, 0.1, 1, 10 on walker2d",
    tuple(ALPHA.values()),
    {
        "Without regularization (alpha = 0) performance crashes.": rules.collapses(
            "alpha = 0", fraction=2 / 3
        ),
        "Overly aggressive regularization (alpha = 10) hurts performance, too.": (
            f"At 1x expert alpha = 10 scores below {percent(COMPARABLE)} of alpha = 1 on two thirds of them",
            on_each(
                rules.pair(lambda large, moderate: not rules.comparable(large, moderate)),
                ["alpha = 10", "alpha = 1"],
                2 / 3,
            ),
        ),
        "CWBC is robust to the other, non-extreme values of alpha.": (
            f"At 1x expert, {', '.join(MODERATE)} each score at least {percent(WELL)} of the best of them",
            on_each(Comparison(lambda of: rules.well(of.values(), max(of.values()))), MODERATE),
        ),
    },
    lambda evidence: _exhibits(evidence, "alpha"),
    quick_datasets=WALKERS[:1],
)
