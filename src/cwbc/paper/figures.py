"""Figures 2, 3, 5 and 6: how RvS, DT and CWBC respond to target returns on the walker2d datasets."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cwbc.paper import judging
from cwbc.paper.item import LESS, Claim, Findings, Item
from cwbc.paper.judging import COLLAPSED, COMPARABLE, RELIABLE, Curves, Found, Rule, retention_in_words
from cwbc.paper.naming import WALKERS, quality
from cwbc.reports import showing
from cwbc.reports.charts import Axis, Chart, EstimateRow, interval_chart
from cwbc.reports.tables import ReportTable, TableColumn, TableRow
from cwbc.results.dataset_names import short_name
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.evidence import Evidence
from cwbc.results.intervals import interval
from cwbc.system.formatting import amount, percent, score

REPLAY = "medium-replay"
SLACK = 0.05  # of retention, between medium and medium-expert, which the paper calls reliable both
STRONG = 0.7  # Pearson's correlation


def _landmarks(name: str) -> Callable[[Evidence], Findings]:
    return lambda evidence: Findings((), {name: showing.landmark_table(evidence)}, showing.curves(evidence))


def _by_quality(results: Mapping[str, Curves]) -> Found | None:
    found = {quality(dataset): of["rvs"].retention for dataset, of in results.items()}
    replay = found.pop(REPLAY, None)
    if replay is None or not found:
        return None
    ordered = found.get("medium", 0.0) <= found.get("medium-expert", math.inf) + SLACK
    numbers = "; ".join(f"{name}: {retention_in_words(of['rvs'])}" for name, of in results.items())
    return replay < min(found.values()) and ordered, numbers


def _low_returns(evidence: Evidence) -> Claim:
    claim = Claim(
        "The medium-replay dataset has the lowest quality: most of its trajectories have low returns.",
        "Rule: Its mean return is the lowest, and most returns are in the lower half of their range.",
        holds=None,
    )
    either = {**evidence.having("rvs"), **evidence.having("dt")}  # both have seen the same data
    found = {dataset: each.dataset for dataset, (each,) in either.items()}
    replay = next((dataset for dataset in found if quality(dataset) == REPLAY), None)
    if replay is None or len(found) < 2:
        return judging.inconclusive(claim, "it needs medium-replay and others")
    low = low_fraction(found[replay].histogram_counts, found[replay].histogram_edges)
    means = {dataset: summary.mean_return for dataset, summary in found.items()}
    returns = ", ".join(f"{dataset} {amount(mean)}" for dataset, mean in means.items())
    holds = means[replay] == min(means.values()) and low > 0.5
    claim = judging.decided(claim, holds, f"{percent(low)} of {replay}; mean returns {returns}")
    return judging.unless_turned(claim, evidence.missing(found), True)


def low_fraction(counts: Sequence[int], edges: Sequence[float]) -> float:
    """The fraction of a histogram [bin] that lies in the lower half of its range."""
    middles = (np.array(edges)[1:] + np.array(edges)[:-1]) / 2
    return float(np.array(counts)[middles < (edges[0] + edges[-1]) / 2].sum() / np.sum(counts))


FIGURE_2 = Item(
    "reliability",
    "Figure 2",
    "achieved vs. target return of RvS and DT on walker2d, above the data's returns",
    ("rvs", "dt"),
    (
        judging.retains(
            "On medium and medium-expert, RvS is reliable when conditioned on out-of-distribution returns.",
            "rvs",
            among=judging.of_quality("medium", "medium-expert"),
        ),
        judging.collapses(
            "On medium-replay, the performance of RvS drops quickly after a certain point.",
            "rvs",
            among=judging.of_quality(REPLAY),
        ),
        judging.retains("Unlike RvS, DT performs reliably in all three datasets.", "dt"),
        Rule(
            "Reliability decreases with the quality of the data, from medium-expert to medium-replay.",
            "The OOD retention of RvS is lower on medium-replay than on the others, and on medium at most "
            f"that on medium-expert plus {100 * SLACK:g} percentage points",
            ["rvs"],
            judging.across(_by_quality, "medium-replay and others", turned=True),
            where=judging.has_retention,
        ),
        _low_returns,
    ),
    _landmarks("reliability"),
)


def correlation(curve: EvaluatedMethod) -> float:
    """Pearson's, of target and achieved return up to the dataset's best; 0 for a flat curve."""
    within = len(curve.curve) - len(curve.beyond)  # the targets ascend
    targets, achieved = curve.sweep.targets[:within], curve.curve[:within]
    if within < 2 or np.ptp(achieved) == 0:
        return 0.0
    return float(np.corrcoef(targets, achieved)[0, 1])


def _is_correlated(curves: Curves) -> Found:
    found = correlation(curves["dt-concat"])
    return found >= STRONG, f"{found:.2f}"


def _is_more_reliable(curves: Curves) -> Found:
    dt, concat = curves["dt"], curves["dt-concat"]
    return dt.retention > concat.retention, f"{retention_in_words(dt)} against {retention_in_words(concat)}"


FIGURE_3 = Item(
    "dt-concat",
    "Figure 3",
    "DT against DT-Concat, whose observation and return share a token, on walker2d",
    ("dt", "dt-concat"),
    (
        Rule(
            "The performance of DT-Concat is strongly correlated with the conditioning return.",
            "Up to the dataset's best, Pearson's correlation of target and achieved return is at least "
            f"{STRONG}",
            ["dt-concat"],
            judging.each(_is_correlated),
        ),
        judging.collapses(
            "The performance of DT-Concat degrades quickly when the target is out of distribution.",
            "dt-concat",
        ),
        Rule(
            "The reliability of DT comes from attention that can ignore return tokens.",
            "The OOD retention of DT is above that of DT-Concat",
            ["dt", "dt-concat"],
            judging.each(_is_more_reliable),
            where=judging.has_retention,
        ),
    ),
    _landmarks("dt-concat"),
    quick_datasets=WALKERS[:1],
)


def _weighting_gains(results: Mapping[str, Curves]) -> Found | None:
    gains = {dataset: of["rvs+w"].at_best - of["rvs"].at_best for dataset, of in results.items()}
    replay = [gain for dataset, gain in gains.items() if quality(dataset) == REPLAY]
    if not replay or len(gains) < 2:
        return None
    numbers = ", ".join(f"{dataset} {score(gain)}" for dataset, gain in gains.items())
    return 0 < replay[0] == max(gains.values()), f"{numbers} points"


def _avoids_crash(curves: Curves) -> Found:
    lowest, top = float(curves["rvs+cwbc"].beyond.min()), curves["rvs+cwbc"].top
    return lowest >= COLLAPSED * top, f"lowest {score(lowest)} of {score(top)}"


FIGURE_5 = Item(
    "components",
    "Figure 5",
    "RvS, RvS+W and RvS+CWBC at every target return on walker2d",
    ("rvs", "rvs+w", "rvs+cwbc"),
    (
        Rule(
            "Weighting improves RvS when conditioned on high returns, especially on medium-replay.",
            "At the dataset's best return, RvS+W gains on medium-replay, and more than on the others",
            ["rvs+w", "rvs"],
            judging.across(_weighting_gains, "rvs and rvs+w on medium-replay and on others", turned=True),
        ),
        judging.collapses(
            "Weighting alone is not reliable: performance still degrades after the data's best return.",
            "rvs+w",
            fraction=0,
        ),
        Rule(
            "RvS+CWBC performs better than RvS when conditioned on high returns.",
            "At the dataset's best return, RvS+CWBC scores higher on average, and reaches "
            f"{percent(COMPARABLE)} of RvS on each",
            ["rvs+cwbc", "rvs"],
            judging.each(
                judging.pair(judging.comparable, judging.at_best),
                ahead=judging.pair(operator.gt, judging.at_best),
            ),
        ),
        Rule(
            "RvS+CWBC is more reliable than RvS on out-of-distribution returns.",
            "The OOD retention of RvS+CWBC is above that of RvS on average, and at least "
            f"{percent(RELIABLE)} on each",  # where both are reliable, neither has to be ahead
            ["rvs+cwbc", "rvs"],
            judging.each(judging.is_reliable, ahead=judging.pair(operator.gt, judging.retention, percent)),
            where=judging.has_retention,
        ),
        Rule(
            "RvS+CWBC avoids the performance crash.",
            f"Above the dataset's best return, its score is at least {percent(COLLAPSED)} of its best point",
            ["rvs+cwbc"],
            judging.each(_avoids_crash),
            where=lambda curve: judging.has_retention(curve) and len(curve.beyond) > 0,
        ),
    ),
    _landmarks("components"),
)


_BEST_STRATEGY = {
    "medium": "0.8x dataset's best",
    "medium-replay": "1x dataset's best",
    "medium-expert": "1x dataset's best",
}


def strategies(curve: EvaluatedMethod) -> dict[str, float]:
    """The target return of each strategy."""
    best, task = curve.dataset.best, curve.task
    return {
        "0.8x dataset's best": LESS * best,
        "1x dataset's best": best,
        "1x expert": task.expert_return,
        "2x expert": task.far_return,
    }


def _scores(curve: EvaluatedMethod) -> dict[str, float]:
    """The score of each strategy that was evaluated."""
    scores = {name: curve.at(target) for name, target in strategies(curve).items()}
    return {name: found for name, found in scores.items() if math.isfinite(found)}


def _no_common(results: Mapping[str, Curves]) -> Found | None:
    good = {}
    for dataset, curves in results.items():
        scores = _scores(curves["rvs"])
        best = max(scores.values())
        good[dataset] = [name for name, found in scores.items() if judging.comparable(found, best)]
    numbers = "; ".join(f"{dataset}: {', '.join(names)}" for dataset, names in good.items())
    holds = not set.intersection(*map(set, good.values()))
    return (holds, f"Those that do: {numbers}") if len(good) > 1 else None


def _is_best_strategy(curves: Curves) -> Found:
    scores = _scores(curves["rvs"])
    expected = _BEST_STRATEGY.get(quality(short_name(curves["rvs"].dataset.name)) or "")
    return judging.highest(scores) == expected, judging.listed(scores)


def _matches_best(curves: Curves) -> Found:
    ours, theirs = curves["rvs+cwbc"].at_expert, _scores(curves["rvs"])
    best = judging.highest(theirs)
    return judging.comparable(ours, theirs[best]), f"{judging.against(ours, theirs[best])} ({best})"


def _strategy_chart(dataset: str, methods: Curves, labels: Sequence[str]) -> Chart:
    estimates = []
    for label, curve in methods.items():
        for name, target in strategies(curve).items():
            if len(scores := curve.of_seeds(target)):
                value, low, high = map(float, interval(scores))
                estimates.append(EstimateRow(f"{label}, {name}", value, low, high, of=label))
    has_bars = any(math.isfinite(each.low + each.high) for each in estimates)
    caption = "Means over seeds; bars are their 95 % intervals." if has_bars else ""
    title, axis = f"{dataset}: by target return", Axis("normalized score", written=score)
    return interval_chart(title, estimates, axis, labels, caption=caption)


def _strategy_findings(evidence: Evidence) -> Findings:
    curves = [(name, *of) for name, methods in evidence.evaluated.items() for of in methods.items()]
    rows = [
        TableRow(
            label, [showing.cell_at(curve, target) for target in strategies(curve).values()], group=dataset
        )
        for dataset, label, curve in curves
    ]
    names = dict.fromkeys(name for _, _, curve in curves for name in strategies(curve))
    columns = [TableColumn(name, better="higher") for name in names]
    table = ReportTable("method", columns, rows, best_of="row", groups="dataset")
    charts = [_strategy_chart(name, of, evidence.labels) for name, of in evidence.evaluated.items()]
    return Findings((), {"max-return": table}, [*charts, *showing.curves(evidence)])


FIGURE_6 = Item(
    "max-return",
    "Figure 6",
    "RvS and RvS+CWBC conditioned on 0.8x and 1x the dataset's best, 1x and 2x expert, on walker2d",
    ("rvs", "rvs+cwbc"),
    (
        Rule(
            "There is no common target return that achieves the best performance for RvS.",
            f"None of the four strategies reaches {percent(COMPARABLE)} of the best one on every dataset",
            ["rvs"],
            judging.across(_no_common, "several datasets", turned=False),
        ),
        Rule(
            "RvS is best at 0.8x the data's best on medium, at 1x on medium-replay and medium-expert.",
            "The same strategy is the best one of the four",
            ["rvs"],
            judging.each(_is_best_strategy),
            among=judging.of_quality(*_BEST_STRATEGY),
        ),
        Rule(
            "Conditioned on the expert return, RvS+CWBC matches or surpasses the best performance of RvS.",
            f"RvS+CWBC at 1x expert reaches {percent(COMPARABLE)} of the best of RvS's four strategies",
            ["rvs+cwbc", "rvs"],
            judging.each(_matches_best),
        ),
    ),
    _strategy_findings,
)
