from __future__ import annotations

import csv
import dataclasses
import errno
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pages import DATASET, TASK, history, once, sweep
from rich.console import Console

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports import summary_table, write_report
from cwbc.results.sweeps import Sweep, read_results
from cwbc.runs.finished import check_place

TARGETS = np.array([1500.0, 3200.0, 6400.0])
# The expert's return scores 100 and the random one 0, exactly.
RETURNS = np.array([TASK.expert_score, TASK.random_score, TASK.expert_score]).reshape(1, 3, 1)
SWEEP = Sweep("rvs[w]", np.arange(1), TARGETS, RETURNS, np.full((1, 3, 1), 1000))


def test_a_report_is_files_that_agree(tmp_path: Path) -> None:
    methods = write_report(tmp_path / "new" / "run", [SWEEP], DATASET, {"preset": "small"})
    files = {path.name: path for path in (tmp_path / "new" / "run").iterdir()}
    names = {"results.csv", "summary.json", "reliability.png", "report.html", "scores.md", "scores.csv"}
    assert set(files) == names
    summary = json.loads(files["summary.json"].read_text())
    assert summary["methods"] == {name: method.to_json() for name, method in methods.items()}
    assert DatasetSummary.from_json(summary["dataset"]) == DATASET
    np.testing.assert_array_equal(read_results(files["results.csv"])[0].returns, SWEEP.returns)
    assert files["reliability.png"].read_bytes().startswith(b"\x89PNG")
    page = files["report.html"].read_text(encoding="utf-8")
    assert "small" in page
    assert all(f'href="{name}"' in page for name in names - {"report.html"})
    assert "training.png" not in page
    (row,) = csv.DictReader(files["scores.csv"].read_text(encoding="utf-8").splitlines())
    assert (float(row["1× expert"]), float(row["2× expert"])) == pytest.approx((0.0, 100.0))
    assert "**" not in files["scores.md"].read_text(encoding="utf-8")  # one method is not the best of any


def test_without_matplotlib_there_are_no_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reliability.png").touch()  # of an earlier report
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_report(tmp_path, [SWEEP], DATASET, {})
    names = {"results.csv", "summary.json", "report.html", "scores.md", "scores.csv"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert "reliability.png" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    (line,) = capsys.readouterr().err.splitlines()
    wanted = "reliability.png not written: charts in files need more packages: pip install 'cwbc[plots]'"
    assert line.startswith(wanted)


def test_training_is_shown_where_it_is_known(tmp_path: Path) -> None:
    known = {SWEEP.method: history("ByReturn", (0.25, 0.75), [[2.0], [1.0]])}
    write_report(tmp_path, [SWEEP], DATASET, {}, known)
    assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "returns.png").read_bytes().startswith(b"\x89PNG")
    assert "Prediction loss" in (tmp_path / "report.html").read_text(encoding="utf-8")
    write_report(tmp_path, [SWEEP], DATASET, {})
    assert not (tmp_path / "training.png").exists()  # it was about a run that is not shown now


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


OTHERS = [
    (dataclasses.replace(SWEEP, returns=RETURNS + 1), DATASET),
    (SWEEP, dataclasses.replace(DATASET, environment="Hopper-v4")),
]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(("sweep", "dataset"), [(SWEEP, DATASET), *OTHERS])
def test_a_full_disk_leaves_the_old_report_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep: Sweep, dataset: DatasetSummary
) -> None:
    write_report(tmp_path, [SWEEP], DATASET, {})
    before, sync = contents(tmp_path), os.fsync
    for writes in range(6):  # results, two tables, a picture, the page, and the summary
        left = iter([True] * writes)

        def fsync(descriptor: int, left: Iterator[bool] = left) -> None:
            if not next(left, False):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            sync(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            with pytest.raises(OSError, match="cannot be written"):
                write_report(tmp_path, [sweep], dataset, {"preset": "paper"})
        assert contents(tmp_path) == before
    write_report(tmp_path, [sweep], dataset, {"preset": "paper"})
    assert contents(tmp_path)["report.html"] != before["report.html"]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(("sweep", "dataset"), OTHERS)
def test_a_report_that_is_cut_short_passes_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep: Sweep, dataset: DatasetSummary
) -> None:
    """results.csv may be new then, and summary.json would still tell where the old ones were measured."""
    write_report(tmp_path, [SWEEP], DATASET, {})
    path, before = tmp_path / "summary.json", (tmp_path / "summary.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", cut_short)
        with pytest.raises(KeyboardInterrupt):  # the same once more: nothing that was measured is lost
            write_report(tmp_path, [SWEEP], DATASET, {"preset": "paper"})
        assert path.read_bytes() == before
        with pytest.raises(KeyboardInterrupt):
            write_report(tmp_path, [sweep], dataset, {})
        assert not path.exists()
    check_place(tmp_path)  # it may be written again
    write_report(tmp_path, [SWEEP], DATASET, {})
    assert path.read_bytes() == before


