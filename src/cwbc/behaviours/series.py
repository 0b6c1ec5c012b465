"""The snapshots of one learner, from untrained to expert: a folder of small files with a manifest."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.behaviours.behaviour import Behaviour, load
from cwbc.errors import InputError
from cwbc.files import write_atomically

MANIFEST = "manifest.json"
SNAPSHOT_FILES = f"{'[0-9]' * 9}.safetensors"  # named by their steps
EVALUATION_SEED = 1_000_003  # the same first states for every snapshot
_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Measured:
    """The returns of a snapshot's episodes."""

    mean: float
    deviation: float
    lowest: float

    @classmethod
    def of(cls, returns: NDArray[np.float64]) -> Measured:
        # Six digits: what follows is noise of the few episodes.
        return cls(*(float(f"{value:.6g}") for value in (returns.mean(), returns.std(), returns.min())))


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A learner after so many steps of its environment."""

    steps: int
    deterministic: Measured  # acting by the middle of its distribution
    stochastic: Measured  # drawing its actions, as data is made

    @property
    def file(self) -> str:
        return f"{self.steps:09d}.safetensors"


@dataclasses.dataclass(frozen=True)
class Series:
    """What a manifest holds; `folder` is where it was found."""

    folder: Path
    environment: str
    seed: int
    episodes: int  # that measured each snapshot, in either way of acting
    settings: dict[str, Any]  # of the learner
    command: str  # that made it
    device: str  # that it was trained on
    versions: dict[str, str]
    snapshots: tuple[Snapshot, ...]  # by steps

    def behaviour(self, snapshot: Snapshot) -> Behaviour:
        """The snapshot itself."""
        return load(self.folder / snapshot.file)

    @property
    def expert(self) -> Snapshot:
        """The one that earns most when it draws its actions."""
        return max(self.snapshots, key=lambda snapshot: snapshot.stochastic.mean)

    @property
    def medium(self) -> Snapshot:
        """The one nearest to a third of the way from where the learner began to where it got."""
        untrained = self.snapshots[0].stochastic.mean
        third = untrained + (self.expert.stochastic.mean - untrained) / 3
        better = [
            snapshot
            for snapshot in self.snapshots
            if snapshot.steps <= self.expert.steps and snapshot.stochastic.mean > untrained
        ]
        return min(better or self.snapshots, key=lambda snapshot: abs(snapshot.stochastic.mean - third))

    @property
    def learned(self) -> bool:
        """Whether training made it better, beyond what the chance of so few episodes would."""
        first, best = self.snapshots[0].stochastic, self.expert.stochastic
        error = math.hypot(first.deviation, best.deviation) / math.sqrt(self.episodes)
        return best.mean - first.mean > 2 * error

    @property
    def warmup(self) -> int:
        """Steps that the learner took with uniform actions, before it learned anything."""
        return int(self.settings["warmup"])

    @property
    def fingerprint(self) -> str:
        """What tells these snapshots from others that lay in the same folder."""
        told = json.dumps([self.environment, [dataclasses.asdict(one) for one in self.snapshots]])
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def write(self) -> None:
        """Replace the manifest in its folder."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)[1:]}
        values["snapshots"] = [dataclasses.asdict(snapshot) for snapshot in self.snapshots]
        text = json.dumps({"format": _FORMAT, "evaluation_seed": EVALUATION_SEED} | values, indent=1)
        write_atomically(self.folder / MANIFEST, text + "\n")


def read(folder: Path) -> Series:
    """The series that lies in a folder, or the best of those that lie in its folders."""
    if (folder / MANIFEST).is_file():
        return _read(folder)
    below = [_read(path.parent) for path in sorted(folder.glob(f"*/{MANIFEST}"))]
    if not below:
        raise InputError(
            f"{folder} holds no trained behaviours: no {MANIFEST} is in it or one folder below; "
            "`cwbc behaviours train ENVIRONMENT` makes some"
        )
    return max(below, key=lambda series: series.expert.stochastic.mean)


def _read(folder: Path) -> Series:
    path = folder / MANIFEST
    try:
        values: dict[str, Any] = json.loads(path.read_bytes())
        if values.pop("format") != _FORMAT:
            raise ValueError("another version of cwbc wrote it")
        del values["evaluation_seed"]
        snapshots = tuple(_snapshot(row) for row in values.pop("snapshots"))
        series = Series(folder=folder, snapshots=snapshots, **values)
        if not snapshots or not isinstance(series.warmup, int) or not isinstance(series.environment, str):
            raise ValueError("it names no snapshots or no environment")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not a manifest of behaviours, or it is damaged: {error}") from error
    return series


def _snapshot(row: dict[str, Any]) -> Snapshot:
    deterministic, stochastic = Measured(**row["deterministic"]), Measured(**row["stochastic"])
    if not math.isfinite(stochastic.mean) or not isinstance(row["steps"], int):
        raise ValueError(f"snapshot {row}")
    return Snapshot(row["steps"], deterministic, stochastic)
