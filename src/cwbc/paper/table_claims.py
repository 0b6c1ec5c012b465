"""Tables 1, 7 and 8: scores at the expert return on nine datasets, beside the published ones."""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Collection, Mapping
from statistics import fmean
from types import SimpleNamespace

from cwbc.core.conditioning import DEFAULT_SCALE
from cwbc.grids.cells import Variant
from cwbc.paper import rules
from cwbc.paper.item import Exhibits, Item
from cwbc.paper.published import DATASETS, EXPERTS, FILTERED_BC, HARD_FILTERING, MAIN, MEDIUMS, REPLAYS
from cwbc.paper.rules import COLLAPSED, RELIABLE, Curves, Found, Results, average, on_each, on_results, pair
from cwbc.paper.verdicts import Claim
from cwbc.reports import showing
from cwbc.reports.overall import Overall
from cwbc.reports.showing import PublishedTable
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.evidence import Evidence
from cwbc.results.statistics import difference
from cwbc.system.formatting import percent, score

VALUE_BASED = ("td3bc", "cql", "iql")  # those of the paper
_IS_ALIKE = pair(lambda ours, theirs: rules.comparable(ours, theirs) and rules.comparable(theirs, ours))
_HIGHEST = average(rules.Comparison(lambda of: rules.highest(of) == "rvs+cwbc"))
ELSEWHERE = tuple(name for name in DATASETS if not name.startswith("walker2d"))
ALIKE = "hopper-medium-replay"  # where the paper's RvS with and without CWBC score the same
BC = ("rvs", "rvs+cwbc", "dt", "dt+cwbc")
RVS, DT, CWBC_AND_BC = ("rvs+cwbc", "rvs"), ("dt+cwbc", "dt"), ("rvs+cwbc", "filtered-bc")


def _exhibits(
    evidence: Evidence,
    name: str,
    published: PublishedTable,
    base: Mapping[str, str],
    optional: tuple[str, ...] = (),
) -> Exhibits:
    """The scores beside the published ones, all datasets together, and the curves.

    A table that prints no wins has averages by quality, and nothing at the named returns.

    Args:
        base: the method that each is compared with.
        optional: methods that, where they were not run, are shown as published, if at all.
    """
    run = [method for method in optional if method in evidence.labels]
    labels = [*(method for method in published.scores if method not in optional), *run]
    others = [method for method in published.scores if method not in labels]
    overall = Overall.of(evidence, labels)
    by_quality = not published.wins
    wins_over = None if by_quality else base
    scores = showing.expert_table(evidence, labels, published, others, wins_over, by_quality)
    tables = {name: scores, "overall": overall.table(base)}
    if not by_quality:
        tables["named-returns"] = showing.landmark_table(evidence)
    return Exhibits(tables, [*overall.profiles(), *showing.curves(evidence)])


def _gain(pairs: Collection[Curves], is_resample: bool) -> tuple[bool | None, float, str]:
    """Whether the first of two methods scores significantly more at 1x expert, and how much more."""
    ours, theirs = zip(*(curves.values() for curves in pairs), strict=True)
    if is_resample:  # all of these together are the interval
        gain = fmean(map(rules.at_expert, ours)) - fmean(map(rules.at_expert, theirs))
        return gain > 0, gain, ""
    gain, low, high = difference(
        *([each.of_seeds(each.task.expert_return) for each in of] for of in (ours, theirs))
    )
    interval = f" ({score(low)} to {score(high)})" if math.isfinite(low) else ""
    return True if low > 0 else False if high < 0 else None, gain, f"{score(gain)} points{interval}"


def _significant(claim: Claim, results: Results, evidence: Evidence) -> Claim:
    found = {dataset: _gain([curves], evidence.is_resample) for dataset, curves in results.items()}
    cases = {dataset: (holds, numbers) for dataset, (holds, _, numbers) in found.items()}
    claim = rules.on_datasets(claim, cases, evidence.datasets, 8 / 9)
    lower = sum(case.holds is False for case in claim.cases)
    return dataclasses.replace(claim, reason=f"{claim.reason} Significantly lower on {lower}.")


def _significant_on_replay(claim: Claim, results: Results, evidence: Evidence) -> Claim:
    replays = [curves for dataset, curves in results.items() if dataset in REPLAYS]
    others = [curves for dataset, curves in results.items() if dataset not in REPLAYS]
    if not replays or not others:
        why = "It needs dt and dt+cwbc on medium-replay and on other datasets."
        return dataclasses.replace(claim, reason=why)
    holds, gain, numbers = _gain(replays, evidence.is_resample)
    _, other, rest = _gain(others, evidence.is_resample)
    numbers = f"{numbers} on medium-replay, {rest} on the others"
    return rules.decided(claim, gain > other and holds, numbers, evidence.missing(results))


