"""Figures 7 to 10: how much the hyper-parameters of CWBC matter, on the walker2d datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByReturn
from cwbc.grids.cells import Variant
from cwbc.paper import judging
from cwbc.paper.bounds import BINS
from cwbc.paper.distributions import Distribution
from cwbc.paper.item import Findings, Item
from cwbc.paper.judging import COMPARABLE, SIMILAR, STEP, WELL, Curves, Found, Rule, comparable, similar, well
from cwbc.paper.naming import WALKERS, quality
from cwbc.reports import showing
from cwbc.results.dataset_names import short_name
from cwbc.results.evidence import Evidence
from cwbc.results.intervals import Array
from cwbc.system.formatting import amount, percent, score

REPLAY, EXPERT = "medium-replay", "medium-expert"
Sampled = Callable[[Trajectories], Mapping[str, Array]]  # probabilities [episode] by name


def _variants(symbol: str, option: str, values: Sequence[float]) -> tuple[Variant, ...]:
    return tuple(Variant(f"{symbol} = {value}", "rvs+cwbc", {option: float(value)}) for value in values)


def _exhibits(name: str, sampled: Sampled | None = None, by: str = "") -> Callable[[Evidence], Findings]:
    """The scores, the curves, and the sampled returns where the hyper-parameter changes them."""

    def exhibits(evidence: Evidence) -> Findings:
        distributions = [
            Distribution.of(dataset, f"{dataset}: returns sampled with {by}", data.returns, sampled(data))
            for dataset, data in evidence.data.items()
            if sampled is not None
        ]
        table = showing.expert_table(evidence, evidence.labels)
        return Findings((), {name: table}, showing.curves(evidence), distributions)

    return exhibits


def _binned(data: Trajectories, sampled: Sampled) -> tuple[Array, list[Array]]:
    """The fractions [bin] of the dataset's returns, and of those that are sampled."""
    found = Distribution.of("", "", data.returns, sampled(data))
    return found.held, list(found.drawn.values())


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
    _, sampled = _binned(data, _by_kappa)
    nearness = [1 - float(np.abs(fractions - 1 / BINS).sum() / 2) for fractions in sampled]
    # The low fraction follows from the formula; whether bins come closer to each other is up to the data.
    low = [float(fractions[: BINS // 2].sum()) for fractions in sampled]
    numbers = f"distance {_decimals([1 - value for value in nearness])}; low returns {_decimals(low)}"
    return judging.rises(nearness) and judging.rises(low), numbers


def _is_robust(curves: Curves) -> Found:
    scores = {label: curve.at_expert for label, curve in curves.items()}
    excepts = quality(short_name(curves["z = 0"].dataset.name)) == EXPERT
    return similar([scores[label] for label in (SMALL if excepts else scores)]), judging.listed(scores)


FIGURE_7 = Item(
    "kappa",
    "Figure 7",
    "CWBC with kappa = best - z-th percentile, z = 99, 90, 50, 0, and RvS+C on walker2d",
    ("rvs+c", *KAPPA),
    (
        Rule(
            "Small kappa concentrates on high returns; as it grows, the density for low returns increases "
            "and the distribution becomes more and more uniform.",
            "From one kappa to the next larger one, the fraction of the lower half of the returns never "
            "falls, and the distance (total variation) from the uniform distribution over bins never grows, "
            f"by more than {STEP:g}",
            (),
            judging.each(_is_more_uniform),
        ),
        Rule(
            "The performance of CWBC is considerably robust to a wide range of values of kappa.",
            f"At 1x expert the max and the min score are at most {SIMILAR:g} points apart (without z = 0 on "
            "medium-expert, which the paper itself excepts)",
            [each.label for each in KAPPA],
            judging.each(_is_robust),
        ),
        Rule(
            "Relatively small kappa (z = 99, 90, 50) performs well on all three datasets.",
            f"Each scores at least {percent(WELL)} of the best value of kappa at 1x expert",
            [each.label for each in KAPPA],
            judging.each(judging.scores(lambda of: well([of[label] for label in SMALL], max(of.values())))),
        ),
        Rule(
            "Large kappa (z = 0) hurts on medium-expert, and even underperforms RvS+C.",
            "At 1x expert, z = 0 scores below z = 90 and below RvS+C",
            ["z = 0", "z = 90", "rvs+c"],
            judging.each(judging.scores(lambda of: of["z = 0"] < min(of["z = 90"], of["rvs+c"]))),
            among=judging.of_quality(EXPERT),
        ),
    ),
    _exhibits("kappa", _by_kappa, "kappa by z"),
    quick_datasets=(WALKERS[0], WALKERS[2]),
    needs_data=True,
)


SMOOTHINGS = (0, 0.01, 0.1, 1, 10)  # the paper shows its values in the figure alone
LAMBDA = _variants("lambda", "smoothing", SMOOTHINGS)


def _by_lambda(data: Trajectories) -> dict[str, Array]:
    return {f"lambda = {value}": ByReturn(smoothing=value).probabilities(data) for value in SMOOTHINGS}


def _is_more_correlated(data: Trajectories) -> Found:
    original, sampled = _binned(data, _by_lambda)
    found = [float(np.corrcoef(original, fractions)[0, 1]) for fractions in sampled]
    return judging.rises(found), _decimals(found)


def _is_still_higher(data: Trajectories) -> Found:
    lowest = min(float(probabilities @ data.returns) for probabilities in _by_lambda(data).values())
    mean = float(data.returns.mean())
    return lowest > mean, f"min {lowest:,.0f} against {mean:,.0f}"


FIGURE_8 = Item(
    "lambda",
    "Figure 8",
    "CWBC with lambda = 0, 0.01, 0.1, 1, 10, and RvS+C on walker2d",
    ("rvs+c", *LAMBDA),
    (
        Rule(
            "As lambda increases, the distributions are more correlated with the original one.",
            "The correlation with the dataset's fractions of bins never falls with lambda, by more than "
            f"{STEP:g} from one value to the next",
            (),
            judging.each(_is_more_correlated),
        ),
        Rule(
            "Whatever lambda, the high-return region still weighs more than in the original distribution.",
            "The mean return of sampled trajectories is above the dataset's for every lambda",
            (),
            judging.each(_is_still_higher),
        ),
        Rule(
            "All values of lambda produce similar results.",
            f"At 1x expert the max and the min score are at most {SIMILAR:g} points apart",
            [each.label for each in LAMBDA],
            judging.each(judging.scores(lambda of: similar(of.values()))),
        ),
        Rule(
            "All values of lambda are better than or comparable to training without weighting, RvS+C.",
            f"At 1x expert each reaches {percent(COMPARABLE)} of RvS+C",
            ["rvs+c", *(each.label for each in LAMBDA)],
            judging.each(
                judging.scores(lambda of: all(comparable(each, of["rvs+c"]) for each in of.values()))
            ),
        ),
    ),
    _exhibits("lambda", _by_lambda, "lambda"),
    quick_datasets=WALKERS[:1],
    needs_data=True,
)


Q = _variants("q", "percentile", (0, 50, 95, 99))
POOR = 0.8  # of the default's score


def _is_less_sensitive(results: Mapping[str, Curves]) -> Found | None:
    ranges = {name: float(np.ptp([each.at_expert for each in of.values()])) for name, of in results.items()}
    replay = [found for dataset, found in ranges.items() if quality(dataset) == REPLAY]
    others = [found for dataset, found in ranges.items() if quality(dataset) != REPLAY]
    numbers = ", ".join(f"{dataset} {score(found)}" for dataset, found in ranges.items())
    return (max(others) < min(replay), f"Points: {numbers}") if replay and others else None


FIGURE_9 = Item(
    "q",
    "Figure 9",
    "CWBC that regularizes trajectories from the q-th percentile up, q = 0, 50, 95, 99, on walker2d",
    Q,
    (
        Rule(
            "q = 95 and q = 99 perform well on all three datasets.",
            f"Both score at least {percent(WELL)} of the best q at 1x expert",
            [each.label for each in Q],
            judging.each(judging.scores(lambda of: well((of["q = 95"], of["q = 99"]), max(of.values())))),
        ),
        Rule(
            "q = 50 and q = 0 lead to poor results for the medium-replay dataset.",
            f"Both score below {percent(POOR)} of q = 95 at 1x expert",
            [each.label for each in Q],
            judging.each(judging.scores(lambda of: max(of["q = 0"], of["q = 50"]) < POOR * of["q = 95"])),
            among=judging.of_quality(REPLAY),
        ),
        Rule(
            "The medium and medium-expert datasets are less sensitive to the choice of q.",
            "At 1x expert the range of scores over q is widest on medium-replay",
            [each.label for each in Q],
            judging.across(_is_less_sensitive, "medium-replay and others", turned=True),
        ),
    ),
    _exhibits("q"),
    quick_datasets=(WALKERS[0], WALKERS[2]),
)


ALPHA = _variants("alpha", "coefficient", (0, 0.01, 0.1, 1, 10))  # 0 and 10 apart, shown in the figure alone
MODERATE = ("alpha = 0.01", "alpha = 0.1", "alpha = 1")

FIGURE_10 = Item(
    "alpha",
    "Figure 10",
    "CWBC with the conservative loss weighted by alpha = 0, 0.01, 0.1, 1, 10 on walker2d",
    ALPHA,
    (
        judging.collapses(
            "Without regularization (alpha = 0) performance crashes.", "alpha = 0", fraction=2 / 3
        ),
        Rule(
            "Overly aggressive regularization (alpha = 10) hurts performance, too.",
            f"At 1x expert alpha = 10 scores below {percent(COMPARABLE)} of alpha = 1 on two thirds of them",
            ["alpha = 10", "alpha = 1"],
            judging.each(judging.pair(lambda large, moderate: not comparable(large, moderate)), 2 / 3),
        ),
        Rule(
            "CWBC is robust to the other, non-extreme values of alpha.",
            f"At 1x expert, {', '.join(MODERATE)} each score at least {percent(WELL)} of the best of them",
            MODERATE,
            judging.each(judging.scores(lambda of: well(of.values(), max(of.values())))),
        ),
    ),
    _exhibits("alpha"),
    quick_datasets=WALKERS[:1],
)
