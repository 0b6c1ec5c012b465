"""Finished runs as they lie on disk, some of them damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pages import CONFIG, DATASET

from cwbc.reports import write_report
from cwbc.results.sweeps import Sweep
from cwbc.runs.finished import check_place, provenance
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.errors import InputError

pytestmark = pytest.mark.usefixtures("no_pictures")
ASKED = ("Hopper-v5", (1000.0, 2000.0), 3)  # environment, targets, episodes


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """The results of a run."""
    returns = np.ones((2, 2, 3))
    sweep = Sweep("rvs", np.arange(2), np.array(ASKED[1]), returns, returns.astype(np.int64))
    write_report(tmp_path, [sweep], DATASET, {})
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def test_results_are_those_of_one_environment_targets_and_episodes(measured: Path) -> None:
    assert RunDirectory(measured).is_evaluated(*ASKED)
    RunDirectory(measured).check_results(*ASKED)
    others: list[tuple[str, tuple[float, ...], int]] = [
        ("Hopper-v4", *ASKED[1:]),
        ("Hopper-v5", (1000.0,), 3),
        (*ASKED[:2], 4),
    ]
    for other in others:
        assert not RunDirectory(measured).is_evaluated(*other)
        with pytest.raises(InputError, match="--overwrite replaces it"):
            RunDirectory(measured).check_results(*other)


def test_results_are_those_of_all_seeds(measured: Path) -> None:
    rows = (measured / "results.csv").read_text().splitlines(keepends=True)
    (measured / "results.csv").write_text("".join(row for row in rows if not row.startswith("rvs,1,")))
    assert not RunDirectory(measured).is_evaluated(*ASKED)
    head, *lines = rows
    (measured / "results.csv").write_text("".join([head, *reversed(lines)]))  # sorted by a spreadsheet
    assert RunDirectory(measured).is_evaluated(*ASKED)
    (measured / "config.json").write_text(json.dumps({**CONFIG, "seeds": [0, 2]}))
    with pytest.raises(InputError, match="different settings: 2 seeds, now 2 others; --overwrite"):
        RunDirectory(measured).check_results(*ASKED)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.json", "{", "config.json is damaged"),
        ("results.csv", None, "results.csv does not exist"),
        ("results.csv", "method,seed\n", "line 1: no column 'target'"),
        ("summary.json", "{", "summary.json is damaged"),
        ("summary.json", "[]", "summary.json is damaged"),
        ("summary.json", '{"dataset": {}}', "the dataset's summary lacks name"),
    ],
)
def test_damaged_results_are_none_but_are_replaced_only_when_asked(
    measured: Path, name: str, text: str | None, message: str
) -> None:
    (measured / name).unlink() if text is None else (measured / name).write_text(text)
    assert not RunDirectory(measured).is_evaluated(*ASKED)
    with pytest.raises(InputError, match=f"{message}.*; --overwrite evaluates {measured} again"):
        RunDirectory(measured).check_results(*ASKED)


def test_a_report_is_not_put_among_other_files(measured: Path) -> None:
    check_place(measured)
    (measured / "mine.txt").write_text("")
    check_place(measured)  # beside those of an earlier report
    (measured / "summary.json").unlink()
    (measured / "config.json").unlink()
    with pytest.raises(InputError, match=r"holds other files, such as mine\.txt"):
        check_place(measured)


def test_provenance_tells_of_every_sitting_and_of_what_measured(tmp_path: Path) -> None:
    first = {"versions": {"mujoco": "3.0"}, "hardware": {"device": "H200", "cores": 16}}
    later = {"versions": {"mujoco": "4.0"}, "hardware": {"device": "cpu", "cores": 2}}
    config = {**CONFIG, "later_sittings": [later], **first}
    (tmp_path / "config.json").write_text(json.dumps(config))
    told = provenance([RunDirectory(tmp_path)])
    assert told["hardware"] == "H200, 16 cores\ncpu, 2 cores"
    assert told["versions"] == "mujoco 3.0\nmujoco 4.0"
    assert told["evaluated with"] == ""  # not known
    for version, differs in (("4.0", ""), ("5.0", "mujoco 5.0")):
        (tmp_path / "summary.json").write_text(json.dumps({"measured_with": {"rvs": {"mujoco": version}}}))
        assert provenance([RunDirectory(tmp_path)])["evaluated with"] == differs


def test_provenance_counts_the_runs_that_differ(tmp_path: Path) -> None:
    for name, mujoco in (("a", "3.0"), ("b", "4.0"), ("c", "4.0")):
        config = {**CONFIG, "versions": {"mujoco": mujoco}}
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    told = provenance([RunDirectory(tmp_path / name) for name in "abc"])
    assert told["versions"] == "mujoco 3.0 (1 of 3)\nmujoco 4.0 (2 of 3)"
    assert told["hardware"] == "cpu, 2 cores"
