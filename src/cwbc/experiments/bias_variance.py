"""The appendix's analysis made visible: the bound's terms for ways to draw trajectories; trains nothing."""

from __future__ import annotations

from collections.abc import Mapping

from cwbc.evidence import bounds
from cwbc.evidence.bounds import Bound, bound
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import on_datasets, untold
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import WALKERS
from cwbc.intervals import Array
from cwbc.reporting.charts import Axis, Estimate, interval_chart
from cwbc.reporting.interactive import Chart
from cwbc.reporting.tables import Cell, Column, Row, Table
from cwbc.trajectories import Trajectories
from cwbc.weighting import ByLength, ByReturn, TopFraction

UNIFORM, LENGTH = "uniform", "by length"  # the paper's p_D, and what is trained on without weighting
FILTERED, WEIGHTED, EXTREME = "top 10 %", "weighted", "best return only"
HIGHLY = 1.5  # times the variance of weighting
_TERMS = {
    "scarcity": ("E_q[1/N]", "variance: scarce episodes"),
    "divergence": ("d2(q || p) / |D|", "variance: uneven use"),
    "binned_divergence": ("d2(q || p) / |D|, binned", "the same by bins"),
    "bias": ("TV(p*, q)²", "bias"),
}


def ways(data: Trajectories) -> dict[str, Array]:
    """Probabilities [episode] of every way to draw, by name."""
    returns = data.returns
    drawn = {
        UNIFORM: bounds.uniform(returns),
        LENGTH: ByLength().probabilities(data),
        FILTERED: TopFraction().probabilities(data),
        WEIGHTED: ByReturn().probabilities(data),
        EXTREME: bounds.only_best(returns),
    }
    for z in (99, 50, 0):
        drawn[f"{WEIGHTED}, kappa by z = {z}"] = ByReturn(temperature_percentile=z).probabilities(data)
    for value in (0, 0.1, 1, 10):
        drawn[f"{WEIGHTED}, lambda = {value}"] = ByReturn(smoothing=value).probabilities(data)
    return drawn


def _terms(evidence: Evidence) -> dict[str, dict[str, Bound]]:
    """The bound of every way to draw, by dataset and name."""
    return {
        dataset: {name: bound(data.returns, p) for name, p in ways(data).items()}
        for dataset, data in evidence.data.items()
    }


def findings(evidence: Evidence) -> Findings:
    """The three terms, and whether they trade off as the paper argues."""
    found = _terms(evidence)
    charts = [chart for dataset, of in found.items() for chart in _charts(dataset, of)]
    tables = {f"bias-variance-{dataset}": _table(dataset, of) for dataset, of in found.items()}
    return Findings(claims(evidence), tables, charts)


def claims(evidence: Evidence) -> list[Claim]:
    """Whether the terms trade off as the paper argues."""
    found = _terms(evidence)
    return [
        on_datasets(
            "Weighting reduces the bias that training on the data as it is has.",
            "Its TV(p*, q)² is below that of drawing uniformly, and by length",
            evidence.datasets,
            {
                dataset: (
                    _less_biased(of, WEIGHTED),
                    f"{of[WEIGHTED].bias:.3f} against {of[UNIFORM].bias:.3f} and {of[LENGTH].bias:.3f}",
                )
                for dataset, of in found.items()
            },
        ),
        on_datasets(
            "Hard filtering reduces the bias as well, but with highly increased variance.",
            "Filtering has less bias than drawing uniformly, and by length, and at least "
            f"{HIGHLY} times the d2(q || p) / |D| of weighting, both by trajectories and by bins of returns",
            evidence.datasets,
            {
                dataset: (
                    _less_biased(of, FILTERED) and _uneven(of[FILTERED], of[WEIGHTED]),
                    _compared(of[FILTERED], of[WEIGHTED]),
                )
                for dataset, of in found.items()
            },
        ),
        Claim(
            "In the extreme case, training on trajectories of the best return alone has very high variance.",
            "Not counted: it holds by definition wherever the best return is unique, as d2(q || p) / |D| is "
            "then 1, the highest there is.",
            holds=None,
        ),
        untold(
            "q(r) in proportion to N/(N + K) exp(-|r - r*| / kappa) minimizes the bound.",
            "the constants C1, C2 and C3 are not known, so neither is the sum of the terms",
        ),
    ]


def _less_biased(of: Mapping[str, Bound], way: str) -> bool:
    return of[way].bias < min(of[UNIFORM].bias, of[LENGTH].bias)


def _uneven(way: Bound, other: Bound) -> bool:
    by_trajectories = way.divergence >= HIGHLY * other.divergence
    return by_trajectories and way.binned_divergence >= HIGHLY * other.binned_divergence


def _compared(one: Bound, other: Bound) -> str:
    return (
        f"divergence {one.divergence:.2g} against {other.divergence:.2g}, by bins "
        f"{one.binned_divergence:.2g} against {other.binned_divergence:.2g}, "
        f"bias {one.bias:.3f} against {other.bias:.3f}; not judged, the other term of variance: "
        f"{one.scarcity:.2g} against {other.scarcity:.2g}"
    )


def _written(value: float) -> str:
    return f"{value:.3g}" if value >= 1e-6 else "0"


def _table(dataset: str, found: dict[str, Bound]) -> Table:
    columns = [Column(name, note, _written, "lower") for name, note in _TERMS.values()]
    rows = [Row(name, [Cell(getattr(each, term)) for term in _TERMS]) for name, each in found.items()]
    return Table("drawn", columns, rows, title=dataset)


def _charts(dataset: str, found: dict[str, Bound]) -> list[Chart]:
    return [
        interval_chart(
            f"{dataset}: {title}",
            [Estimate(name, getattr(each, term)) for name, each in found.items()],
            Axis(note, written=_written),
        )
        for term, (title, note) in _TERMS.items()
    ]


ITEM = Item(
    "bias-variance",
    "Appendix",
    "the bound's three terms for drawing evenly, by length, filtered and weighted; trains nothing",
    WALKERS,
    WALKERS,
    (),
    claims,
    findings,
    needs_data=True,
)
