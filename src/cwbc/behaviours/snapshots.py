"""The snapshots of one learner, from untrained to expert: a folder of small files with a manifest."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc import behaviours
from cwbc.behaviours.policies import LearnedActor, load
from cwbc.system.errors import InputError
from cwbc.system.files import read_json, write_atomically
from cwbc.system.typed_json import decode

MANIFEST = "manifest.json"
SNAPSHOT_FILES = f"{'[0-9]' * 9}.safetensors"  # named by their steps
EVALUATION_SEED = 1_000_003  # the same initial states for every snapshot
_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class SnapshotReturns:
    """The returns of a snapshot's episodes."""

    mean: float
    std: float
    min: float

    @classmethod
    def of(cls, returns: NDArray[np.float64]) -> SnapshotReturns:
        # Six digits: what follows is noise of the few episodes.
        return cls(*(float(f"{value:.6g}") for value in (returns.mean(), returns.std(), returns.min())))


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A learner after so many steps of its environment, and its returns."""

    steps: int
    deterministic: SnapshotReturns  # without noise in its actions
    stochastic: SnapshotReturns  # with noise, as data is generated

    @property
    def file(self) -> str:
        return f"{self.steps:09d}.safetensors"


@dataclasses.dataclass(frozen=True)
class Series:
    """The snapshots of one learner, as its manifest lists them."""

    environment: str
    seed: int
    episodes: int  # that evaluated each snapshot, with noise and without
    settings: dict[str, Any]  # of the learner
    command: str  # that trained it
    device: str  # that it was trained on
    versions: dict[str, str]
    snapshots: tuple[Snapshot, ...]  # by steps
    folder: Path = Path()  # where the manifest is

    def policy(self, snapshot: Snapshot) -> LearnedActor:
        """The policy of a snapshot."""
        return load(self.folder / snapshot.file)

    @property
    def expert(self) -> Snapshot:
        """The snapshot with the highest mean return."""
        return max(self.snapshots, key=lambda one: one.stochastic.mean)

    @property
    def until_expert(self) -> tuple[Snapshot, ...]:
        """The snapshots from the untrained one to expert."""
        return tuple(one for one in self.snapshots if one.steps <= self.expert.steps)

    @property
    def medium(self) -> Snapshot:
        """The snapshot nearest to a third of the way from the untrained to the expert return."""
        untrained = self.snapshots[0].stochastic.mean
        third = untrained + (self.expert.stochastic.mean - untrained) / 3
        better = [one for one in self.until_expert if one.stochastic.mean > untrained]
        return min(better or self.snapshots, key=lambda one: abs(one.stochastic.mean - third))

    @property
    def learned(self) -> bool:
        """Whether the expert's mean return is significantly above that of the untrained policy."""
        first, best = self.snapshots[0].stochastic, self.expert.stochastic
        error = math.hypot(first.std, best.std) / math.sqrt(self.episodes)
        return best.mean - first.mean > 2 * error

    @property
    def warmup(self) -> int:
        """Steps that the learner took with uniform actions, before its first update; only SAC has them."""
        return int(self.settings.get("warmup", 0))

    @property
    def fingerprint(self) -> str:
        """A hash that changes when the folder gets other snapshots."""
        values = json.dumps([self.environment, dataclasses.asdict(self)["snapshots"]])
        return hashlib.sha256(values.encode()).hexdigest()[:12]

    def write(self) -> None:
        """Replace the manifest in its folder."""
        values = {"format": _FORMAT, "evaluation_seed": EVALUATION_SEED} | dataclasses.asdict(self)
        del values["folder"]
        write_atomically(self.folder / MANIFEST, json.dumps(values, indent=1) + "\n")


@functools.cache
def shipped(task: str) -> Series:
    """The snapshots of a task that come with the package."""
    return read(behaviours.ZOO / task)


def read(folder: Path) -> Series:
    """The series in a folder, or the best of those in its subfolders."""
    own = folder / MANIFEST
    found = [own] if own.is_file() else sorted(folder.glob(f"*/{MANIFEST}"))
    if not found:
        raise InputError(
            f"{folder} holds no behaviour policies: no {MANIFEST} is in it or one folder below; "
            "`cwbc behaviours train ENVIRONMENT` trains some"
        )
    return max(map(_read, found), key=lambda series: series.expert.stochastic.mean)


def _read(path: Path) -> Series:
    try:
        values = read_json(path)
        if values.pop("format") != _FORMAT:
            raise ValueError("another version of cwbc wrote it")
        del values["evaluation_seed"]
        series: Series = dataclasses.replace(decode(Series, values, "manifest"), folder=path.parent)
        if not series.snapshots or not series.settings or series.warmup < 0:
            raise ValueError("it lists no snapshots")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path} is not a manifest of snapshots, or it is damaged: {error}") from error
    return series
