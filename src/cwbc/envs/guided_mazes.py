"""Mazes in which a planner leads from goal to goal, to collect data; a policy is given the way to go."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cwbc.core.simulation import Transition
from cwbc.envs.maze_worlds import World
from cwbc.envs.mazes import RADIUS, BatchedMaze, Maze, Start
from cwbc.envs.physics import Episodes, Floats

Cells = tuple[tuple[int, int], ...]  # (row, column) of each
Places = Cells | Literal["any", "own"]


@dataclasses.dataclass(frozen=True)
class GoalPlan:
    """Where episodes start and lead; at a goal, the next one is chosen."""

    starts: Places = "own"  # own: as the task has them; else never in the cell of the task's goal
    goals: Places = "own"  # own: only the task's goal


class GuidedMaze:
    """Copies of one maze; an observation ends with the offset to the next place, x and y."""

    discrete = False
    image_shape: tuple[int, ...] | None = None

    def __init__(self, maze: Maze, plan: GoalPlan, count: int) -> None:
        self._maze, self._plan = BatchedMaze(maze, count), plan
        self.horizon, self.action_size = self._maze.horizon, self._maze.action_size
        self.observation_size = self._maze.observation_size + 2
        self.action_bounds = self._maze.action_bounds
        self._world = maze.world
        self._next = next_cells(self._world)
        self._goals = np.zeros((count, 2))  # [episode, (x, y)] of the planner
        self._generators = [np.random.default_rng(0)] * count

    def reset(self, episodes: Episodes, seeds: Sequence[int]) -> Floats:
        """Reset the given episodes, each with starts and goals from its own seed."""
        starts = []
        for episode, seed in zip(episodes, seeds, strict=True):
            self._generators[episode] = np.random.default_rng(seed)
            starts.append(start := self._start(self._generators[episode]))
            self._goals[episode] = start.goal if self._plan.goals == "own" else self._choose_goal(episode)
        return self._guided(episodes, self._maze.begin(episodes, starts))

    def step(self, episodes: Episodes, actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step; where the planner's goal is reached, it has the next."""
        outcome = self._maze.step(episodes, actions)
        if self._plan.goals != "own":
            offsets = self._goals[episodes] - outcome.observations[:, :2]
            for episode in episodes[np.square(offsets).sum(axis=1) <= RADIUS**2]:
                self._goals[episode] = self._choose_goal(episode)
        return dataclasses.replace(outcome, observations=self._guided(episodes, outcome.observations))

    def close(self) -> None:
        self._maze.close()

    def _start(self, generator: np.random.Generator) -> Start:
        start = self._maze.maze.start(generator)
        if self._plan.starts != "own":
            there = self._world.cells[cell_of(self._world, start.goal[None])]
            start.positions[:2] += self._middle(self._plan.starts, generator, there)
        return start

    def _choose_goal(self, episode: int) -> Floats:
        generator = self._generators[episode]
        return self._maze.maze.place_goal(self._middle(self._plan.goals, generator), generator)

    def _middle(
        self, places: Places, generator: np.random.Generator, but: NDArray[np.int64] | None = None
    ) -> Floats:
        """The middle of one of the cells, but not of that one."""
        cells = self._world.cells if places == "any" else np.array(places)
        if but is not None:
            cells = cells[(cells != but).any(axis=1)]
        chosen = (self._world.cells == generator.choice(cells)).all(axis=1)
        middle: Floats = self._world.middles[chosen][0]
        return middle

    def _guided(self, episodes: Episodes, observations: Floats) -> Floats:
        """The observations, with the offset to the next cell, or to the goal in its own cell."""
        places, goals = observations[:, :2], self._goals[episodes]
        here, there = cell_of(self._world, places), cell_of(self._world, goals)
        following = self._world.middles[self._next[there, here]]
        wanted = np.where((here == there)[:, None], goals, following)
        return np.concatenate((observations, wanted - places), axis=1)


def cell_of(world: World, places: Floats) -> NDArray[np.intp]:
    """The cell, by its number, with the nearest middle to each place. [episode]"""
    offsets = places[:, None] - world.middles
    return np.square(offsets).sum(axis=-1).argmin(axis=1)


def next_cells(world: World) -> NDArray[np.int64]:
    """The next cell on a shortest way from each cell to each goal, by breadth-first search. [goal, cell]"""
    cells = [(int(row), int(column)) for row, column in world.cells]
    numbers = {cell: number for number, cell in enumerate(cells)}
    following = np.empty((len(cells), len(cells)), np.int64)
    for goal in range(len(cells)):
        following[goal, goal] = goal
        found, reached = deque([goal]), {goal}
        while found:
            number = found.popleft()
            row, column = cells[number]
            for beside in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                other = numbers.get(beside)
                if other is not None and other not in reached:
                    following[goal, other] = number
                    reached.add(other)
                    found.append(other)
    return following
