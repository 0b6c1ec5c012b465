"""Recipes of maze datasets: a planner leads from goal to goal, and an actor goes there."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from cwbc.behaviours.policies import BehaviourPolicy, Float32s, Floats
from cwbc.behaviours.recipes import dataset_of
from cwbc.behaviours.rollouts import Acting, Episode, Progress, Stage, collect_in
from cwbc.behaviours.snapshots import Series
from cwbc.core.trajectories import Trajectories
from cwbc.envs import directed_ant
from cwbc.envs.guided_mazes import GoalPlan, GuidedMaze
from cwbc.envs.mazes import MAZES
from cwbc.system.errors import InputError

# Cells (row, column), picked by hand as D4RL's were: far corners, dead ends and the middle.
_MEDIUM_PLAY = ((1, 1), (1, 6), (6, 1), (6, 6), (4, 6), (3, 3))
_LARGE_PLAY = ((1, 1), (7, 1), (1, 10), (7, 9), (3, 6), (5, 7), (3, 1))
_ANT_PLANS = {
    "umaze": GoalPlan(),
    "umaze-diverse": GoalPlan("any", "any"),
    "medium-play": GoalPlan(_MEDIUM_PLAY, _MEDIUM_PLAY),
    "medium-diverse": GoalPlan("any", "any"),
    "large-play": GoalPlan(_LARGE_PLAY, _LARGE_PLAY),
    "large-diverse": GoalPlan("any", "any"),
}
_GUIDANCE = 2  # numbers that a guided maze adds to an observation, which no dataset has


@dataclasses.dataclass(frozen=True)
class WaypointController:
    """D4RL's controller of the point: towards the next place, against the velocity, with noise."""

    noise_std: float = 0.5
    gain: float = 10.0
    stack, action_count = 1, None

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """Standard normal numbers."""
        return generator.standard_normal((steps, 2))

    def act(self, observations: Floats, noise: Floats | None = None) -> Float32s:
        """Forces within -1 and 1."""
        velocities, offsets = observations[:, 2:4], observations[:, -_GUIDANCE:]
        forces = self.gain * offsets - velocities
        if noise is not None:
            forces = forces + self.noise_std * noise
        return forces.clip(-1, 1).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class DirectedWalker:
    """An ant that walks towards the next place, as a policy for `cwbc/ant-direction-v0` does, with noise."""

    policy: BehaviourPolicy
    noise_std: float = 0.2
    stack, action_count = 1, None

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """Standard normal numbers."""
        return generator.standard_normal((steps, len(self.policy.low)))

    def act(self, observations: Floats, noise: Floats | None = None) -> Float32s:
        """Torques within the ant's bounds."""
        offsets = observations[:, -_GUIDANCE:]
        distances = np.sqrt(np.square(offsets).sum(axis=1, keepdims=True))
        directions = offsets / np.maximum(distances, np.finfo(np.float64).tiny)
        state = observations[:, 2:-_GUIDANCE]  # without x and y
        torques = self.policy.act(np.concatenate((state, directions), axis=1)).astype(np.float64)
        if noise is not None:
            torques += self.noise_std * noise
        return torques.clip(self.policy.low, self.policy.high).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class MazeRecipe:
    """A dataset of one maze."""

    environment: str
    plan: GoalPlan
    actor: Acting

    def generate(self, name: str, size: int, progress: Progress | None = None) -> Trajectories:
        """A dataset of as many whole episodes as fit into `size` steps."""
        return dataset_of([(self.actor, 1.0)], self._collect, self.environment, name, size, progress)

    def _collect(self, stages: Sequence[Stage], progress: Progress) -> list[list[Episode]]:
        maze = MAZES[self.environment]
        make = functools.partial(GuidedMaze, maze, self.plan)
        collected = collect_in(make, maze.horizon, stages, progress)
        return [[_without_guidance(episode) for episode in episodes] for episodes in collected]


def pointmaze(size: str) -> MazeRecipe:
    """D4RL's recipe of maze2d: from anywhere to one goal after the other, anywhere in the maze."""
    return MazeRecipe(f"cwbc/pointmaze-{size}-v0", GoalPlan(goals="any"), WaypointController())


def antmaze(kind: str, series: Series) -> MazeRecipe:
    """D4RL's recipe of antmaze, with an ant that the snapshots of a series have learned to walk."""
    if series.environment != directed_ant.ENVIRONMENT:
        raise InputError(
            f"{series.folder}: these behaviours act in {series.environment}; the ant mazes need those of "
            f"`cwbc behaviours train {directed_ant.ENVIRONMENT}`"
        )
    policy = series.policy(series.expert)
    assert isinstance(policy, BehaviourPolicy)  # of continuous actions
    return MazeRecipe(f"d4rl/antmaze-{kind}-v2", _ANT_PLANS[kind], DirectedWalker(policy))


def _without_guidance(episode: Episode) -> Episode:
    return dataclasses.replace(episode, observations=episode.observations[:, :-_GUIDANCE])
