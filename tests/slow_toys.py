"""The toy with steps that take as long as $CWBC_TOY_PAUSE says, so an evaluation can be caught midway."""

from __future__ import annotations

import os
import time
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from toys import HORIZON, Toy

PAUSE = "CWBC_TOY_PAUSE"  # seconds
ENVIRONMENT = "slow_toys:cwbc-slow-toy-v0"


class SlowToy(Toy):
    """The same with a pause before each step."""

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        time.sleep(float(os.environ.get(PAUSE, "0")))
        return super().step(action)


gymnasium.register(ENVIRONMENT.split(":")[1], entry_point=SlowToy, max_episode_steps=HORIZON)  # type: ignore[arg-type]
