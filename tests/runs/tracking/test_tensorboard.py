"""Event files as TensorBoard's own reader finds them; published checksums, and a record by hand."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import with_returns
from pages import once
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from toys import tiny, toy_data

import cwbc
from cwbc.core import training_loop
from cwbc.core.training_loop import Interrupted
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.sweeps import Sweep
from cwbc.runs.tracking import Tracking
from cwbc.runs.tracking.tensorboard import EventFiles, crc32c, discard, event
from cwbc.runs.training import train
from cwbc.system.errors import InputError

TINY: dict[str, Any] = {"preset": "small", "steps": 20, "width": 16, "batch_size": 4}


def row(step: int, *losses: float) -> dict[str, Any]:
    return {"step": step, "seconds": step / 10, "loss": list(losses)}


def read(directory: Path, run: str) -> dict[str, list[tuple[int, float]]]:
    """The points of every curve of one TensorBoard run, and of one file only."""
    (path,) = (directory / "events" / run).iterdir()
    found = EventAccumulator(str(path)).Reload()
    return {tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_each_seed_is_a_run_and_so_is_their_mean(tmp_path: Path) -> None:
    files = EventFiles(tmp_path, {"seeds": [3, 8]}, [row(10, 1.0, 2.0)])
    files.record({**row(20, 0.5, math.nan), "prediction": [0.25, 0.75]})
    assert read(tmp_path, "seed-3") == {
        "training/loss": [(10, 1.0), (20, 0.5)],
        "training/prediction": [(20, 0.25)],
    }
    (first, second) = read(tmp_path, "seed-8")["training/loss"]
    assert first == (10, 2.0)
    assert math.isnan(second[1])
    assert read(tmp_path, "mean")["training/loss"][0] == (10, 1.5)
    assert read(tmp_path, "mean")["training/prediction"] == [(20, 0.5)]
    EventFiles(tmp_path / "alone", {"seeds": [0]}, [])
    assert [path.name for path in (tmp_path / "alone" / "events").iterdir()] == ["seed-0"]


def test_wall_time_is_the_time_of_training_up_to_now(tmp_path: Path) -> None:
    before = time.time()
    files = EventFiles(tmp_path, {"seeds": [0]}, [row(10, 1.0), row(40, 1.0)])
    files.record(row(50, 1.0))
    (path,) = tmp_path.glob("events/seed-0/*")
    times = [event.wall_time for event in EventAccumulator(str(path)).Reload().Scalars("training/loss")]
    assert before - 0.01 <= times[1] <= time.time()
    assert np.diff(times) == pytest.approx([3, 1])


def test_what_a_kill_left_is_replaced_by_what_was_kept(tmp_path: Path) -> None:
    killed = EventFiles(tmp_path, {"seeds": [0]}, [])
    for step in (10, 20, 30):
        killed.record(row(step, 1.0))
    (path,) = tmp_path.glob("events/seed-0/*")
    path.write_bytes(path.read_bytes()[:-5])  # half a record
    assert read(tmp_path, "seed-0")["training/loss"] == [(10, 1.0), (20, 1.0)]
    resumed = EventFiles(tmp_path, {"seeds": [0]}, [row(10, 1.0)])
    resumed.record(row(20, 2.0))
    assert read(tmp_path, "seed-0")["training/loss"] == [(10, 1.0), (20, 2.0)]
    assert next(tmp_path.glob("events/seed-0/*")).name > path.name  # so an open TensorBoard goes on to it


def test_a_resumed_training_has_the_curve_of_its_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_loop, "chunk_length", lambda *_: 5)  # as in tests/runs/test_training.py
    settings = cwbc.Training(steps=30, batch_size=8, context=5)
    stops = iter([False, True])
    for should_stop in (lambda: next(stops), lambda: False):
        try:
            train(
                toy_data(),
                tiny("rvs+w+c"),
                settings,
                (3, 4),
                tmp_path,
                should_stop=should_stop,
                tracking=Tracking(["tensorboard"]),
            )
        except Interrupted:
            killed = (tmp_path / "metrics.jsonl").read_text()
            (tmp_path / "metrics.jsonl").write_text(killed + json.dumps({"step": 15, "loss": [9, 9]}))
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [each["step"] for each in rows] == [5, 10, 15, 20, 25, 30]
    for number, run in enumerate(("seed-3", "seed-4")):
        curves = read(tmp_path, run)
        names = ("conservative", "loss", "prediction", "saturation", "variation")
        assert sorted(curves) == [f"training/{name}" for name in names]
        for tag, points in curves.items():
            expected = [(each["step"], each[tag.split("/")[1]][number]) for each in rows]
            assert points == expected  # float32 on both sides


def test_a_run_that_was_not_followed_can_be_shown_later(tmp_path: Path) -> None:
    cwbc.train(toy_data(), "rvs+cwbc", seeds=2, directory=tmp_path, **TINY)
    assert not (tmp_path / "events").exists()
    cwbc.train(toy_data(), "rvs+cwbc", seeds=2, directory=tmp_path, track="tensorboard", **TINY)
    ((step, loss),) = read(tmp_path, "seed-1")["training/loss"]
    (kept,) = map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert (step, loss) == (20, kept["loss"][1])


@pytest.mark.parametrize(
    ("targets", "steps", "unit"),
    [
        ((-1000.4, 2000.6), [-1000, 2001], ""),
        ((0.0, 1.26), [0, 126], ", target return x 100"),
    ],
)
def test_a_sweep_stands_against_the_asked_return(
    tmp_path: Path, targets: tuple[float, float], steps: list[int], unit: str
) -> None:
    dataset = DatasetSummary.of(toy_data(full_length=True))  # returns from -5 to 5 are scores from 0 to 100
    returns = np.array([[[-5.0, -5.0], [4.0, 6.0]], [[-1.0, 1.0], [5.0, 5.0]]])
    sweep = Sweep("rvs", np.arange(2), np.array(targets), returns, np.ones((2, 2, 2), np.int64))
    files = EventFiles(tmp_path, {"seeds": [0, 1]}, [])
    files.show(sweep, dataset)
    scores = {"seed-0": (0.0, 100.0), "seed-1": (50.0, 100.0), "mean": (25.0, 100.0)}
    for run, expected in scores.items():
        found = read(tmp_path, run)
        assert found[f"sweep/normalized score{unit}"] == list(zip(steps, expected, strict=True))
    assert read(tmp_path, "mean")[f"sweep/return{unit}"] == list(zip(steps, (-2.5, 5.0), strict=True))


def test_only_event_files_are_discarded(tmp_path: Path) -> None:
    EventFiles(tmp_path, {"seeds": [0, 1]}, [])
    (tmp_path / "events" / "mean" / "mine.txt").write_text("mine")
    discard(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [
        tmp_path / "events" / "mean" / "mine.txt"
    ]
    (tmp_path / "events" / "mean" / "mine.txt").unlink()
    EventFiles(tmp_path, {"seeds": [0, 1]}, [])
    discard(tmp_path)
    assert not list(tmp_path.iterdir())
    discard(tmp_path)  # nothing there is all right


def test_what_was_achieved_without_a_target_stands_at_step_0(tmp_path: Path) -> None:
    files = EventFiles(tmp_path, {"seeds": [0, 1, 2]}, [])
    files.show(once("bc", 4.0, 5.0, 6.0), DatasetSummary.of(with_returns(0.0, 10.0)))
    assert read(tmp_path, "mean")["sweep/return"] == [(0, 5.0)]


def test_nothing_behind_a_link_is_written_or_removed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs" / "seed-0" / "events.out.tfevents.1"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "events").symlink_to(tmp_path / "theirs")
    with pytest.raises(InputError, match="events is a symbolic link"):
        EventFiles(tmp_path / "run", {"seeds": [0]}, [])
    discard(tmp_path / "run")
    assert theirs.read_text() == "precious"
    assert list(theirs.parent.iterdir()) == [theirs]


@pytest.mark.parametrize(
    ("data", "checksum"),
    [  # RFC 3720, B.4, and the usual check value
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"", 0),
    ],
)
def test_checksums(data: bytes, checksum: int) -> None:
    assert crc32c(data) == checksum


def test_an_event_by_hand() -> None:
    record = event(1.0, 300, {"a": 0.5})
    content = bytes.fromhex(
        "09 000000000000f03f"  # wall_time, a double
        "10 ac02"  # step, 300 = 2 * 128 + 44
        "2a 0a"  # summary of ten bytes
        "0a 08"  # a value of eight bytes
        "0a 01 61"  # tag
        "15 0000003f"  # simple_value, a float
    )
    assert record[:8] == bytes([24, 0, 0, 0, 0, 0, 0, 0])
    assert record[12:-4] == content
    assert len(content) == 24
