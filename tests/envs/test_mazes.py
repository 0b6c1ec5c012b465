"""D4RL's mazes: its frame, starts, goals, rewards and ends, as its sources and its data have them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from cwbc.envs import is_batched, make, maze_worlds, registry, time_limit
from cwbc.envs.mazes import MAZES, BatchedMaze
from cwbc.system.errors import InputError

LIMITS = {
    **dict.fromkeys(["antmaze-umaze-v2", "antmaze-umaze-diverse-v2"], 700),
    **dict.fromkeys(["antmaze-medium-play-v2", "antmaze-medium-diverse-v2"], 1000),
    **dict.fromkeys(["antmaze-large-play-v2", "antmaze-large-diverse-v2"], 1000),
    **dict.fromkeys(["maze2d-umaze-v1", "maze2d-umaze-dense-v1"], 300),
    **dict.fromkeys(["maze2d-medium-v1", "maze2d-medium-dense-v1"], 600),
    **dict.fromkeys(["maze2d-large-v1", "maze2d-large-dense-v1"], 800),
}
EPISODES = np.arange(3)
# D4RL's maps, with the goal of the ants (A), of the points (P) or of both (G).
MAPS = {
    "umaze": ["#####", "#P..#", "###.#", "#A..#", "#####"],
    "medium": [
        "########",
        "#..##..#",
        "#..#...#",
        "##...###",
        "#..#...#",
        "#.#..#.#",
        "#...#.G#",
        "########",
    ],
    "large": [
        "############",
        "#....#.....#",
        "#.##.#.#.#.#",
        "#......#...#",
        "#.####.###.#",
        "#..#.#.....#",
        "##.#.#.#.###",
        "#..#...#.G.#",
        "############",
    ],
}


def maze(name: str, **settings: Any) -> Any:
    assert f"d4rl/{name}" in registry.ENVIRONMENTS
    return gymnasium.make(f"d4rl/{name}", **settings).unwrapped


def cells(size: str, marks: str) -> NDArray[np.int64]:
    """The cells of a map with any of the marks. [cell, (row, column)]"""
    return np.argwhere(np.isin(np.array([list(row) for row in MAPS[size]]), list(marks)))


def boxes(environment: Any) -> NDArray[np.float64]:
    """The middles of all walls in the frame of the observations, sorted. [wall, (x, y)]"""
    world = environment.simulator.maze.world
    middles = world.model.geom_pos[world.model.geom_type == 6, :2] - world.origin
    return middles[np.lexsort(middles.T.round(6))]


def ordered(places: NDArray[Any]) -> NDArray[Any]:
    return places[np.lexsort(places.T.round(6))]


def run(program: str) -> tuple[str, str]:
    """What a program prints in an interpreter of its own, where nothing has been imported yet."""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize("name", LIMITS)
def test_time_limits_are_d4rls(name: str) -> None:
    assert time_limit(f"d4rl/{name}") == LIMITS[name]


def test_a_time_limit_needs_no_package() -> None:
    program = "import sys; sys.modules['gymnasium_robotics'] = None; from cwbc.envs import time_limit; "
    assert run(program + "print(time_limit('d4rl/antmaze-umaze-v2'))") == ("700", "")


def test_the_packages_news_stay_unsaid() -> None:
    program = "import gymnasium, cwbc.envs.registry; gymnasium.make('d4rl/maze2d-umaze-v1').reset()"
    assert run(program) == ("", "")


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for loaded in [key for key in sys.modules if key.startswith("gymnasium_robotics")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, "gymnasium_robotics", None)
    maze_worlds.ant_world.cache_clear()
    with pytest.raises(InputError, match=r"D4RL's mazes .* pip install 'cwbc\[mazes\]'"):
        make("d4rl/antmaze-umaze-v2", 1)


def test_a_name_that_is_nearly_one_of_them_is_told() -> None:
    with pytest.raises(InputError, match="did you mean 'd4rl/antmaze-umaze-v2'"):
        make("antmaze-umaze-v2", 1)
    assert time_limit("d4rl/antmaze-huge-v2") is None


@pytest.mark.parametrize("size", MAPS)
def test_walls_stand_where_d4rl_has_them(size: str) -> None:
    walls = cells(size, "#")
    ant, point = maze(f"antmaze-{size}{'' if size == 'umaze' else '-play'}-v2"), maze(f"maze2d-{size}-v1")
    # x grows with the column and y with the row, from the cell that the ant begins in.
    np.testing.assert_allclose(boxes(ant), ordered(4.0 * (walls[:, ::-1] - 1)), atol=1e-12)
    # x grows with the row and y with the column, and the whole numbers lie beside the middles.
    np.testing.assert_allclose(boxes(point), ordered(walls - 0.2), atol=1e-12)


def test_the_ant_is_d4rls() -> None:
    model = maze("antmaze-umaze-v2").simulator.maze.world.model
    torques = model.actuator_gear[:, 0] * model.actuator_ctrlrange[:, 1]
    assert (torques == 30).all()
    assert model.opt.timestep == 0.02
    assert (model.geom_solimp[:, :3] == (0.8, 0.8, 0.01)).all()


@pytest.mark.parametrize(("size", "corner"), [("umaze", (0, 8)), ("medium", (20, 20)), ("large", (32, 24))])
def test_ants_begin_at_the_origin_with_a_goal_of_their_own(size: str, corner: tuple[float, float]) -> None:
    ant = maze(f"antmaze-{size}-diverse-v2")
    first, goals = [], []
    for seed in range(200):
        first.append(ant.reset(seed=seed)[0])
        goals.append(ant.simulator.goals[0] - corner)
    assert ant.observation_space.contains(first[0])
    observations = np.array(first)
    assert observations.shape == (200, 29)
    rest = np.array([0, 0, 0.75, 1, 0, 0, 0, *[0] * 8])
    assert np.abs(np.delete(observations[:, :15] - rest, 3, axis=1)).max() < 0.12
    np.testing.assert_allclose(np.linalg.norm(observations[:, 3:7], axis=1), 1)
    assert observations[:, 15:].std() == pytest.approx(0.1, rel=0.1)
    assert np.min(goals) > 0
    assert np.max(goals) < 1.5
    np.testing.assert_allclose(np.mean(goals, axis=0), 0.75, atol=0.1)


@pytest.mark.parametrize("size", MAPS)
def test_points_begin_in_every_cell(size: str) -> None:
    point = maze(f"maze2d-{size}-v1")
    first = np.array([point.reset(seed=seed)[0] for seed in range(400)])
    assert np.abs(first[:, :2] - first[:, :2].round()).max() <= 0.1
    np.testing.assert_array_equal(
        ordered(np.unique(first[:, :2].round(), axis=0)), ordered(cells(size, ".PAG"))
    )
    assert first[:, 2:].std() == pytest.approx(0.1, rel=0.1)
    assert point.simulator.goals[0].tolist() == cells(size, "PG")[0].tolist()


def test_the_goal_pays_the_ant_once_and_ends_the_episode() -> None:
    ant = maze("antmaze-umaze-v2")
    start, _ = ant.reset(seed=0)
    still = np.zeros(8, np.float32)
    assert ant.step(still)[1:4] == (0.0, False, False)
    ant.simulator.goals[0] = start[:2] + np.array([0.3, 0.3])
    assert ant.step(still)[1:4] == (1.0, True, False)
    ant.simulator.goals[0] = start[:2] + np.array([0.6, 0])
    assert ant.step(still)[1:4] == (0.0, False, False)


def test_the_point_is_paid_near_the_goal_and_goes_on() -> None:
    sparse, dense = maze("maze2d-umaze-v1"), maze("maze2d-umaze-dense-v1")
    for seed in range(20):
        sparse.reset(seed=seed)
        dense.reset(seed=seed)
        for _ in range(5):
            action = np.array([-1, 0.5], np.float32)
            seen, paid, ended, cut, _ = sparse.step(action)
            same, shaped, *_ = dense.step(action)
            np.testing.assert_array_equal(seen, same)
            distance = np.hypot(*(seen[:2] - (1, 1)))
            assert paid == (distance <= 0.5)
            assert shaped == pytest.approx(np.exp(-distance))
            assert not ended
            assert not cut


def test_forces_push_along_d4rls_axes_as_far_as_its_walls() -> None:
    # Where the data of maze2d-large ends: 0.396 to 7.216 and 0.442 to 10.219, at velocities up to 5.226.
    point = maze("maze2d-large-v1")
    reached = []
    for corner, push in (((1, 1), (-1, -1)), ((7, 10), (1, 1))):
        for seed in range(1000):
            seen, _ = point.reset(seed=seed)
            if (seen[:2].round() == corner).all():
                break
        for _ in range(100):
            seen, *_ = point.step(np.array(push, np.float32))
        reached.append(seen[:2])
    np.testing.assert_allclose(reached, [[0.4, 0.4], [7.2, 10.2]], atol=0.02)


def test_the_same_in_a_batch_and_without_a_trace(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    maze_worlds.ant_world.cache_clear()
    batch, single = make("d4rl/antmaze-umaze-v2", 2), gymnasium.make("d4rl/antmaze-umaze-v2")
    assert (batch.observation_size, batch.action_size, batch.discrete, batch.horizon) == (29, 8, False, 700)
    found = batch.reset(np.arange(2), [4, 5])
    np.testing.assert_array_equal(found[1], single.reset(seed=5)[0])
    actions = np.random.default_rng(0).uniform(-1, 1, (20, 2, 8)).astype(np.float32)
    for pair in actions:
        transition = batch.step(np.arange(2), pair)
        seen, reward, *_ = single.step(pair[1])
        np.testing.assert_array_equal(transition.observations[1], seen)
        assert transition.rewards[1] == reward
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


class Reference:
    """One copy of a maze, by MuJoCo's own functions alone."""

    def __init__(self, batch: BatchedMaze) -> None:
        self.world, self.substeps = batch.maze.world, batch.maze.substeps
        self.data, self.limited = mujoco.MjData(self.world.model), batch.maze.top_speed == 5

    def reset(self, observation: NDArray[Any]) -> None:
        model, data = self.world.model, self.data
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = np.split(observation, [model.nq])
        data.qpos[:2] = data.qpos[:2] + self.world.origin
        mujoco.mj_forward(model, data)

    def step(self, action: NDArray[Any]) -> NDArray[Any]:
        if self.limited:
            self.data.qvel[:] = self.data.qvel.clip(-5, 5)
            mujoco.mj_forward(self.world.model, self.data)
        self.data.ctrl[:] = action.clip(-1, 1)
        mujoco.mj_step(self.world.model, self.data, self.substeps)
        positions = self.data.qpos.copy()
        positions[:2] -= self.world.origin
        return np.concatenate((positions, self.data.qvel))


