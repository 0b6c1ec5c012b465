"""Logs and evaluation in a Gymnasium environment of your own.

python examples/custom_environment.py
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

import cwbc


class Walk(gymnasium.Env[np.ndarray, np.int64]):
    """Reach the right end of a corridor of ten cells; each step costs 1, the end earns 20."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(5))
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.cell = max(self.cell + (1 if action == 1 else -1), 0)
        done = self.cell == 9
        return self._observation(), 19.0 if done else -1.0, done, False, {}

    def _observation(self) -> np.ndarray:
        return np.array([self.cell / 9], np.float32)


def make() -> gymnasium.Env[Any, Any]:
    """The environment with a time limit."""
    return gymnasium.wrappers.TimeLimit(Walk(), 40)


def log(episodes: int = 300) -> cwbc.Trajectories:
    """Episodes of behaviour policies from aimless to direct."""
    generator, steps = np.random.default_rng(0), []
    for episode in range(episodes):
        environment, over = make(), False
        observation, _ = environment.reset(seed=episode)
        right = generator.uniform(0.4, 0.95)
        while not over:
            action = np.int64(generator.random() < right)
            following, reward, terminated, truncated, _ = environment.step(action)
            steps.append((observation, action, reward, terminated, truncated))
            observation, over = following, terminated or truncated
    observations, actions, rewards, terminals, timeouts = map(np.array, zip(*steps, strict=True))
    return cwbc.from_arrays("walk", observations, actions, rewards, terminals, timeouts, time_limit=40)


def main(steps: int = 1000) -> None:
    """Train on the logs, and evaluate in the environment."""
    data = log()
    policies = cwbc.train(data, "rvs+cwbc", seeds=3, preset="small", steps=steps)
    sweep = cwbc.evaluate(policies, make, targets=[0.0, 10.0, data.best], episodes=5)
    print(dict(zip(sweep.targets.tolist(), sweep.returns.mean(axis=(0, 2)).tolist(), strict=True)))


if __name__ == "__main__":
    main()
