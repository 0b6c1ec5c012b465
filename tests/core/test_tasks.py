"""Reference returns and the sweep of target returns."""

from __future__ import annotations

import numpy as np
import pytest

from cwbc.core.tasks import TASKS, task_for

# D4RL's reference returns, and the paper's expert returns.
REFERENCES = {
    "hopper": (3200.0, -20.272305, 3234.3),
    "walker2d": (4600.0, 1.629008, 4592.3),
    "halfcheetah": (12000.0, -280.178953, 12135.0),
}


@pytest.mark.parametrize("family", REFERENCES)
def test_reference_returns_of_locomotion(family: str) -> None:
    expert, random_score, expert_score = REFERENCES[family]
    task = TASKS[family]
    assert task.expert_return == expert
    np.testing.assert_allclose(task.normalize(np.array([random_score, expert_score])), [0, 100], atol=1e-12)
    middle = (random_score + expert_score) / 2
    assert float(task.normalize(np.array(middle))) == pytest.approx(50)
    assert (task.noise, task.return_scale, task.published) == (1000.0, 1000.0, True)


@pytest.mark.parametrize("family", REFERENCES)
def test_the_sweep_is_the_papers_and_the_datasets_best(family: str) -> None:
    expert = REFERENCES[family][0]
    targets = TASKS[family].targets(best=1234.5)
    assert list(targets) == sorted(set(targets))
    assert len(targets) == 22
    assert (targets[0], targets[-1]) == (1000.0, 2 * expert)
    assert {expert, 1234.5} < set(targets)
    spaced = [1000 + i * (2 * expert - 1000) / 19 for i in range(20)]
    np.testing.assert_allclose(sorted(set(targets) - {expert, 1234.5}), spaced, atol=1e-6)


def test_no_target_occurs_twice() -> None:
    assert len(TASKS["hopper"].targets(best=3200.0)) == 21


@pytest.mark.parametrize(
    ("environment", "returns"),
    [
        ("ALE/Pong-v5", (-21.0, 15.0)),
        ("ALE/Breakout-v5?sticky_actions=0.25&no_ops=0", (2.0, 30.0)),
        ("ALE/Qbert-v5", (164.0, 13455.0)),
        ("ALE/Seaquest-v5", (68.0, 42055.0)),
    ],
)
def test_scores_of_games_are_normalized_by_a_gamer_and_targets_follow_from_the_data(
    environment: str, returns: tuple[float, float]
) -> None:
    task = task_for(environment, 0.0, 90.0)
    np.testing.assert_allclose(task.normalize(np.array(returns)), [0, 100], atol=1e-12)
    assert task.is_game
    own = task_for("Mine-v0", 0.0, 90.0)
    assert task.targets(best=90.0) == own.targets(best=90.0)
    assert (task.expert_return, task.far_return, task.noise) == (90.0, 180.0, None)
    for other in ("ALE/Asterix-v5", "MinAtar/Breakout-v1", "Pong-v5", None):
        assert task_for(other, 0.0, 90.0) == own


@pytest.mark.parametrize("name", ["Hopper-v4", "Hopper-v5", "hopper-medium-v2", "mujoco/hopper"])
def test_a_family_is_known_by_its_name(name: str) -> None:
    assert task_for(name, 0.0, 1.0) is TASKS["hopper"]


@pytest.mark.parametrize(
    "name", ["d4rl/antmaze-umaze-v2", "d4rl/antmaze-large-play-v2", "antmaze-medium-diverse-v2"]
)
def test_the_expert_return_of_antmaze_is_one(name: str) -> None:
    task = task_for(name, 0.0, 0.0)
    assert task is TASKS["antmaze"]
    np.testing.assert_allclose(task.normalize(np.array([0.0, 0.7, 1.0])), [0, 70, 100])
    targets = task.targets(best=1.0)
    assert (targets[0], targets[-1], len(targets)) == (0.0, 2.0, 21)
    assert 1.0 in targets


# D4RL's reference returns
MAZES = {
    "umaze-v1": (23.85, 161.86),
    "medium-v1": (13.13, 277.39),
    "large-v1": (6.7, 273.99),
    "umaze-dense-v1": (68.537689, 193.66285642381482),
    "medium-dense-v1": (44.264742, 297.4552547777125),
    "large-dense-v1": (30.569041, 303.4857382709002),
}


@pytest.mark.parametrize("maze", MAZES)
def test_reference_returns_of_maze2d(maze: str) -> None:
    random_score, expert_score = MAZES[maze]
    task = task_for(f"d4rl/maze2d-{maze}", 0.0, 1.0)
    assert task is TASKS[f"maze2d-{maze}"]
    np.testing.assert_allclose(task.normalize(np.array([random_score, expert_score])), [0, 100], atol=1e-12)
    assert task.expert_return == expert_score
    targets = task.targets(best=expert_score)
    np.testing.assert_allclose([targets[0], targets[-1]], [random_score, 2 * expert_score], atol=1e-6)
    assert (task.noise, task.return_scale, task.published) == (None, None, True)


@pytest.mark.parametrize("name", [None, "", "CartPole-v1", "HopperBullet-v0", "maze2d-umaze-v0"])
def test_other_tasks_have_the_references_of_their_data(name: str | None) -> None:
    task = task_for(name, lowest=-10.0, best=30.0)
    assert not task.published
    assert (task.noise, task.return_scale) == (None, None)
    assert task.expert_return == 30.0
    np.testing.assert_allclose(task.normalize(np.array([-10.0, 10.0, 30.0, 70.0])), [0, 50, 100, 200])
    targets = task.targets(best=30.0)
    # The sweep reaches one whole range beyond the best.
    assert (targets[0], targets[-1], len(targets)) == (-10.0, 70.0, 21)
    assert 30.0 in targets


def test_equal_returns_still_give_reference_returns() -> None:
    task = task_for(None, lowest=5.0, best=5.0)
    np.testing.assert_allclose(task.normalize(np.array([4.0, 5.0])), [0, 100])
    assert len(task.targets(best=5.0)) == 21
