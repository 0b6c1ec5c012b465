"""Reports on disk: cut off anywhere, they can be written again by the same command."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hand_made import HOLDS, curves
from pages import CONFIG

from cwbc.grids.outcomes import Results
from cwbc.reports import writing
from cwbc.reports.grid_report import about_grid
from cwbc.reports.report import File, ReportDocument
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.files import is_aside

UNLINK = Path.unlink


def report(dataset: str, **contents: str) -> ReportDocument:
    """A report that has a picture of this dataset and these files."""
    outcomes = curves([dataset], rvs=HOLDS)
    summary = {"item": {"name": "table1"}}
    files = {name: File(content, "") for name, content in contents.items()}
    bare = ReportDocument("Title", "Kind", "Finding", [], {}, {}, summary, files=files)
    with pytest.MonkeyPatch.context() as patch:  # these cells have no directories
        patch.setattr(RunDirectory, "config", lambda _: CONFIG)
        patch.setattr(RunDirectory, "metrics", lambda _: [])
        patch.setattr(RunDirectory, "training_warnings", lambda _: [])
        return about_grid(bare, Results(outcomes, []), {outcomes[0].cell.dataset: outcomes[0].dataset})


class Killed(BaseException):
    """Nothing goes on after it."""


def killed_after(count: int, change: Callable[..., Any], changes: itertools.count[int]) -> Callable[..., Any]:
    """The same change, until together with others it was made this often."""

    def changed(*arguments: Any, **settings: Any) -> Any:
        # Temporary files are removed in any case.
        if not (change is UNLINK and is_aside(arguments[0])) and next(changes) >= count:
            raise Killed
        return change(*arguments, **settings)

    return changed


def cut_off(out: Path, shown: ReportDocument, count: int) -> bool:
    """Write a report until this many files were written or removed; whether that was too early."""
    changes = itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", killed_after(count, os.replace, changes))
        patch.setattr(Path, "unlink", killed_after(count, UNLINK, changes))
        try:
            writing.write(out, shown)
        except Killed:
            return True
    return False


@pytest.mark.parametrize("is_first", [True, False])
def test_a_report_that_was_cut_off_is_written_by_the_same_command(
    is_first: bool, tmp_path: Path, no_pictures: None
) -> None:
    before = report("hopper-medium", old="of before", both="of before")
    after = report("walker2d-medium", new="of now", both="of now")
    for count in itertools.count():
        out = tmp_path / str(count)
        if not is_first:
            writing.write(out, before)
        early = cut_off(out, after, count)
        writing.check(out, "table1", "--out")
        writing.write(out, after)
        files = json.loads((out / "summary.json").read_text())["files"]
        assert sorted(path.name for path in out.iterdir()) == sorted(files)
        assert (out / "both").read_text() == "of now"
        if not early:
            break
    assert count == 7 + 2 * (not is_first)  # its files, and two of the earlier report that it has no use for
