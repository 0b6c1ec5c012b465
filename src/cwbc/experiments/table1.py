"""Table 1: RvS and DT with and without CWBC, asked for the expert return."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import (
    COLLAPSED,
    COMPARABLE,
    WELL,
    Verdicts,
    against,
    at_least,
    average,
    best_on_average,
    comparable,
    decided,
    gained,
    listed,
    on_datasets,
    unless_turned,
    untold,
)
from cwbc.evidence.measured import Evidence, Measured
from cwbc.evidence.naming import quality
from cwbc.evidence.overall import Overall
from cwbc.evidence.published import DATASETS, MAIN
from cwbc.experiments.reliability import KEEPS, drops, reliable
from cwbc.statistics import difference
from cwbc.wording import counted, percent, score

LABELS = ("rvs", "rvs+cwbc", "dt", "dt+cwbc")
VALUE_BASED = ("td3+bc", "cql", "iql")
OTHERS = (*VALUE_BASED, "tto")
ALIKE = "hopper-medium-replay"  # where the paper's RvS with and without CWBC score the same
_BASES = {"rvs+cwbc": "rvs", "dt+cwbc": "dt"}


def claims(evidence: Evidence) -> list[Claim]:
    """What the paper says about these scores."""
    rvs, dt = evidence.pairs("rvs+cwbc", "rvs"), evidence.pairs("dt+cwbc", "dt")
    return [
        _improves(evidence),
        _alike(evidence, rvs),
        gained("RvS+CWBC achieves an average improvement of 18 % over RvS.", evidence.datasets, rvs, 0.18),
        _outperforms(evidence, dt),
        _no_worse(evidence, dt),
        gained("DT+CWBC achieves an average improvement of 8 % over DT.", evidence.datasets, dt, 0.08),
        _low_quality(evidence),
        _best(evidence),
        _competitive(evidence),
        _crashes(evidence),
        *_elsewhere(evidence),
    ]


def findings(evidence: Evidence) -> Findings:
    """The scores beside the paper's, and what it says about them."""
    table = showing.expert_table(evidence, LABELS, MAIN, OTHERS, _BASES)
    overall = Overall.of(evidence, LABELS)
    named = showing.landmark_table(evidence)
    tables = {"table1": table, "overall": overall.table(_BASES), "named-returns": named}
    return Findings(claims(evidence), tables, [*overall.profiles(), *showing.curves(evidence)])


def _gain(evidence: Evidence, pairs: Mapping[str, tuple[Measured, ...]]) -> tuple[bool | None, float, str]:
    """Whether the first of two methods scores significantly more at the expert return, and how much more."""
    ours, theirs = zip(*pairs.values(), strict=True)
    if evidence.is_resample:  # all of these together are the interval
        gain = average(each.at_expert for each in ours) - average(each.at_expert for each in theirs)
        return gain > 0, gain, ""
    cells = ([each.of_seeds(each.task.expert_return) for each in of] for of in (ours, theirs))
    gain, low, high = difference(*cells)
    interval = f" ({score(low)} to {score(high)})" if math.isfinite(low) else ""
    return True if low > 0 else False if high < 0 else None, gain, f"{score(gain)} points{interval}"


def _improves(evidence: Evidence) -> Claim:
    gains = {
        dataset: _gain(evidence, {dataset: pair})
        for dataset, pair in evidence.having("rvs+cwbc", "rvs").items()
    }
    claim = on_datasets(
        "CWBC significantly improves RvS on 8 of 9 datasets.",
        "At 1x expert the 95 % interval of what rvs+cwbc gains over rvs is above zero on at least 8 of 9, or "
        "that share; one below zero counts against it, one that holds zero for neither",
        evidence.datasets,
        {dataset: (holds, numbers) for dataset, (holds, _, numbers) in gains.items()},
        at_least(8 / 9, evidence.datasets),
    )
    lower = sum(holds is False for holds, *_ in gains.values())
    return dataclasses.replace(claim, reason=f"{claim.reason} Significantly lower on {lower}.")


def _alike(evidence: Evidence, pairs: Mapping[str, tuple[float, float]]) -> Claim:
    verdicts = {
        dataset: (comparable(*pair) and comparable(*reversed(pair)), against(*pair))
        for dataset, pair in pairs.items()
        if dataset == ALIKE
    }
    return on_datasets(
        f"RvS+CWBC performs similarly to RvS on {ALIKE}.",
        f"At 1x expert each reaches {percent(COMPARABLE)} of the other",
        {ALIKE} & set(evidence.datasets),
        verdicts,
    )


def _outperforms(evidence: Evidence, pairs: Mapping[str, tuple[float, float]]) -> Claim:
    return on_datasets(
        "DT+CWBC outperforms DT in 6 of 9 datasets.",
        "dt+cwbc scores higher than dt at 1x expert on at least 6 of 9, or that share",
        evidence.datasets,
        {dataset: (pair[0] > pair[1], against(*pair)) for dataset, pair in pairs.items()},
        at_least(6 / 9, evidence.datasets),
    )


