"""The files of a report about a grid: a page, its numbers, tables, pictures, and all that was measured."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cwbc.dataset_summary import DatasetSummary
from cwbc.errors import InputError
from cwbc.evidence.item import Findings
from cwbc.evidence.naming import distinct_names, file_names
from cwbc.files import read_json, write_together
from cwbc.grids.outcomes import Outcome, Results
from cwbc.reporting.figures import reliability_figure
from cwbc.reporting.page import Page, Section, facts, folded, links, paragraph
from cwbc.reporting.report import described
from cwbc.reporting.training import Histories, drawn_chart, training_chart
from cwbc.runs import CELLS, PAGE, SUMMARY

SEEDS = "seeds.csv"


class File(NamedTuple):
    """A file beside the page."""

    content: str | bytes
    what: str  # it is, for people


@dataclasses.dataclass(frozen=True)
class Report:
    """A report as a value.

    Args:
        summary: what summary.json begins with.
        sections: what the page has before everything else.
        files: what lies beside the page beyond what all reports have.
    """

    title: str  # of the window
    kicker: str  # what kind of report about what
    headline: str  # the finding
    remarks: Sequence[str]  # what one must know to read the numbers
    findings: Findings
    results: Results
    datasets: Mapping[str, DatasetSummary]  # by name
    histories: Mapping[str, Histories]  # of what was trained, by the dataset's name
    provenance: Mapping[str, str]
    summary: Mapping[str, Any]
    training_warnings: Sequence[str] = ()  # shown at the top
    sections: Sequence[Section] = ()
    files: Mapping[str, File] = dataclasses.field(default_factory=dict)


def write(out: Path, report: Report) -> list[str]:
    """Write everything; hands back the files' names."""
    out.mkdir(parents=True, exist_ok=True)
    beside = _beside(report)
    whats = {SUMMARY: "all numbers, with what made them"} | {name: file.what for name, file in beside.items()}
    page = _page(report, whats).to_html()
    files = [PAGE, SUMMARY, *beside]
    summary = json.dumps({**_summary(report), "files": files}, indent=2, allow_nan=False) + "\n"
    # Whatever is cut off here, the next report finds a summary that says whose files these are, and which.
    contents: dict[str, str | bytes | None] = {
        name: None  # about other cells than these
        for name in _earlier(out)
        if name not in files
    }
    contents |= {SUMMARY: summary} | {name: file.content for name, file in beside.items()} | {PAGE: page}
    write_together({out / name: content for name, content in contents.items()})
    return files


def _beside(report: Report) -> dict[str, File]:
    """All files but the page and its summary."""
    files = {**report.files}
    if outcomes := report.results.outcomes:
        files[CELLS] = File(_cells(outcomes), "the directory of each cell, where every episode is")
        files[SEEDS] = File(_seeds(outcomes), "what each seed achieved at each target return")
    for name, table in report.findings.tables.items():
        files[f"{name}.md"] = File(table.to_markdown(), table.title)
        files[f"{name}.csv"] = File(table.to_csv(), "the same as CSV")
    return files | _pictures(report)


def _earlier(out: Path) -> list[str]:
    """The files that an earlier report left here."""
    try:
        names = list(read_json(out / SUMMARY)["files"])
    except (OSError, InputError, TypeError, KeyError):
        return []
    return [name for name in names if isinstance(name, str) and Path(name).name == name]


def _pictures(report: Report) -> dict[str, File]:
    pictures, outcomes = {}, report.results.outcomes
    names = distinct_names(report.results.datasets)
    files = file_names(names.values())
    for name in dict.fromkeys(outcome.cell.dataset for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.cell.dataset == name]
        dataset = own[0].dataset
        png = reliability_figure([outcome.sweep for outcome in own], dataset)
        pictures[f"{files[names[name]]}.png"] = File(png, "achieved vs. target return")
    for each in report.findings.distributions:
        pictures[f"returns-{each.dataset}.png"] = File(each.figure(), "returns of the data, as drawn")
    return pictures


def _summary(report: Report) -> dict[str, Any]:
    return {
        **report.summary,
        "tables": {name: table.plain() for name, table in report.findings.tables.items()},
        "remarks": list(report.remarks),
        "training_warnings": list(report.training_warnings),
        "failures": [
            {"dataset": f.cell.dataset, "method": f.cell.label, "reason": f.reason}
            for f in report.results.failures
        ],
        "datasets": [{**dataset.to_json(), "name": name} for name, dataset in report.datasets.items()],
        "provenance": dict(report.provenance),
    }


def _cells(outcomes: Sequence[Outcome]) -> str:
    """Where each cell lies, with all that was measured and trained in it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("dataset", "method", "directory"))
    writer.writerows((each.cell.dataset, each.cell.label, each.directory) for each in outcomes)
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
            for t, target in enumerate(sweep.targets.tolist() if sweep.takes_target else [""]):
                numbers = (f"{float(each[s, t]):.8g}" for each in (returns, scores, lengths))
                writer.writerow((outcome.cell.dataset, sweep.method, seed, target, *numbers))
    return text.getvalue()


def _page(report: Report, files: Mapping[str, str]) -> Page:
    findings = report.findings
    charts = [each.chart().to_html() for each in findings.distributions]
    charts += [chart.to_html() for chart in findings.charts]
    blocks = {
        "What failed": [paragraph(str(failure)) for failure in report.results.failures],
        "Tables": [table.to_html() for table in findings.tables.values()],
        "Charts": charts,
        "Datasets and training": [
            _described(name, dataset, report.histories.get(name, {}))
            for name, dataset in report.datasets.items()
        ],
        "Provenance": [facts(report.provenance)] if report.provenance else [],
        "Files": [links(files)],
    }
    sections = [Section(heading, found) for heading, found in blocks.items() if found]
    remarks = " ".join(report.remarks)
    return Page(
        report.title,
        report.kicker,
        report.headline,
        remarks,
        [*report.sections, *sections],
        warnings=report.training_warnings,
    )


def _described(name: str, dataset: DatasetSummary, histories: Histories) -> str:
    charts = (drawn_chart(histories, dataset), training_chart(histories))
    return folded(
        name, facts(described(dataset)), *(chart.to_html() for chart in charts if chart is not None)
    )
