"""A run directory's own words: how far it is, how long it took, what tells it from another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from toys import toy_data

from cwbc import runs
from cwbc.errors import InputError


def test_the_time_of_all_sittings_is_added_up(tmp_path: Path) -> None:
    seconds = [1.0, 5.0, 2.0, 3.0, 0.5]  # the clock begins anew twice
    rows = [json.dumps({"step": n, "seconds": s}) for n, s in enumerate(seconds)]
    (tmp_path / runs.METRICS).write_text("\n".join(rows))
    assert runs.training_seconds(tmp_path) == 5.0 + 3.0 + 0.5


def test_a_directory_without_a_checkpoint_is_at_the_beginning(tmp_path: Path) -> None:
    assert runs.steps_done(tmp_path) == 0
    assert runs.steps_done(tmp_path / "nowhere") == 0


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
        (tmp_path / runs.CONFIG).write_text(text)
    with pytest.raises(InputError, match=message):
        runs.read_config(tmp_path)


def test_what_is_kept_of_a_dataset() -> None:
    data = toy_data()
    summary = runs.describe(data)
    assert (summary.episodes, summary.steps) == (60, data.steps)
    assert (summary.lowest, summary.best) == (data.lowest, data.best)
    assert sum(summary.histogram_counts) == 60
    assert summary.content_hash == data.content_hash
