"""`cwbc report` as users meet it, on runs that were written by hand: nothing is trained here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pytest
from command_line import modules_of, run

from cwbc.cli import report
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports import write_report
from cwbc.results.evaluated import Methods
from cwbc.results.sweeps import Sweep
from cwbc.runs import locks
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.errors import InputError

pytestmark = pytest.mark.usefixtures("no_pictures")
DATASET = DatasetSummary("mine", None, "abc", 6, 60, 0.0, 10.0, 4.0, (0.0, 5.0, 10.0), (4, 2))
TARGETS = np.array([5.0, 10.0, 20.0])  # 20 is one range beyond the best; the scores are ten times the returns
CONFIG = {**pages.CONFIG, "dataset": DATASET.to_json()}


def finish(directory: Path, method: str, *curve: float) -> Path:
    """A finished run whose three seeds achieve these returns; one return is without a target."""
    returns = np.broadcast_to(np.array(curve)[None, :, None], (3, len(curve), 3))
    targets = TARGETS if len(curve) > 1 else np.array([np.nan])
    sweep = Sweep(method, np.arange(3), targets, returns, np.ones(returns.shape, np.int64))
    write_report(directory, [sweep], DATASET, {})
    (directory / "config.json").write_text(json.dumps(CONFIG))
    (directory / "checkpoint.safetensors").touch()
    return directory


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A comparison: rvs keeps a fifth of its best score beyond the data, rvs+cwbc nine tenths."""
    finish(tmp_path / "out" / "rvs", "rvs", 5.0, 10.0, 2.0)
    finish(tmp_path / "out" / "rvs+cwbc", "rvs+cwbc", 6.0, 10.0, 9.0)
    return tmp_path / "out"


