"""Which snapshot is medium and which is expert, and manifests that are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from toys import learner

from cwbc.behaviours import series
from cwbc.behaviours.series import Measured
from cwbc.errors import InputError


def test_medium_is_a_third_of_the_way_to_the_expert(tmp_path: Path) -> None:
    one = learner(tmp_path, -300, 150, -20, 500, 600, 590)
    assert one.expert.steps == 40
    assert one.medium.steps == 20  # nearest to -300 + 900 / 3
    assert series.read(tmp_path) == one


def test_of_several_seeds_the_best_is_taken(tmp_path: Path) -> None:
    learner(tmp_path / "seed-0", 0, 5)
    best = learner(tmp_path / "seed-1", 0, 7, 3)
    assert series.read(tmp_path) == best


def test_what_is_no_series_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no trained behaviours"):
        series.read(tmp_path)
    path = tmp_path / "manifest.json"
    good = json.loads((learner(tmp_path, 1, 2).folder / "manifest.json").read_text())
    broken = (
        "[]",
        "{",
        json.dumps(good | {"format": 2}),
        json.dumps(good | {"snapshots": []}),
        json.dumps(good | {"settings": {}}),
        json.dumps(good | {"environment": None}),
        json.dumps(good | {"snapshots": [{"steps": 1}]}),
        json.dumps(good | {"surprise": 1}),
    )
    for text in broken:
        path.write_text(text)
        with pytest.raises(InputError, match="is not a manifest of behaviours, or it is damaged"):
            series.read(tmp_path)


def test_a_manifest_keeps_six_digits() -> None:
    assert Measured.of(np.array([1 / 3, 2 / 3])) == Measured(0.5, 0.166667, 0.333333)
