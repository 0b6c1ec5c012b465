from __future__ import annotations

import numpy as np

from cwbc.envs.mazes import MAZES, BatchedMaze
from cwbc.results.sweeps import Sweep
from cwbc.runs.path_recorder import PathRecorder, recorded_rows


def test_the_first_episodes_are_recorded_at_the_lowest_target_and_at_the_best_return() -> None:
    rows = recorded_rows((3, 4, 20), np.array([0.0, 0.5, 1.0, 2.0]), best=1.0)
    seed, target, episode = np.unravel_index(rows, (3, 4, 20))
    assert {*target.tolist()} == {0, 2}
    assert {*seed.tolist()} == {0, 1, 2}
    assert sorted({*episode.tolist()}) == list(range(8))
    assert len(rows) == 48
    assert recorded_rows((30, 1, 2), np.array([np.nan]), best=1.0).tolist() == list(range(0, 60, 2))


def test_a_path_is_where_the_episode_went_and_nothing_else_changes() -> None:
    maze, other = (BatchedMaze(MAZES["cwbc/pointmaze-umaze-v0"], 4) for _ in range(2))
    recorder, every = PathRecorder(maze, np.array([1, 2])), np.arange(4)
    seen = [other.reset(every, range(4))]
    np.testing.assert_array_equal(recorder.reset(every, range(4)), seen[0])
    actions = np.random.default_rng(0).uniform(-1, 1, (200, 4, 2))
    for step, action in enumerate(actions):
        left = every if step < 150 else every[[0, 2, 3]]  # the second is over
        ours, theirs = (each.step(left, action[left]) for each in (recorder, other))
        for name in ("observations", "rewards", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        seen.append(seen[-1].copy())
        seen[-1][left] = theirs.observations
    assert (recorder.horizon, recorder.observation_size) == (other.horizon, other.observation_size)

    shape = (2, 2, 1)  # two seeds, two targets
    sweep = Sweep("", np.array([5, 9]), np.array([0.0, 1.0]), np.zeros(shape), np.ones(shape, np.int64))
    short, long = recorder.paths(sweep)
    assert (short.seed, short.target, short.episode) == (5, 1.0, 0)
    assert (long.seed, long.target, long.episode) == (9, 0.0, 0)
    for row, path, last in ((1, short, 150), (2, long, 200)):
        assert len(path.places) == 80
        np.testing.assert_array_equal(path.places[0], seen[0][row, :2])
        np.testing.assert_array_equal(path.places[-1], seen[last][row, :2])
        steps = np.linspace(0, last, 80).astype(int)
        np.testing.assert_array_equal(path.places, [seen[step][row, :2] for step in steps])
    recorder.close()
