"""Table 8: behavioural cloning of the best tenth, which is told nothing, against RvS and CWBC."""

from __future__ import annotations

from collections.abc import Iterable

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import COMPARABLE, average, comparable, decided, gained, unless_turned, untold
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import REPLAYS, quality
from cwbc.evidence.overall import Overall
from cwbc.evidence.published import FILTERED_BC, QUALITIES
from cwbc.wording import counted, percent, score

LABELS = ("filtered-bc", "rvs", "rvs+cwbc")
LOWEST = "medium-replay"
_ORDER = tuple(FILTERED_BC.scores["rvs"])  # the table goes by quality


def findings(evidence: Evidence) -> Findings:
    """The scores beside the paper's, and where being told a return pays."""
    found = {
        dataset: (cwbc.at_expert, filtered.at_expert)
        for dataset, (cwbc, filtered) in evidence.having("rvs+cwbc", "filtered-bc").items()
    }
    missing = evidence.missing(found)
    claims = [
        *(
            unless_turned(_comparable(found, kind), _of_kind(missing, kind))
            for kind in QUALITIES
            if kind != LOWEST
        ),
        unless_turned(_gain(found), _of_kind(missing, LOWEST)),
        unless_turned(_overall(found), missing),
    ]
    table = showing.expert_table(evidence, LABELS, FILTERED_BC, by_quality=True)
    overall = Overall.of(evidence, LABELS)
    tables = {"filtered-bc": table, "overall": overall.table(dict.fromkeys(LABELS[1:], "filtered-bc"))}
    return Findings(claims, tables, [*overall.profiles(), *showing.curves(evidence)])


def _of_kind(datasets: Iterable[str], kind: str) -> list[str]:
    return [dataset for dataset in datasets if quality(dataset) == kind]


def _gain(found: dict[str, tuple[float, float]]) -> Claim:
    text = "CWBC outperforms Filtered BC by 12 % on average on the medium-replay datasets."
    pairs = [found[dataset] for dataset in _of_kind(found, LOWEST)]
    return gained(text, pairs, 0.12, ("rvs+cwbc", "filtered-bc"))


def _comparable(found: dict[str, tuple[float, float]], kind: str) -> Claim:
    text = f"CWBC performs comparably to Filtered BC on the {kind} datasets."
    pairs = [found[dataset] for dataset in _of_kind(found, kind)]
    if not pairs:
        return untold(text, f"no {kind} dataset was measured with both")
    ours, theirs = (average(column) for column in zip(*pairs, strict=True))
    rule = f"On average RvS+CWBC at 1x expert reaches {percent(COMPARABLE)} of Filtered BC"
    return decided(text, rule, comparable(ours, theirs), f"{score(ours)} against {score(theirs)}")


def _overall(found: dict[str, tuple[float, float]]) -> Claim:
    text = "CWBC scores higher than Filtered BC on average over all datasets."
    if not found:
        return untold(text, "no dataset has both")
    ours, theirs = (average(column) for column in zip(*found.values(), strict=True))
    numbers = f"{score(ours)} against {score(theirs)} over {counted(len(found), 'dataset')}"
    return decided(text, "Its average is the higher one", ours > theirs, numbers)


ITEM = Item(
    "filtered-bc",
    "Table 8",
    "Filtered BC against RvS and RvS+CWBC at the expert return",
    _ORDER,
    REPLAYS,
    LABELS,
    findings,
)
