"""Figures 2, 3, 5 and 6: how RvS, DT and CWBC respond to target returns on the walker2d datasets."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

from cwbc.paper import rules
from cwbc.paper.item import LESS, Exhibits, Item
from cwbc.paper.published import EXPERTS, MEDIUMS, REPLAYS, WALKERS, quality
from cwbc.paper.rules import COLLAPSED, COMPARABLE, Curves, Found, Results, at_best, on_each, pair
from cwbc.paper.verdicts import Claim
from cwbc.reports import showing
from cwbc.reports.chart import Axis, Chart, EstimateRow, interval_chart
from cwbc.reports.tables import ReportTable, TableColumn, TableRow
from cwbc.results.dataset_names import short_name
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.evidence import Evidence
from cwbc.results.intervals import interval
from cwbc.system.formatting import amount, percent, score

SLACK = 0.05  # of retention, between medium and medium-expert, which the paper calls reliable both
STRONG = 0.7  # Pearson's correlation


def _landmarks(name: str) -> Callable[[Evidence], Exhibits]:
    return lambda evidence: Exhibits({name: showing.landmark_table(evidence)}, showing.curves(evidence))


def _by_quality(replay: str, results: Results) -> Found:
    curves = {dataset: of["rvs"] for dataset, of in results.items()}
    found = {quality(dataset): curve.retention for dataset, curve in curves.items()}
    numbers = "; ".join(f"{dataset}: {rules.retention_in_words(of)}" for dataset, of in curves.items())
    low = found.pop(quality(replay))
    ordered = found.get("medium", 0.0) <= found.get("medium-expert", math.inf) + SLACK
    return low < min(found.values()) and ordered, numbers


def _low_returns(name: str, results: Results) -> Found:
    """Whether medium-replay has the lowest mean return, and most returns in the lower half of their range."""
    found = {dataset: of["rvs"].dataset for dataset, of in results.items()}
    replay = found[name]
    edges, counts = np.array(replay.histogram_edges), np.array(replay.histogram_counts)
    middles = (edges[1:] + edges[:-1]) / 2
    low = float(counts[middles < (edges[0] + edges[-1]) / 2].sum() / counts.sum())
    lowest = replay.mean_return == min(each.mean_return for each in found.values())
    means = ", ".join(f"{dataset} {amount(each.mean_return)}" for dataset, each in found.items())
    return lowest and low > 0.5, f"{percent(low)} of {name}; mean returns {means}"


FIGURE_2 = Item(
    "reliability",
    "Figure 2",
    "achieved vs. target return of RvS and DT on walker2d, above the data's returns",
    ("rvs", "dt"),
    {
        (
            "On medium and medium-expert, RvS is reliable when conditioned on out-of-distribution returns."
        ): rules.retains("rvs", among=(*MEDIUMS, *EXPERTS)),
        "On medium-replay, the performance of RvS drops quickly after a certain point.": rules.collapses(
            "rvs", among=REPLAYS
        ),
        "Unlike RvS, DT performs reliably in all three datasets.": rules.retains("dt"),
        "Reliability decreases with the quality of the data, from medium-expert to medium-replay.": (
            "The OOD retention of RvS is lower on medium-replay than on the others, and on medium at most "
            f"that on medium-expert plus {100 * SLACK:g} percentage points",
            rules.against_replay(_by_quality, ["rvs"], where=rules.has_retention),
        ),
        "The medium-replay dataset has the lowest quality: most of its trajectories have low returns.": (
            "Its mean return is the lowest, and most returns are in the lower half of their range",
            rules.against_replay(_low_returns, ["rvs"]),
        ),
    },
    _landmarks("reliability"),
)


def _is_correlated(curves: Curves) -> Found:
    """Whether target and achieved return are correlated up to the dataset's best; a flat curve is not."""
    curve = curves["dt-concat"]
    within = len(curve.curve) - len(curve.beyond)  # the targets ascend
    targets, achieved = curve.sweep.targets[:within], curve.curve[:within]
    found = 0.0 if within < 2 or np.ptp(achieved) == 0 else float(np.corrcoef(targets, achieved)[0, 1])
    return found >= STRONG, f"{found:.2f}"


