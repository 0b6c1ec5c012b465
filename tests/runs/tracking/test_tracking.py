"""The trackers of --track, whose errors never stop a run."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest
from toys import tiny, toy_data, write_toy

import cwbc
from cwbc.cli.main import main
from cwbc.runs import tracking
from cwbc.runs.tracking import Row, Tracking, parse_trackers
from cwbc.runs.training import train
from cwbc.system.errors import InputError

TINY = ["--preset=small", "--device=cpu", "--seeds=2", "--steps=20", "--width=16", "--batch-size=4"]


def run(*arguments: str | Path) -> int:
    """The exit status of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


class Failing:
    """A tracker that takes one row and no more."""

    def __init__(self, *_: object) -> None:
        self.rows = 0

    def record(self, row: Row) -> None:
        self.rows += 1
        if self.rows > 1:
            raise ConnectionError("network is\nunreachable")

    def show(self, *_: object) -> None:
        raise AssertionError("it was left before")

    close = show


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_trackers(None) == parse_trackers(()) == ()
    assert parse_trackers("tensorboard") == parse_trackers(["tensorboard", "tensorboard"]) == ("tensorboard",)
    with pytest.raises(InputError, match="unknown tracker 'tensorbord'; did you mean 'tensorboard'"):
        parse_trackers("tensorbord")
    with pytest.raises(InputError, match="unknown tracker ''; known: tensorboard, wandb"):
        parse_trackers("tensorboard,")
    monkeypatch.setitem(sys.modules, "wandb", None)  # as if it were not installed
    with pytest.raises(InputError, match=r"pip install 'cwbc\[wandb\]'"):
        parse_trackers("tensorboard,wandb")


def test_a_tracker_that_fails_is_told_of_once_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tracking._MAKERS, "wandb", Failing)
    monkeypatch.setitem(tracking._MAKERS, "tensorboard", lambda *_: 1 / 0)
    shown: list[str] = []
    with contextlib.closing(Tracking(["tensorboard", "wandb"], shown.append)) as trackers:
        trackers.begin(Path(), {}, [])
        for step in range(5):
            trackers.record({"step": step})
        trackers.begin(Path(), {}, [])  # another run
    assert shown == [
        f"{name} is not updated any more ({reason}); the run continues, and the same command "
        "shows all of it later"
        for name, reason in (("tensorboard", "division by zero"), ("wandb", "network is unreachable"))
    ]


def test_a_training_outlives_its_trackers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cwbc.core.training_loop.chunk_length", lambda *_: 5)
    monkeypatch.setitem(tracking._MAKERS, "tensorboard", Failing)
    method = tiny("rvs+w+c")
    settings = cwbc.Training(steps=30, batch_size=8, context=5)
    with pytest.warns(UserWarning, match="network is unreachable"):
        train(toy_data(), method, settings, (3, 4), tmp_path, tracking=Tracking(["tensorboard"]))
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 6


def test_in_python_a_tracked_run_needs_a_directory() -> None:
    with pytest.raises(InputError, match="give the directory"):
        cwbc.train(toy_data(), "rvs", track="tensorboard")


def test_mistakes_are_found_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = write_toy(tmp_path / "toy.hdf5")
    monkeypatch.setitem(sys.modules, "wandb", None)
    for wanted, expected in {"wndb": "did you mean 'wandb'?", "wandb": "pip install 'cwbc[wandb]'"}.items():
        for command in ("compare", "train"):
            assert run(command, dataset, "rvs", *TINY, "--track", wanted, "--out", tmp_path / "out") == 2
            assert expected in capsys.readouterr().err
        assert run("evaluate", tmp_path / "out", "--track", wanted) == 2
        assert expected in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_pictures")
def test_a_run_with_event_files_is_a_run_like_any_other(tmp_path: Path) -> None:
    dataset, out = write_toy(tmp_path / "toy.hdf5"), tmp_path / "out"
    compare: tuple[str | Path, ...] = ("compare", dataset, "rvs", *TINY, "--episodes=2", "--out", out)

    def files() -> list[Path]:
        return sorted(out.rglob("*tfevents*"))

    def sizes() -> dict[str, int]:
        return {path.parent.relative_to(out).as_posix(): path.stat().st_size for path in files()}

    assert run(*compare, "--track=tensorboard") == 0
    first, kept = sizes(), files()
    assert list(first) == [f"rvs/events/{name}" for name in ("mean", "seed-0", "seed-1")]
    # Nothing is trained or measured again; the files are written anew, and tell the same.
    assert run(*compare, "--track=tensorboard") == 0
    assert not {*files()} & {*kept}
    assert sizes() == first
    kept = files()
    assert run("evaluate", out, "--episodes=2", "--track=tensorboard", "--device=cpu") == 0
    assert not {*files()} & {*kept}
    assert sizes() == first
