"""Table 1: RvS and DT with and without CWBC, asked for the expert return."""

from __future__ import annotations

import math

from cwbc.experiments import showing
from cwbc.experiments.evidence import Evidence
from cwbc.experiments.item import Claim, Findings, Item
from cwbc.experiments.judging import COLLAPSED, average, best_on_average, decided, gained, on_datasets, untold
from cwbc.experiments.naming import quality
from cwbc.experiments.overall import Overall
from cwbc.experiments.published import DATASETS, MAIN
from cwbc.wording import percent, score

LABELS = ("rvs", "rvs+cwbc", "dt", "dt+cwbc")
OTHERS = ("td3+bc", "cql", "iql", "tto")


def findings(evidence: Evidence) -> Findings:
    """The scores beside the paper's, and what the paper says about them."""
    claims = [
        _wins(evidence, "rvs", 8, "CWBC improves RvS on 8 of 9 datasets."),
        _gain(evidence, "rvs", 0.18, "RvS+CWBC achieves an average improvement of 18 % over RvS."),
        _wins(evidence, "dt", 6, "DT+CWBC outperforms DT in 6 of 9 datasets."),
        _gain(evidence, "dt", 0.08, "DT+CWBC achieves an average improvement of 8 % over DT."),
        _low_quality(evidence),
        best_on_average(
            "RvS+CWBC is the best performing BC method in the table.",
            "rvs+cwbc",
            evidence.at_expert(*LABELS),
        ),
        _crashes(evidence),
    ]
    table = showing.expert_table(evidence, LABELS, MAIN, OTHERS)
    overall = Overall.of(evidence, LABELS)
    tables = {"table1": table, "overall": overall.table({"rvs+cwbc": "rvs", "dt+cwbc": "dt"})}
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
    return on_datasets(text, rule, verdicts, published / 9)


def _gain(evidence: Evidence, base: str, published: float, text: str) -> Claim:
    return gained(text, _pairs(evidence, base).values(), published, (f"{base}+cwbc", base))


def _low_quality(evidence: Evidence) -> Claim:
    text = "The improvement of DT is significant in the low-quality datasets, medium-replay."
    gains = {dataset: ours - theirs for dataset, (ours, theirs) in _pairs(evidence, "dt").items()}
    low = [gain for dataset, gain in gains.items() if quality(dataset) == "medium-replay"]
    rest = [gain for dataset, gain in gains.items() if quality(dataset) != "medium-replay"]
    if not low or not rest:
        return untold(text, "it takes medium-replay and other datasets, and only one kind was run")
    numbers = f"{score(average(low))} points on medium-replay, {score(average(rest))} on the others"
    rule = "The mean gain on medium-replay is positive and above that on the others"
    return decided(text, rule, average(low) > max(0.0, average(rest)), numbers)


def _crashes(evidence: Evidence) -> Claim:
    text = "The performance of RvS crashes when it is conditioned on the expert return."
    found = evidence.having("rvs")
    verdicts = {
        dataset: (rvs.at_expert < COLLAPSED * rvs.top, f"{score(rvs.at_expert)} of {score(rvs.top)}")
        for dataset, (rvs,) in found.items()
    }
    needed = math.ceil(len(found) * 2 / 9)
    rule = (
        f"RvS at 1x expert scores below {percent(COLLAPSED)} of its best point on at least {needed} "
        "of the datasets (its scores on HalfCheetah's medium and medium-replay suggest 2 of 9 in the paper)"
    )
    return on_datasets(text, rule, verdicts, 2 / 9)


ITEM = Item(
    "table1",
    "Table 1",
    "RvS and DT with and without CWBC at the expert return, beside published scores",
    DATASETS,
    ("walker2d-medium-replay", "halfcheetah-medium-replay"),
    LABELS,
    findings,
)
