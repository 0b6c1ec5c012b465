"""Table 1: RvS and DT with and without CWBC, asked for the expert return."""

from __future__ import annotations

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import (
    COLLAPSED,
    COMPARABLE,
    WELL,
    Verdicts,
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
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import quality
from cwbc.evidence.overall import Overall
from cwbc.evidence.published import DATASETS, MAIN
from cwbc.experiments.reliability import KEEPS, drops, reliable
from cwbc.wording import counted, percent, score

LABELS = ("rvs", "rvs+cwbc", "dt", "dt+cwbc")
VALUE_BASED = ("td3+bc", "cql", "iql")
OTHERS = (*VALUE_BASED, "tto")
ALIKE = "hopper-medium-replay"  # where the paper's RvS with and without CWBC score the same
_BASES = {"rvs+cwbc": "rvs", "dt+cwbc": "dt"}


def findings(evidence: Evidence) -> Findings:
    """The scores beside the paper's, and what the paper says about them."""
    claims = [
        _wins(evidence, "rvs", 8, "CWBC significantly improves RvS on 8 of 9 datasets."),
        _alike(evidence),
        _gain(evidence, "rvs", 0.18, "RvS+CWBC achieves an average improvement of 18 % over RvS."),
        _wins(evidence, "dt", 6, "DT+CWBC outperforms DT in 6 of 9 datasets."),
        _no_worse(evidence),
        _gain(evidence, "dt", 0.08, "DT+CWBC achieves an average improvement of 8 % over DT."),
        _low_quality(evidence),
        _best(evidence),
        _competitive(evidence),
        _crashes(evidence),
        *_elsewhere(evidence),
    ]
    table = showing.expert_table(evidence, LABELS, MAIN, OTHERS, _BASES)
    overall = Overall.of(evidence, LABELS)
    named = showing.landmark_table(evidence)
    tables = {"table1": table, "overall": overall.table(_BASES), "named-returns": named}
    return Findings(claims, tables, [*overall.profiles(), *showing.curves(evidence)])


def _pairs(evidence: Evidence, base: str) -> dict[str, tuple[float, float]]:
    """The scores at the expert return with CWBC and without, by dataset."""
    found = evidence.having(f"{base}+cwbc", base)
    return {dataset: (with_it.at_expert, without.at_expert) for dataset, (with_it, without) in found.items()}


def _wins(evidence: Evidence, base: str, published: int, text: str) -> Claim:
    verdicts = {
        dataset: (ours > theirs, f"{score(ours)} against {score(theirs)}")
        for dataset, (ours, theirs) in _pairs(evidence, base).items()
    }
    rule = f"{base}+cwbc scores higher than {base} at 1x expert on at least {published} of 9, or that share"
    return on_datasets(text, rule, evidence.datasets, verdicts, at_least(published / 9, evidence.datasets))


def _alike(evidence: Evidence) -> Claim:
    verdicts = {
        dataset: (
            comparable(ours, theirs) and comparable(theirs, ours),
            f"{score(ours)} against {score(theirs)}",
        )
        for dataset, (ours, theirs) in _pairs(evidence, "rvs").items()
        if dataset == ALIKE
    }
    return on_datasets(
        f"RvS+CWBC performs similarly to RvS on {ALIKE}.",
        f"At 1x expert each reaches {percent(COMPARABLE)} of the other",
        {ALIKE} & set(evidence.datasets),
        verdicts,
    )


def _no_worse(evidence: Evidence) -> Claim:
    verdicts = {
        dataset: (comparable(ours, theirs), f"{score(ours)} against {score(theirs)}")
        for dataset, (ours, theirs) in _pairs(evidence, "dt").items()
    }
    return on_datasets(
        "DT+CWBC performs comparably to DT where it does not outperform it.",
        f"At 1x expert DT+CWBC reaches {percent(COMPARABLE)} of DT everywhere",
        evidence.datasets,
        verdicts,
    )


def _gain(evidence: Evidence, base: str, published: float, text: str) -> Claim:
    pairs = _pairs(evidence, base)
    claim = gained(text, pairs.values(), published, (f"{base}+cwbc", base))
    return unless_turned(claim, evidence.missing(pairs))


def _low_quality(evidence: Evidence) -> Claim:
    text = "The improvement of DT is significant in the low-quality datasets, medium-replay."
    gains = {dataset: ours - theirs for dataset, (ours, theirs) in _pairs(evidence, "dt").items()}
    low = [gain for dataset, gain in gains.items() if quality(dataset) == "medium-replay"]
    rest = [gain for dataset, gain in gains.items() if quality(dataset) != "medium-replay"]
    if not low or not rest:
        return untold(text, "it takes dt and dt+cwbc on medium-replay and on other datasets")
    numbers = f"{score(average(low))} points on medium-replay, {score(average(rest))} on the others"
    rule = "The mean gain on medium-replay is positive and above that on the others"
    claim = decided(text, rule, average(low) > max(0.0, average(rest)), numbers)
    return unless_turned(claim, evidence.missing(gains))


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
    findings,
)
