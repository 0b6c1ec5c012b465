"""How a method was trained, as far as a report shows it; kept apart from jax, which reports do without."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class History:
    """The prediction losses of one run, and what it drew from the data."""

    steps: NDArray[np.int64]  # [row]
    losses: NDArray[np.float64]  # [row, seed], prediction losses: means over the steps since the row before
    weighting: Mapping[str, Any]  # as in config.json
    drawn: tuple[float, ...] | None  # [bin] of the dataset's histogram; None where a run did not keep it

    @classmethod
    def of(cls, config: Mapping[str, Any], metrics: list[dict[str, Any]]) -> History:
        """The history that the files of a run tell; damaged or missing rows are left out."""
        # Without a regularizer the prediction loss is the whole loss, and some versions record only that.
        seeds, rows, last = len(config["seeds"]), [], 0
        for row in metrics:
            losses, step = row.get("prediction", row.get("loss", ())), row["step"]
            if len(losses) == seeds and last < step <= config["training"]["steps"]:
                rows.append((step, losses))
                last = step
        drawn = config.get("drawn")
        if drawn and not 0 <= min(drawn) <= max(drawn) <= 1.001:  # no fractions
            drawn = None
        return cls(
            np.array([step for step, _ in rows], np.int64),
            np.array([losses for _, losses in rows], np.float64).reshape(-1, seeds),
            config["method"]["weighting"],
            None if drawn is None else tuple(drawn),
        )
