"""Figure 4 and the appendix: which returns are sampled with and without weighting. Nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByLength, ByReturn, TopFraction
from cwbc.paper import sampled_returns
from cwbc.paper.item import Exhibits, Item
from cwbc.paper.published import DATASETS
from cwbc.paper.rules import Found, on_each, untested
from cwbc.paper.sampled_returns import Bound, bound, effective_sample_size
from cwbc.reports.chart import Axis, EstimateRow, interval_chart
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.results.evidence import Evidence
from cwbc.system.formatting import amount, percent


def weighted_returns(data: Trajectories) -> dict[str, float]:
    """The returns of a dataset before and after weighting: a row of the table."""
    returns, sampled = data.returns, ByReturn().probabilities(data)
    is_high = returns >= (returns.min() + returns.max()) / 2
    return {
        "episodes": len(returns),
        "mean return": float(returns.mean()),
        "mean return sampled": float(sampled @ returns),
        "in the upper half": float(is_high.mean()),  # of the range of returns
        "sampled from it": float(sampled[is_high].sum()),
        "effective sample size": effective_sample_size(sampled),
        "of the top 10 %": effective_sample_size(TopFraction().probabilities(data)),
    }


def _is_mostly_low(data: Trajectories) -> Found:
    low = 1 - weighted_returns(data)["in the upper half"]
    return low > 0.5, percent(low)


def _is_mostly_high(data: Trajectories) -> Found:
    found = weighted_returns(data)
    high, sampled = found["in the upper half"], found["sampled from it"]
    return sampled > 0.5, f"{percent(sampled)}, of the data {percent(high)}"


def _uses_more(data: Trajectories) -> Found:
    found = weighted_returns(data)
    weighted, filtered = found["effective sample size"], found["of the top 10 %"]
    numbers = f"{amount(weighted)} against {amount(filtered)} of {amount(found['episodes'])}"
    return weighted > filtered, numbers


def _weighted(evidence: Evidence) -> Exhibits:
    found = {dataset: weighted_returns(data) for dataset, data in evidence.data.items()}
    in_percent = ("in the upper half", "sampled from it")
    names = dict.fromkeys(name for row in found.values() for name in row)
    columns = [TableColumn(name, written=percent if name in in_percent else amount) for name in names]
    rows = [TableRow(dataset, [*map(TableCell, row.values())]) for dataset, row in found.items()]
    charts = sampled_returns.distributions(evidence, lambda data: {WEIGHTED: ByReturn().probabilities(data)})
    return Exhibits({"transformed": ReportTable("dataset", columns, rows)}, (), charts)


FIGURE_4 = Item(
    "transformed",
    "Figure 4",
    "the returns of the datasets before and after trajectory weighting; trains nothing",
    (),
    {
        (
            "Offline datasets are generally suboptimal, and even in the range of observed returns the "
            "distribution is highly non-uniform and concentrated over trajectories with low returns."
        ): (
            "More than half of the episodes lie in the lower half of the range of returns, on at least half "
            "of the datasets",
            on_each(_is_mostly_low, fraction=0.5),
        ),
        "The transformed distribution should concentrate on high-return trajectories.": (
            "More than half of the sampled trajectories lie in the upper half of the range of returns",
            on_each(_is_mostly_high),
        ),
        "Filtering loses most of the data; weighting makes use of more of it.": (
            "The effective sample size (1 / sum of squared probabilities) is larger with weighting than with "
            "filtering",
            on_each(_uses_more),
        ),
    },
    _weighted,
    DATASETS,
    needs_data=True,
)


UNIFORM, LENGTH = "uniform", "by length"  # the paper's q = p_D, and the training without weighting
FILTERED, WEIGHTED, EXTREME = "top 10 %", "weighted", "best return only"
HIGHLY = 1.5  # times the variance of weighting
_TERMS = (  # of a Bound, in its order
    ("E_q[1/N]", "variance: scarce episodes"),
    ("d2(q || p) / |D|", "variance: uneven use"),
    ("d2(q || p) / |D|, binned", "the same by bins"),
    ("TV(p*, q)²", "bias"),
)


def _bounds(data: Trajectories) -> dict[str, Bound]:
    """The terms of every way to sample trajectories, by name."""
    is_best = data.returns == data.best
    sampled = {
        UNIFORM: np.full(data.episodes, 1 / data.episodes),
        LENGTH: ByLength().probabilities(data),
        FILTERED: TopFraction().probabilities(data),
        WEIGHTED: ByReturn().probabilities(data),
        EXTREME: is_best / is_best.sum(),
    }
    for z in (99, 50, 0):
        sampled[f"{WEIGHTED}, kappa by z = {z}"] = ByReturn(temperature_percentile=z).probabilities(data)
    for value in (0, 0.1, 1, 10):
        sampled[f"{WEIGHTED}, lambda = {value}"] = ByReturn(smoothing=value).probabilities(data)
    return {name: bound(data.returns, probabilities) for name, probabilities in sampled.items()}


def _is_less_biased(of: Mapping[str, Bound], way: str) -> bool:
    return of[way].bias < min(of[UNIFORM].bias, of[LENGTH].bias)


def _has_less_bias(data: Trajectories) -> Found:
    of = _bounds(data)
    numbers = f"{of[WEIGHTED].bias:.3f} against {of[UNIFORM].bias:.3f} and {of[LENGTH].bias:.3f}"
    return _is_less_biased(of, WEIGHTED), numbers


def _has_more_variance(data: Trajectories) -> Found:
    of = _bounds(data)
    one, other = of[FILTERED], of[WEIGHTED]
    by_trajectories = one.divergence >= HIGHLY * other.divergence
    by_bins = one.binned_divergence >= HIGHLY * other.binned_divergence
    numbers = (
        f"divergence {one.divergence:.2g} against {other.divergence:.2g}, by bins "
        f"{one.binned_divergence:.2g} against {other.binned_divergence:.2g}, "
        f"bias {one.bias:.3f} against {other.bias:.3f}; not judged, the other term of variance: "
        f"{one.scarcity:.2g} against {other.scarcity:.2g}"
    )
    return _is_less_biased(of, FILTERED) and by_trajectories and by_bins, numbers


def _written(value: float) -> str:
    return f"{value:.3g}" if value >= 1e-6 else "0"


def _terms(evidence: Evidence) -> Exhibits:
    tables, charts = {}, []
    columns = [TableColumn(name, note, _written, "lower") for name, note in _TERMS]
    for dataset, data in evidence.data.items():
        found = _bounds(data)
        rows = [TableRow(name, [*map(TableCell, terms)]) for name, terms in found.items()]
        tables[f"bias-variance-{dataset}"] = ReportTable("sampled", columns, rows, title=dataset)
        for place, (title, note) in enumerate(_TERMS):
            estimates = [EstimateRow(name, terms[place]) for name, terms in found.items()]
            charts.append(interval_chart(f"{dataset}: {title}", estimates, Axis(note, written=_written)))
    return Exhibits(tables, charts)


APPENDIX = Item(
    "bias-variance",
    "Appendix",
    "the bound's three terms for sampling uniformly, by length, filtered and weighted; trains nothing",
    (),
    {
        "Weighting reduces the bias that training on the data as it is has.": (
            "Its TV(p*, q)² is below that of sampling uniformly, and by length",
            on_each(_has_less_bias),
        ),
        "Hard filtering reduces the bias as well, but with highly increased variance.": (
            "Filtering has less bias than sampling uniformly, and by length, and at least "
            f"{HIGHLY} times the d2(q || p) / |D| of weighting, both by trajectories and by bins of returns",
            on_each(_has_more_variance),
        ),
        (
            "In the extreme case, training on trajectories of the best return alone has very high variance."
        ): untested(
            "Not counted: it holds by definition wherever the best return is unique, as d2(q || p) / |D| is "
            "then 1, the highest there is."
        ),
        "q(r) in proportion to N/(N + K) exp(-|r - r*| / kappa) minimizes the bound.": untested(
            "The constants C1, C2 and C3 are not known, so neither is the sum of the terms."
        ),
    },
    _terms,
    needs_data=True,
)
