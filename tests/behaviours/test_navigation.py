"""Data from mazes: D4RL's frame and limits, successes and failures, paths that the walls allow."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import numpy as np
import pytest
from toys import ant_policy, ant_series, learner

from cwbc.behaviours import ANT_MAZES, MAZES, navigation
from cwbc.behaviours.navigation import DirectedWalker, WaypointController
from cwbc.core.trajectories import Trajectories
from cwbc.envs.guided_mazes import cell_of
from cwbc.envs.maze_worlds import point_world
from cwbc.system.errors import InputError

SAME_PHYSICS = (sys.platform, platform.machine()) == ("linux", "x86_64")
LIMITS = {"umaze": 300, "medium": 600, "large": 800}
GOALS = {"umaze": (1, 1), "medium": (6, 6), "large": (7, 9)}
HASHES = {
    "umaze": "66ce08706d12cfc1808547517afbdeb1c56d4e311e2512c9938db9f21e94eddf",
    "medium": "7e1099d241e7fc2e68e0b2c4599f9bfca55348e9fba48811cc656d9db26c5fc8",
    "large": "781bf57a551d5380e835fcce145df224ea9a31ba8ddecace812a2285a3db93c2",
}


def data_of(size: str, steps: int) -> Trajectories:
    return navigation.pointmaze(size).generate(f"cwbc/pointmaze/{size}-v0", steps)


@pytest.mark.parametrize("size", MAZES)
def test_an_episode_succeeds_at_the_goal_or_lasts_to_the_limit(size: str) -> None:
    data = data_of(size, 40_000)
    assert 38_000 < data.steps <= 40_000
    assert data.environment == f"cwbc/pointmaze-{size}-v0"
    assert 0.1 < data.returns.mean() < 0.75
    np.testing.assert_array_equal(data.returns, data.terminated)
    assert (data.lengths[~data.terminated] == LIMITS[size]).all()
    last = data.starts + data.lengths - 1
    assert (data.rewards[last] == data.terminated).all()
    # The last observation is the one before the step that reaches the goal: within 0.05 of its radius.
    distances = np.linalg.norm(data.observations[:, :2] - GOALS[size], axis=1)
    assert distances.min() > 0.5
    assert (distances[last][data.terminated] < 0.56).all()


def test_the_point_goes_through_the_whole_maze_and_not_through_its_walls() -> None:
    data, world = data_of("large", 60_000), point_world("large")
    cells = cell_of(world, data.observations[:, :2])
    assert np.isin(np.arange(len(world.cells)), cells).all()
    offsets = np.abs(data.observations[:, :2] - world.middles[cells])
    assert offsets.max() < 0.51  # between the walls, which leave the point 0.4 on each side
    same_episode = np.diff(np.repeat(np.arange(data.episodes), data.lengths)) == 0
    moves = np.abs(np.diff(world.cells[cells], axis=0)).sum(axis=1)[same_episode]
    assert moves.max() <= 2  # across a corner at most
    assert np.abs(data.observations[:, 2:]).max() < 5.3  # as fast as in D4RL's data


def test_a_controller_pushes_to_the_next_place_against_its_velocity() -> None:
    controller = WaypointController()
    observations = np.array([[7, 7, 0, 0, 0.05, -1], [7, 7, 2, 0, 0.1, 0.02]])
    np.testing.assert_allclose(controller.act(observations), [[0.5, -1], [-1, 0.2]])
    noise = np.array([[-0.4, 0.0], [3.0, 0.2]])
    np.testing.assert_allclose(controller.act(observations, noise), [[0.3, -1], [0.5, 0.3]], rtol=1e-6)
    assert controller.noise(np.random.default_rng(0), 5000).std() == pytest.approx(1, rel=0.05)


def test_a_walker_is_given_its_state_and_the_direction() -> None:
    walker = DirectedWalker(ant_policy())  # its torques are the tanh of the x of the direction
    observations = np.zeros((2, 31))
    observations[:, :2] = 50  # x and y do not matter
    observations[0, -2:], observations[1, -2:] = (6, 8), (-0.3, 0)
    expected = np.repeat(np.tanh(np.array([[0.6], [-1.0]])), 8, axis=1)
    np.testing.assert_allclose(walker.act(observations), expected, atol=2e-3)
    noise = np.full((2, 8), 0.5)
    np.testing.assert_allclose(walker.act(observations, noise), expected + 0.1, atol=2e-3)
    assert np.abs(walker.act(observations, 100 * noise)).max() == 1
    observations[:, -2:] = 0  # at the goal itself
    np.testing.assert_allclose(walker.act(observations), 0, atol=2e-3)


@pytest.mark.parametrize("kind", ANT_MAZES)
def test_ant_mazes_have_d4rls_layout(kind: str, tmp_path: Path) -> None:
    recipe = navigation.antmaze(kind, ant_series(tmp_path))
    limit = 700 if kind.startswith("umaze") else 1000
    data = recipe.generate(f"x/antmaze/{kind}-v0", 2 * limit)
    assert data.environment == f"d4rl/antmaze-{kind}-v2"
    assert data.observations.shape == (2 * limit, 29)
    assert data.actions.shape == (2 * limit, 8)
    np.testing.assert_array_equal(data.lengths, limit)
    assert not data.rewards.any()  # this ant only twitches
    starts = data.observations[data.starts, :2]
    middles = starts - 4 * (starts / 4).round()
    assert np.abs(middles).max() < 0.11
    assert (np.abs(starts).max() < 1) == (kind == "umaze")


def test_only_an_ant_that_walks_in_any_direction_can_walk_mazes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="act in Hopper-v4; the ant mazes need those of `cwbc behaviours"):
        navigation.antmaze("umaze", learner(tmp_path, 0, 1))


@pytest.mark.skipif(not SAME_PHYSICS, reason="the physics rounds differently on other systems")
@pytest.mark.parametrize("size", MAZES)
def test_data_is_the_same_on_every_such_machine(size: str) -> None:
    assert data_of(size, 5000).content_hash == HASHES[size]
