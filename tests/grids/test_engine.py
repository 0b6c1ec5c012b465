"""Grids in this process and in several: each cell once, whatever is killed, stopped or frozen meanwhile."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from toy_cells import EPISODES, STEPS, TARGETS, tables, toy_cells
from toys import write_toy

import cwbc
from cwbc.core import training_loop
from cwbc.core.training_loop import Interrupted
from cwbc.grids import engine
from cwbc.grids.engine import GridProgress, Options
from cwbc.grids.grouping import groups
from cwbc.grids.preparation import DatasetCache, prepare
from cwbc.runs import locks
from cwbc.runs.evaluating import evaluate_run
from cwbc.runs.policies import Policies
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.errors import InputError
from cwbc.system.tensor_files import CHECKPOINT


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy(tmp_path_factory.mktemp("data") / "toy.hdf5")


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_loop, "chunk_length", lambda *_: 5)  # as in the processes below


def stop_after(polls: int) -> Callable[[], bool]:
    count = itertools.count(1)
    return lambda: next(count) > polls


@pytest.mark.usefixtures("short_chunks")
def test_a_grid_is_run_once(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = toy_cells(toy, 2)
    wanted = (*wanted, dataclasses.replace(wanted[1], label="again"))  # by another name
    seen: list[GridProgress] = []
    first = engine.run(wanted, tmp_path, notes={"command": "me"}, options=Options(progress=seen.append))
    assert not first.failures
    assert [outcome.cell for outcome in first.outcomes] == list(wanted)
    assert [outcome.sweep.method for outcome in first.outcomes] == ["rvs 0", "rvs 1", "again"]
    assert len(tables(tmp_path)) == 2
    directory = first.outcomes[1].directory
    config = json.loads((directory / "config.json").read_text())
    assert (config["notes"]["command"], config["notes"]["dataset"]) == ("me", str(toy))
    again = cwbc.evaluate(Policies.load(directory), targets=TARGETS, episodes=EPISODES)
    np.testing.assert_array_equal(again.returns, first.outcomes[1].sweep.returns)

    assert all(standing.total == 2 for standing in seen[1:])
    assert [s.finished for s in seen] == sorted(s.finished for s in seen)
    assert (seen[0].remark, str(seen[-1].overall)) == (f"reading {toy}", "2/2 cells finished")
    doing = {(running.title.split()[0], running.count) for grid in seen for running in grid.running}
    steps = {("training", "5/200 steps"), ("training", "200/200 steps"), ("evaluating", "10/10 steps")}
    assert steps <= doing

    monkeypatch.setattr(engine, "train_together", None)
    second = engine.run(wanted, tmp_path)
    for one, two in zip(first.outcomes, second.outcomes, strict=True):
        assert (one.cell, one.directory, one.dataset) == (two.cell, two.directory, two.dataset)
        np.testing.assert_array_equal(one.sweep.returns, two.sweep.returns)
    assert not list(tmp_path.glob(f"*/{locks.FOLDER}"))


@pytest.mark.usefixtures("short_chunks")
def test_finished_cells_need_no_room_to_write(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.run(toy_cells(toy, 1), tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everywhere
    assert len(engine.run(toy_cells(toy, 1), tmp_path).outcomes) == 1
    with pytest.raises(InputError, match="cannot be written to, and 1 of 2 cells are not finished"):
        engine.run(toy_cells(toy, 2), tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells are trained side by side, as on a GPU."""
    monkeypatch.setattr(engine, "groups", lambda cells, gpus: groups(cells, 1))


@pytest.mark.usefixtures("short_chunks", "together")
def test_a_failing_cell_leaves_the_others_alone(toy: Path, tmp_path: Path) -> None:
    (broken,) = toy_cells(toy, 1, learning_rate=1e38)
    (occupied, fine) = toy_cells(toy, 2)
    probe = prepare([occupied], tmp_path, {}, DatasetCache())[0].directory
    probe.mkdir(parents=True)
    (probe / "diary.txt").write_text("dear diary")
    results = engine.run([broken, occupied, fine], tmp_path)
    assert [failure.cell for failure in results.failures] == [broken, occupied]
    assert "seed 0 at step" in results.failures[0].reason
    assert "not empty and holds no run" in results.failures[1].reason
    assert [outcome.cell for outcome in results.outcomes] == [fine]


