"""The command line as users meet it: what it writes, says and refuses."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import BinaryIO
from unittest.mock import Mock

import h5py
import numpy as np
import pytest
from command_line import TINY, modules_of, run
from toys import ENVIRONMENT, write_toy

import cwbc
from cwbc.cli.main import load
from cwbc.cli.options import check_options
from cwbc.runs import locks
from cwbc.runs.policies import Policy
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.files import create


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a dataset and a finished comparison of two methods."""
    root = tmp_path_factory.mktemp("compared")
    write_toy(root / "toy.hdf5")
    assert run("compare", root / "toy.hdf5", "rvs", "rvs+cwbc", *TINY, "--out", root / "out") == 0
    return root


def test_compare_leaves_what_the_contract_promises(compared: Path) -> None:
    out = compared / "out"
    for directory in (out, out / "rvs", out / "rvs+cwbc"):
        for name in ("config.json", "results.csv", "summary.json"):
            assert (directory / name).stat().st_size > 0
    for name in ("reliability.png", "report.html"):  # of a method alone, `cwbc report` draws them
        assert (out / name).stat().st_size > 0
    for directory in (out / "rvs", out / "rvs+cwbc"):
        assert {file.name for file in directory.iterdir()} >= {"checkpoint.safetensors", "metrics.jsonl"}
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert list(rows[0]) == ["method", "seed", "target", "episode", "return", "normalized", "length"]
    # 20 targets between worst and one range beyond the best; the best itself is the expert here
    assert len(rows) == 2 * 2 * 21 * 2
    config = json.loads((out / "rvs+cwbc" / "config.json").read_text())
    assert config["seeds"] == [0, 1]
    assert {"cwbc", "jax", "mujoco", "gymnasium", "source"} <= set(config["versions"])
    assert config["method"]["regularizer"]["noise"] == pytest.approx(10 / np.sqrt(12), rel=1e-6)
    # What was drawn: as much as there is in all, and more of the best returns with +w than without.
    drawn = [json.loads((out / name / "config.json").read_text())["drawn"] for name in ("rvs", "rvs+cwbc")]
    assert [len(bins) for bins in drawn] == [len(config["dataset"]["histogram_counts"])] * 2
    assert [sum(bins) for bins in drawn] == pytest.approx([1, 1])
    assert drawn[1][-1] > drawn[0][-1]
    for name in ("training.png", "returns.png", "scores.md", "scores.csv"):
        assert (out / name).stat().st_size > 0
    summary = json.loads((out / "summary.json").read_text())
    assert list(summary["methods"]) == ["rvs", "rvs+cwbc"]
    assert summary["measured_with"] == {"rvs": config["versions"], "rvs+cwbc": config["versions"]}
    for method in summary["methods"].values():
        assert method["at_dataset_best"]["target"] == pytest.approx(5.0)
        assert len(method["curve"]) == 21


