"""Reports on disk: cut off anywhere, they can be written again by the same command."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import HOLDS, curves

from cwbc.evidence.distributions import Distribution
from cwbc.evidence.item import Findings
from cwbc.grids.outcomes import Results
from cwbc.studies import places, writing
from cwbc.studies.writing import File, Report


def report(dataset: str, **contents: str) -> Report:
    """A report that has a picture of this dataset and these files."""
    results = Results(curves([dataset], rvs=HOLDS), [])
    summary = {"item": {"name": "table1"}}
    files = {name: File(content, "") for name, content in contents.items()}
    return Report("Title", "Kind", "Finding", [], Findings(()), results, {}, {}, {}, summary, files=files)


class Killed(BaseException):
    """Nothing goes on after it."""


def killed_after(count: int, change: Callable[..., Any], changes: itertools.count[int]) -> Callable[..., Any]:
    """The same change, until together with others it was made this often."""

    def changed(*arguments: Any, **settings: Any) -> Any:
        if next(changes) >= count:
            raise Killed
        return change(*arguments, **settings)

    return changed


def cut_off(out: Path, told: Report, count: int) -> bool:
    """Write a report until this many files were written or removed; whether that was too early."""
    changes = itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", killed_after(count, os.replace, changes))
        patch.setattr(Path, "unlink", killed_after(count, Path.unlink, changes))
        try:
            writing.write(out, told)
        except Killed:
            return True
    return False


@pytest.mark.parametrize("is_first", [True, False])
def test_a_report_that_was_cut_off_is_written_by_the_same_command(
    is_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "reliability_figure", lambda *_: b"a picture")
    before = report("hopper-medium", old="of before", both="of before")
    after = report("walker2d-medium", new="of now", both="of now")
    for count in itertools.count():
        out = tmp_path / str(count)
        if not is_first:
            writing.write(out, before)
        early = cut_off(out, after, count)
        places.check(out, "table1", "--out")
        writing.write(out, after)
        files = json.loads((out / "summary.json").read_text())["files"]
        assert sorted(path.name for path in out.iterdir()) == sorted(files)
        assert (out / "both").read_text() == "of now"
        if not early:
            break
    assert count == 7 + 2 * (not is_first)  # its files, and two of the earlier report that it has no use for


def test_pictures_of_distributions_are_called_as_their_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Distribution, "figure", lambda self: self.title.encode())
    shown = Distribution.of("mine", "A title: of mine", np.arange(2.0), {"evenly": np.full(2, 0.5)})
    findings = Findings((), distributions=[shown])
    told = dataclasses.replace(report("hopper-medium"), findings=findings, results=Results([], []))
    assert "returns-mine.png" in writing.write(tmp_path, told)
    assert (tmp_path / "returns-mine.png").read_text() == "A title: of mine"
