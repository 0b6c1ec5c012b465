"""Table 7 and Figure 12: trajectory weighting against training on the best tenth alone."""

from __future__ import annotations

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import average, best_on_average, decided, gained, unless_turned, untold
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import REPLAYS
from cwbc.evidence.overall import Overall
from cwbc.evidence.published import DATASETS, HARD_FILTERING
from cwbc.wording import counted, percent, score

LABELS = ("rvs", "rvs+w", "rvs+c", "rvs+cwbc", "rvs+f", "rvs+f+c")
MUCH_SMALLER = 2 / 3


def findings(evidence: Evidence) -> Findings:
    """The scores beside the paper's, and what hard filtering costs."""
    claims = [
        _gain(evidence),
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
    table = showing.expert_table(evidence, LABELS, HARD_FILTERING, wins_over=dict.fromkeys(LABELS[1:], "rvs"))
    overall = Overall.of(evidence, LABELS)
    tables = {
        "hard-filtering": table,
        "overall": overall.table(dict.fromkeys(LABELS[1:], "rvs")),
        "named-returns": showing.landmark_table(evidence),
    }
    return Findings(claims, tables, [*overall.profiles(), *showing.curves(evidence)])


def _gain(evidence: Evidence) -> Claim:
    text = "RvS+F+C gains notable improvements over RvS (11 % in the table)."
    scores = evidence.at_expert("rvs+f+c", "rvs")
    pairs = [(of["rvs+f+c"], of["rvs"]) for of in scores.values()]
    return unless_turned(gained(text, pairs, 0.11, ("rvs+f+c", "rvs")), evidence.missing(scores))


def _best(evidence: Evidence) -> Claim:
    text, scores = "RvS+W+C has the highest average of all variants.", evidence.at_expert(*LABELS)
    return unless_turned(best_on_average(text, "rvs+cwbc", scores), evidence.missing(scores))


def _averages(evidence: Evidence, text: str, higher: str, lower: str) -> Claim:
    found = evidence.having(higher, lower)
    if not found:
        return untold(text, f"no dataset has {higher} and {lower}")
    one, other = (average(methods[i].at_expert for methods in found.values()) for i in (0, 1))
    numbers = f"{score(one)} against {score(other)} over {counted(len(found), 'dataset')}"
    rule = f"{higher} scores higher than {lower} at 1x expert on average"
    return unless_turned(decided(text, rule, one > other, numbers), evidence.missing(found))


def _variance(evidence: Evidence) -> Claim:
    text = "RvS+W+C has much smaller variance than RvS+F+C when conditioned on large returns."
    found = evidence.having("rvs+cwbc", "rvs+f+c")
    pairs = found.values()
    spreads = [[float(each.of_seeds(each.task.far_return).std()) for each in pair] for pair in pairs]
    if not spreads or min(len(each.sweep.seeds) for pair in pairs for each in pair) < 2:
        return untold(text, "it takes several seeds of both")
    ours, theirs = (average(column) for column in zip(*spreads, strict=True))
    rule = f"The mean deviation over seeds at 2x expert is at most {percent(MUCH_SMALLER)} of the other's"
    numbers = f"{score(ours)} against {score(theirs)} points"
    claim = decided(text, rule, ours <= MUCH_SMALLER * theirs, numbers)
    return unless_turned(claim, evidence.missing(found))


ITEM = Item(
    "hard-filtering",
    "Table 7",
    "RvS with weighting (+W), filtering (+F) and the regularizer (+C) at the expert return",
    DATASETS,
    REPLAYS[:2],
    LABELS,
    findings,
)
