"""Figure 9: q, the percentile of returns from which on trajectories are raised by the regularizer."""

from __future__ import annotations

from cwbc.evidence import showing
from cwbc.evidence.item import Claim, Findings, Item
from cwbc.evidence.judging import WELL, decided, listed, on_datasets, unless_turned, untold, well
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import WALKERS, quality
from cwbc.grids.cells import Variant
from cwbc.wording import percent, score

VALUES = (0, 50, 95, 99)
LABELS = tuple(f"q = {value}" for value in VALUES)
POOR = 0.8  # of the default's score


def claims(evidence: Evidence) -> list[Claim]:
    """Which trajectories are good enough to be conservative about."""
    return [_high_is_well(evidence), _low_is_poor(evidence), _less_sensitive(evidence)]


def findings(evidence: Evidence) -> Findings:
    """The curves, and which trajectories are good enough to be conservative about."""
    table = showing.expert_table(evidence, evidence.labels)
    return Findings(claims(evidence), {"q": table}, showing.curves(evidence))


def _high_is_well(evidence: Evidence) -> Claim:
    verdicts = {
        dataset: (well((of["q = 95"], of["q = 99"]), max(of.values())), listed(of))
        for dataset, of in evidence.at_expert(*LABELS).items()
    }
    return on_datasets(
        "q = 95 and q = 99 perform well on all three datasets.",
        f"Both score at least {percent(WELL)} of the best q at 1x expert",
        evidence.datasets,
        verdicts,
    )


def _low_is_poor(evidence: Evidence) -> Claim:
    verdicts = {
        dataset: (max(of["q = 0"], of["q = 50"]) < POOR * of["q = 95"], listed(of))
        for dataset, of in evidence.at_expert(*LABELS).items()
        if quality(dataset) == "medium-replay"
    }
    return on_datasets(
        "q = 50 and q = 0 lead to poor results for the medium-replay dataset.",
        f"Both score below {percent(POOR)} of q = 95 at 1x expert",
        evidence.of_quality("medium-replay"),
        verdicts,
    )


def _less_sensitive(evidence: Evidence) -> Claim:
    text = "The medium and medium-expert datasets are less sensitive to the choice of q."
    spreads = {
        dataset: max(of.values()) - min(of.values()) for dataset, of in evidence.at_expert(*LABELS).items()
    }
    replay = [spread for dataset, spread in spreads.items() if quality(dataset) == "medium-replay"]
    others = [spread for dataset, spread in spreads.items() if quality(dataset) != "medium-replay"]
    if not replay or not others:
        return untold(text, "it takes medium-replay and others")
    numbers = ", ".join(f"{dataset} {score(spread)}" for dataset, spread in spreads.items())
    rule = "At 1x expert the range of scores over q is widest on medium-replay"
    claim = decided(text, rule, max(others) < min(replay), f"Points: {numbers}")
    return unless_turned(claim, evidence.missing(spreads), True)


ITEM = Item(
    "q",
    "Figure 9",
    "CWBC that regularizes trajectories from the q-th percentile up, q = 0, 50, 95, 99, on walker2d",
    WALKERS,
    (WALKERS[0], WALKERS[2]),
    tuple(Variant(f"q = {value}", "rvs+cwbc", {"percentile": float(value)}) for value in VALUES),
    claims,
    findings,
)
