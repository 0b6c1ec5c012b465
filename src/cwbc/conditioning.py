"""What a policy is told about the future: nothing, the return-to-go, or its average per remaining step."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cwbc.errors import require
from cwbc.trajectories import Trajectories


@dataclasses.dataclass(frozen=True)
class ReturnToGo:
    """g_t divided by a constant, as Decision Transformer is told.

    Args:
        return_scale: the divisor; None takes the task's published one, or the largest |g_t| in the data.
    """

    return_scale: float | None = None

    def __post_init__(self) -> None:
        require(
            self.return_scale is None or self.return_scale > 0, "return_scale", self.return_scale, "positive"
        )

    def fit(self, data: Trajectories) -> ReturnToGo:
        """The same choice with every value that depends on the data filled in."""
        if self.return_scale is not None:
            return self
        largest = float(np.abs(data.returns_to_go).max()) or 1.0
        return ReturnToGo(data.task.return_scale or largest)

    def __call__(self, returns_to_go: Any, timesteps: Any, horizon: int) -> Any:
        return returns_to_go / self.return_scale


@dataclasses.dataclass(frozen=True)
class AverageReturnToGo:
    """omega_t = g_t / (H - t) for zero-based t, as RvS is told."""

    def fit(self, data: Trajectories) -> AverageReturnToGo:
        return self

    def __call__(self, returns_to_go: Any, timesteps: Any, horizon: int) -> Any:
        # The clip is for policies that act beyond H; no logged step is there.
        return returns_to_go / (horizon - timesteps).clip(1)


Condition = ReturnToGo | AverageReturnToGo
