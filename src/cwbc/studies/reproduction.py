"""The report about an item: how much of what the paper says our run supports, claim by claim."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cwbc.dataset_summary import DatasetSummary
from cwbc.evidence.item import Case, Claim
from cwbc.evidence.measured import Evidence
from cwbc.evidence.resampling import RULE, exact, judged
from cwbc.grids.outcomes import Failure, Results
from cwbc.reporting.page import Section, paragraph
from cwbc.studies.extent import Extent
from cwbc.studies.origins import histories_of, warnings_of
from cwbc.studies.writing import File, Report
from cwbc.wording import counted

CLAIMS = "claims.md"
_LOOKS = {"supported": "good", "contradicted": "bad", "inconclusive": ""}
_MARKS = {"supported": "+", "contradicted": "−", "inconclusive": "?"}


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
    findings = dataclasses.replace(item.findings(evidence), claims=judged(item.claims, evidence))
    finding = headline(extent, findings.claims)
    remarks = [*extent.remarks(datasets), *evidence.broken]
    rule = [RULE] if item.variants else []
    claims = _claims_in_markdown(finding, [*remarks, *rule], findings.claims, results.failures)
    return Report(
        title=title,
        kicker=f"Reproduction · {title}",
        headline=finding,
        remarks=remarks,
        findings=findings,
        results=results,
        datasets=datasets,
        histories=histories_of(results.outcomes),
        training_warnings=warnings_of(results.outcomes),
        provenance=provenance,
        summary={
            "item": {"name": item.name, "place": item.place, "shows": item.shows},
            "claims": [_plain(claim) for claim in findings.claims],
        },
        sections=[Section("What the paper says", [*map(paragraph, rule), _claims(findings.claims)])],
        files={CLAIMS: File(claims, "the claims and their verdicts")},
    )


def headline(extent: Extent, claims: Sequence[Claim]) -> str:
    """The finding in a sentence."""
    count = collections.Counter(claim.verdict for claim in claims)
    supports, contradicts = "our run supports", "contradicts"
    if extent.is_small:
        supports, contradicts = "a small run, which is no evidence, would support", "contradict"
    return (
        f"{extent.item.place}: of {counted(len(claims), 'claim')} of the paper, "
        f"{supports} {count['supported']} and {contradicts} {count['contradicted']}; "
        f"{count['inconclusive']} inconclusive."
    )


def case_in_words(case: Case) -> str:
    """What one dataset says, marked by its verdict about the claim."""
    return f"{_MARKS[case.verdict]} {case.dataset}: {_numbers(case)}"


def _numbers(case: Case) -> str:
    """The numbers, and how often it holds where that is left to chance."""
    if case.holds_in is None or case.verdict != "inconclusive":
        return case.numbers
    return f"{case.numbers}; holds in {exact(case.holds_in)}"


def _plain(claim: Claim) -> dict[str, Any]:
    """For summary.json."""
    cases = [{"verdict": case.verdict, **dataclasses.asdict(case)} for case in claim.cases]
    return {"verdict": claim.verdict, **dataclasses.asdict(claim), "cases": cases}


def _claims_in_markdown(
    finding: str, remarks: Sequence[str], claims: Sequence[Claim], failures: Sequence[Failure]
) -> str:
    lines = [f"# {finding}", "", *remarks, ""]
    for claim in claims:
        lines += [f"- **{claim.verdict}**: {claim.text}", f"  {claim.reason}"]
        lines += [f"  - {case_in_words(case)}" for case in claim.cases]
    lines += [f"- **failed**: {failure}" for failure in failures]
    return "\n".join(lines) + "\n"


def _claims(claims: Sequence[Claim]) -> str:
    rows = "".join(
        f'<dt class="{_LOOKS[claim.verdict]}">{claim.verdict}</dt>'
        f"<dd><strong>{escape(claim.text)}</strong>\n{escape(claim.reason)}{_cases(claim)}</dd>"
        for claim in claims
    )
    return f'<dl class="facts">{rows}</dl>'


def _cases(claim: Claim) -> str:
    items = "".join(
        f'<li class="{_LOOKS[case.verdict]}"><b>{escape(case.dataset)}</b> {escape(_numbers(case))}</li>'
        for case in claim.cases
    )
    return f'<ul class="cases">{items}</ul>' if items else ""
