"""The report about an item: how much of what the paper says our run supports, claim by claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from html import escape

from cwbc.dataset_summary import DatasetSummary
from cwbc.experiments.item import Case, Claim, Findings, Item
from cwbc.experiments.writing import Report, failed
from cwbc.grids.outcomes import Failure, Results
from cwbc.reporting.page import Section
from cwbc.reporting.training import Histories

CLAIMS = "claims.md"
VERDICTS = {True: "supported", False: "not supported", None: "cannot be told"}
_LOOKS = {True: "good", False: "bad", None: ""}


@dataclasses.dataclass(frozen=True)
class Told:
    """What a report says beside the findings."""

    quick: bool
    remarks: Sequence[str]  # what one must know to read the numbers
    provenance: Mapping[str, str]
    datasets: Mapping[str, DatasetSummary]  # by name
    histories: Mapping[str, Histories]  # of what was trained, by the dataset's name


def report(item: Item, findings: Findings, results: Results, told: Told) -> Report:
    """The report about an item's claims."""
    title = f"{item.place} – {item.shows}"
    finding = headline(item, findings.claims, told.quick)
    return Report(
        title=title,
        kicker=f"Reproduction · {title}",
        headline=finding,
        remarks=told.remarks,
        findings=findings,
        results=results,
        datasets=told.datasets,
        histories=told.histories,
        provenance=told.provenance,
        summary={
            "item": {"name": item.name, "place": item.place, "shows": item.shows},
            "claims": [dataclasses.asdict(claim) for claim in findings.claims],
        },
        sections=[Section("What the paper says", [_claims(findings.claims)])],
        files={CLAIMS: _claims_in_markdown(finding, told.remarks, findings.claims, results.failures)},
    )


def headline(item: Item, claims: Sequence[Claim], quick: bool) -> str:
    """The finding in a sentence."""
    decided = [claim for claim in claims if claim.verdict is not None]
    held = sum(claim.verdict is True for claim in decided)
    open_ = len(claims) - len(decided)
    rest = f"; {open_} cannot be told" if open_ else ""
    if not decided:
        return f"{item.place}: none of the {len(claims)} claims of the paper can be told from this run."
    if quick:
        return f"{item.place}: a quick run goes the paper's way in {held} of {len(decided)} claims{rest}."
    return f"{item.place}: our run supports {held} of {len(decided)} claims of the paper{rest}."


def case_in_words(case: Case) -> str:
    """What one dataset says, marked by whether it supports the claim."""
    return f"{'+' if case.holds else '−'} {case.dataset}: {case.numbers}"


def _claims_in_markdown(
    finding: str, remarks: Sequence[str], claims: Sequence[Claim], failures: Sequence[Failure]
) -> str:
    lines = [f"# {finding}", "", *remarks, ""]
    for claim in claims:
        lines += [f"- **{VERDICTS[claim.verdict]}**: {claim.text}", f"  {claim.reason}"]
        lines += [f"  - {case_in_words(case)}" for case in claim.cases]
    lines += [f"- **failed**: {failed(failure)}" for failure in failures]
    return "\n".join(lines) + "\n"


def _claims(claims: Sequence[Claim]) -> str:
    rows = "".join(
        f'<dt class="{_LOOKS[claim.verdict]}">{VERDICTS[claim.verdict]}</dt>'
        f"<dd><strong>{escape(claim.text)}</strong>\n{escape(claim.reason)}{_cases(claim)}</dd>"
        for claim in claims
    )
    return f'<dl class="facts">{rows}</dl>'


def _cases(claim: Claim) -> str:
    items = "".join(
        f'<li class="{_LOOKS[case.holds]}"><b>{escape(case.dataset)}</b> {escape(case.numbers)}</li>'
        for case in claim.cases
    )
    return f'<ul class="cases">{items}</ul>' if items else ""
