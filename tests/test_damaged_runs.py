"""Run directories with a damaged file: every report is one, or an error that names the file."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from damage import damage
from pages import CONFIG, DATASET

from cwbc.reports import write_report
from cwbc.results.sweeps import Sweep

FILES = ("config.json", "metrics.jsonl", "results.csv", "summary.json", "report.html")
CASES = 80


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A finished run, written by hand."""
    directory = tmp_path / "whole"
    returns = np.random.default_rng(0).normal(1000, 100, (2, 3, 2))
    targets = np.array([1000.0, 1500.0, 6400.0])
    sweep = Sweep("bc+f", np.arange(2), targets, returns, np.full(returns.shape, 10))
    write_report(directory, [sweep], DATASET, {}, {}, {"bc+f": {"mujoco": "3.9"}})
    sitting = {"versions": {"mujoco": "3.8"}, "hardware": {"device": "gpu", "cores": 16}}
    weighting = {"kind": "TopFraction", "top_fraction": 0.1}
    config = {
        **CONFIG,
        "method": {"name": "bc+f", "weighting": weighting},
        "drawn": [0.25, 0.75],
        "later_sittings": [sitting],
        "notes": {"command": "cwbc train hops bc+f", "dataset from": "elsewhere", "preset": "small"},
    }
    (directory / "config.json").write_text(json.dumps(config))
    rows = [{"step": step, "seconds": step / 10, "loss": [1 / step, 2 / step]} for step in (5, 10, 15, 20)]
    (directory / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (directory / "checkpoint.safetensors").touch()
    return directory


@pytest.mark.usefixtures("no_pictures")
def test_no_damage_ends_in_a_traceback(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends: Counter[int] = Counter()
    for case in range(CASES):
        generator = np.random.default_rng(case)
        directory, name = shutil.copytree(whole, tmp_path / f"case-{case}"), FILES[case % len(FILES)]
        damage(directory / name, generator)
        ends[end := run("report", directory)] += 1  # an exception would end the test
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err
        if end:
            assert end == 2, (case, name, said.err)
            assert f"cwbc: {directory}" in said.err, (case, name)
    assert ends[0] > 15  # what a report can do without
    assert ends[2] > 15
