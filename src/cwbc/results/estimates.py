"""What an offline evaluation adds to its returns: a second estimate, and how like the data the steps are."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cwbc.results.replays import Replays
from cwbc.results.sweeps import same_target
from cwbc.system.errors import InputError
from cwbc.system.files import read_text
from cwbc.system.formatting import csv_text

_COLUMNS = ("seed", "target", "fitted_return", "support")


class TargetEstimate(NamedTuple):
    """At one target, means over seeds."""

    fitted: float  # return, by fitted Q evaluation
    support: float  # fraction of the steps that are like logged ones


@dataclasses.dataclass(frozen=True)
class Estimates:
    """Fitted Q evaluation and support of a method at every target; a target of NaN is none."""

    seeds: NDArray[np.int64]  # [seed]
    targets: NDArray[np.float64]  # [target], ascending
    fitted: NDArray[np.float64]  # [seed, target] expected returns
    support: NDArray[np.float64]  # [seed, target] fractions of the steps that are like logged ones
    replays: Replays | None = None  # of held-out episodes of the dataset; None where there are none

    def at(self, target: float) -> TargetEstimate | None:
        """The means over seeds at a target; None where they are not known."""
        for column, known in enumerate(self.targets.tolist()):
            if math.isnan(known) or same_target(known, target):
                return TargetEstimate(
                    float(self.fitted[:, column].mean()), float(self.support[:, column].mean())
                )
        return None

    def to_json(self) -> dict[str, Any]:
        """For summary.json: means over seeds at every target."""
        return {
            "fitted_return": self.fitted.mean(axis=0).tolist(),
            "support": self.support.mean(axis=0).tolist(),
        }

    def to_csv(self) -> str:
        """One row for each seed and target; floats read back exactly."""
        rows: list[Any] = [_COLUMNS]
        for row, seed in enumerate(self.seeds.tolist()):
            for column, target in enumerate(self.targets.tolist()):
                numbers = self.fitted[row, column].item(), self.support[row, column].item()
                rows.append((seed, "" if math.isnan(target) else target, *numbers))
        return csv_text(rows)

    @classmethod
    def read(cls, path: Path) -> Estimates | None:
        """Read the file of a run; None where there is none."""
        try:
            cells = {
                (int(row["seed"]), row["target"]): (float(row["fitted_return"]), float(row["support"]))
                for row in csv.DictReader(io.StringIO(read_text(path), newline=""))
            }
            seeds, targets = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
            values = np.array([*cells.values()], np.float64).reshape(len(seeds), len(targets), 2)
            numbers = np.array([float(target or "nan") for target in targets])
        except FileNotFoundError:
            return None
        except (csv.Error, KeyError, TypeError, ValueError) as error:
            expected = ",".join(_COLUMNS)
            raise InputError(f"{path} is damaged; expected a row {expected} per seed and target") from error
        return cls(np.array(seeds, np.int64), numbers, values[..., 0], values[..., 1])
