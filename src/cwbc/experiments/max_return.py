"""Figure 6: asking for what the data holds instead of what is wanted, with RvS and with RvS+CWBC."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cwbc.evidence import showing
from cwbc.evidence.item import LESS, Claim, Findings, Item
from cwbc.evidence.judging import (
    COMPARABLE,
    comparable,
    decided,
    highest,
    listed,
    on_datasets,
    unless_turned,
    untold,
)
from cwbc.evidence.measured import Evidence, Measured
from cwbc.evidence.naming import WALKERS, quality
from cwbc.intervals import interval
from cwbc.reporting.charts import Axis, Estimate, interval_chart
from cwbc.reporting.interactive import Chart
from cwbc.reporting.tables import Column, Row, Table
from cwbc.wording import percent, score

_BEST_OF = {
    "medium": "0.8x data's best",
    "medium-replay": "1x data's best",
    "medium-expert": "1x data's best",
}


def strategies(measured: Measured) -> dict[str, float]:
    """What is asked for, by the strategy's name."""
    best, task = measured.dataset.best, measured.task
    return {
        "0.8x data's best": LESS * best,
        "1x data's best": best,
        "1x expert": task.expert_return,
        "2x expert": task.far_return,
    }


def claims(evidence: Evidence) -> list[Claim]:
    """Whether one strategy suits all."""
    rvs = {dataset: _asked(each) for dataset, (each,) in evidence.having("rvs").items()}
    return [
        unless_turned(_no_common(rvs), evidence.missing(rvs), False),
        _which(evidence, rvs),
        _matches(evidence, rvs),
    ]


def findings(evidence: Evidence) -> Findings:
    """The scores of every strategy, and whether one suits all."""
    charts = [*_charts(evidence), *showing.curves(evidence)]
    return Findings(claims(evidence), {"max-return": _table(evidence)}, charts)


def _asked(measured: Measured) -> dict[str, float]:
    """The score of every strategy that was tried."""
    scores = {name: measured.at(target) for name, target in strategies(measured).items()}
    return {name: found for name, found in scores.items() if math.isfinite(found)}


def _no_common(rvs: Mapping[str, Mapping[str, float]]) -> Claim:
    text = "There is no common target return that achieves the best performance for RvS."
    if len(rvs) < 2:
        return untold(text, "it takes several datasets")
    good = {
        dataset: [name for name, found in scores.items() if comparable(found, max(scores.values()))]
        for dataset, scores in rvs.items()
    }
    numbers = "; ".join(f"{dataset}: {', '.join(names)}" for dataset, names in good.items())
    rule = (
        f"None of the four strategies reaches {percent(COMPARABLE)} of the best one's score on every dataset"
    )
    return decided(text, rule, not set.intersection(*map(set, good.values())), f"Those that do: {numbers}")


def _which(evidence: Evidence, rvs: Mapping[str, Mapping[str, float]]) -> Claim:
    verdicts = {}
    for dataset, scores in rvs.items():
        expected = _BEST_OF.get(quality(dataset) or "")
        if expected is not None:
            verdicts[dataset] = (highest(scores) == expected, listed(scores))
    return on_datasets(
        "RvS is best at 0.8x the data's best on medium, at 1x on medium-replay and medium-expert.",
        "The same strategy is the best one of the four",
        evidence.datasets,
        verdicts,
    )


def _matches(evidence: Evidence, rvs: Mapping[str, Mapping[str, float]]) -> Claim:
    verdicts = {}
    for dataset, (cwbc,) in evidence.having("rvs+cwbc").items():
        if dataset in rvs:
            best = max(rvs[dataset].values())
            numbers = f"{score(cwbc.at_expert)} against {score(best)} ({highest(rvs[dataset])})"
            verdicts[dataset] = (comparable(cwbc.at_expert, best), numbers)
    return on_datasets(
        "Conditioned on the expert return, RvS+CWBC matches or surpasses the best performance of RvS.",
        f"RvS+CWBC at 1x expert reaches {percent(COMPARABLE)} of the best of RvS's four strategies",
        evidence.datasets,
        verdicts,
    )


def _table(evidence: Evidence) -> Table:
    rows = [
        Row(
            label,
            [showing.cell_at(measured, target) for target in strategies(measured).values()],
            group=dataset,
        )
        for dataset, methods in evidence.measured.items()
        for label, measured in methods.items()
    ]
    columns = [Column(name, better="higher") for name in _names(evidence)]
    return Table("method", columns, rows, best_of="row", groups="dataset")


def _names(evidence: Evidence) -> Mapping[str, float]:
    for methods in evidence.measured.values():
        for measured in methods.values():
            return strategies(measured)
    return {}


def _charts(evidence: Evidence) -> list[Chart]:
    charts = []
    for dataset, methods in evidence.measured.items():
        estimates = []
        for label, measured in methods.items():
            for name, target in strategies(measured).items():
                scores = measured.of_seeds(target)
                if len(scores):
                    value, low, high = map(float, interval(scores))
                    estimates.append(Estimate(f"{label}, {name}", value, low, high, of=label))
        title = f"{dataset}: by what is asked for"
        axis = Axis("normalized score", written=score)
        caption = "Means over seeds; bars are their 95 % intervals." if _have_bars(estimates) else ""
        charts.append(interval_chart(title, estimates, axis, evidence.labels, caption=caption))
    return charts


def _have_bars(estimates: Sequence[Estimate]) -> bool:
    return any(math.isfinite(each.low + each.high) for each in estimates)


ITEM = Item(
    "max-return",
    "Figure 6",
    "RvS and RvS+CWBC asked for 0.8x and 1x the data's best, 1x and 2x expert, on walker2d",
    WALKERS,
    WALKERS,
    ("rvs", "rvs+cwbc"),
    claims,
    findings,
)
