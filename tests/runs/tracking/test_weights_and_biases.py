"""Weights & Biases without its servers: what an offline run holds, and the metadata of a resumed one."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import with_returns
from pages import once

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.runs.tracking.weights_and_biases import WandbRun, identifier

CONFIG = {"seeds": [0, 1], "dataset": {"name": "toy"}, "method": {"name": "rvs"}, "notes": {"command": "x"}}
ROWS = [{"step": step, "seconds": 1.5, "loss": [1.0, 2.0]} for step in (7, 14, 21, 28)]


def records(path: Path) -> list[Any]:
    """What an offline run tells: a head of 7 bytes, then LevelDB's log format, in blocks of 32 KiB."""
    record_type = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    data, place, parts, found = path.read_bytes(), 7, b"", []
    while place + 7 <= len(data):
        if (left := -place % 2**15) and left < 7:  # too little for a head: the block is filled up
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            found.append(record_type.FromString(parts))
            parts = b""
    return found


def items(fields: Any) -> dict[str, Any]:
    return {"/".join(field.nested_key) or field.key: json.loads(field.value_json) for field in fields}


# In a process of its own: the package starts a service, and warns at the end of it.
PROGRAM = f"""
from pathlib import Path
import numpy as np
from conftest import with_returns
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.sweeps import Sweep
from contextlib import closing
from cwbc.runs.tracking import Tracking, parse_trackers

returns = np.array([[[1.0], [4.0]], [[3.0], [6.0]]])
with closing(Tracking(parse_trackers("wandb"), print)) as tracking:
    tracking.begin(Path("run"), {CONFIG}, {ROWS[:1]})
    tracking.record({ROWS[1]})
    tracking.show(
        Sweep("rvs", np.arange(2), np.array([5.0, 10.0]), returns, np.ones((2, 2, 1), np.int64)),
        DatasetSummary.of(with_returns(0.0, 10.0)),
    )
"""


@pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="needs pip install 'cwbc[wandb]'")
def test_an_offline_run_holds_curves_configuration_and_sweep(tmp_path: Path) -> None:
    offline = {**os.environ, "WANDB_MODE": "offline", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=offline, cwd=tmp_path, check=True, timeout=600, stdout=-1
    )
    assert b"not updated any more" not in ended.stdout
    (log,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    found = records(log)
    (run,) = (record.run for record in found if record.HasField("run"))
    assert (run.project, run.run_group, run.display_name) == ("cwbc", "toy", "rvs")
    assert run.run_id == identifier(tmp_path / "run", CONFIG)
    assert items(run.config.update) == {"_wandb": {}, **CONFIG}
    first, second, _ = (items(record.history.item) for record in found if record.HasField("history"))
    assert {name: value for name, value in first.items() if name not in ("_runtime", "_timestamp")} == {
        "_step": 7,
        "seconds": 1.5,
        "loss/seed-0": 1.0,
        "loss/seed-1": 2.0,
        "loss/mean": 1.5,
    }
    assert second["_step"] == 14
    scores: dict[str, Any] = {}
    for record in found:
        scores |= items(record.summary.update)
    # Returns from 0 to 10 are scores from 0 to 100; those of the two seeds at 10 are 40 and 60.
    assert scores["at_dataset_best"]["value"] == pytest.approx(50)
    (table,) = log.parent.rglob("*.table.json")
    curve = json.loads(table.read_text())
    wanted, achieved = (curve["columns"].index(name) for name in ("target", "normalized"))
    assert [(point[wanted], point[achieved]) for point in curve["data"]] == [(5, 20), (10, 50)]


def test_a_resumed_run_is_told_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[int] = []
    run = SimpleNamespace(step=15, log=lambda values, step, commit: logged.append(step))
    wanted: dict[str, Any] = {}
    stand_in = SimpleNamespace(init=lambda **given: wanted.update(given) or run, Settings=dict)
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    WandbRun(tmp_path, CONFIG, ROWS[:3]).record(ROWS[3])
    assert logged == [21, 28]  # it had the first two
    assert (wanted["resume"], wanted["project"], wanted["group"]) == ("allow", "mine", "toy")


def test_a_run_keeps_its_identifier_over_sittings(tmp_path: Path) -> None:
    one = identifier(tmp_path, CONFIG)
    assert one == identifier(tmp_path, {**CONFIG, "later_sittings": [{"versions": {}}]})
    assert one == identifier(tmp_path / ".." / tmp_path.name, CONFIG)
    assert one != identifier(tmp_path / "elsewhere", CONFIG)
    assert one != identifier(tmp_path, {**CONFIG, "seeds": [0]})
    assert one.isalnum()


def test_a_method_that_takes_no_target_has_scores_and_no_curve() -> None:
    kept: dict[str, Any] = {}
    run = object.__new__(WandbRun)
    run._run = SimpleNamespace(summary=kept)  # whoever logs a curve fails
    run.show(once("bc", 4.0, 5.0, 6.0), DatasetSummary.of(with_returns(0.0, 10.0)))
    assert kept["best_point"]["value"] == pytest.approx(50)
    assert "ood_retention" not in kept
