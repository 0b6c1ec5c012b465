"""The behaviours that come with the package are what their manifests say."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from cwbc.behaviours import TASKS, recipes, zoo
from cwbc.behaviours.rollouts import measure
from cwbc.behaviours.series import EVALUATION_SEED

SAME_PHYSICS = (sys.platform, platform.machine()) == ("linux", "x86_64")
EXPERT = {"hopper": 3200, "walker2d": 4300, "halfcheetah": 9000}


@pytest.mark.parametrize("task", TASKS)
def test_snapshots_reach_from_untrained_to_expert(task: str) -> None:
    own = zoo.series(task)
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
    folder = Path(zoo.__file__).parent / "snapshots"
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 5e6


@pytest.mark.parametrize(
    ("task", "steps"), [("hopper", 638896), ("walker2d", 454752), ("halfcheetah", 454752)]
)
def test_a_snapshot_earns_what_its_manifest_says(task: str, steps: int) -> None:
    own = zoo.series(task)
    (snapshot,) = (one for one in own.snapshots if one.steps == steps)
    returns = measure(own.environment, [own.behaviour(snapshot)], own.episodes, EVALUATION_SEED, sampled=True)
    error = 3 * snapshot.stochastic.deviation / own.episodes**0.5
    tolerance = {"rel": 1e-5} if SAME_PHYSICS else {"abs": error}
    assert returns.mean() == pytest.approx(snapshot.stochastic.mean, **tolerance)


@pytest.mark.skipif(
    not SAME_PHYSICS,
    reason="the physics rounds differently on other systems: their data are as good, but not the same",
)
def test_data_is_the_same_on_every_such_machine() -> None:
    data = recipes.make(zoo.series("hopper"), "cwbc/hopper/medium-replay-v0", "medium-replay", 5000)
    assert data.content_hash == "5c320d6b7bdc33eb45993c817fcb529450b61618845532ffe2d858f881ec548e"
