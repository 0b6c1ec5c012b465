"""A problem with a known answer: an action is paid with itself, so omega_t is the right action."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from conftest import write_d4rl
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.datasets.arrays import from_arrays
from cwbc.trajectories import Trajectories

HORIZON = 10
ENVIRONMENT = "cwbc-toy-v0"
DISCRETE_ENVIRONMENT = "cwbc-toy-discrete-v0"
LARGEST = 0.5  # of the logged actions; the environment would take more


class Toy(gymnasium.Env[NDArray[np.float64], Any]):
    """Ten steps in which every action is paid with itself; the observation says nothing about it."""

    def __init__(self, discrete: bool = False) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(3) if discrete else spaces.Box(-1, 1, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        super().reset(seed=seed)
        return self.np_random.normal(size=2), {}

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        return self.np_random.normal(size=2), float(np.sum(action)), False, False, {}


gymnasium.register(ENVIRONMENT, entry_point=Toy, max_episode_steps=HORIZON)  # type: ignore[arg-type]
gymnasium.register(
    DISCRETE_ENVIRONMENT,
    entry_point=Toy,  # type: ignore[arg-type]
    max_episode_steps=HORIZON,
    kwargs={"discrete": True},
)


def toy_data(episodes: int = 60, full_length: bool = False, discrete: bool = False) -> Trajectories:
    """Episodes that each keep to one action, spread evenly; unless `full_length`, some end early."""
    generator = np.random.default_rng(0)
    levels = np.arange(episodes) % 3 if discrete else np.linspace(-LARGEST, LARGEST, episodes)
    lengths = np.full(episodes, HORIZON) if full_length else 3 + np.arange(episodes) % (HORIZON - 2)
    actions = np.repeat(levels, lengths)
    ends = np.zeros(len(actions), bool)
    ends[np.cumsum(lengths) - 1] = True
    return from_arrays(
        "toy",
        generator.normal(size=(len(actions), 2)),
        actions.astype(np.int64) if discrete else actions[:, None],
        actions.astype(np.float64),
        ends & np.repeat(lengths < HORIZON, lengths),
        ends & np.repeat(lengths == HORIZON, lengths),
        environment=DISCRETE_ENVIRONMENT if discrete else ENVIRONMENT,
        time_limit=HORIZON,
    )


def write_toy(path: Path, full_length: bool = True, environment: str | None = ENVIRONMENT) -> Path:
    """The toy's episodes as a file in D4RL's layout."""
    data = toy_data(full_length=full_length)
    last = np.zeros(data.steps, bool)
    last[data.starts + data.lengths - 1] = True
    return write_d4rl(
        path,
        env=environment,
        observations=data.observations,
        actions=data.actions,
        rewards=data.rewards,
        terminals=last & ~full_length,
        timeouts=last & full_length,
    )
