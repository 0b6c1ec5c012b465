"""A task in pixels with a known optimum: which way a pixel moves, which no single frame shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.core.simulation import Transition
from cwbc.core.trajectories import Trajectories

SIDE, HORIZON = 10, 4
LEFT, RIGHT = 0, 1
PIXELS = "cwbc-pixels-v0"
BEST = HORIZON - 1  # the first step pays nothing: one frame does not show a direction
_ROW = 5


class Pixels(gymnasium.Env[NDArray[np.uint8], Any]):
    """A pixel moves to one side and wraps around; the reward for its direction is 1, but 0 at first."""

    observation_space = spaces.Box(0, 255, (SIDE, SIDE, 1), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed)
        self._column = int(self.np_random.integers(SIDE))
        self.direction = int(self.np_random.integers(2))
        self._time = 0
        return self._frame(), {}

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        reward = float(self._time > 0 and action == self.direction)
        self._column = (self._column + (1 if self.direction == RIGHT else -1)) % SIDE
        self._time += 1
        return self._frame(), reward, False, self._time == HORIZON, {}

    def _frame(self) -> NDArray[np.uint8]:
        frame = np.zeros((SIDE, SIDE, 1), np.uint8)
        frame[_ROW, self._column] = 255
        return frame


gymnasium.register(PIXELS, entry_point=Pixels, max_episode_steps=HORIZON + 1)  # type: ignore[arg-type]


class PixelCopies:
    """Several copies of the task."""

    observation_size, action_size, discrete, horizon = SIDE * SIDE, 2, True, HORIZON
    action_bounds: tuple[NDArray[Any], NDArray[Any]] | None = None
    image_shape: tuple[int, ...] | None = (SIDE, SIDE, 1)

    def __init__(self, count: int) -> None:
        self._copies = [Pixels() for _ in range(count)]

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[Any]:
        copies = [self._copies[episode] for episode in episodes]
        return np.stack([copy.reset(seed=seed)[0] for copy, seed in zip(copies, seeds, strict=True)])

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        copies = [self._copies[episode] for episode in episodes]
        steps = [copy.step(int(action)) for copy, action in zip(copies, actions, strict=True)]
        observations, rewards, terminated, truncated, _ = zip(*steps, strict=True)
        return Transition(*map(np.array, (observations, rewards, terminated, truncated)))

    def close(self) -> None:
        pass


def pixel_data(episodes: int = 200) -> Trajectories:
    """Episodes of random actions, with returns from 0 to 3."""
    environment, random = Pixels(), np.random.default_rng(0)
    frames, actions, rewards = [], [], []
    for number in range(episodes):
        frame, _ = environment.reset(seed=number)
        for _ in range(HORIZON):
            action = int(random.integers(2))
            frames.append(frame)
            actions.append(action)
            frame, reward, *_ = environment.step(action)
            rewards.append(reward)
    lengths = np.full(episodes, HORIZON)
    return Trajectories(
        name="pixels",
        observations=np.array(frames),
        actions=np.array(actions, np.int32),
        rewards=np.array(rewards, np.float32),
        starts=np.cumsum(lengths) - HORIZON,
        lengths=lengths,
        terminated=np.zeros(episodes, bool),
        time_limit=HORIZON,
        action_count=2,
    )
