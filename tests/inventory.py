"""Orders of a shop: data in plain money, from short episodes, that is nothing like a robot's."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.data.formats.arrays import from_arrays

DAYS = 60


class Inventory(gymnasium.Env[NDArray[np.float32], Any]):
    """Sixty days of ordering: sales earn; goods, stock, lost sales and every delivery cost."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = spaces.Box(0, 60, (1,), np.float32)

    def __init__(self, unit: float = 1.0) -> None:
        self._unit = unit

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._day, self._stock, self._demand = 0, float(self.np_random.integers(30)), 20.0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        order = float(np.clip(action, 0, 60).item())
        self._demand = float(self.np_random.poisson(20 + 8 * self._season()))
        sold = min(self._stock + order, self._demand)
        self._stock = min(self._stock + order - sold, 150)
        profit = 2 * sold - order - 0.15 * self._stock - (self._demand - sold) - 2 * (order > 0.5)
        self._day += 1
        return self._seen(), self._unit * profit, False, False, {}

    def _season(self) -> float:
        return float(np.sin(2 * np.pi * self._day / 7))

    def _seen(self) -> NDArray[np.float32]:
        return np.array([self._stock, self._demand, self._season()], np.float32)


def shop(unit: float = 1.0) -> gymnasium.Env[Any, Any]:
    """One that closes after sixty days."""
    return gymnasium.wrappers.TimeLimit(Inventory(unit), DAYS)


def inventory_data(unit: float = 1.0, episodes: int = 150) -> Trajectories:
    """Episodes of clerks who each order up to a level of their own, some of them wildly."""
    environment, random = Inventory(unit), np.random.default_rng(0)
    observations, actions, rewards = [], [], []
    for _ in range(episodes):
        level, noise, care = random.uniform(0, 70), random.uniform(0, 12), random.uniform(0, 12)
        seen, _ = environment.reset(seed=int(random.integers(2**31)))
        for _ in range(DAYS):
            order = np.clip(level + care * seen[2] - seen[0] + random.normal(0, noise), 0, 60)
            observations.append(seen)
            actions.append([order])
            seen, reward, *_ = environment.step(np.array([order]))
            rewards.append(reward)
    ends = np.arange(1, len(rewards) + 1) % DAYS == 0
    nothing = np.zeros(len(ends), bool)
    return from_arrays(
        "inventory",
        np.array(observations),
        np.array(actions),
        np.array(rewards),
        nothing,
        ends,
        time_limit=DAYS,
    )