def test_a_method_below_its_limit_ends_with_1_and_the_report_is_written(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", out, "--fail-under", "ood_retention=0.9") == 1
    said = capsys.readouterr()
    assert said.err == "failed: rvs: ood_retention is 0.2, below 0.9\n"
    assert "report.html" in said.out
    assert list(json.loads((out / "summary.json").read_text())["methods"]) == ["rvs", "rvs+cwbc"]


def test_a_run_that_is_being_measured_is_left_alone(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunDirectory(out / "rvs").lock():
        assert run("report", out / "rvs") == 2
        assert "another process is working in" in capsys.readouterr().err
        assert run("report", out) == 0  # reads it only
    assert run("report", out / "rvs") == 0


def test_a_report_into_a_run_holds_it_until_it_is_written(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []

    def write_while_locked(place: Path, *rest: Any) -> Methods:
        with pytest.raises(InputError, match="another process is working"), RunDirectory(place).lock():
            pass
        written.append(place)
        return write_report(place, *rest)

    monkeypatch.setattr(report, "write_report", write_while_locked)
    assert report.write(out / "rvs", [RunDirectory(out / "rvs")]) == []
    assert written == [out / "rvs"]


def test_what_cannot_be_compared_is_told(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    returns = np.ones((2, 1, 3))
    sweep = Sweep("bc", np.arange(2), TARGETS[:1], returns, np.ones(returns.shape, np.int64))
    finish(out / "bc", "bc", 1.0, 1.0, 1.0)
    write_report(out / "bc", [sweep], DATASET, {})
    assert run("report", out) == 0
    assert "The methods were evaluated at different targets" in " ".join(capsys.readouterr().out.split())
    assert run("report", out / "rvs", out / "rvs+cwbc", "--out", out / "two") == 0
    assert "evaluated at different targets" not in " ".join(capsys.readouterr().out.split())


def test_runs_of_one_method_have_times_of_their_own(out: Path, tmp_path: Path) -> None:
    again = finish(tmp_path / "again", "rvs", 5.0, 10.0, 2.0)
    config = json.loads((again / "config.json").read_text())
    config["training"]["steps"] = 30
    (again / "config.json").write_text(json.dumps(config))
    (again / "metrics.jsonl").write_text('{"step": 30, "seconds": 7.0}\nnull\n{"step": 31}\n')
    assert run("report", out / "rvs", again, "--out", tmp_path / "both") == 0
    page = (tmp_path / "both" / "report.html").read_text()
    assert "rvs (steps 30): 7 s" in page
    assert "rvs (steps 20): unknown" in page


def test_limits_that_are_kept_end_with_0(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = ["--fail-under=rvs+cwbc:ood_retention=0.9,rvs+cwbc:monotonicity=0.9"]
    assert (
        run("report", *limits, "--fail-under=at_dataset_best=99", "--fail-over=calibration_error=5", out) == 0
    )
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines()[-1] == (
        "within all limits: rvs+cwbc: ood_retention at least 0.9, rvs+cwbc: monotonicity at least 0.9, "
        "at_dataset_best at least 99, calibration_error at most 5"
    )


def test_every_limit_that_is_given_counts(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = ["--fail-under=rvs:ood_retention=0.3", "--fail-under=rvs+cwbc:best_point=101"]
    assert run("report", out, *limits, "--fail-over=calibration_error=4") == 1
    assert capsys.readouterr().err.splitlines() == [
        "failed: rvs: ood_retention is 0.2, below 0.3",
        "failed: rvs+cwbc: best_point is 100, below 101",
        "failed: rvs+cwbc: calibration_error is 5, above 4",
    ]


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("--fail-under=retention=0.9", "unknown metric for --fail-under 'retention'"),
        ("--fail-under=dt:ood_retention=0.9", "unknown method 'dt'; known: rvs, rvs+cwbc"),
        ("--fail-over=calibration_error=x", "takes a number"),
    ],
)
def test_wrong_limits_end_with_2_and_write_nothing(
    out: Path, capsys: pytest.CaptureFixture[str], limit: str, message: str
) -> None:
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    assert run("report", out, limit) == 2
    assert message in capsys.readouterr().err
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before


def test_a_run_from_before_a_metric_gets_it(out: Path) -> None:
    path = out / "rvs" / "summary.json"
    old = json.loads(path.read_text())
    for name in ("calibration_error", "monotonicity"):
        assert old["methods"]["rvs"].pop(name)
    path.write_text(json.dumps(old))
    assert run("report", out / "rvs", "--fail-over=calibration_error=0", "--fail-under=monotonicity=0.2") == 0
    assert json.loads(path.read_text())["methods"]["rvs"]["monotonicity"] == pytest.approx(
        {"value": 0.2, "low": 0.2, "high": 0.2}
    )


def test_what_a_run_was_measured_with_stays_known(out: Path, tmp_path: Path) -> None:
    path = out / "rvs" / "summary.json"
    measured = {"measured_with": {"rvs": {"mujoco": "3.9.9"}}}
    path.write_text(json.dumps(json.loads(path.read_text()) | measured))
    assert run("report", out / "rvs") == 0  # in its own place
    assert run("report", out, "--out", tmp_path / "both") == 0
    for directory in (out / "rvs", tmp_path / "both"):
        assert json.loads((directory / "summary.json").read_text())["measured_with"] == {
            "rvs": {"mujoco": "3.9.9"}
        }
        assert "mujoco 3.9.9" in (directory / "report.html").read_text()


def test_runs_of_two_datasets_are_not_one_report(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = finish(tmp_path / "other", "bc", 5.0, 5.0, 5.0)
    summary = json.loads((other / "summary.json").read_text())
    summary["dataset"]["name"] = "yours"
    (other / "summary.json").write_text(json.dumps(summary))
    assert run("report", out, other, "--out", tmp_path / "both") == 2
    assert "is about yours (abc…) in None" in capsys.readouterr().err
    assert not (tmp_path / "both").exists()


def test_a_report_needs_no_jax_and_no_simulator(out: Path) -> None:
    command = ["report", str(out), "--fail-under=rvs+cwbc:ood_retention=0.5"]
    imported = modules_of(f"from cwbc.cli.main import main; main({command})")
    assert {"cwbc", "matplotlib", "numpy"} <= imported
    assert not imported & {"jax", "jaxlib", "optax", "gymnasium", "mujoco", "h5py"}


def test_runs_on_another_dataset_of_the_same_name_are_told_apart(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = out / "rvs+cwbc" / "summary.json"
    path.write_text(path.read_text().replace('"abc"', '"0123456789"'))
    assert run("report", out) == 2
    assert "mine (01234567…) in None, " in (said := capsys.readouterr().err)
    assert "mine (abc…) in None; a report shows one dataset" in said


def test_a_place_that_cannot_be_written_is_told_with_the_way_out(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: path != out)  # whoever tests may be root
    assert run("report", out) == 2
    assert f"{out} cannot be written to; give another --out" in capsys.readouterr().err
    assert run("report", out, "--out", out.parent / "elsewhere") == 0


def test_the_last_lines_say_what_to_do(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", out) == 0
    said = " ".join(
        capsys.readouterr().out.split()
    )  # a terminal breaks lines, and unbroken spaces are spaces
    assert (
        "Use rvs+cwbc with target return 10: expected return 10, 95 % interval 10 to 10 (score 100.0). "
        "- Inconclusive: its 95 % interval overlaps with that of rvs (10). report: "
    ) in said


def test_training_warnings_are_printed_below_the_table(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(RunDirectory, "training_warnings", lambda _: ["The \x1b[31mloss rose."])
    assert run("report", out) == 0
    said = capsys.readouterr().out
    assert "training warning: rvs: The [31mloss rose." in said
    assert "\x1b" not in said


def test_methods_with_and_without_a_target_are_reported_together(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(out / "bc", "bc", 6.0)  # at no target
    assert run("report", out, "--fail-under=rvs+cwbc:ood_retention=0.9,at_best_plus_range=20") == 0
    said = capsys.readouterr().out
    assert "bc has no target and scores 60.0." in " ".join(said.split())
    methods = json.loads((out / "summary.json").read_text())["methods"]
    assert methods["bc"]["ood_retention"] is None
    assert methods["bc"]["best_point"] == {"target": None, "value": 60.0, "low": 60.0, "high": 60.0}
    assert "bc,0,,0,6.0,60.0,1" in (out / "results.csv").read_text()
    assert run("report", out, "--fail-under=bc:ood_retention=0.9") == 2
    assert "bc has no target, so there is no ood_retention to limit" in capsys.readouterr().err


def test_a_limit_on_an_expert_that_is_not_published_is_refused(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", out, "--fail-under=at_twice_expert=20") == 2
    assert (
        "known: ood_retention, monotonicity, at_dataset_best, at_best_plus_range" in capsys.readouterr().err
    )


def test_control_sequences_in_names_do_not_reach_the_terminal(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = out / "rvs" / "results.csv"
    path.write_text(path.read_text().replace("rvs,", "\x1b]0;gotcha\x07\x9b2Jrvs\x1b[2J,"))
    assert run("report", out) == 0
    said = capsys.readouterr()
    assert "gotcha" in said.out
    for sequence in ("\x1b]", "\x1b[2J", "\x9b", "\x07"):
        assert sequence not in said.out + said.err


def test_a_lock_that_is_a_link_leaves_its_file_alone(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (out / "victim").write_text("precious")
    shutil.rmtree(out / "rvs" / locks.FOLDER, ignore_errors=True)
    (out / "rvs" / locks.FOLDER).symlink_to(out / "victim")
    assert run("report", out / "rvs") == 2
    assert ".owners is a symbolic link" in capsys.readouterr().err
    assert (out / "victim").read_text() == "precious"
