"""Grids as programs run them: `cwbc.grid`, `cwbc.run`, `cwbc.report`."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from toy_cells import toy_cells
from toys import write_toy

import cwbc
from cwbc.grids.outcomes import Failure, Results
from cwbc.runs.run_directory import RunDirectory


@pytest.mark.usefixtures("no_pictures")
def test_from_a_grid_to_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toy = write_toy(tmp_path / "toy.hdf5")
    small = {"width": 16, "batch_size": 8, "context": 5}
    rates = (cwbc.Variant(f"rate {rate}", "rvs", {**small, "learning_rate": rate}) for rate in (1e-3, 1e-2))
    cells = cwbc.grid(str(toy), rates, cwbc.Scale("small", steps=5, seeds=1, episodes=1, points=3))
    before = signal.getsignal(signal.SIGINT)
    results = cwbc.run(cells, tmp_path / "cells")
    assert [outcome.cell.label for outcome in results.outcomes] == ["rate 0.001", "rate 0.01"]
    assert "2/2 cells finished" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
    assert cwbc.report(results, tmp_path / "out").exists()
    again: list[int] = []  # where no signal can be listened to
    thread = threading.Thread(target=lambda: again.append(len(cwbc.run(cells, tmp_path / "cells").outcomes)))
    thread.start()
    thread.join()
    assert again == [2]


def test_why_a_cell_failed_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = toy_cells("toy.hdf5", 1)
    failure = Failure(cell, tmp_path / "cell", "the loss became nan")
    monkeypatch.setattr("cwbc.api.run_here", lambda *_, **__: Results([], [failure]))
    assert cwbc.run([cell]).failures == [failure]
    assert f"failed: toy.hdf5, {cell.label}: the loss became nan" in capsys.readouterr().err


def test_mistakes_are_told(tmp_path: Path) -> None:
    cells = toy_cells("toy.hdf5", 1)
    with pytest.raises(cwbc.InputError, match="unknown engine 'rey'; did you mean 'ray'"):
        cwbc.run(cells, tmp_path, engine="rey")  # type: ignore[arg-type]
    with pytest.raises(cwbc.InputError, match="give engine='ray' with it"):
        cwbc.run(cells, tmp_path, address="there:6379")
    for wrong, kind in (("rvs", "str"), (["rvs"], "str"), (None, "NoneType"), ([cells], "tuple")):
        with pytest.raises(cwbc.InputError, match=rf"takes the cells that cwbc\.grid gives; got a {kind}"):
            cwbc.run(wrong, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(cwbc.InputError, match=r"takes what cwbc\.run returns; got a list"):
        cwbc.report([], tmp_path)  # type: ignore[arg-type]


def test_the_other_engine_is_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    called: dict[str, Any] = {}

    def run(cells: object, root: object, **named: Any) -> Results:
        called.update(named, cells=cells, root=root)
        return Results([], [])

    monkeypatch.setattr("cwbc.grids.ray_engine.run", run)
    cells = toy_cells("toy.hdf5", 1)
    cwbc.run(cells, "there", engine="ray", address="head:6379")
    assert (called["cells"], called["root"], called["address"]) == (cells, "there", "head:6379")
    assert called["options"].should_stop() is False

    def stopped(*_: object, **named: Any) -> Results:
        signal.raise_signal(signal.SIGINT)  # when nothing polls any more
        return Results([], [])

    monkeypatch.setattr("cwbc.grids.ray_engine.run", stopped)
    with pytest.raises(KeyboardInterrupt, match="all is saved"):
        cwbc.run(cells, "there", engine="ray")


PROGRAM = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
import toys
from toy_cells import toy_cells
import cwbc
print(len(cwbc.run(toy_cells(Path(sys.argv[1]), 1, {steps}), Path(sys.argv[2])).outcomes))
"""


def test_ctrl_c_saves(tmp_path: Path) -> None:
    toy, root = write_toy(tmp_path / "toy.hdf5"), tmp_path / "cells"
    program = PROGRAM.format(path=sys.path, steps=10**6)
    command = [sys.executable, "-c", program, str(toy), str(root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not list(root.glob("*/metrics.jsonl")) and process.poll() is None:  # however long that takes
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    finally:
        process.kill()
    assert process.returncode not in (0, None)
    assert "saving; Ctrl-C again stops at once" in said
    assert "KeyboardInterrupt: all is saved; the same program resumes from here" in said
    (checkpoint,) = root.glob("*/checkpoint.safetensors")
    assert RunDirectory(checkpoint.parent).steps_done() > 0
