"""The training history of a method for reports, which do not import jax."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class TrainingHistory:
    """The prediction losses of one run, and its distribution of sampled trajectories."""

    steps: NDArray[np.int64]  # [row]
    losses: NDArray[np.float64]  # [row, seed], prediction losses: means over the steps since the row before
    weighting: Mapping[str, Any]  # as in config.json
    sampled: tuple[float, ...] | None  # [bin] fractions of sampled trajectories; None where not stored

    @classmethod
    def of(cls, config: Mapping[str, Any], metrics: list[dict[str, Any]]) -> TrainingHistory:
        """The history from the files of a run, without damaged rows."""
        seeds, steps, losses = len(config["seeds"]), [0], []
        for row in metrics:
            # Without a regularizer the prediction loss is the whole loss, and some versions store only that.
            values, step = row.get("prediction", row.get("loss", ())), row["step"]
            if len(values) == seeds and steps[-1] < step <= config["training"]["steps"]:
                steps.append(step)
                losses.append(values)
        sampled = config["drawn"]
        if sampled and not 0 <= min(sampled) <= max(sampled) <= 1.001:  # no fractions
            sampled = None
        return cls(
            np.array(steps[1:], np.int64),
            np.array(losses, np.float64).reshape(-1, seeds),
            config["method"]["weighting"],
            None if sampled is None else tuple(sampled),
        )
