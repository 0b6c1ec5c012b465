"""Table 7 and Figure 12: trajectory weighting against training on the best tenth alone."""

from __future__ import annotations

import operator

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import best_on_average, gained, on_average, unless_turned, untold
from cwbc.evidence.measured import Evidence, Measured
from cwbc.evidence.naming import REPLAYS
from cwbc.evidence.overall import Overall
from cwbc.evidence.published import DATASETS, HARD_FILTERING
from cwbc.wording import percent

LABELS = ("rvs", "rvs+w", "rvs+c", "rvs+cwbc", "rvs+f", "rvs+f+c")
MUCH_SMALLER = 2 / 3


def claims(evidence: Evidence) -> list[Claim]:
    """What hard filtering is said to cost."""
    return [
        gained(
            "RvS+F+C gains notable improvements over RvS (11 % in the table).",
            evidence.datasets,
            evidence.pairs("rvs+f+c", "rvs"),
            0.11,
        ),
        _averages(evidence, "RvS+F+C lags behind RvS+W+C.", "rvs+cwbc", "rvs+f+c"),
        _averages(
            evidence,
            "Filtering seems to erode the benefits of conservatism alone, RvS+C.",
            "rvs+c",
            "rvs+f+c",
        ),
        _best(evidence),
        _variance(evidence),
    ]


def findings(evidence: Evidence) -> Findings:
    """The scores beside the paper's, and what hard filtering costs."""
    table = showing.expert_table(evidence, LABELS, HARD_FILTERING, wins_over=dict.fromkeys(LABELS[1:], "rvs"))
    overall = Overall.of(evidence, LABELS)
    tables = {
        "hard-filtering": table,
        "overall": overall.table(dict.fromkeys(LABELS[1:], "rvs")),
        "named-returns": showing.landmark_table(evidence),
    }
    return Findings(claims(evidence), tables, [*overall.profiles(), *showing.curves(evidence)])


def _best(evidence: Evidence) -> Claim:
    text, scores = "RvS+W+C has the highest average of all variants.", evidence.at_expert(*LABELS)
    return unless_turned(best_on_average(text, "rvs+cwbc", scores), evidence.missing(scores))


def _averages(evidence: Evidence, text: str, higher: str, lower: str) -> Claim:
    rule = f"{higher} scores higher than {lower} at 1x expert on average"
    return on_average(text, rule, evidence.datasets, evidence.pairs(higher, lower), operator.gt)


def _variance(evidence: Evidence) -> Claim:
    text = "RvS+W+C has much smaller variance than RvS+F+C when conditioned on large returns."
    found = evidence.having("rvs+cwbc", "rvs+f+c")
    if evidence.seeds < 2:
        return untold(text, "it takes several seeds of both")
    spreads = {dataset: (_spread(ours), _spread(theirs)) for dataset, (ours, theirs) in found.items()}
    rule = f"The mean deviation over seeds at 2x expert is at most {percent(MUCH_SMALLER)} of the other's"
    return on_average(
        text, rule, evidence.datasets, spreads, lambda ours, theirs: ours <= MUCH_SMALLER * theirs
    )


def _spread(measured: Measured) -> float:
    return float(measured.of_seeds(measured.task.far_return).std())


ITEM = Item(
    "hard-filtering",
    "Table 7",
    "RvS with weighting (+W), filtering (+F) and the regularizer (+C) at the expert return",
    DATASETS,
    REPLAYS[:2],
    LABELS,
    claims,
    findings,
)