@pytest.mark.parametrize(
    ("name", "steps"), [("antmaze-umaze-v2", 60), ("maze2d-umaze-v1", 300), ("maze2d-large-dense-v1", 300)]
)
def test_a_batch_has_the_bits_of_mujocos_own_steps(name: str, steps: int) -> None:
    batch = make(f"d4rl/{name}", 3)
    assert isinstance(batch, BatchedMaze)
    singles = [Reference(batch) for _ in EPISODES]
    for single, observation in zip(singles, batch.reset(EPISODES, [5, 6, 7]), strict=True):
        single.reset(observation)
    generator = np.random.default_rng(0)
    for step in range(steps):
        if step == 40:  # one starts over, and the others go on
            singles[1].reset(batch.reset(EPISODES[1:2], [8])[0])
        if step % 30 == 0:  # far enough in one direction to touch a wall
            pushes = generator.uniform(-1.5, 1.5, (3, batch.action_size))
        moved = np.delete(EPISODES, step % 4) if step % 4 < 3 else EPISODES
        actions = (pushes[moved] + generator.uniform(-0.3, 0.3, pushes[moved].shape)).astype(np.float32)
        found = batch.step(moved, actions)
        expected = [singles[episode].step(action) for episode, action in zip(moved, actions, strict=True)]
        np.testing.assert_array_equal(found.observations, expected)