def _is_more_reliable(curves: Curves) -> Found:
    dt, concat = curves["dt"], curves["dt-concat"]
    return dt.retention > concat.retention, " against ".join(map(rules.retention_in_words, (dt, concat)))


FIGURE_3 = Item(
    "dt-concat",
    "Figure 3",
    "DT against DT-Concat, whose observation and return share a token, on walker2d",
    ("dt", "dt-concat"),
    {
        "The performance of DT-Concat is strongly correlated with the conditioning return.": (
            "Up to the dataset's best, Pearson's correlation of target and achieved return is at least "
            f"{STRONG}",
            on_each(_is_correlated, ["dt-concat"]),
        ),
        (
            "The performance of DT-Concat degrades quickly when the target is out of distribution."
        ): rules.collapses("dt-concat"),
        "The reliability of DT comes from attention that can ignore return tokens.": (
            "The OOD retention of DT is above that of DT-Concat",
            on_each(_is_more_reliable, ["dt", "dt-concat"], where=rules.has_retention),
        ),
    },
    _landmarks("dt-concat"),
    quick_datasets=WALKERS[:1],
)


def _weighting_gains(replay: str, results: Results) -> Found:
    found = {dataset: of["rvs+w"].at_best - of["rvs"].at_best for dataset, of in results.items()}
    return 0 < found[replay] == max(found.values()), f"{rules.listed(found)} points"


def _avoids_crash(curves: Curves) -> Found:
    lowest, top = float(curves["rvs+cwbc"].beyond.min()), curves["rvs+cwbc"].top
    return lowest >= COLLAPSED * top, f"lowest {score(lowest)} of {score(top)}"


FIGURE_5 = Item(
    "components",
    "Figure 5",
    "RvS, RvS+W and RvS+CWBC at every target return on walker2d",
    ("rvs", "rvs+w", "rvs+cwbc"),
    {
        "Weighting improves RvS when conditioned on high returns, especially on medium-replay.": (
            "At the dataset's best return, RvS+W gains on medium-replay, and more than on the others",
            rules.against_replay(_weighting_gains, ["rvs+w", "rvs"]),
        ),
        (
            "Weighting alone is not reliable: performance still degrades after the data's best return."
        ): rules.collapses("rvs+w", fraction=0),
        "RvS+CWBC performs better than RvS when conditioned on high returns.": (
            "At the dataset's best return, RvS+CWBC scores higher on average, and reaches "
            f"{percent(COMPARABLE)} of RvS on each",
            on_each(pair(rules.comparable, at_best), ["rvs+cwbc", "rvs"], ahead=pair(operator.gt, at_best)),
        ),
        # Where both are reliable, neither has to be ahead.
        "RvS+CWBC is more reliable than RvS on out-of-distribution returns.": (
            "The OOD retention of RvS+CWBC is above that of RvS on average, and at least "
            f"{percent(rules.RELIABLE)} on each",
            on_each(
                rules.is_reliable,
                ["rvs+cwbc", "rvs"],
                ahead=pair(operator.gt, rules.retention, percent),
                where=rules.has_retention,
            ),
        ),
        "RvS+CWBC avoids the performance crash.": (
            f"Above the dataset's best return, its score is at least {percent(COLLAPSED)} of its best point",
            on_each(
                _avoids_crash,
                ["rvs+cwbc"],
                where=lambda curve: rules.has_retention(curve) and len(curve.beyond) > 0,
            ),
        ),
    },
    _landmarks("components"),
)


_BELOW, _BEST = "0.8x dataset's best", "1x dataset's best"
_BEST_STRATEGY = {"medium": _BELOW, "medium-replay": _BEST, "medium-expert": _BEST}


def _targets(curve: EvaluatedMethod) -> dict[str, float]:
    """The target return of each strategy."""
    best, task = curve.dataset.best, curve.task
    return {_BELOW: LESS * best, _BEST: best, "1x expert": task.expert_return, "2x expert": task.far_return}


