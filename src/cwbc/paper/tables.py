"""Tables 1, 7 and 8: scores at the expert return on nine datasets, beside the published ones."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Collection, Mapping
from statistics import fmean
from typing import NamedTuple

from cwbc.paper import judging
from cwbc.paper.item import Claim, Findings, Item
from cwbc.paper.judging import COLLAPSED, COMPARABLE, RELIABLE, WELL, Curves, Found, Results, Rule, comparable
from cwbc.paper.naming import REPLAYS, quality
from cwbc.paper.published import DATASETS, FILTERED_BC, HARD_FILTERING, MAIN
from cwbc.reports import showing
from cwbc.reports.overall import Overall
from cwbc.reports.showing import PublishedTable
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.evidence import Evidence
from cwbc.results.statistics import difference
from cwbc.system.formatting import counted, percent, score

VALUE_BASED = ("td3+bc", "cql", "iql")
ALIKE = "hopper-medium-replay"  # where the paper's RvS with and without CWBC score the same
REPLAY = "medium-replay"
RVS, DT = ("rvs+cwbc", "rvs"), ("dt+cwbc", "dt")


def _exhibits(
    name: str,
    published: PublishedTable,
    against: Mapping[str, str],
    others: tuple[str, ...] = (),
    by_quality: bool = False,
) -> Callable[[Evidence], Findings]:
    """The scores beside the published ones, all datasets together, and the curves.

    Args:
        against: the method that each is compared with.
        others: methods with published scores alone.
        by_quality: whether averages by quality are shown, in place of wins and the scores at named returns.
    """
    labels = [method for method in published.scores if method not in others]

    def exhibits(evidence: Evidence) -> Findings:
        wins_over = None if by_quality else against
        overall = Overall.of(evidence, labels)
        tables = {
            name: showing.expert_table(evidence, labels, published, others, wins_over, by_quality),
            "overall": overall.table(against),
        }
        if not by_quality:
            tables["named-returns"] = showing.landmark_table(evidence)
        return Findings((), tables, [*overall.profiles(), *showing.curves(evidence)])

    return exhibits


def _gain(pairs: Collection[Curves], is_resample: bool) -> tuple[bool | None, float, str]:
    """Whether the first of two methods scores significantly more at 1x expert, and how much more."""
    ours, theirs = zip(*(curves.values() for curves in pairs), strict=True)
    if is_resample:  # all of these together are the interval
        gain = fmean(map(judging.at_expert, ours)) - fmean(map(judging.at_expert, theirs))
        return gain > 0, gain, ""
    gain, low, high = difference(
        *([each.of_seeds(each.task.expert_return) for each in of] for of in (ours, theirs))
    )
    interval = f" ({score(low)} to {score(high)})" if math.isfinite(low) else ""
    return True if low > 0 else False if high < 0 else None, gain, f"{score(gain)} points{interval}"


def _significant(claim: Claim, results: Results, evidence: Evidence) -> Claim:
    gains = {dataset: _gain([curves], evidence.is_resample) for dataset, curves in results.items()}
    found = {dataset: (holds, numbers) for dataset, (holds, _, numbers) in gains.items()}
    claim = judging.on_datasets(claim, found, evidence.datasets, 8 / 9)
    lower = sum(holds is False for holds, _ in found.values())
    return dataclasses.replace(claim, reason=f"{claim.reason} Significantly lower on {lower}.")


def _significant_on_replay(claim: Claim, results: Results, evidence: Evidence) -> Claim:
    low = [curves for dataset, curves in results.items() if quality(dataset) == REPLAY]
    rest = [curves for dataset, curves in results.items() if quality(dataset) != REPLAY]
    if not low or not rest:
        return judging.inconclusive(claim, "it needs dt and dt+cwbc on medium-replay and on other datasets")
    holds, gain, numbers = _gain(low, evidence.is_resample)
    _, other, others = _gain(rest, evidence.is_resample)
    numbers = f"{numbers} on medium-replay, {others} on the others"
    return judging.unless_turned(
        judging.decided(claim, gain > other and holds, numbers), evidence.missing(results)
    )


class _AsPublished(NamedTuple):
    at_expert: float


def _best_of_bc(claim: Claim, results: Results, evidence: Evidence) -> Claim:
    if evidence.on_d4rl:
        results = {
            dataset: {**curves, "tto": _AsPublished(MAIN.scores["tto"][dataset].mean)}
            for dataset, curves in results.items()
        }
    return judging.average(judging.best("rvs+cwbc"))(claim, results, evidence)


def _competitive(claim: Claim, results: Results, evidence: Evidence) -> Claim:
    if not evidence.on_d4rl:
        return judging.inconclusive(
            claim, "those were published on D4RL's data, and RvS+CWBC was not run on it"
        )
    means = {"rvs+cwbc": fmean(curves["rvs+cwbc"].at_expert for curves in results.values())}
    for name in VALUE_BASED:
        means[name] = fmean(MAIN.scores[name][dataset].mean for dataset in results)
    holds = all(comparable(means["rvs+cwbc"], means[name], WELL) for name in VALUE_BASED)
    numbers = f"{judging.listed(means)} over {counted(len(results), 'dataset')}"
    return judging.unless_turned(judging.decided(claim, holds, numbers), evidence.missing(results))


def _crashes(curves: Curves) -> Found:
    rvs = curves["rvs"]
    return rvs.at_expert < COLLAPSED * rvs.top, f"{score(rvs.at_expert)} of {score(rvs.top)}"


def _is_elsewhere(dataset: str) -> bool:
    return not dataset.startswith("walker2d")


def _as_on_walker2d(claim: Claim, results: Results, evidence: Evidence) -> Claim:
    found = {
        **{name: judging.is_reliable(of) for name, of in results.items() if quality(name) != REPLAY},
        **{name: judging.is_collapsed(of) for name, of in results.items() if quality(name) == REPLAY},
    }
    return judging.on_datasets(claim, found, evidence.datasets)


TABLE_1 = Item(
    "table1",
    "Table 1",
    "RvS and DT with and without CWBC at the expert return, beside published scores",
    ("rvs", "rvs+cwbc", "dt", "dt+cwbc"),
    (
        Rule(
            "CWBC significantly improves RvS on 8 of 9 datasets.",
            "At 1x expert the 95 % interval of the gain of rvs+cwbc over rvs is above zero on at least 8 of "
            "9, or that fraction; one below zero counts against it, one that contains zero for neither",
            RVS,
            _significant,
        ),
        Rule(
            f"RvS+CWBC performs similarly to RvS on {ALIKE}.",
            f"At 1x expert each reaches {percent(COMPARABLE)} of the other",
            RVS,
            judging.each(judging.pair(lambda cwbc, rvs: comparable(cwbc, rvs) and comparable(rvs, cwbc))),
            among=lambda dataset: dataset == ALIKE,
        ),
        judging.gains("RvS+CWBC achieves an average improvement of 18 % over RvS.", RVS, 0.18),
        Rule(
            "DT+CWBC outperforms DT in 6 of 9 datasets.",
            "dt+cwbc scores higher than dt at 1x expert on at least 6 of 9, or that fraction",
            DT,
            judging.each(judging.pair(operator.gt), 6 / 9),
        ),
        Rule(
            "DT+CWBC performs comparably to DT where it does not outperform it.",
            f"At 1x expert DT+CWBC reaches {percent(COMPARABLE)} of DT everywhere",
            DT,
            judging.each(judging.pair(comparable)),
        ),
        judging.gains("DT+CWBC achieves an average improvement of 8 % over DT.", DT, 0.08),
        Rule(
            "The improvement of DT is significant in the low-quality datasets, medium-replay.",
            "The mean gain on medium-replay is above that on the others, and its 95 % interval above zero",
            DT,
            _significant_on_replay,
        ),
        Rule(
            "RvS+CWBC is the best performing BC method in the table.",
            "Its average at 1x expert is the highest of the four that were run, and on D4RL's data of TTO as "
            "published",
            ("rvs", "rvs+cwbc", "dt", "dt+cwbc"),
            _best_of_bc,
        ),
        Rule(
            "RvS+CWBC performs competitively with the value-based methods, and only slightly below CQL.",
            f"Its average at 1x expert reaches {percent(WELL)} of the published one of each of them",
            ["rvs+cwbc"],
            _competitive,
        ),
        Rule(
            "The performance of RvS crashes when it is conditioned on the expert return.",
            f"RvS at 1x expert scores below {percent(COLLAPSED)} of its best point on at least 2 of 9, or "
            "that fraction (the paper's scores on HalfCheetah's medium and medium-replay suggest 2 of 9)",
            ["rvs"],
            judging.each(_crashes, 2 / 9),
            where=judging.has_retention,
        ),
        Rule(
            "Similar findings hold for other environments: RvS is reliable on medium and medium-expert, and "
            "its performance drops quickly on medium-replay.",
            f"OOD retention is at least {percent(RELIABLE)}, on medium-replay below {percent(COLLAPSED)}",
            ["rvs"],
            _as_on_walker2d,
            among=_is_elsewhere,
            where=judging.has_retention,
        ),
        judging.retains(
            "Similar findings hold for other environments: unlike RvS, DT performs reliably.",
            "dt",
            among=_is_elsewhere,
        ),
    ),
    _exhibits("table1", MAIN, dict([RVS, DT]), (*VALUE_BASED, "tto")),
    DATASETS,
    ("walker2d-medium-replay", "halfcheetah-medium-replay"),
)


FILTERING = ("rvs", "rvs+w", "rvs+c", "rvs+cwbc", "rvs+f", "rvs+f+c")
MUCH_SMALLER = 2 / 3  # of the other's std


def _is_higher(text: str, higher: str, lower: str) -> Rule:
    words = f"{higher} scores higher than {lower} at 1x expert on average"
    return Rule(text, words, (higher, lower), judging.average(judging.pair(operator.gt)))


def _std_over_seeds(curve: EvaluatedMethod) -> float:
    return float(curve.of_seeds(curve.task.far_return).std())


def _varies_less(claim: Claim, results: Results, evidence: Evidence) -> Claim:
    if evidence.seeds < 2:
        return judging.inconclusive(claim, "it needs several seeds of both")
    rule = judging.pair(lambda ours, theirs: ours <= MUCH_SMALLER * theirs, _std_over_seeds)
    return judging.average(rule)(claim, results, evidence)


TABLE_7 = Item(  # and Figure 12
    "hard-filtering",
    "Table 7",
    "RvS with weighting (+W), filtering (+F) and the regularizer (+C) at the expert return",
    FILTERING,
    (
        judging.gains(
            "RvS+F+C gains notable improvements over RvS (11 % in the table).", ("rvs+f+c", "rvs"), 0.11
        ),
        _is_higher("RvS+F+C lags behind RvS+W+C.", "rvs+cwbc", "rvs+f+c"),
        _is_higher("Filtering seems to erode the benefits of conservatism alone, RvS+C.", "rvs+c", "rvs+f+c"),
        Rule(
            "RvS+W+C has the highest average of all variants.",
            "Its average at 1x expert is the highest of all",
            FILTERING,
            judging.average(judging.best("rvs+cwbc")),
        ),
        Rule(
            "RvS+W+C has much smaller variance than RvS+F+C when conditioned on large returns.",
            f"The mean std over seeds at 2x expert is at most {percent(MUCH_SMALLER)} of the other's",
            ("rvs+cwbc", "rvs+f+c"),
            _varies_less,
        ),
    ),
    _exhibits("hard-filtering", HARD_FILTERING, dict.fromkeys(FILTERING[1:], "rvs")),
    DATASETS,
    REPLAYS[:2],
)


def _is_comparable(kind: str) -> Rule:
    return Rule(
        f"CWBC performs comparably to Filtered BC on the {kind} datasets.",
        f"On average RvS+CWBC at 1x expert reaches {percent(COMPARABLE)} of Filtered BC",
        ("rvs+cwbc", "filtered-bc"),
        judging.average(judging.pair(comparable)),
        among=judging.of_quality(kind),
    )


TABLE_8 = Item(
    "filtered-bc",
    "Table 8",
    "Filtered BC against RvS and RvS+CWBC at the expert return",
    ("filtered-bc", "rvs", "rvs+cwbc"),
    (
        _is_comparable("medium"),
        _is_comparable("medium-expert"),
        judging.gains(
            "CWBC outperforms Filtered BC by 12 % on average on the medium-replay datasets.",
            ("rvs+cwbc", "filtered-bc"),
            0.12,
            among=judging.of_quality(REPLAY),
        ),
        Rule(
            "CWBC scores higher than Filtered BC on average over all datasets.",
            "Its average is the higher one",
            ("rvs+cwbc", "filtered-bc"),
            judging.average(judging.pair(operator.gt)),
        ),
    ),
    _exhibits("filtered-bc", FILTERED_BC, dict.fromkeys(("rvs", "rvs+cwbc"), "filtered-bc"), by_quality=True),
    tuple(FILTERED_BC.scores["rvs"]),  # this table goes by quality
    REPLAYS,
)