def test_mazes_are_batched_and_gymnasium_has_one_copy() -> None:
    for name in MAZES:
        assert is_batched(name)
        assert time_limit(name) == MAZES[name].horizon


def test_a_gymnasium_copy_without_a_seed_starts_elsewhere_each_time() -> None:
    point = maze("maze2d-umaze-v1")
    first = point.reset(seed=3)[0]
    second = point.reset()[0]
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(point.reset(seed=3)[0], first)
    np.testing.assert_array_equal(point.reset()[0], second)


@pytest.mark.parametrize("size", MAPS)
def test_the_goal_ends_the_episode_of_a_point_that_is_rewarded_once(size: str) -> None:
    batch = BatchedMaze(MAZES[f"cwbc/pointmaze-{size}-v0"], 400)
    episodes, still = np.arange(400), np.zeros((400, 2), np.float32)
    first = batch.reset(episodes, range(400))
    visited = ordered(np.unique(first[:, :2].round(), axis=0))
    np.testing.assert_array_equal(visited, ordered(cells(size, ".A")))  # all but the goal's own
    outcome = batch.step(episodes, still)
    assert not outcome.rewards.any()
    assert not outcome.terminated.any()
    batch.goals[5] = outcome.observations[5, :2] + (0.3, -0.3)
    outcome = batch.step(episodes, still)
    assert np.flatnonzero(outcome.rewards).tolist() == np.flatnonzero(outcome.terminated).tolist() == [5]
    assert outcome.rewards[5] == 1


def test_the_time_limit_ends_an_episode() -> None:
    simulator = make("d4rl/maze2d-umaze-v1", 1)
    simulator.reset(np.arange(1), [0])
    steps = [simulator.step(np.arange(1), np.zeros((1, 2), np.float32)) for _ in range(300)]
    assert [bool(step.truncated[0]) for step in steps] == [False] * 299 + [True]
