"""A goal environment: a point in the middle of D4RL's umaze, whose goal is another cell in every episode."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.behaviours.navigation import WaypointController
from cwbc.envs.guided_mazes import cell_of, next_cells
from cwbc.envs.mazes import BatchedMaze, PointMaze, Start

HORIZON = 100
SEEING, BLIND = "cwbc-goal-maze-v0", "cwbc-blind-maze-v0"
_ONLY = np.arange(1)
_PLACE = spaces.Box(-np.inf, np.inf, (2,), np.float64)
_STATE = spaces.Box(-np.inf, np.inf, (4,), np.float64)


class GoalMaze(gymnasium.Env[Any, NDArray[np.float32]]):
    """Observations are dictionaries as Gymnasium-Robotics has them, or without the goal the state alone."""

    def __init__(self, sees_goal: bool = True) -> None:
        goals = spaces.Dict({"observation": _STATE, "achieved_goal": _PLACE, "desired_goal": _PLACE})
        self.observation_space = goals if sees_goal else _STATE
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)
        self._maze = BatchedMaze(PointMaze("umaze", HORIZON, "once"), 1)
        self._sees_goal = sees_goal

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        middles = self._maze.maze.world.middles
        start = middles[len(middles) // 2] + self.np_random.uniform(-0.1, 0.1, 2)
        others = np.delete(middles, len(middles) // 2, axis=0)
        self.goal = self.np_random.choice(others)
        (observation,) = self._maze.begin(_ONLY, [Start(start, np.zeros(2), self.goal)])
        return self._observed(observation), {}

    def step(self, action: NDArray[np.float32]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        now = self._maze.step(_ONLY, action[None])
        return self._observed(now.observations[0]), float(now.rewards[0]), bool(now.terminated[0]), False, {}

    def _observed(self, state: NDArray[np.float64]) -> Any:
        if not self._sees_goal:
            return state
        return {"observation": state, "achieved_goal": state[:2], "desired_goal": self.goal}


class Planner:
    """Leads to a place: the goal of the episode, or in some episodes another cell."""

    def __init__(self, maze: GoalMaze) -> None:
        self._world = maze._maze.maze.world
        self._next, self._controller = next_cells(self._world), WaypointController()

    def begin(self, generator: np.random.Generator, goal: NDArray[np.float64]) -> None:
        wanders = generator.random() < 0.2
        self._place = generator.choice(self._world.middles) if wanders else goal
        self._generator = generator

    def act(self, observation: Any) -> NDArray[np.float32]:
        state = observation["observation"]
        here, there = (int(cell_of(self._world, place[None])[0]) for place in (state[:2], self._place))
        following = self._world.middles[self._next[there, here]]
        guided = np.concatenate((state, following - state[:2]))[None]
        action: NDArray[np.float32] = self._controller.act(guided, self._generator.standard_normal((1, 2)))[0]
        return action


for _name, _sees_goal in ((SEEING, True), (BLIND, False)):
    gymnasium.register(
        _name, "goal_maze:GoalMaze", max_episode_steps=HORIZON, kwargs={"sees_goal": _sees_goal}
    )