def cut_short(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_table_shows_every_method_at_the_named_targets(tmp_path: Path) -> None:
    methods = write_report(tmp_path, [SWEEP], DATASET, {})
    console = Console(file=io.StringIO(), width=100)
    console.print(summary_table(methods))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    (row,) = [line for line in text.splitlines() if "rvs[w]" in line]  # brackets are no markup
    assert row.replace("│", " ").split() == ["rvs[w]", "100.0", "0.0", "100.0", "100", "%"]
    for name in ("at dataset's best", "at 1× expert", "at 2× expert", "OOD retention"):
        assert name in text


def test_reporting_starts_without_jax() -> None:
    """`cwbc report` reads from disk only and must not wait for an accelerator."""
    check = "import sys, cwbc.reports; sys.exit('jax' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", check], env={"PYTHONPATH": os.pathsep.join(sys.path)}
        ).returncode
        == 0
    )


@pytest.mark.usefixtures("no_pictures")
def test_without_a_published_expert_no_file_names_one(tmp_path: Path) -> None:
    """Returns below zero, a method that takes no target, one whose retention is not defined."""
    mine = dataclasses.replace(DATASET, environment="Mine-v0", lowest=-900.0, best=-100.0, mean_return=-500.0)
    targets = mine.task.targets(mine.best)
    curves = {"rvs": -900.0, "rvs+cwbc": -300.0}
    sweeps = [once("bc", -400.0, -410.0, -420.0)]
    sweeps += [sweep(name, *[level] * len(targets), targets=targets) for name, level in curves.items()]
    known = {"rvs": history("ByLength", (0.5, 0.5), [[2.0, 2.0], [1.0, 1.0]])}
    methods = write_report(tmp_path, sweeps, mine, {}, known)
    console = Console(file=io.StringIO(), width=100)
    console.print(summary_table(methods))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "without a target" in shown
    assert "not defined" in shown
    names = {"results.csv", "summary.json", "scores.md", "scores.csv", "report.html"}
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".png"} == names
    for text in (shown, *((tmp_path / name).read_text(encoding="utf-8") for name in names)):
        assert "expert" not in text.lower().replace("experts", "")
        assert not re.search(r"\b[12][x×] ", text)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert list(summary["methods"]["rvs+cwbc"])[3:5] == ["at_dataset_best", "at_best_plus_range"]
    assert summary["recommendation"]["method"] == "rvs+cwbc"


@pytest.mark.usefixtures("no_pictures")
def test_training_warnings_are_in_the_summary_and_on_the_page(tmp_path: Path) -> None:
    write_report(
        tmp_path, [SWEEP], DATASET, {}, training_warnings={SWEEP.method: ["The loss rose."], "other": ["No."]}
    )
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["methods"][SWEEP.method]["training_warnings"] == ["The loss rose."]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<ul class="warnings"><li>rvs[w]: The loss rose.</li></ul>' in page


@pytest.mark.parametrize(
    ("seeds", "words"), [(2, "too few seeds for an interval"), (3, "95 % intervals over seeds")]
)
def test_the_table_says_whether_there_are_intervals(
    seeds: int, words: str, tmp_path: Path, no_pictures: None
) -> None:
    returns = np.repeat(RETURNS, seeds, axis=0)
    several = Sweep("rvs", np.arange(seeds), TARGETS, returns, np.ones(returns.shape, np.int64))
    methods = write_report(tmp_path, [several], DATASET, {})
    console = Console(file=io.StringIO(), width=100)
    console.print(summary_table(methods))
    assert isinstance(console.file, io.StringIO)
    assert f"normalized scores, {words}" in console.file.getvalue()
