"""Held-out episodes replayed in a model of the data: how far its returns are from logged ones."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cwbc.results.intervals import NORMAL
from cwbc.system.errors import InputError
from cwbc.system.files import read_text
from cwbc.system.formatting import csv_text

LEAST = 5  # held-out episodes for a mean
_NEAR = 0.1  # of the held-out episodes are compared at a return, at least LEAST
_COLUMNS = ("logged_return", "replayed_return")


class NearbyReplays(NamedTuple):
    """Of the held-out episodes whose returns are nearest to some return."""

    logged: float  # mean return
    replayed: float  # mean return in the model
    error: float  # how far a mean return in the model may be off: 95 % of the time less


@dataclasses.dataclass(frozen=True)
class Replays:
    """The returns of held-out episodes, logged and in models that were not trained on them."""

    logged: NDArray[np.float64]  # [episode]
    replayed: NDArray[np.float64]  # [episode]

    def near(self, achieved: float) -> NearbyReplays:
        """What the replays say about episodes with such a return."""
        count = max(LEAST, round(_NEAR * len(self.logged)))
        rows = np.argsort(np.abs(self.logged - achieved), kind="stable")[:count]
        errors = self.replayed[rows] - self.logged[rows]
        # The mean error of these episodes, which is itself known up to its standard error.
        off = math.hypot(errors.mean(), errors.std(ddof=1) / math.sqrt(len(errors)))
        return NearbyReplays(float(self.logged[rows].mean()), float(self.replayed[rows].mean()), NORMAL * off)

    def to_csv(self) -> str:
        """One row for each episode; floats read back exactly."""
        return csv_text([_COLUMNS, *zip(self.logged.tolist(), self.replayed.tolist(), strict=True)])

    @classmethod
    def read(cls, path: Path) -> Replays | None:
        """Read the file of a run; None where there is none."""
        try:
            rows = list(csv.DictReader(io.StringIO(read_text(path), newline="")))
            numbers = np.array([[float(row[column]) for row in rows] for column in _COLUMNS])
            if len(rows) < LEAST or not np.isfinite(numbers).all():
                raise ValueError(f"{len(rows)} rows")
        except FileNotFoundError:
            return None
        except (csv.Error, KeyError, TypeError, ValueError) as error:
            expected = f"a row {','.join(_COLUMNS)} per episode, of at least {LEAST}"
            raise InputError(f"{path} is damaged; expected {expected}") from error
        return cls(*numbers)