def _scores(curve: EvaluatedMethod) -> dict[str, float]:
    """The score of each strategy that was evaluated."""
    scores = {name: curve.at(target) for name, target in _targets(curve).items()}
    return {name: found for name, found in scores.items() if math.isfinite(found)}


def _no_common(claim: Claim, results: Results, evidence: Evidence) -> Claim:
    if len(results) < 2:
        return dataclasses.replace(claim, reason="It needs several datasets.")
    good = {}
    for dataset, curves in results.items():
        scores = _scores(curves["rvs"])
        good[dataset] = [name for name in scores if rules.comparable(scores[name], max(scores.values()))]
    numbers = "; ".join(f"{dataset}: {', '.join(names)}" for dataset, names in good.items())
    holds = not set.intersection(*map(set, good.values()))
    return rules.decided(claim, holds, f"Those that do: {numbers}", evidence.missing(results), turned=False)


def _is_best_strategy(curves: Curves) -> Found:
    scores = _scores(curves["rvs"])
    expected = _BEST_STRATEGY[quality(short_name(curves["rvs"].dataset.name))]
    return rules.highest(scores) == expected, rules.listed(scores)


def _matches_best(curves: Curves) -> Found:
    ours, theirs = curves["rvs+cwbc"].at_expert, _scores(curves["rvs"])
    best = rules.highest(theirs)
    return rules.comparable(ours, theirs[best]), f"{score(ours)} against {score(theirs[best])} ({best})"


def _strategy_chart(dataset: str, methods: Curves, labels: Sequence[str]) -> Chart:
    estimates = []
    for label, curve in methods.items():
        for name, target in _targets(curve).items():
            if len(scores := curve.of_seeds(target)):
                value, low, high = map(float, interval(scores))
                estimates.append(EstimateRow(label, value, low, high, label=f"{label}, {name}"))
    has_bars = any(math.isfinite(each.low + each.high) for each in estimates)
    caption = "Means over seeds; bars are their 95 % intervals." if has_bars else ""
    title, axis = f"{dataset}: by target return", Axis("normalized score", written=score)
    return interval_chart(title, estimates, axis, labels, caption=caption)


def _strategy_exhibits(evidence: Evidence) -> Exhibits:
    curves = [(name, *of) for name, methods in evidence.evaluated.items() for of in methods.items()]
    rows = [
        TableRow(label, [showing.cell_at(curve, at) for at in _targets(curve).values()], group=dataset)
        for dataset, label, curve in curves
    ]
    columns = [TableColumn(name, better="higher") for name in (_targets(curves[0][2]) if curves else ())]
    table = ReportTable("method", columns, rows, best_of="row", groups="dataset")
    charts = [_strategy_chart(name, of, evidence.labels) for name, of in evidence.evaluated.items()]
    return Exhibits({"max-return": table}, [*charts, *showing.curves(evidence)])


FIGURE_6 = Item(
    "max-return",
    "Figure 6",
    "RvS and RvS+CWBC conditioned on 0.8x and 1x the dataset's best, 1x and 2x expert, on walker2d",
    ("rvs", "rvs+cwbc"),
    {
        "There is no common target return that achieves the best performance for RvS.": (
            f"None of the four strategies reaches {percent(COMPARABLE)} of the best one on every dataset",
            rules.on_results(_no_common, ["rvs"]),
        ),
        "RvS is best at 0.8x the data's best on medium, at 1x on medium-replay and medium-expert.": (
            "The same strategy is the best one of the four",
            on_each(_is_best_strategy, ["rvs"], among=WALKERS),
        ),
        "Conditioned on the expert return, RvS+CWBC matches or surpasses the best performance of RvS.": (
            f"RvS+CWBC at 1x expert reaches {percent(COMPARABLE)} of the best of RvS's four strategies",
            on_each(_matches_best, ["rvs+cwbc", "rvs"]),
        ),
    },
    _strategy_exhibits,
)
