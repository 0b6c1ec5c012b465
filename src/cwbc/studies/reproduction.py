"""The report about an item: how much of what the paper says our run supports, claim by claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from html import escape

from cwbc.dataset_summary import DatasetSummary
from cwbc.evidence.item import Case, Claim
from cwbc.evidence.measured import Evidence
from cwbc.grids.outcomes import Failure, Results
from cwbc.reporting.page import Section
from cwbc.studies.extent import Extent
from cwbc.studies.origins import histories_of
from cwbc.studies.writing import File, Report

CLAIMS = "claims.md"
VERDICTS = {True: "supported", False: "not supported", None: "cannot be told"}
_LOOKS = {True: "good", False: "bad", None: ""}


def report(
    extent: Extent,
    evidence: Evidence,
    results: Results,
    datasets: Mapping[str, DatasetSummary],
    provenance: Mapping[str, str],
) -> Report:
    """The report about an item's claims; datasets are by name."""
    item = extent.item
    title = f"{item.place} – {item.shows}"
    findings = item.findings(evidence)
    finding = headline(extent, findings.claims)
    remarks = [*extent.remarks(datasets), *evidence.broken]
    claims = _claims_in_markdown(finding, remarks, findings.claims, results.failures)
    return Report(
        title=title,
        kicker=f"Reproduction · {title}",
        headline=finding,
        remarks=remarks,
        findings=findings,
        results=results,
        datasets=datasets,
        histories=histories_of(results.outcomes),
        provenance=provenance,
        summary={
            "item": {"name": item.name, "place": item.place, "shows": item.shows},
            "claims": [dataclasses.asdict(claim) for claim in findings.claims],
        },
        sections=[Section("What the paper says", [_claims(findings.claims)])],
        files={CLAIMS: File(claims, "the claims and their verdicts")},
    )


def headline(extent: Extent, claims: Sequence[Claim]) -> str:
    """The finding in a sentence."""
    place = extent.item.place
    decided = [claim for claim in claims if claim.verdict is not None]
    held = sum(claim.verdict is True for claim in decided)
    open_ = len(claims) - len(decided)
    rest = f"; {open_} cannot be told" if open_ else ""
    told = f"{held} of {len(decided)} claims{rest}"
    if not decided:
        return f"{place}: none of the {len(claims)} claims of the paper can be told from this run."
    if extent.is_small:
        return f"{place}: a small run, which is no evidence, goes the paper's way in {told}."
    return f"{place}: our run supports {held} of {len(decided)} claims of the paper{rest}."


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
    lines += [f"- **failed**: {failure}" for failure in failures]
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