def _with_published(methods: Collection[str], decide: rules.Decide) -> rules.Decide:
    """A decision for which, on D4RL's data, methods have the scores that were published."""

    def with_published(claim: Claim, results: Results, evidence: Evidence) -> Claim:
        if evidence.on_d4rl:
            results = {dataset: dict(curves) for dataset, curves in results.items()}
            for dataset, name in itertools.product(results, methods):
                results[dataset][name] = SimpleNamespace(at_expert=MAIN.scores[name][dataset].mean)
        return decide(claim, results, evidence)

    return with_published


_IS_COMPETITIVE = average(
    rules.Comparison(lambda of: rules.well([of["rvs+cwbc"]], max(of[name] for name in VALUE_BASED)))
)


def _competitive(claim: Claim, evidence: Evidence) -> Claim:
    run = ("rvs+cwbc",) if evidence.on_d4rl else ("rvs+cwbc", *VALUE_BASED)
    return on_results(_with_published(VALUE_BASED, _IS_COMPETITIVE), run)(claim, evidence)


def _crashes(curves: Curves) -> Found:
    rvs = curves["rvs"]
    return rvs.at_expert < COLLAPSED * rvs.top, f"{score(rvs.at_expert)} of {score(rvs.top)}"


def _as_on_walker2d(claim: Claim, results: Results, evidence: Evidence) -> Claim:
    found = {
        **{name: rules.is_reliable(of) for name, of in results.items() if name not in REPLAYS},
        **{name: rules.is_collapsed(of) for name, of in results.items() if name in REPLAYS},
    }
    return rules.on_datasets(claim, found, evidence.datasets)


TABLE_1 = Item(
    "table1",
    "Table 1",
    "RvS and DT with and without CWBC at the expert return, value-based methods, and published scores",
    # rvs+q is not the paper's, and has the default scale of the condition.
    (*BC, *VALUE_BASED, "rebrac", Variant("rvs+q", "rvs+q", {"condition_scale": DEFAULT_SCALE})),
    {
        "CWBC significantly improves RvS on 8 of 9 datasets.": (
            "At 1x expert the 95 % interval of the gain of rvs+cwbc over rvs is above zero on at least 8 of "
            "9, or that fraction; one below zero counts against it, one that contains zero for neither",
            on_results(_significant, RVS),
        ),
        f"RvS+CWBC performs similarly to RvS on {ALIKE}.": (
            f"At 1x expert each reaches {percent(rules.COMPARABLE)} of the other",
            on_each(_IS_ALIKE, RVS, among=[ALIKE]),
        ),
        "RvS+CWBC achieves an average improvement of 18 % over RvS.": rules.gains(RVS, 0.18),
        "DT+CWBC outperforms DT in 6 of 9 datasets.": (
            "dt+cwbc scores higher than dt at 1x expert on at least 6 of 9, or that fraction",
            on_each(pair(operator.gt), DT, 6 / 9),
        ),
        "DT+CWBC performs comparably to DT where it does not outperform it.": (
            f"At 1x expert DT+CWBC reaches {percent(rules.COMPARABLE)} of DT everywhere",
            on_each(pair(rules.comparable), DT),
        ),
        "DT+CWBC achieves an average improvement of 8 % over DT.": rules.gains(DT, 0.08),
        "The improvement of DT is significant in the low-quality datasets, medium-replay.": (
            "The mean gain on medium-replay is above that on the others, and its 95 % interval above zero",
            on_results(_significant_on_replay, DT),
        ),
        "RvS+CWBC is the best performing BC method in the table.": (
            "Its average at 1x expert is the highest of the four that were run, and on D4RL's data of TTO as "
            "published",
            on_results(_with_published(["tto"], _HIGHEST), BC),
        ),
        "RvS+CWBC performs competitively with the value-based methods, and only slightly below CQL.": (
            f"Its average at 1x expert reaches {percent(rules.WELL)} of that of each of td3bc, cql and iql, "
            "trained on the same data, or on D4RL's data as published",
            _competitive,
        ),
        "The performance of RvS crashes when it is conditioned on the expert return.": (
            f"RvS at 1x expert scores below {percent(COLLAPSED)} of its best point on at least 2 of 9, or "
            "that fraction (the paper's scores on HalfCheetah's medium and medium-replay suggest 2 of 9)",
            on_each(_crashes, ["rvs"], 2 / 9, where=rules.has_retention),
        ),
        (
            "Similar findings hold for other environments: RvS is reliable on medium and medium-expert, and "
            "its performance drops quickly on medium-replay."
        ): (
            f"OOD retention is at least {percent(RELIABLE)}, on medium-replay below {percent(COLLAPSED)}",
            on_results(_as_on_walker2d, ["rvs"], among=ELSEWHERE, where=rules.has_retention),
        ),
        "Similar findings hold for other environments: unlike RvS, DT performs reliably.": rules.retains(
            "dt", among=ELSEWHERE
        ),
    },
    lambda of: _exhibits(of, "table1", MAIN, dict([RVS, DT]), (*VALUE_BASED, "rebrac", "rvs+q", "tto")),
    DATASETS,
    ("walker2d-medium-replay", "halfcheetah-medium-replay"),
    full_only=("cql", "iql", "rebrac"),
    costly=("cql", "rebrac"),
)


