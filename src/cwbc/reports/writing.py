"""Reports about grids on disk: the page, its numbers, tables and pictures."""

from __future__ import annotations

import json
import os
from pathlib import Path

from cwbc.reports.report import ReportDocument
from cwbc.runs.run_directory import PAGE, SUMMARY, RunDirectory
from cwbc.system.errors import InputError
from cwbc.system.files import is_aside, read_json, write_together


def check(out: Path, item: str | None, other: str) -> None:
    """Refuse to put a report among files that are not those of an earlier one.

    Args:
        item: of the paper, that it has to be about as well; None for one's own grids.
        other: what to give instead, such as another --out.
    """
    others = [path for path in out.glob("*") if path.is_file() and not is_aside(path)]
    if any(RunDirectory(path).is_run() for path in out.glob("*") if path.is_dir()):
        raise InputError(f"{out} holds cells; give another {other}")
    if not others:
        return
    try:
        summary = json.loads((out / SUMMARY).read_text())
        there = None if summary.keys() >= {"title", "files"} else str(summary["item"]["name"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{out} holds other files, such as {others[0].name}; give another {other}") from None
    if there != item:
        raise InputError(f"{out} holds the report of {there or 'a grid'}; give another {other}")


def prepare(place: Path, other: str) -> None:
    """Find out now, not after hours, whether a directory can be written to."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place} cannot be a directory ({error.strerror}); give another {other}") from error
    if not os.access(place, os.W_OK):
        raise InputError(f"{place} cannot be written to; give another {other}")


def write(out: Path, report: ReportDocument) -> list[str]:
    """Write everything; returns the files' names."""
    out.mkdir(parents=True, exist_ok=True)
    shown = report.contents()
    files = [PAGE, SUMMARY, *(name for name in shown if name != PAGE)]
    summary = {
        **report.summary,
        "tables": {name: table.plain() for name, table in report.tables.items()},
        "remarks": list(report.remarks),
        "training_warnings": list(report.training_warnings),
        "datasets": [{**part.dataset.to_json(), "name": name} for name, part in report.datasets.items()],
        "provenance": dict(report.provenance),
        "files": files,
    }
    # Wherever this is interrupted, the next report finds a summary that lists whose files these are.
    contents: dict[str, str | bytes | None] = dict.fromkeys(set(_earlier(out)) - set(files))
    contents[SUMMARY] = json.dumps(summary, indent=2, allow_nan=False) + "\n"
    contents |= shown
    write_together({out / name: content for name, content in contents.items()})
    return files


def _earlier(out: Path) -> list[str]:
    """The files that an earlier report left here."""
    try:
        names = list(read_json(out / SUMMARY)["files"])
    except (OSError, InputError, TypeError, KeyError):
        return []
    return [name for name in names if isinstance(name, str) and Path(name).name == name]
