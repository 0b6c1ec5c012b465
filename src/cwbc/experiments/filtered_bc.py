"""Table 8: behavioural cloning of the best tenth, which is told nothing, against RvS and CWBC."""

from __future__ import annotations

import operator

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import COMPARABLE, comparable, gained, on_average
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import REPLAYS, quality
from cwbc.evidence.overall import Overall
from cwbc.evidence.published import FILTERED_BC, QUALITIES
from cwbc.wording import percent

LABELS = ("filtered-bc", "rvs", "rvs+cwbc")
LOWEST = "medium-replay"
_ORDER = tuple(FILTERED_BC.scores["rvs"])  # the table goes by quality


def claims(evidence: Evidence) -> list[Claim]:
    """Where conditioning on a return is said to pay."""
    found = evidence.pairs("rvs+cwbc", "filtered-bc")
    of_kind = {
        kind: {dataset: pair for dataset, pair in found.items() if quality(dataset) == kind}
        for kind in QUALITIES
    }
    return [
        *(
            on_average(
                f"CWBC performs comparably to Filtered BC on the {kind} datasets.",
                f"On average RvS+CWBC at 1x expert reaches {percent(COMPARABLE)} of Filtered BC",
                evidence.of_quality(kind),
                of_kind[kind],
                comparable,
            )
            for kind in QUALITIES
            if kind != LOWEST
        ),
        gained(
            "CWBC outperforms Filtered BC by 12 % on average on the medium-replay datasets.",
            evidence.of_quality(LOWEST),
            of_kind[LOWEST],
            0.12,
        ),
        on_average(
            "CWBC scores higher than Filtered BC on average over all datasets.",
            "Its average is the higher one",
            evidence.datasets,
            found,
            operator.gt,
        ),
    ]


def findings(evidence: Evidence) -> Findings:
    """The scores beside the paper's, and where conditioning on a return pays."""
    table = showing.expert_table(evidence, LABELS, FILTERED_BC, by_quality=True)
    overall = Overall.of(evidence, LABELS)
    tables = {"filtered-bc": table, "overall": overall.table(dict.fromkeys(LABELS[1:], "filtered-bc"))}
    return Findings(claims(evidence), tables, [*overall.profiles(), *showing.curves(evidence)])


ITEM = Item(
    "filtered-bc",
    "Table 8",
    "Filtered BC against RvS and RvS+CWBC at the expert return",
    _ORDER,
    REPLAYS,
    LABELS,
    claims,
    findings,
)
