"""A run directory's own words: how far it is, how long it took, what tells it from another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pages import CONFIG, DATASET

from cwbc.runs.finished import check_place
from cwbc.runs.run_directory import CONFIG as CONFIG_FILE
from cwbc.runs.run_directory import METRICS, RESULTS, SUMMARY, RunDirectory
from cwbc.runs.tracking.tensorboard import EventFiles
from cwbc.system.errors import InputError
from cwbc.system.tensor_files import CHECKPOINT


def test_the_time_is_the_last_row_that_is_whole(tmp_path: Path) -> None:
    assert RunDirectory(tmp_path).training_seconds() is None
    (tmp_path / METRICS).write_text('{"step": 1, "seconds": 2.5}\n{"step": 2, "seconds": 4.5}\n{"st')
    assert RunDirectory(tmp_path).training_seconds() == 4.5


def test_a_directory_without_a_checkpoint_is_at_the_beginning(tmp_path: Path) -> None:
    assert RunDirectory(tmp_path).steps_done() == 0
    assert RunDirectory(tmp_path / "nowhere").steps_done() == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "not a run directory: config.json is missing"),
        ("{", "config.json is damaged"),
        ('{"a": 1}', "does not describe a run"),
        ("[]", "does not describe a run"),
    ],
)
def test_a_damaged_configuration_is_told(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / CONFIG_FILE).write_text(text)
    with pytest.raises(InputError, match=message):
        RunDirectory(tmp_path).config()


def test_leftovers_of_a_kill_are_no_hindrance(tmp_path: Path) -> None:
    config = CONFIG
    (tmp_path / ".config.json.tmp").write_text("{")
    RunDirectory(tmp_path).check_same(config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / ".checkpoint.safetensors.tmp").write_text("")
    other = {**config, "horizon": 11}
    RunDirectory(tmp_path).check_same(other)  # only a beginning, which nobody misses
    for name in (CHECKPOINT, RESULTS, SUMMARY):
        (tmp_path / name).write_text("")
        with pytest.raises(InputError, match="horizon was 10, now 11; give another directory"):
            RunDirectory(tmp_path).check_same(other)
        (tmp_path / name).unlink()
    RunDirectory(tmp_path).check_same(other, overwrite=True)
    RunDirectory(tmp_path).discard_other(other)
    RunDirectory(tmp_path).check_same(other)
    # A name is not a setting: rvs+cwbc is rvs+w+c.
    RunDirectory(tmp_path).check_same({**config, "method": {**config["method"], "name": "other"}})
    # Neither is what was drawn, which runs from before did not keep.
    RunDirectory(tmp_path).check_same({**config, "drawn": [1.0]})


def test_to_name_an_environment_makes_no_other_run(tmp_path: Path) -> None:
    def acting(environment: str | None) -> dict[str, Any]:
        return {**CONFIG, "dataset": {**DATASET.to_json(), "environment": environment}}

    (tmp_path / CHECKPOINT).write_text("")
    (tmp_path / CONFIG_FILE).write_text(json.dumps(acting(None)))
    RunDirectory(tmp_path).check_same(acting("Hopper-v5"))
    RunDirectory(tmp_path).discard_other(acting("Hopper-v5"))
    assert (tmp_path / CHECKPOINT).exists()
    with pytest.raises(InputError, match="other settings: horizon was 10, now 11; give another") as refused:
        RunDirectory(tmp_path).check_same({**acting("Hopper-v5"), "horizon": 11})
    assert f"`cwbc evaluate {tmp_path} --env Hopper-v5` evaluates the trained run" in str(refused.value)
    (tmp_path / CONFIG_FILE).write_text(json.dumps(acting("Hopper-v4")))
    with pytest.raises(InputError, match=r"dataset\.environment was 'Hopper-v4', now 'Hopper-v5'"):
        RunDirectory(tmp_path).check_same(acting("Hopper-v5"))


def test_a_lock_is_nobody_s_file(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run").lock():
        RunDirectory(tmp_path / "run").check_same(CONFIG)
    check_place(tmp_path / "run")
    with RunDirectory(tmp_path / "run").lock():  # what was held may be held again
        pass
    (tmp_path / "diary.txt").write_text("dear diary")
    with pytest.raises(InputError, match=r"diary\.txt is a file, and a run needs a directory"):
        RunDirectory(tmp_path / "diary.txt").check_same(CONFIG)
    with pytest.raises(InputError, match="not empty and holds no run"), RunDirectory(tmp_path).lock():
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["diary.txt", "run"]


def test_a_run_is_discarded_with_its_event_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    EventFiles(tmp_path, CONFIG, [])
    RunDirectory(tmp_path).discard_other(CONFIG)
    assert len(list(tmp_path.rglob("*tfevents*"))) == 3  # the same run goes on
    RunDirectory(tmp_path).check_same({**CONFIG, "horizon": 11}, overwrite=True)
    RunDirectory(tmp_path).discard_other({**CONFIG, "horizon": 11})
    assert not list(tmp_path.iterdir())
