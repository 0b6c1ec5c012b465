"""The files that an item leaves: a page, its numbers, tables, pictures, and all that was measured."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from cwbc.dataset_summary import DatasetSummary
from cwbc.experiments.item import Case, Claim, Findings, Item
from cwbc.experiments.naming import short_name
from cwbc.files import write_atomically
from cwbc.grids.outcomes import Failure, Outcome
from cwbc.reporting.figures import reliability_figure
from cwbc.reporting.page import Page, Section, facts, folded, links, paragraph
from cwbc.reporting.training import Histories, drawn_chart, training_chart
from cwbc.results import COLUMNS, episodes
from cwbc.wording import amount

PAGE, SUMMARY, CLAIMS = "report.html", "summary.json", "claims.md"
RESULTS, SEEDS = "results.csv", "seeds.csv"  # every episode, and their means by seed
VERDICTS = {True: "supported", False: "not supported", None: "cannot be told"}
_LOOKS = {True: "good", False: "bad", None: ""}


@dataclasses.dataclass(frozen=True)
class Told:
    """What a page says beside the findings."""

    quick: bool
    remarks: Sequence[str]  # what one must know to read the numbers
    provenance: Mapping[str, str]
    datasets: Sequence[DatasetSummary]
    histories: Mapping[str, Histories]  # of what was trained, by dataset


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


def write(
    out: Path,
    item: Item,
    findings: Findings,
    outcomes: Sequence[Outcome],
    failures: Sequence[Failure],
    told: Told,
) -> list[str]:
    """Write everything; hands back the files' names."""
    out.mkdir(parents=True, exist_ok=True)
    written: dict[str, str | bytes] = {CLAIMS: _claims_in_markdown(item, findings.claims, failures, told)}
    if outcomes:
        written |= {RESULTS: _results(outcomes), SEEDS: _seeds(outcomes)}
    for name, table in findings.tables.items():
        written |= {f"{name}.md": table.to_markdown(), f"{name}.csv": table.to_csv()}
    written |= _pictures(findings, outcomes)
    files = [PAGE, SUMMARY, *written]
    written[PAGE] = _page(item, findings, failures, told, files[1:]).to_html()
    for name in _earlier(out):
        if name not in files:  # about other cells than these
            (out / name).unlink(missing_ok=True)
    summary = {**_summary(item, findings, failures, told), "files": files}
    for name, content in written.items():
        write_atomically(out / name, content)
    write_atomically(out / SUMMARY, json.dumps(summary, indent=2, allow_nan=False) + "\n")
    return files


def _earlier(out: Path) -> list[str]:
    """The files that an earlier report left here."""
    try:
        names = json.loads((out / SUMMARY).read_text())["files"]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return [name for name in names if isinstance(name, str) and Path(name).name == name]


def _pictures(findings: Findings, outcomes: Sequence[Outcome]) -> dict[str, bytes]:
    pictures = {}
    for name in dict.fromkeys(outcome.cell.dataset for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.cell.dataset == name]
        dataset = own[0].dataset
        png = reliability_figure([outcome.sweep for outcome in own], dataset.task, dataset)
        pictures[f"{short_name(name)}.png"] = png
    for each in findings.distributions:
        pictures[f"returns-{each.title.split(':')[0]}.png"] = each.figure()
    return pictures


def _summary(item: Item, findings: Findings, failures: Sequence[Failure], told: Told) -> dict[str, Any]:
    return {
        "item": {"name": item.name, "place": item.place, "shows": item.shows},
        "claims": [dataclasses.asdict(claim) for claim in findings.claims],
        "tables": {name: list(csv.reader(io.StringIO(t.to_csv()))) for name, t in findings.tables.items()},
        "remarks": list(told.remarks),
        "failures": [
            {"dataset": f.cell.dataset, "method": f.cell.label, "reason": f.reason} for f in failures
        ],
        "datasets": [dataset.to_json() for dataset in told.datasets],
        "provenance": dict(told.provenance),
    }


def _claims_in_markdown(item: Item, claims: Sequence[Claim], failures: Sequence[Failure], told: Told) -> str:
    lines = [f"# {headline(item, claims, told.quick)}", "", *told.remarks, ""]
    for claim in claims:
        lines += [f"- **{VERDICTS[claim.verdict]}**: {claim.text}", f"  {claim.reason}"]
        lines += [f"  - {case_in_words(case)}" for case in claim.cases]
    lines += [f"- **failed**: {failed(failure)}" for failure in failures]
    return "\n".join(lines) + "\n"


def failed(failure: Failure) -> str:
    """A failed cell and why."""
    return f"{failure.cell.dataset}, {failure.cell.label}: {failure.reason}"


def _results(outcomes: Sequence[Outcome]) -> str:
    """Every episode, as in a run's results.csv, with the dataset before it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("dataset", *COLUMNS))
    for outcome in outcomes:
        dataset = outcome.cell.dataset
        writer.writerows((dataset, *row) for row in episodes(outcome.sweep, outcome.dataset.task))
    return text.getvalue()


def _seeds(outcomes: Sequence[Outcome]) -> str:
    """What every seed reached on average at every asked return: all that the tables are computed from."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("dataset", "method", "seed", "target", "return", "normalized", "length"))
    for outcome in outcomes:
        sweep = outcome.sweep
        returns, lengths = sweep.returns.mean(axis=2), sweep.lengths.mean(axis=2)
        scores = outcome.dataset.task.normalize(returns)
        for s, seed in enumerate(sweep.seeds.tolist()):
            for t, target in enumerate(sweep.targets.tolist()):
                numbers = (f"{float(each[s, t]):.8g}" for each in (returns, scores, lengths))
                writer.writerow((outcome.cell.dataset, sweep.method, seed, target, *numbers))
    return text.getvalue()


def _page(
    item: Item, findings: Findings, failures: Sequence[Failure], told: Told, files: Sequence[str]
) -> Page:
    charts = [each.chart().to_html() for each in findings.distributions]
    charts += [chart.to_html() for chart in findings.charts]
    sections = [Section("What the paper says", [_claims(findings.claims)])]
    if failures:
        sections.append(Section("What failed", [paragraph(failed(failure)) for failure in failures]))
    tables = [table.to_html() for table in findings.tables.values()]
    sections.append(Section("Tables", tables))
    if charts:
        sections.append(Section("Charts", charts))
    described = [_described(each, told.histories.get(each.name, {})) for each in told.datasets]
    sections.append(Section("Datasets and training", described))
    sections.append(Section("Provenance", [facts(told.provenance)]))
    sections.append(Section("Files", [links(dict.fromkeys(files, ""))]))
    title = f"{item.place} – {item.shows}"
    return Page(
        title,
        f"Reproduction · {title}",
        headline(item, findings.claims, told.quick),
        " ".join(told.remarks),
        sections,
    )


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


def _described(dataset: DatasetSummary, histories: Histories) -> str:
    known = {
        "environment": dataset.environment or "unknown",
        "episodes": f"{dataset.episodes:,}",
        "steps": f"{dataset.steps:,}",
        "returns": f"{amount(dataset.lowest)} to {amount(dataset.best)}, mean {amount(dataset.mean_return)}",
        "content hash": dataset.content_hash,
    }
    charts = (drawn_chart(histories, dataset), training_chart(histories))
    return folded(dataset.name, facts(known), *(chart.to_html() for chart in charts if chart is not None))