def test_the_same_command_again_trains_nothing(compared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (compared / "out" / "rvs" / "checkpoint.safetensors").stat().st_mtime_ns
    results = (compared / "out" / "results.csv").read_bytes()
    page, other = (compared / "out" / name / "summary.json" for name in ("rvs", "rvs+cwbc"))
    page.unlink()  # as if killed before it was drawn
    drawn = other.stat().st_mtime_ns
    assert run("compare", compared / "toy.hdf5", "rvs", "rvs+cwbc", *TINY, "--out", compared / "out") == 0
    assert page.exists()
    assert other.stat().st_mtime_ns == drawn
    said = capsys.readouterr().err
    assert "rvs: already trained" in said
    assert "rvs+cwbc: already evaluated" in said
    assert (compared / "out" / "rvs" / "checkpoint.safetensors").stat().st_mtime_ns == before
    assert (compared / "out" / "results.csv").read_bytes() == results


@pytest.mark.usefixtures("no_pictures")
def test_other_settings_need_another_place_or_overwrite(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(compared / "out", tmp_path / "out")
    changed = [*TINY, "--learning-rate=0.01"]  # a number, for which nothing is compiled
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    assert run("compare", compared / "toy.hdf5", "rvs", *changed, "--out", out) == 2
    assert "optimizer.learning_rate was 0.0003, now 0.01" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before
    assert run("compare", compared / "toy.hdf5", "rvs", *changed, "--out", out, "--overwrite") == 0
    method = json.loads((out / "rvs" / "config.json").read_text())["method"]
    assert method["optimizer"]["learning_rate"] == 0.01


def test_evaluate_and_report(compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = shutil.copytree(compared / "out", tmp_path / "out")
    assert run("evaluate", out / "rvs", "--targets=1,2", "--episodes=1", "--device=cpu") == 2
    said = capsys.readouterr().err
    assert "different settings: targets was (" in said
    assert "now (1.0, 2.0); episodes was 2, now 1; --overwrite replaces it" in said
    assert run("evaluate", out / "rvs", "--targets=1,2", "--episodes=1", "--device=cpu", "--overwrite") == 0
    rows = list(csv.DictReader((out / "rvs" / "results.csv").read_text().splitlines()))
    assert {row["target"] for row in rows} == {"1.0", "2.0"}
    shutil.rmtree(out / "rvs+cwbc")
    # Two runs of one method are distinguished, and a report needs nothing but its runs' files.
    assert run("report", out / "rvs", compared / "out" / "rvs", "--out", tmp_path / "both") == 0
    methods = json.loads((tmp_path / "both" / "summary.json").read_text())["methods"]
    assert sorted(methods) == sorted([f"rvs ({out / 'rvs'})", f"rvs ({compared / 'out' / 'rvs'})"])
    path = out / "rvs" / "config.json"
    path.write_text(path.read_text().replace('"learning_rate": 0.0003', '"learning_rate": 0.01'))
    assert run("report", out / "rvs", compared / "out" / "rvs", "--out", tmp_path / "both") == 0
    methods = json.loads((tmp_path / "both" / "summary.json").read_text())["methods"]
    assert list(methods) == ["rvs (learning_rate 0.01)", "rvs (learning_rate 0.0003)"]


@pytest.mark.usefixtures("no_pictures")
def test_an_evaluation_that_fails_at_its_last_write_leaves_the_old_one(
    compared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(compared / "out" / "rvs", tmp_path / "rvs")
    assert run("report", out) == 0
    before = {file: file.read_bytes() for file in out.iterdir() if file.is_file()}
    assert out / "report.html" in before
    capsys.readouterr()
    evaluate = ("evaluate", out, "--targets=1,2", "--episodes=1", "--device=cpu", "--overwrite")

    def full(path: Path) -> BinaryIO:
        if path.name.startswith(".summary.json."):  # which is the last
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return create(path)

    with monkeypatch.context() as patch:
        patch.setattr("cwbc.system.files.create", full)
        assert run(*evaluate) == 1
    assert "summary.json: cannot be written (No space left on device)" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in out.iterdir() if file.is_file()} == before
    assert run(*evaluate) == 0
    assert "report.html" in capsys.readouterr().out
    assert (out / "results.csv").read_bytes() != before[out / "results.csv"]


@pytest.mark.usefixtures("no_pictures")
def test_more_steps_train_on_and_evaluate_again(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(compared / "out", tmp_path / "out")
    results = (out / "rvs" / "results.csv").read_bytes()
    longer = [option.replace("steps=20", "steps=40") for option in TINY]
    trained = [option for option in longer if not option.startswith("--episodes")]
    assert run("train", compared / "toy.hdf5", "rvs", *trained, "--out", out / "rvs") == 0
    assert "rvs: resumes from step 20" in (said := capsys.readouterr().err)
    assert f"its evaluation so far moves to {out / 'rvs' / 'after-20-steps'}" in said
    # What was evaluated before is not shown as if it were of now.
    assert run("report", out / "rvs") == 2
    assert "is not evaluated yet; `cwbc evaluate" in capsys.readouterr().err
    assert (out / "rvs" / "after-20-steps" / "results.csv").read_bytes() == results
    assert run("compare", compared / "toy.hdf5", "rvs", "rvs+cwbc", *longer, "--out", out) == 0
    assert "rvs: already trained" in (said := capsys.readouterr().err)
    assert "rvs+cwbc: resumes from step 20" in said
    for name in ("rvs", "rvs+cwbc"):
        assert json.loads((out / name / "config.json").read_text())["training"]["steps"] == 40
        assert (out / name / "results.csv").read_bytes() != (
            out / name / "after-20-steps" / "results.csv"
        ).read_bytes()
    assert run("compare", compared / "toy.hdf5", "rvs", *TINY, "--out", out) == 2
    assert "training.steps was 40, now 20" in capsys.readouterr().err


def test_nothing_finished_is_overwritten(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(compared / "out", tmp_path / "out")
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    dataset = compared / "toy.hdf5"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.txt").write_text("mine")
    refused: dict[str, tuple[str | Path, ...]] = {
        "is a run itself": ("compare", dataset, "bc", *TINY, "--out", out / "rvs"),
        "with its own results": ("report", out / "rvs", out / "rvs+cwbc", "--out", out / "rvs"),
        # found before bc is trained
        "now (1.0,); ": ("compare", dataset, "bc", "rvs", *TINY, "--targets=1", "--out", out),
        "is not empty and holds no run": ("train", dataset, "bc", *TINY[:-1], "--out", tmp_path),
        "holds other files, such as mine.txt": ("compare", dataset, "rvs", *TINY, "--out", tmp_path / "mine"),
        "give another --out": ("report", out, "--out", tmp_path / "mine"),
        "Not a directory": ("train", dataset, "bc", *TINY[:-1], "--out", dataset / "below"),
    }
    for expected, arguments in refused.items():
        assert run(*arguments) == 2
        assert expected in capsys.readouterr().err
    # --overwrite discards nothing unless every method can go ahead
    (out / "bc").mkdir()
    (out / "bc" / "diary.txt").write_text("dear diary")
    changed = [option.replace("steps=20", "steps=10") for option in TINY]
    assert run("compare", dataset, "rvs", "bc", *changed, "--out", out, "--overwrite") == 2
    shutil.rmtree(out / "bc")
    # nor before the size of the evaluation is known to be possible
    many = ("--targets=1,2", "--episodes=10000000", "--out", out, "--overwrite")
    without = [option for option in changed if not option.startswith(("--targets", "--episodes"))]
    assert run("compare", dataset, "rvs", *without, *many) == 2
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before


def test_a_run_that_another_process_works_in_is_left_alone(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(compared / "out", tmp_path / "out")
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    (out / "rvs" / "summary.json").unlink()  # else there is nothing to do
    before.pop(out / "rvs" / "summary.json")
    changed = [option.replace("steps=20", "steps=10") for option in TINY]
    commands: list[list[str | Path]] = [
        ["evaluate", out / "rvs", "--device=cpu"],
        ["compare", compared / "toy.hdf5", "rvs", *TINY, "--out", out],
        # the first of them could be discarded
        ["compare", compared / "toy.hdf5", "rvs+cwbc", "rvs", *changed, "--out", out, "--overwrite"],
    ]
    with RunDirectory(out / "rvs").lock():
        for command in commands:
            assert run(*command) == 2
            assert f"another process is working in {out / 'rvs'}" in capsys.readouterr().err
    after = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    assert {file: data for file, data in after.items() if locks.FOLDER not in file.parts} == before


@pytest.mark.usefixtures("no_pictures")
def test_damaged_results_are_measured_again_when_asked(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(compared / "out", tmp_path / "out")
    results = out / "rvs" / "results.csv"
    before = results.read_bytes()
    commands: list[list[str | Path]] = [
        ["evaluate", out / "rvs", "--episodes=2", "--device=cpu"],
        ["compare", compared / "toy.hdf5", "rvs", *TINY, "--out", out],
    ]
    for command in commands:
        results.unlink()
        assert run(*command) == 2
        assert "results.csv does not exist" in (said := capsys.readouterr().err)
        assert f"--overwrite evaluates {out / 'rvs'} again" in said
        assert not results.exists()
        assert run(*command, "--overwrite") == 0
        assert results.read_bytes() == before


@pytest.mark.usefixtures("no_pictures")
def test_results_belong_to_their_environment(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(compared / "out", tmp_path / "out")
    assert run("evaluate", out / "rvs", "--env=CartPole-v1", "--episodes=2", "--device=cpu") == 2
    assert "environment was 'cwbc-toy-v0', now 'CartPole-v1'" in capsys.readouterr().err
    dataset = write_toy(tmp_path / "mine.hdf5", environment=None)
    assert run("train", dataset, "bc", *TINY[:-1], "--out", tmp_path / "bc") == 0
    assert f"`cwbc evaluate {tmp_path / 'bc'} --offline` evaluates it" in capsys.readouterr().err
    assert run("report", tmp_path / "bc") == 2
    assert f"`cwbc evaluate {tmp_path / 'bc'} --offline` evaluates it" in capsys.readouterr().err
    assert run("evaluate", tmp_path / "bc", f"--env={ENVIRONMENT}", "--episodes=1", "--device=cpu") == 0
    assert run("evaluate", tmp_path / "bc", "--episodes=1", "--device=cpu") == 0  # there, as before
    assert "bc: already evaluated" in capsys.readouterr().err
    summary = json.loads((tmp_path / "bc" / "summary.json").read_text())
    assert summary["dataset"]["environment"] == ENVIRONMENT
    (tmp_path / "bc" / "metrics.jsonl").unlink()  # its time is unknown then, and all else is as it was
    assert run("report", tmp_path / "bc") == 0


@pytest.mark.usefixtures("no_pictures")
def test_a_comparison_shows_the_methods_that_were_asked_for(compared: Path, tmp_path: Path) -> None:
    out = shutil.copytree(compared / "out", tmp_path / "out")
    assert run("compare", compared / "toy.hdf5", "rvs", *TINY, "--out", out) == 0
    assert list(json.loads((out / "summary.json").read_text())["methods"]) == ["rvs"]
    assert run("report", out) == 0
    assert list(json.loads((out / "summary.json").read_text())["methods"]) == ["rvs", "rvs+cwbc"]


def test_a_policy_of_a_run_acts(compared: Path) -> None:
    policy = Policy.load(compared / "out" / "rvs+cwbc", seed=1)
    policy.begin(3.0)
    assert policy.act([0.0, 0.0]).shape == (1,)
    assert policy.about["seed"] == 1
    assert policy.about["environment"] == ENVIRONMENT


@pytest.mark.usefixtures("no_pictures")
def test_trained_without_an_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = write_toy(tmp_path / "mine.hdf5", environment=None)
    options = [option for option in TINY if "episodes" not in option]
    out = tmp_path / "my runs"
    assert run("train", dataset, "bc", *options, "--out", out / "bc") == 0
    assert f"`cwbc evaluate '{out}/bc' --offline` evaluates it" in capsys.readouterr().err
    assert run("compare", dataset, "bc", *TINY, "--out", out, f"--env={ENVIRONMENT}") == 0
    message = capsys.readouterr()
    assert "bc: already trained" in message.err
    # It takes no target: two seeds with two episodes each, whatever the sweep.
    assert "bc: unconditioned, 4 episodes" in message.err
    assert " bc, without a target" in " ".join(message.out.split())
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert [row["target"] for row in rows] == [""] * 4
    assert run("compare", dataset, "bc", *TINY, "--out", out, f"--env={ENVIRONMENT}", "--targets=1") == 0
    assert "bc: already evaluated" in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
def test_without_an_environment_episodes_are_held_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, out = write_toy(tmp_path / "mine.hdf5", environment=None), tmp_path / "out"
    options = [option for option in TINY if "episodes" not in option]
    said = "held out of training: 6 of 60 episodes (the default without an environment, or as before)"
    assert run("train", dataset, "bc", *options, "--out", out / "bc") == 0
    assert said in capsys.readouterr().err
    # With an environment nothing would be, but for a run that began so.
    assert run("compare", dataset, "bc", *TINY, "--out", out, f"--env={ENVIRONMENT}") == 0
    message = capsys.readouterr().err
    assert said in message
    assert "bc: already trained" in message
    for folder in (out, out / "bc"):
        errors = json.loads((folder / "summary.json").read_text())["methods"]["bc"]["prediction_error"]
        assert list(errors) == ["heldout", "heldout_low", "heldout_middle", "heldout_high", "training_error"]
    assert (out / "heldout.png").exists()
    assert "Prediction error at the end of training" in (out / "report.html").read_text()
    assert run("train", dataset, "bc", *options, "--out", out / "bc", "--holdout=0") == 2
    assert "training.holdout was 0.1, now None" in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
def test_streaming_is_told_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = write_toy(tmp_path / "toy.hdf5")
    out = tmp_path / "out"
    assert run("train", dataset, "rvs+cwbc", *TINY[:-1], "--data-on=host", "--out", out) == 0
    assert "data streamed from host memory (as given)" in capsys.readouterr().err
    monkeypatch.setattr("cwbc.cli.planning.default_place", lambda size, is_mapped: "host")
    assert run("compare", dataset, "rvs+cwbc", *TINY, "--out", tmp_path / "compared") == 0
    assert (
        "data streamed from host memory (its 9.6e-06 GB are more than half of the device's free memory)"
        in capsys.readouterr().err
    )
    # Where the data lies does not make another run of it.
    monkeypatch.undo()
    assert run("train", dataset, "rvs+cwbc", *TINY[:-1], "--out", out) == 0
    said = capsys.readouterr().err
    assert "already trained" in said
    assert "streamed" not in said


def test_an_unfinished_episode_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_toy(tmp_path / "toy.hdf5", environment=None)
    with h5py.File(path, "a") as file:
        file["timeouts"][-1] = False
    options = [option for option in TINY if "episodes" not in option]
    assert run("train", path, "rvs", *options, "--out", tmp_path / "out") == 0
    assert (
        "warning: the last 10 steps are an episode without an end; they are excluded"
        in capsys.readouterr().err
    )


MISTAKES = {
    "unknown method": (["rsv"], "unknown method 'rsv'; did you mean 'rvs'"),
    "unknown part": (["rvs+x"], "unknown method 'rvs+x'; did you mean"),
    "two weightings": (["rvs+w+f"], "+w and +f are two weightings"),
    "the same twice": (["rvs+cwbc", "rvs+w+c"], "rvs+cwbc and rvs+w+c are the same method"),
    "no method": ([], "give at least one method"),
    "zero steps": (["rvs", "--steps=0"], "steps must be at least 1; got 0"),
    "negative steps": (["rvs", "--steps=-5"], "steps must be at least 1; got -5"),
    "zero seeds": (["rvs", "--seeds=0"], "--seeds must be at least 1; got 0"),
    "negative seeds": (["rvs", "--seeds=-1"], "--seeds must be at least 1; got -1"),
    "zero episodes": (["rvs", "--episodes=0"], "--episodes must be at least 1; got 0"),
    "targets of words": (["rvs", "--targets=high"], "--targets takes numbers such as 1000,2000,3000"),
    "no targets": (["rvs", "--targets="], "--targets is empty"),
    "infinite target": (["rvs", "--targets=inf"], "must be finite; got inf"),
    "target beyond 32 bits": (["rvs", "--targets=1e39"], "--targets must be at most 3.4e+38, the largest"),
    "noise beyond 32 bits": (["rvs+c", "--noise=1e300"], "noise must be at most 3.4e+38, the largest that"),
    "empty place": (["rvs", "--out", ""], "--out is empty; `cwbc compare --help` describes it"),
    "empty method": (["rvs", ""], "an argument is empty"),
    "environment in three parts": (["rvs", "--env=a:b:c"], "'a:b:c' is no environment; one of your own is"),
    "useless option": (["rvs", "--coefficient=2"], "--coefficient does nothing for rvs"),
    "bad value": (["rvs+c", "--percentile=101"], "percentile must be between 0 and 100; got 101"),
    "unknown environment": (["rvs", "--env=Hoper-v5"], "unknown environment 'Hoper-v5'; did you mean"),
    "endless steps": (["rvs", "--steps=1000000000000000"], "steps must be at most 2,147,483,647; got 1"),
    "endless warm-up": (
        ["rvs", "--warmup-steps=10000000000"],
        "warmup_steps must be at least 0 and at most 2,147,483,647",
    ),
    "endless context": (["dt", "--context=1000000000"], "context must be at most 65,536; got 1000000000"),
    "long context": (["dt", "--context=65536"], "GB for a batch), and there are"),
    "wide": (["rvs", "--width=1000000000"], "width must be at least 1 and at most 65,536; got 1000000000"),
    "wide for this machine": (["rvs", "--width=65536", "--layers=100"], "rvs would take at least "),
    "deep": (["rvs", "--layers=1000000"], "layers must be at least 1 and at most 100; got 1000000"),
    "many heads": (["dt", "--heads=1000000000000"], "heads must be a divisor of the width 128"),
    "large batches": (["rvs", "--batch-size=1000000", "--width=65536"], "GB for a batch), and there are"),
    "many seeds": (
        ["rvs", "--seeds=1000", "--width=65536", "--episodes=1"],
        "parameters and optimizer of 1000 seeds",
    ),
    "many episodes": (["rvs", "--episodes=1000000"], "x 1,000,000 episodes must be at most 1,000,000 in all"),
    "dimensions": (["rvs", "--env=Hopper-v5"], "the data does not fit Hopper-v5"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_exit_2_say_what_and_write_nothing(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    arguments, expected = MISTAKES[mistake]
    out = tmp_path / "out"
    assert run("compare", compared / "toy.hdf5", *arguments, "--device=cpu", "--out", out) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert len(error.strip().splitlines()) <= 4
    assert not out.exists()


def test_train_takes_one_method_and_its_preset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = write_toy(tmp_path / "toy.hdf5")
    assert run("train", dataset, "rvs", "bc") == 2
    assert "train takes one METHOD; got rvs bc. compare takes several" in capsys.readouterr().err
    assert run("train", dataset, "dt", "--heads=3", "--preset=small") == 2
    assert "heads must be a divisor of the width 64; got 3" in capsys.readouterr().err


def test_a_published_task_takes_positive_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with h5py.File(tmp_path / "hopper-x-v2.hdf5", "w") as file:
        file["observations"], file["actions"] = np.zeros((4, 11)), np.zeros((4, 3))
        file["rewards"], file["terminals"] = np.ones(4), np.array([0, 1, 0, 1])
        file["timeouts"] = np.zeros(4)
    for targets in ("0,1000", "-5"):
        assert run("compare", tmp_path / "hopper-x-v2.hdf5", "rvs", f"--targets={targets}") == 2
        assert "--targets must be positive" in capsys.readouterr().err


def test_bad_files_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", tmp_path / "nothing.hdf5", "rvs") == 2
    assert "unknown dataset" in capsys.readouterr().err
    (tmp_path / "text.hdf5").write_text("not HDF5")
    assert run("train", tmp_path / "text.hdf5", "rvs") == 2
    assert "cannot be read as HDF5" in capsys.readouterr().err
    assert run("evaluate", tmp_path / "nowhere") == 2
    assert "no such run" in capsys.readouterr().err
    assert run("report", tmp_path) == 2
    assert "holds no run" in capsys.readouterr().err
    (tmp_path / "cells.csv").touch()  # as reports about grids have it
    assert run("report", tmp_path) == 2
    assert "its cells.csv names the directories of runs" in capsys.readouterr().err


def test_no_gpu_is_told_with_the_extra_that_brings_it(tmp_path: Path) -> None:
    write_toy(tmp_path / "toy.hdf5")
    # In a process of its own: the choice of a device holds for a process.
    command = [sys.executable, "-m", "cwbc", "train", str(tmp_path / "toy.hdf5"), "rvs", "--device", "gpu"]
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    ended = subprocess.run(command, capture_output=True, text=True, env=hidden, cwd=tmp_path, check=False)
    assert ended.returncode == 2
    assert "pip install 'cwbc[cuda]', or '.[cuda]' in its repository" in ended.stderr
    assert not (tmp_path / "runs").exists()


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    dataset = write_toy(tmp_path / "toy.hdf5", environment=None)
    options = f"--steps=1000000 --seeds=1 --width=16 --preset=small --device=cpu --out={tmp_path}/r"
    command = [sys.executable, "-m", "cwbc", "train", str(dataset), "rvs", *options.split()]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    metrics = tmp_path / "r" / "metrics.jsonl"
    while not metrics.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert f"this resumes it:\ncwbc train {dataset} rvs --steps=1000000" in said
    assert "Traceback" not in said
    assert (tmp_path / "r" / "checkpoint.safetensors").exists()


def test_ctrl_c_outside_of_training_ends_at_once_without_a_traceback(compared: Path) -> None:
    # Set before it says so, as main does first: else the signal may come in between on a busy machine.
    ready = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); print('here', flush=True)"
    begin = f"from cwbc.__main__ import main; {ready}; main()"
    stopped = (130, -signal.SIGINT)
    for seconds, ends in ((0.2, stopped), (1.0, (*stopped, 0))):  # amid the imports; it may be done, too
        command = [sys.executable, "-c", begin, "report", str(compared / "out")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        assert "Traceback" not in said
        assert process.returncode in ends


def test_an_unfinished_run_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = write_toy(tmp_path / "toy.hdf5")
    out = tmp_path / "r"
    assert run("train", dataset, "rvs", *TINY[:-1], "--out", out) == 0
    config = json.loads((out / "config.json").read_text())
    config["training"]["steps"] = 40
    (out / "config.json").write_text(json.dumps(config))
    assert run("report", out) == 2
    assert f"not trained to its end yet; this resumes it:\ncwbc train {dataset}" in capsys.readouterr().err
    (out / "checkpoint.safetensors").unlink()
    assert run("evaluate", out) == 2
    assert "has no checkpoint yet" in capsys.readouterr().err


def test_results_can_be_shared_without_the_parameters(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(compared / "out", tmp_path / "out", ignore=shutil.ignore_patterns("*.safetensors"))
    before = json.loads((tmp_path / "out" / "summary.json").read_text())["methods"]
    assert run("report", tmp_path / "out", "--out", tmp_path / "again") == 0
    assert json.loads((tmp_path / "again" / "summary.json").read_text())["methods"] == before
    alone = tmp_path / "out" / "rvs"
    assert run("report", alone, "--fail-over", "calibration_error=0") == 1
    results = (alone / "results.csv").read_bytes()
    assert run("evaluate", alone, "--targets=1", "--overwrite", "--device=cpu") == 2  # nothing can act
    assert "checkpoint.safetensors is missing" in capsys.readouterr().err
    assert (alone / "results.csv").read_bytes() == results
    assert run("report", alone, f"{alone}/", "--out", tmp_path / "once") == 0
    assert list(json.loads((tmp_path / "once" / "summary.json").read_text())["methods"]) == ["rvs"]


@pytest.mark.parametrize("gone", ["nothing", "summary.json"])
def test_results_without_parameters_are_not_trained_over(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], gone: str
) -> None:
    without = shutil.ignore_patterns("*.safetensors", ".owners", gone)
    shutil.copytree(compared / "out", tmp_path / "out", ignore=without)
    alone = tmp_path / "out" / "rvs"
    (alone / "results.csv").write_text("damaged")
    before = {path.name: path.read_bytes() for path in alone.iterdir()}
    options = ("--out", tmp_path / "out", "--overwrite")
    assert run("compare", compared / "toy.hdf5", "rvs", "rvs+cwbc", *TINY, *options) == 2
    assert f"{alone} holds results without the parameters" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in alone.iterdir() if path.is_file()} == before


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"cwbc {cwbc.__version__}\n"


def test_the_version_where_only_the_package_folder_is_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", Mock(side_effect=PackageNotFoundError))
    assert cwbc.__version__ == "not installed"


def test_help_explains_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", "--help") == 0
    out = capsys.readouterr().out
    for symbol in ("lambda", "kappa", "sigma", "alpha", "q,", "K,", "B,"):
        assert symbol in out


def test_the_package_and_its_help_import_next_to_nothing() -> None:
    assert modules_of("import cwbc") == {"cwbc"}
    for command in ("", "data", "behaviours"):
        imported = modules_of(f"from cwbc.cli.main import main; main({[*command.split(), '--help']})")
        assert imported == {"cwbc"}
    for command in ("report", "data list", "data check", "data import", "data show", "behaviours show"):
        imported = modules_of(f"from cwbc.cli.main import main; main({[*command.split(), '--help']})")
        assert "jax" not in imported


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "x", "rvs", "--seeds=two"), "'two' is not a whole number"),
        (("train", "x", "rvs", "--steps=None"), "'None' is not a whole number"),
        (("train", "x", "rvs", "--learning-rate=fast"), "'fast' is not a number"),
        (("train", "x", "rvs", "--device=tpu"), "Expected one of ('cpu', 'gpu')"),
        (("reproduce", "table1", "--data=mine"), "Expected one of ('ours', 'd4rl')"),
        (("behaviours", "train", "x", "--steps=1.5"), "'1.5' is not a whole number"),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_plainly(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    said = " ".join(capsys.readouterr().err.replace("│", "").split())
    assert message in said
    for technical in ("class", "NoneType", "INT", "instantiated"):
        assert technical not in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("trian x rvs", "unknown command 'trian'; did you mean train?"),
        ("data improt x", "unknown command 'data improt'; did you mean data import?"),
        ("behaviours sow", "unknown command 'behaviours sow'; did you mean behaviours show?"),
        ("xyz", "unknown command 'xyz'; known: compare, train, evaluate, report, "),
        ("train x rvs --step 5", "unknown option --step of cwbc train; did you mean --steps?"),
        ("train --stps=3 x rvs", "unknown option --stps of cwbc train; did you mean --steps?"),
        ("reproduce table1 --quik", "unknown option --quik of cwbc reproduce; did you mean --quick?"),
        ("data check x --revard=r", "unknown option --revard of cwbc data check; did you mean --reward?"),
        ("train x rvs --frobnicate", "of cwbc train; `cwbc train --help` lists its options"),
        ("report x --overwrite", "unknown option --overwrite of cwbc report; `cwbc report --help` lists"),
        ("--seeds=3 train x rvs", "options stand after a command; `cwbc --help` lists the commands"),
        ("data --json list", "options stand after a command; `cwbc data --help` lists the commands"),
    ],
)
def test_a_misspelt_name_brings_the_nearest_one(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments.split()) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert len(said.err.splitlines()) <= 2
    assert not said.out


def test_every_name_that_help_lists_is_known() -> None:
    """`--out` as another name of `--to`, names with an underscore, and all that tyro adds by itself."""
    export, comparison = load("data export"), load("compare")
    check_options(export, ["x", "--format=hdf5", "--out", "y.hdf5"], "cwbc data export")
    typed = ["x", "rvs", "--batch_size=3", "--targets", "-5,3", "--", "--anything"]
    check_options(comparison, typed, "cwbc compare")
    check_options(comparison, ["--help", "--tyro-print-completion", "bash"], "cwbc compare")