def _no_worse(evidence: Evidence, pairs: Mapping[str, tuple[float, float]]) -> Claim:
    return on_datasets(
        "DT+CWBC performs comparably to DT where it does not outperform it.",
        f"At 1x expert DT+CWBC reaches {percent(COMPARABLE)} of DT everywhere",
        evidence.datasets,
        {dataset: (comparable(*pair), against(*pair)) for dataset, pair in pairs.items()},
    )


def _low_quality(evidence: Evidence) -> Claim:
    text = "The improvement of DT is significant in the low-quality datasets, medium-replay."
    found = evidence.having("dt+cwbc", "dt")
    low = {dataset: pair for dataset, pair in found.items() if quality(dataset) == "medium-replay"}
    rest = {dataset: pair for dataset, pair in found.items() if dataset not in low}
    if not low or not rest:
        return untold(text, "it takes dt and dt+cwbc on medium-replay and on other datasets")
    (holds, gain, numbers), (_, other, others) = _gain(evidence, low), _gain(evidence, rest)
    rule = "The mean gain on medium-replay is above that on the others, and its 95 % interval above zero"
    numbers = f"{numbers} on medium-replay, {others} on the others"
    claim = decided(text, rule, gain > other and holds, numbers)
    return unless_turned(claim, evidence.missing(found))


def _best(evidence: Evidence) -> Claim:
    text = "RvS+CWBC is the best performing BC method in the table."
    scores = evidence.at_expert(*LABELS)
    among = "of the four that were run; TTO was not"
    if evidence.on_d4rl:
        among = "of the four that were run, and of TTO as published"
        for dataset, of in scores.items():
            of["tto"] = MAIN.scores["tto"][dataset].mean
    return unless_turned(best_on_average(text, "rvs+cwbc", scores, among), evidence.missing(scores))


def _competitive(evidence: Evidence) -> Claim:
    text = "RvS+CWBC performs competitively with the value-based methods, and only slightly below CQL."
    scores = {dataset: rvs.at_expert for dataset, (rvs,) in evidence.having("rvs+cwbc").items()}
    if not scores or not evidence.on_d4rl:
        return untold(text, "those were published on D4RL's data, and RvS+CWBC was not run on it")
    means = {"rvs+cwbc": average(scores.values())}
    for name in VALUE_BASED:
        means[name] = average(MAIN.scores[name][dataset].mean for dataset in scores)
    holds = all(comparable(means["rvs+cwbc"], means[name], WELL) for name in VALUE_BASED)
    rule = f"Its average at 1x expert reaches {percent(WELL)} of what was published for each of them"
    claim = decided(text, rule, holds, f"{listed(means)} over {counted(len(scores), 'dataset')}")
    return unless_turned(claim, evidence.missing(scores))


def _crashes(evidence: Evidence) -> Claim:
    text = "The performance of RvS crashes when it is conditioned on the expert return."
    found = evidence.keeping("rvs")
    verdicts = {
        dataset: (rvs.at_expert < COLLAPSED * rvs.top, f"{score(rvs.at_expert)} of {score(rvs.top)}")
        for dataset, (rvs,) in found.items()
    }
    needed = at_least(2 / 9, evidence.datasets)
    rule = (
        f"RvS at 1x expert scores below {percent(COLLAPSED)} of its best point on at least {needed} "
        "of the datasets (its scores on HalfCheetah's medium and medium-replay suggest 2 of 9 in the paper)"
    )
    return on_datasets(text, rule, evidence.datasets, verdicts, needed)


def _elsewhere(evidence: Evidence) -> list[Claim]:
    """What Section 3 says of walker2d and then of the other environments, by the same rules as there."""
    others = [dataset for dataset in evidence.datasets if not dataset.startswith("walker2d")]
    rvs, dt = (
        {name: each for name, (each,) in evidence.having(label).items() if name in others}
        for label in ("rvs", "dt")
    )
    by_quality: Verdicts = {
        **reliable({name: each for name, each in rvs.items() if quality(name) != "medium-replay"}),
        **drops({name: each for name, each in rvs.items() if quality(name) == "medium-replay"}),
    }
    return [
        on_datasets(
            "Similar findings hold for other environments: RvS is reliable on medium and medium-expert, and "
            "its performance drops quickly on medium-replay.",
            f"{KEEPS} (hopper and halfcheetah); on medium-replay it is below {percent(COLLAPSED)}",
            others,
            by_quality,
        ),
        on_datasets(
            "Similar findings hold for other environments: unlike RvS, DT performs reliably.",
            f"{KEEPS} (hopper and halfcheetah)",
            others,
            reliable(dt),
        ),
    ]


ITEM = Item(
    "table1",
    "Table 1",
    "RvS and DT with and without CWBC at the expert return, beside published scores",
    DATASETS,
    ("walker2d-medium-replay", "halfcheetah-medium-replay"),
    LABELS,
    claims,
    findings,
)
