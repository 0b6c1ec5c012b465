"""Prediction errors on held-out episodes and on those of training, as metrics.jsonl has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

HELD_OUT, TRAINING = "heldout", "training_error"
BANDS = ("low", "middle", "high")  # thirds of the held-out episodes by return
Values = NDArray[np.float64]


def of_band(band: str) -> str:
    """The name of the error in a band."""
    return f"{HELD_OUT}_{band}"


@dataclasses.dataclass(frozen=True)
class MeasuredErrors:
    """The errors of a training, at the steps at which they were measured."""

    steps: NDArray[np.int64]  # [measurement]
    errors: Mapping[str, Values]  # [measurement, seed] by name; without bands where few episodes are held out

    @classmethod
    def of(cls, metrics: Sequence[Mapping[str, Any]], seeds: int) -> MeasuredErrors | None:
        """The errors in the rows of metrics; None where no episodes were held out."""
        rows = [row for row in metrics if all(_is_of(row.get(name), seeds) for name in (HELD_OUT, TRAINING))]
        if not rows:
            return None
        names = [HELD_OUT, *map(of_band, BANDS), TRAINING]
        known = [name for name in names if all(_is_of(row.get(name), seeds) for row in rows)]
        errors = {name: np.array([row[name] for row in rows], np.float64) for name in known}
        return cls(np.array([row["step"] for row in rows], np.int64), errors)

    @property
    def held_out(self) -> Values:
        """On held-out episodes. [measurement, seed]"""
        return self.errors[HELD_OUT]

    @property
    def training(self) -> Values:
        """On as many steps of episodes that are trained on. [measurement, seed]"""
        return self.errors[TRAINING]

    @property
    def final(self) -> dict[str, float]:
        """Those at the end by name, as means over seeds."""
        return {name: float(values[-1].mean()) for name, values in self.errors.items()}


def _is_of(values: Any, seeds: int) -> bool:
    return isinstance(values, list) and len(values) == seeds