@pytest.mark.usefixtures("short_chunks")
def test_an_environment_that_breaks_down_takes_only_its_cell(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks, fine = toy_cells(toy, 2)

    def broken(directory, policies, *rest, **named):  # type: ignore[no-untyped-def]
        if policies.seeds == breaks.seeds:
            raise RuntimeError("the arm\nfell off")
        return evaluate_run(directory, policies, *rest, **named)

    monkeypatch.setattr("cwbc.grids.engine.evaluate_run", broken)
    results = engine.run([breaks, fine], tmp_path)
    assert [outcome.cell for outcome in results.outcomes] == [fine]
    assert results.failures[0].reason.startswith("RuntimeError: the arm fell off (test_engine.py, line ")


@pytest.mark.usefixtures("short_chunks", "together")
def test_a_sweep_that_breaks_down_in_a_group_is_tried_twice(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [
        dataclasses.replace(cell, label=str(rate))
        for rate in (1e-3, 2e-3, 3e-3, 4e-3)
        for cell in toy_cells(toy, 1, learning_rate=rate)
    ]
    bad = prepare(wanted, tmp_path, {}, DatasetCache())[2].directory
    measured: list[Path] = []

    def broken(directory: Path, *rest, **named):  # type: ignore[no-untyped-def]
        measured.append(directory)
        if directory == bad:
            raise RuntimeError
        return evaluate_run(directory, *rest, **named)

    monkeypatch.setattr("cwbc.grids.engine.evaluate_run", broken)
    results = engine.run(wanted, tmp_path)
    assert [failure.cell.label for failure in results.failures] == ["0.003"]
    assert measured.count(bad) == 2  # once in the group, once alone
    assert len(measured) == 5


@pytest.mark.usefixtures("short_chunks")
def test_a_cell_that_cannot_be_looked_at_leaves_the_others_alone(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, fine = toy_cells(toy, 2)
    folder = prepare([closed], tmp_path, {}, DatasetCache())[0].directory
    acquire = locks.acquire

    def refused(path: Path, *rest: float) -> locks.Lock | None:
        if path == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return acquire(path, *rest)

    monkeypatch.setattr(locks, "acquire", refused)
    results = engine.run([closed, fine], tmp_path)
    assert [outcome.cell for outcome in results.outcomes] == [fine]
    assert "Permission denied" in results.failures[0].reason


@pytest.mark.usefixtures("short_chunks")
def test_what_another_has_just_finished_is_not_begun(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = toy_cells(toy, 1)
    there = engine.run(wanted, tmp_path / "there").outcomes[0].directory
    acquire = locks.acquire

    def slow(path: Path, *rest: float) -> locks.Lock | None:
        shutil.copytree(there, tmp_path / "here" / there.name)
        return acquire(path, *rest)

    monkeypatch.setattr(locks, "acquire", slow)
    monkeypatch.setattr(engine, "train_together", None)
    assert len(engine.run(wanted, tmp_path / "here").outcomes) == 1
    assert not list((tmp_path / "here").glob(f"*/{locks.FOLDER}"))


@pytest.mark.usefixtures("short_chunks")
def test_results_beside_an_earlier_checkpoint_are_not_finished(toy: Path, tmp_path: Path) -> None:
    wanted = toy_cells(toy, 2)
    whole = tmp_path / "whole"
    finished = engine.run(wanted, whole).outcomes[0].directory
    with pytest.raises(Interrupted):
        engine.run(wanted[:1], tmp_path / "cut", options=Options(should_stop=stop_after(9)))
    before = tables(whole)
    shutil.copy(tmp_path / "cut" / finished.name / CHECKPOINT, finished)
    assert RunDirectory(finished).steps_done() < STEPS
    seen: list[GridProgress] = []
    engine.run(wanted, whole, options=Options(progress=seen.append))
    assert RunDirectory(finished).steps_done() == STEPS
    assert tables(whole) == before
    assert {standing.finished for standing in seen if standing.running} == {1}  # the other, from the start
    (finished / CHECKPOINT).unlink()  # given away: the results stay
    engine.run(wanted, whole)
    assert not (finished / CHECKPOINT).exists()


def test_data_that_was_replaced_is_not_trained_under_its_old_name(toy: Path, tmp_path: Path) -> None:
    changing = tmp_path / "toy.hdf5"
    shutil.copy(toy, changing)
    prepared = prepare(toy_cells(changing, 1), tmp_path / "cells", {}, DatasetCache())
    write_toy(changing, full_length=False)
    reasons = engine.settle(prepared, Options())
    assert "was replaced meanwhile" in reasons[prepared[0].directory]
    assert not prepared[0].directory.exists()


@pytest.mark.usefixtures("short_chunks")
def test_a_stopped_grid_goes_on(toy: Path, tmp_path: Path) -> None:
    """Wherever it is stopped, between cells, in training or in evaluation, the table comes out the same."""
    wanted = toy_cells(toy, 2)
    engine.run(wanted, tmp_path / "whole")
    stops = 0
    for patience in itertools.count(3, 20):
        try:
            engine.run(wanted, tmp_path / "cut", options=Options(should_stop=stop_after(patience)))
            break
        except Interrupted:
            stops += 1
    assert stops >= 3
    assert tables(tmp_path / "cut") == tables(tmp_path / "whole")
    damaged = next((tmp_path / "cut").glob("*/results.csv"))
    damaged.write_text("method,seed\n")  # it is measured again, and nothing is trained
    engine.run(wanted, tmp_path / "cut")
    assert tables(tmp_path / "cut") == tables(tmp_path / "whole")


PROGRAM = """
import json, os, signal, sys
from pathlib import Path
sys.path[:0] = {path!r}
signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs in the background do not have
import jax
from cwbc.core import training_loop
training_loop.SAVE_INTERVAL = 0.0
training_loop.chunk_length = lambda *_: 5
from toy_cells import toy_cells
import toys
from cwbc.system.errors import InputError
from cwbc.grids import engine
train, log = engine.train_together, Path(sys.argv[3])
def logged(*arguments, **named):
    with log.open("a") as file:
        file.write("".join(run.directory.name + "\\n" for run in arguments[0]))
    with Path(f"{{log}}.devices").open("a") as file:
        file.write(f"{{jax.numpy.zeros(()).devices()}}\\n")
    first, progress = len(log.read_text().splitlines()) == {fatal}, named["progress"]
    def fatal(step):  # at a moment that is the same on every machine: between two checkpoints
        progress(step)
        if first and step == 100:
            os.kill(os.getpid(), signal.{by})
    return train(*arguments, **named | {{"progress": fatal}})
engine.train_together = logged
wanted = toy_cells(Path(sys.argv[1]), {count}, {steps})
results = engine.run(wanted, Path(sys.argv[2]), options=engine.Options(lock_seconds={seconds}))
print(len(results.outcomes), len(results.failures))
"""


class Processes:
    """Grids in processes of their own, in one folder.

    Args:
        fatal: the training, counted over all processes, amid which its process gets the signal `by`.
    """

    def __init__(
        self,
        toy: Path,
        tmp_path: Path,
        count: int,
        steps: int = STEPS,
        seconds: float = 600,
        fatal: int = 0,
        by: str = "SIGKILL",
    ) -> None:
        self.root, self.log = tmp_path / "cells", tmp_path / "log"
        values = {"count": count, "steps": steps, "seconds": seconds, "fatal": fatal, "by": by}
        program = PROGRAM.format(path=sys.path, **values)
        self._command = [sys.executable, "-c", program, str(toy), str(self.root), str(self.log)]

    @contextlib.contextmanager
    def start(self) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()  # a failed test waits for nobody

    def begun(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    while not condition():
        if process.poll() is not None:
            pytest.fail("it ended before that")
        time.sleep(0.01)


@pytest.mark.usefixtures("short_chunks")
def test_a_killed_process_costs_nothing_that_was_finished(toy: Path, tmp_path: Path) -> None:
    processes = Processes(toy, tmp_path, 2, fatal=2)
    with processes.start() as killed:
        assert killed.wait() == -signal.SIGKILL
    assert 0 < RunDirectory(processes.root / processes.begun()[1]).steps_done() < STEPS
    finished = {path: path.stat().st_mtime_ns for path in processes.root.glob("*/results.csv")}
    assert len(finished) == 1
    with processes.start() as other:
        assert other.communicate()[0] == "2 0\n"
    assert all(path.stat().st_mtime_ns == before for path, before in finished.items())
    assert len(processes.begun()) == 3  # the one that was cut off, again
    engine.run(toy_cells(toy, 2), tmp_path / "whole")
    assert tables(processes.root) == tables(tmp_path / "whole")


def test_two_processes_share_the_work(toy: Path, tmp_path: Path) -> None:
    processes = Processes(toy, tmp_path, 4)
    with processes.start() as one, processes.start() as two:
        assert [process.communicate()[0] for process in (one, two)] == ["4 0\n", "4 0\n"]
    assert len(processes.begun()) == len(set(processes.begun())) == 4


def test_a_frozen_process_is_replaced_and_does_not_write(toy: Path, tmp_path: Path) -> None:
    processes = Processes(toy, tmp_path, 1, seconds=1.0, fatal=1, by="SIGSTOP")
    with processes.start() as frozen:
        os.waitid(os.P_PID, frozen.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert list(processes.root.glob("*/checkpoint.safetensors"))
        with processes.start() as other:
            assert other.communicate()[0] == "1 0\n"
        (run,) = processes.root.glob("*/results.csv")
        before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.parent.iterdir()}
        frozen.send_signal(signal.SIGCONT)
        assert frozen.communicate()[0] == "1 0\n"  # it reads what the other has found
    after = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.parent.iterdir()}
    assert after == before
    assert len(processes.begun()) == 2


@pytest.mark.usefixtures("short_chunks")
def test_all_devices_work(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.run(toy_cells(toy, 3), tmp_path / "one")
    monkeypatch.setenv(
        "XLA_FLAGS", os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    )
    processes = Processes(toy, tmp_path, 3)
    with processes.start() as two:
        assert two.communicate()[0] == "3 0\n"
    assert tables(processes.root) == tables(tmp_path / "one")
    assert len(set((tmp_path / "log.devices").read_text().splitlines())) == 2
    endless = Processes(toy, tmp_path / "endless", 6, 10**6)
    (tmp_path / "endless").mkdir()
    with endless.start() as stopped:
        wait_for(lambda: len(list(endless.root.glob("*/checkpoint.safetensors"))) == 2, stopped)
        stopped.send_signal(signal.SIGINT)  # as Ctrl-C does, where nobody handles it
        stopped.communicate(timeout=600)
    assert stopped.returncode not in (0, None)
    assert len(endless.begun()) == 2
    assert not tables(endless.root)
