"""The package's own batched environments by their ids; importing this registers them with Gymnasium."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.core.simulation import Drawable
from cwbc.envs import directed_ant
from cwbc.envs.directed_ant import DirectedAnt
from cwbc.envs.mazes import MAZES, BatchedMaze
from cwbc.envs.physics import Floats


class Registered(NamedTuple):
    """One environment of the package."""

    make: Callable[[int], Drawable]  # so many copies
    horizon: int


ENVIRONMENTS = {
    name: Registered(functools.partial(BatchedMaze, maze), maze.horizon) for name, maze in MAZES.items()
}
ENVIRONMENTS[directed_ant.ENVIRONMENT] = Registered(DirectedAnt, directed_ant.HORIZON)


class SingleCopy(gymnasium.Env[Floats, NDArray[np.float32]]):
    """One copy of an environment of the package, for `gymnasium.make`."""

    def __init__(self, environment: str) -> None:
        self.simulator = ENVIRONMENTS[environment].make(1)
        assert self.simulator.action_bounds is not None
        self.action_space = spaces.Box(*self.simulator.action_bounds, dtype=np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (self.simulator.observation_size,), np.float64)
        self._only = np.arange(1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Start an episode; the same seed gives the same start as in a batch."""
        super().reset(seed=seed)
        seed = int(self.np_random.integers(2**31)) if seed is None else seed
        return self.simulator.reset(self._only, [seed])[0], {}

    def step(self, action: NDArray[np.float32]) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Advance by one step."""
        now = self.simulator.step(self._only, np.asarray(action)[None])
        return now.observations[0], float(now.rewards[0]), bool(now.terminated[0]), bool(now.truncated[0]), {}


for _name, _registered in ENVIRONMENTS.items():  # nothing is built for that
    gymnasium.register(
        _name,
        f"{__name__}:{SingleCopy.__name__}",
        max_episode_steps=_registered.horizon,
        kwargs={"environment": _name},
    )
