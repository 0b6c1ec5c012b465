"""The planner: shortest ways, by another algorithm; goals one after the other; places in D4RL's frame."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csgraph

from cwbc.envs.guided_mazes import GoalPlan, GuidedMaze, cell_of, next_cells
from cwbc.envs.maze_worlds import ant_world, point_world
from cwbc.envs.mazes import MAZES

UMAZE = MAZES["cwbc/pointmaze-umaze-v0"]


@pytest.mark.parametrize("size", ["umaze", "medium", "large"])
def test_the_way_is_a_shortest_one(size: str) -> None:
    world = point_world(size)
    apart = np.abs(world.cells[:, None] - world.cells).sum(axis=-1)
    lengths = csgraph.shortest_path(apart == 1, unweighted=True)
    assert np.isfinite(lengths).all()
    for goal, following in enumerate(next_cells(world)):
        assert following[goal] == goal
        others = np.flatnonzero(np.arange(len(following)) != goal)
        assert (apart[others, following[others]] == 1).all()
        np.testing.assert_array_equal(lengths[following[others], goal], lengths[others, goal] - 1)


def test_places_have_the_cells_of_d4rls_frame() -> None:
    point, ant = point_world("umaze"), ant_world("umaze")
    assert point.cells[cell_of(point, np.array([[1.0, 1.0], [2.9, 0.8], [0.5, 3.1]]))].tolist() == [
        [1, 1],
        [3, 1],
        [1, 3],
    ]
    # The ant starts at (0, 0), in cell (1, 1), and its goal is up the other arm of the U.
    places = np.array([[0.0, 0.0], [8.9, 3.0], [0.7, 8.7]])
    assert ant.cells[cell_of(ant, places)].tolist() == [[1, 1], [2, 3], [3, 1]]


def test_the_way_to_go_leads_around_the_wall() -> None:
    maze = GuidedMaze(UMAZE, GoalPlan(goals=((1, 1),)), 40)
    first = maze.reset(np.arange(40), range(40))
    assert first.shape == (40, 6)
    below = first[(first[:, 0] > 2.5) & (first[:, 1] < 1.5)]  # in the cell that the wall parts from the goal
    assert len(below) > 0
    np.testing.assert_allclose(below[:, :2] + below[:, 4:], [[2.8, 1.8]] * len(below))


def test_goals_follow_one_another_and_each_episode_depends_on_its_seed_alone() -> None:
    plan = GoalPlan(goals="any")
    together, alone = GuidedMaze(UMAZE, plan, 3), GuidedMaze(UMAZE, plan, 1)
    three, one = np.arange(3), np.arange(1)
    seen, same = together.reset(three, [4, 5, 6]), alone.reset(one, [5])
    goals = set()
    for _ in range(300):
        np.testing.assert_array_equal(seen[1], same[0])
        goals.add(tuple(alone._goals[0]))
        actions = (10 * seen[:, 4:] - seen[:, 2:4]).clip(-1, 1)
        together._maze.goals[:] = alone._maze.goals[:] = 99  # out of reach, so that none ends
        seen = together.step(three, actions).observations
        outcome = alone.step(one, actions[1:2])
        same = outcome.observations
    assert outcome.truncated.all()
    assert len(goals) >= 3


def test_the_tasks_own_goal_is_the_planners() -> None:
    maze = GuidedMaze(MAZES["d4rl/antmaze-umaze-v2"], GoalPlan(), 2)
    maze.reset(np.arange(2), [0, 1])
    np.testing.assert_array_equal(maze._goals, maze._maze.goals)
    assert not np.array_equal(*maze._goals)
    inside = maze._goals[:1] - 0.4
    observation = np.concatenate((inside, np.zeros((1, 27))), axis=1)
    np.testing.assert_allclose(maze._guided(np.arange(1), observation)[:, -2:], [[0.4, 0.4]])


def test_goals_of_the_planner_lie_in_their_cells_as_the_tasks_own_do() -> None:
    plan = GoalPlan(goals=((3, 1),))  # the cell of the task's goal
    maze = GuidedMaze(MAZES["d4rl/antmaze-umaze-v2"], plan, 100)
    maze.reset(np.arange(100), range(100))
    offsets = maze._goals - (0, 8)
    assert offsets.min() > 0
    assert offsets.max() < 1.5
    near = np.linalg.norm(maze._goals - maze._maze.goals, axis=1) < 0.5
    assert 0.2 < near.mean() < 0.7  # with another goal of the task in every episode


def test_starts_are_where_the_plan_has_them() -> None:
    maze = GuidedMaze(MAZES["d4rl/antmaze-umaze-v2"], GoalPlan(starts=((1, 3), (3, 2)), goals="any"), 50)
    places = maze.reset(np.arange(50), range(50))[:, :2]
    near = [np.abs(places - middle).max(axis=1) < 0.11 for middle in ((8, 0), (4, 8))]
    assert near[0].any()
    assert near[1].any()
    assert (near[0] | near[1]).all()


def test_no_episode_starts_in_the_cell_of_the_tasks_goal() -> None:
    task = MAZES["d4rl/antmaze-umaze-v2"]
    for starts in ("any", ((1, 1), (3, 1))):
        maze = GuidedMaze(task, GoalPlan(starts, "any"), 60)
        places = maze.reset(np.arange(60), range(60))[:, :2]
        cells = {tuple(cell) for cell in task.world.cells[cell_of(task.world, places)].tolist()}
        free = {(1, 1), (1, 2), (1, 3), (2, 3), (3, 3), (3, 2)}
        assert cells == (free if starts == "any" else {(1, 1)})
