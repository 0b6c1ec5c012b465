from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from cwbc.errors import InputError
from cwbc.reporting import DatasetSummary, summary_table, write_report
from cwbc.results import Sweep, read_results
from cwbc.tasks import TASKS

TASK = TASKS["hopper"]
DATASET = DatasetSummary(
    "hops", "Hopper-v5", "abc", 6, 60, -20.0, 1500.0, 700.0, (-20.0, 740.0, 1500.0), (4, 2)
)
TARGETS = np.array([1500.0, 3200.0, 6400.0])
# The expert's return scores 100 and the random one 0, exactly.
RETURNS = np.array([TASK.expert_score, TASK.random_score, TASK.expert_score]).reshape(1, 3, 1)
SWEEP = Sweep("rvs[w]", np.arange(1), TARGETS, RETURNS, np.full((1, 3, 1), 1000))


def test_a_report_is_four_files_that_agree(tmp_path: Path) -> None:
    summary = write_report(tmp_path / "new" / "run", [SWEEP], TASK, DATASET, {"preset": "small"})
    files = {path.name: path for path in (tmp_path / "new" / "run").iterdir()}
    assert set(files) == {"results.csv", "summary.json", "reliability.png", "report.html"}
    assert json.loads(files["summary.json"].read_text()) == summary
    assert DatasetSummary.from_json(summary["dataset"]) == DATASET
    np.testing.assert_array_equal(read_results(files["results.csv"])[0].returns, SWEEP.returns)
    assert files["reliability.png"].read_bytes().startswith(b"\x89PNG")
    assert "small" in files["report.html"].read_text(encoding="utf-8")


def test_the_table_shows_every_method_at_the_named_targets(tmp_path: Path) -> None:
    summary = write_report(tmp_path, [SWEEP], TASK, DATASET, {})
    console = Console(file=io.StringIO(), width=100)
    console.print(summary_table(summary))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    (row,) = [line for line in text.splitlines() if "rvs[w]" in line]  # brackets are no markup
    assert row.replace("│", " ").split() == ["rvs[w]", "100.0", "0.0", "100.0", "100", "%"]
    for name in ("at dataset's best", "at 1× expert", "at 2× expert", "retention"):
        assert name in text


def test_a_dataset_summary_with_a_missing_field_is_the_users_error() -> None:
    values = DATASET.to_json()
    del values["best"]
    with pytest.raises(InputError, match="lacks best; it needs name, environment"):
        DatasetSummary.from_json(values)


def test_reporting_starts_without_jax() -> None:
    """`cwbc report` reads from disk only and must not wait for an accelerator."""
    check = "import sys, cwbc.reporting; sys.exit('jax' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", check], env={"PYTHONPATH": os.pathsep.join(sys.path)}
        ).returncode
        == 0
    )