FILTERING = ("rvs", "rvs+w", "rvs+c", "rvs+cwbc", "rvs+f", "rvs+f+c")
MUCH_SMALLER = 2 / 3  # of the other's std


def _is_higher(higher: str, lower: str) -> rules.Rule:
    words = f"{higher} scores higher than {lower} at 1x expert on average"
    return words, on_results(average(pair(operator.gt)), (higher, lower))


def _std_over_seeds(curve: EvaluatedMethod) -> float:
    return float(curve.of_seeds(curve.task.far_return).std())


_VARIES_LESS = average(pair(lambda ours, theirs: ours <= MUCH_SMALLER * theirs, _std_over_seeds))


TABLE_7 = Item(  # and Figure 12
    "hard-filtering",
    "Table 7",
    "RvS with weighting (+W), filtering (+F) and the regularizer (+C) at the expert return",
    FILTERING,
    {
        "RvS+F+C gains notable improvements over RvS (11 % in the table).": rules.gains(
            ("rvs+f+c", "rvs"), 0.11
        ),
        "RvS+F+C lags behind RvS+W+C.": _is_higher("rvs+cwbc", "rvs+f+c"),
        "Filtering seems to erode the benefits of conservatism alone, RvS+C.": _is_higher("rvs+c", "rvs+f+c"),
        "RvS+W+C has the highest average of all variants.": (
            "Its average at 1x expert is the highest of all",
            on_results(_HIGHEST, FILTERING),
        ),
        "RvS+W+C has much smaller variance than RvS+F+C when conditioned on large returns.": (
            f"The mean std over seeds at 2x expert is at most {percent(MUCH_SMALLER)} of the other's",
            on_results(_VARIES_LESS, ("rvs+cwbc", "rvs+f+c"), where=lambda curve: len(curve.scores) > 1),
        ),
    },
    lambda of: _exhibits(of, "hard-filtering", HARD_FILTERING, dict.fromkeys(FILTERING[1:], "rvs")),
    DATASETS,
    REPLAYS[:2],
)


def _is_comparable(among: tuple[str, ...]) -> rules.Rule:
    words = f"On average RvS+CWBC at 1x expert reaches {percent(rules.COMPARABLE)} of Filtered BC"
    return words, on_results(average(pair(rules.comparable)), CWBC_AND_BC, among)


TABLE_8 = Item(
    "filtered-bc",
    "Table 8",
    "Filtered BC against RvS and RvS+CWBC at the expert return",
    ("filtered-bc", "rvs", "rvs+cwbc"),
    {
        "CWBC performs comparably to Filtered BC on the medium datasets.": _is_comparable(MEDIUMS),
        "CWBC performs comparably to Filtered BC on the medium-expert datasets.": _is_comparable(EXPERTS),
        "CWBC outperforms Filtered BC by 12 % on average on the medium-replay datasets.": rules.gains(
            CWBC_AND_BC, 0.12, among=REPLAYS
        ),
        "CWBC scores higher than Filtered BC on average over all datasets.": _is_higher(*CWBC_AND_BC),
    },
    lambda of: _exhibits(of, "filtered-bc", FILTERED_BC, dict.fromkeys(("rvs", "rvs+cwbc"), "filtered-bc")),
    tuple(FILTERED_BC.scores["rvs"]),  # this table goes by quality
    REPLAYS,
)
