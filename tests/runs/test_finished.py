"""Finished runs as they lie on disk, some of them damaged."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import CONFIG, DATASET, sweep

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports import write_report
from cwbc.results.evaluated import evaluated
from cwbc.results.sweeps import Sweep
from cwbc.runs.finished import TrainingHistory, check_place, provenance, write_results
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.errors import InputError

pytestmark = pytest.mark.usefixtures("no_pictures")
ASKED = ("Hopper-v5", (1000.0, 2000.0), 3)  # environment, targets, episodes
SWEEP = sweep("rvs", 1400.0, 500.0, 0.0, targets=(1500.0, 3200.0, 6400.0))
METHODS = evaluated([SWEEP], DATASET)
TRAINED: dict[str, Any] = {
    "seeds": [0, 1],
    "method": {"weighting": {"kind": "ByLength"}},
    "drawn": [0.25, 0.75],
    "training": {"steps": 30},
}


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


def test_results_without_a_target_are_whole_unless_the_method_takes_one(tmp_path: Path) -> None:
    returns = np.ones((2, 1, 3))
    sweep = Sweep("any", np.arange(2), np.array([np.nan]), returns, returns.astype(np.int64))
    write_report(tmp_path, [sweep], DATASET, {})
    method = CONFIG["method"]
    for learner, whole in (("ImplicitQ", True), ("TargetChoice", False)):
        config = {**CONFIG, "method": {**method, "learner": learner}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert RunDirectory(tmp_path).is_evaluated(*ASKED) is whole
        assert RunDirectory(tmp_path).is_evaluated(ASKED[0], (), ASKED[2])


def test_results_are_those_of_all_seeds(measured: Path) -> None:
    rows = (measured / "results.csv").read_text().splitlines(keepends=True)
    (measured / "results.csv").write_text("".join(row for row in rows if not row.startswith("rvs,1,")))
    assert not RunDirectory(measured).is_evaluated(*ASKED)
    head, *lines = rows
    (measured / "results.csv").write_text("".join([head, *reversed(lines)]))  # sorted by a spreadsheet
    assert RunDirectory(measured).is_evaluated(*ASKED)
    (measured / "config.json").write_text(json.dumps({**CONFIG, "seeds": [0, 2]}))
    with pytest.raises(InputError, match=r"settings: seeds was \[0, 1\], now \[0, 2\]; --overwrite"):
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


def test_results_that_are_somebody_else_s_are_not_taken_for_a_report(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("day,profit\n1,2\n")
    with pytest.raises(InputError, match=r"holds other files, such as results\.csv"):
        check_place(tmp_path)


def test_provenance_tells_of_every_sitting_and_of_what_measured(tmp_path: Path) -> None:
    first = {"versions": {"mujoco": "3.0"}, "hardware": {"device": "H200", "cores": 16}}
    later = {"versions": {"mujoco": "4.0"}, "hardware": {"device": "cpu", "cores": 2}}
    config = {**CONFIG, "later_sittings": [later], **first}
    (tmp_path / "config.json").write_text(json.dumps(config))
    shown = provenance([RunDirectory(tmp_path)])
    assert shown["hardware"] == "H200, 16 cores\ncpu, 2 cores"
    assert shown["versions"] == "mujoco 3.0\nmujoco 4.0"
    assert shown["evaluated with"] == ""  # not known
    for version, differs in (("4.0", ""), ("5.0", "mujoco 5.0")):
        (tmp_path / "summary.json").write_text(json.dumps({"measured_with": {"rvs": {"mujoco": version}}}))
        assert provenance([RunDirectory(tmp_path)])["evaluated with"] == differs


def test_provenance_counts_the_runs_that_differ(tmp_path: Path) -> None:
    for name, mujoco in (("a", "3.0"), ("b", "4.0"), ("c", "4.0")):
        config = {**CONFIG, "versions": {"mujoco": mujoco}}
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    shown = provenance([RunDirectory(tmp_path / name) for name in "abc"])
    assert shown["versions"] == "mujoco 3.0 (1 of 3)\nmujoco 4.0 (2 of 3)"
    assert shown["hardware"] == "cpu, 2 cores"


def test_results_are_written_unless_that_is_refused(tmp_path: Path) -> None:
    def written(refused: bool) -> dict[str, bytes]:
        """The files that are there then."""

        def before_replacing() -> None:
            if refused:
                raise KeyboardInterrupt

        folder = tmp_path / str(refused)
        folder.mkdir()
        with contextlib.suppress(KeyboardInterrupt):
            write_results(folder, METHODS, {}, before_replacing=before_replacing)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert written(refused=True) == {}
    write_report(tmp_path, [SWEEP], DATASET, {})
    expected = {name: (tmp_path / name).read_bytes() for name in ("results.csv", "summary.json")}
    assert written(refused=False) == expected


def test_other_results_remove_the_report_of_the_earlier_ones(tmp_path: Path) -> None:
    write_report(tmp_path, [SWEEP], DATASET, {})
    write_results(tmp_path, METHODS, {})
    assert (tmp_path / "report.html").exists()
    other = dataclasses.replace(SWEEP, returns=SWEEP.returns + 1)
    write_results(tmp_path, evaluated([other], DATASET), {})
    assert {path.name for path in tmp_path.glob("*.*")} == {"results.csv", "summary.json"}


def test_a_dataset_summary_with_a_missing_field_is_the_users_error() -> None:
    values = DATASET.to_json()
    del values["best"]
    with pytest.raises(InputError, match="lacks best"):
        DatasetSummary.from_json(values)


def test_a_history_is_read_from_the_files_of_a_run() -> None:
    rows = [
        {"step": 10, "seconds": 1.0, "loss": [1.0, 2.0]},
        {"step": 20, "seconds": 2.0, "loss": [0.5, 1.0]},
    ]
    history = TrainingHistory.of(TRAINED, rows)
    np.testing.assert_array_equal(history.steps, [10, 20])
    np.testing.assert_array_equal(history.losses, [[1.0, 2.0], [0.5, 1.0]])
    assert history.weighting == {"kind": "ByLength"}
    assert history.sampled == (0.25, 0.75)


def test_missing_and_damaged_rows_are_left_out() -> None:
    assert TrainingHistory.of(TRAINED, []).losses.shape == (0, 2)
    rows: list[dict[str, Any]] = [{"step": 10}, {"step": 20, "loss": [1.0]}, {"step": 30, "loss": [1.0, 2.0]}]
    np.testing.assert_array_equal(TrainingHistory.of(TRAINED, rows).steps, [30])
    # A flipped bit can make any number of a step: those that go back or beyond the end are none.
    rows = [{"step": step, "loss": [1.0, 2.0]} for step in (10, 10**9, 5, 20, 20, 0, 30)]
    np.testing.assert_array_equal(TrainingHistory.of(TRAINED, rows).steps, [10, 20, 30])


def test_sampled_fractions_that_are_damaged_are_unknown() -> None:
    for drawn in (None, [0.5, 2.0], [-0.5, 1.0]):
        assert TrainingHistory.of({**TRAINED, "drawn": drawn}, []).sampled is None


def test_losses_are_prediction_losses_with_a_regularizer_and_without() -> None:
    """Older runs without a regularizer have recorded the loss alone, which is the same there."""
    regularized = {"loss": [3.0, 5.0], "prediction": [1.0, 2.0], "conservative": [2.0, 3.0]}
    rows = [
        {"step": 10, "loss": [1.0, 2.0]},
        {"step": 20, **regularized},
        {"step": 30, "prediction": [4.0, 5.0]},
    ]
    np.testing.assert_array_equal(
        TrainingHistory.of(TRAINED, rows).losses, [[1.0, 2.0], [1.0, 2.0], [4.0, 5.0]]
    )
