"""Which snapshot is medium and which is expert, damaged manifests, and the snapshots that come with cwbc."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from toys import learner

from cwbc.behaviours import GAMES, TASKS, ZOO, recipes, snapshots
from cwbc.behaviours.rollouts import evaluate
from cwbc.behaviours.snapshots import EVALUATION_SEED, SnapshotReturns
from cwbc.system.errors import InputError

SAME_PHYSICS = (sys.platform, platform.machine()) == ("linux", "x86_64")
EXPERT = {"hopper": 3200, "walker2d": 4300, "halfcheetah": 9000}


def test_medium_is_a_third_of_the_way_to_the_expert(tmp_path: Path) -> None:
    one = learner(tmp_path, -300, 150, -20, 500, 600, 590)
    assert one.expert.steps == 40
    assert one.medium.steps == 20  # nearest to -300 + 900 / 3
    assert snapshots.read(tmp_path) == one


def test_of_several_seeds_the_best_is_taken(tmp_path: Path) -> None:
    learner(tmp_path / "seed-0", 0, 5)
    best = learner(tmp_path / "seed-1", 0, 7, 3)
    assert snapshots.read(tmp_path) == best


def test_what_is_no_series_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no behaviour policies"):
        snapshots.read(tmp_path)
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
        with pytest.raises(InputError, match="is not a manifest of snapshots, or it is damaged"):
            snapshots.read(tmp_path)


def test_a_manifest_keeps_six_digits() -> None:
    assert SnapshotReturns.of(np.array([1 / 3, 2 / 3])) == SnapshotReturns(0.5, 0.166667, 0.333333)


@pytest.mark.parametrize("task", TASKS)
def test_snapshots_reach_from_untrained_to_expert(task: str) -> None:
    own = snapshots.shipped(task)
    assert 30 <= len(own.snapshots) <= 41
    assert own.episodes >= 50
    assert own.snapshots[0].steps == 0
    assert own.expert.stochastic.mean > EXPERT[task]
    assert own.expert.deterministic.mean > EXPERT[task]
    assert own.command.startswith(f"cwbc behaviours train {own.environment} ")
    # D4RL's word for medium is a third of the expert.
    assert 0.3 < own.medium.stochastic.mean / own.expert.stochastic.mean < 0.45
    assert {path.name for path in own.folder.glob("*.safetensors")} == {one.file for one in own.snapshots}


def test_the_files_are_small() -> None:
    def size(tasks: Iterable[str]) -> int:
        return sum(path.stat().st_size for task in tasks for path in (ZOO / task).iterdir())

    assert size(TASKS) < 2e6
    assert size(GAMES) < 15e6


@pytest.mark.parametrize(
    ("task", "steps"), [("hopper", 638896), ("walker2d", 454752), ("halfcheetah", 454752)]
)
def test_a_snapshot_earns_what_its_manifest_says(task: str, steps: int) -> None:
    own = snapshots.shipped(task)
    (snapshot,) = (one for one in own.snapshots if one.steps == steps)
    returns = evaluate(own.environment, [own.policy(snapshot)], own.episodes, EVALUATION_SEED, noisy=True)
    error = 3 * snapshot.stochastic.std / own.episodes**0.5
    tolerance = {"rel": 1e-5} if SAME_PHYSICS else {"abs": error}
    assert returns.mean() == pytest.approx(snapshot.stochastic.mean, **tolerance)


@pytest.mark.skipif(
    not SAME_PHYSICS,
    reason="the physics rounds differently on other systems: their data are as good, but not the same",
)
def test_data_is_the_same_on_every_such_machine() -> None:
    recipe = recipes.SnapshotRecipe(snapshots.shipped("hopper"), "medium-replay")
    data = recipe.generate("cwbc/hopper/medium-replay-v0", 5000)
    assert data.content_hash == "5c320d6b7bdc33eb45993c817fcb529450b61618845532ffe2d858f881ec548e"
