from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import pytest
from pages import DATASET, sweep

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports import write_report
from cwbc.results.evaluated import evaluated
from cwbc.runs.finished import summary_of, write_results
from cwbc.system.errors import InputError

SWEEP = sweep("rvs", 1400.0, 500.0, 0.0, targets=(1500.0, 3200.0, 6400.0))


@pytest.mark.usefixtures("no_pictures")
def test_results_are_written_unless_that_is_refused(tmp_path: Path) -> None:
    def written(refused: bool) -> dict[str, bytes]:
        """The files that are there then."""

        def before_replacing() -> None:
            if refused:
                raise KeyboardInterrupt

        folder = tmp_path / str(refused)
        folder.mkdir()
        summary = summary_of(evaluated([SWEEP], DATASET), DATASET)
        with contextlib.suppress(KeyboardInterrupt):
            write_results(folder, [SWEEP], summary, before_replacing=before_replacing)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert written(refused=True) == {}
    write_report(tmp_path, [SWEEP], DATASET, {})
    expected = {name: (tmp_path / name).read_bytes() for name in ("results.csv", "summary.json")}
    assert written(refused=False) == expected


@pytest.mark.usefixtures("no_pictures")
def test_other_results_remove_the_report_of_the_earlier_ones(tmp_path: Path) -> None:
    write_report(tmp_path, [SWEEP], DATASET, {})
    write_results(tmp_path, [SWEEP], summary_of(evaluated([SWEEP], DATASET), DATASET))
    assert (tmp_path / "report.html").exists()
    other = dataclasses.replace(SWEEP, returns=SWEEP.returns + 1)
    write_results(tmp_path, [other], summary_of(evaluated([other], DATASET), DATASET))
    assert {path.name for path in tmp_path.glob("*.*")} == {"results.csv", "summary.json"}


def test_a_dataset_summary_with_a_missing_field_is_the_users_error() -> None:
    values = DATASET.to_json()
    del values["best"]
    with pytest.raises(InputError, match="lacks best"):
        DatasetSummary.from_json(values)
