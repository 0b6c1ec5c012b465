"""How a method was trained, as far as a report shows it; kept apart from jax, which reports do without."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class History:
    """The losses of one run, and what it drew from the data."""

    steps: NDArray[np.int64]  # [row]
    losses: NDArray[np.float64]  # [row, seed], means over the steps since the row before
    weighting: Mapping[str, Any]  # as in config.json
    drawn: tuple[float, ...] | None  # [bin] of the dataset's histogram; None where a run did not keep it

    @classmethod
    def of(cls, config: Mapping[str, Any], metrics: list[dict[str, Any]]) -> History:
        """The history that the files of a run tell; damaged or missing rows are left out."""
        seeds, rows, last = len(config["seeds"]), [], 0
        for row in metrics:
            if len(row.get("loss", ())) == seeds and last < row["step"] <= config["training"]["steps"]:
                rows.append(row)
                last = row["step"]
        drawn = config.get("drawn")
        if drawn and not 0 <= min(drawn) <= max(drawn) <= 1.001:  # no fractions
            drawn = None
        return cls(
            np.array([row["step"] for row in rows], np.int64),
            np.array([row["loss"] for row in rows], np.float64).reshape(-1, seeds),
            config["method"]["weighting"],
            None if drawn is None else tuple(drawn),
        )
