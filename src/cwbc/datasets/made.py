"""Datasets that are made on the spot, by behaviours that come with the package or that users trained."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from cwbc import simulators
from cwbc.behaviours import series as behaviours
from cwbc.behaviours import zoo
from cwbc.behaviours.recipes import QUALITIES, make
from cwbc.behaviours.series import Series
from cwbc.datasets import store
from cwbc.datasets.source import Progress
from cwbc.errors import InputError, unknown

DEFAULT_SIZE = 200_000  # steps: seconds to make, enough to tell methods apart
FULL = "full"  # as a size: D4RL's own

_FULL_SIZES = {"random": 1_000_000, "medium": 1_000_000, "medium-expert": 2_000_000, "expert": 1_000_000}
_REPLAYS = {"hopper": 402_000, "walker2d": 302_000, "halfcheetah": 202_000}
_NAME = re.compile(rf"(?P<prefix>.+)/(?P<quality>{'|'.join(sorted(QUALITIES, key=len, reverse=True))})-v\d+")

CATALOGUE = tuple(f"cwbc/{task}/{quality}-v0" for task in zoo.TASKS for quality in QUALITIES)


@dataclasses.dataclass(frozen=True)
class Order:
    """A dataset to be made, with everything that it depends on."""

    name: str
    quality: str
    series: Series
    size: int  # steps
    command: str  # that makes it again

    @classmethod
    def of(cls, name: str, size: str | int = DEFAULT_SIZE, folder: Path | None = None) -> Order:
        """Check what was asked for.

        Args:
            size: steps, or "full".
            folder: where trained behaviours lie; without it, `name` is one of the catalogue.
        """
        quality, task = _parts(name, own=folder is not None)
        series = zoo.series(task) if folder is None else behaviours.read(folder)
        steps = _steps(size, quality, _REPLAYS[task] if folder is None else series.medium.steps)
        command = f"cwbc data make {name} --size {steps}"
        if folder is not None:
            command += f" --behaviours {folder} (manifest {series.fingerprint})"
        return cls(name, quality, series, steps, command)

    def kept(self) -> store.Entry | None:
        """The very same dataset, where it was made before."""
        found = store.find(self.name)
        return found if found is not None and found.source == self.command else None

    def make(self, overwrite: bool = False, progress: Progress | None = None) -> store.Entry:
        """Make the dataset and keep it."""
        if (kept := store.find(self.name)) is not None and not overwrite:
            raise InputError(
                f"there is a dataset {self.name} of {kept.steps:,} steps already, from `{kept.source}`; "
                "--overwrite replaces it"
            )
        store.check_name(self.name, overwrite)
        tell = None if progress is None else lambda done: progress(min(done, self.size), self.size)
        data = make(self.series, self.name, self.quality, self.size, tell)
        data = data.described(time_limit=simulators.time_limit(self.series.environment))
        return store.add(data, self.command, overwrite)


def doing(name: str) -> tuple[str, str]:
    """What getting at a dataset is, in words, and what it is counted in."""
    if name in CATALOGUE and store.find(name) is None:
        return f"making {name}", "steps"
    return f"reading {name}", "values"


def _parts(name: str, own: bool) -> tuple[str, str]:
    """The quality and the task that a name tells."""
    parts = _NAME.fullmatch(name)
    if not own:
        if name not in CATALOGUE or parts is None:
            raise unknown("dataset to make", name, CATALOGUE)
    elif parts is None:
        raise InputError(
            f"{name!r} does not tell what to make; a name such as pendulum/medium-replay-v0 does, with "
            f"{', '.join(QUALITIES[:-1])} or {QUALITIES[-1]}"
        )
    elif parts["prefix"].split("/")[0] in store.RESERVED:
        other = "/".join(("my", *name.split("/")[1:]))
        raise InputError(f"names below {name.split('/')[0]}/ are taken; choose another, such as {other}")
    return parts["quality"], parts["prefix"].rsplit("/", 1)[-1]


def _steps(size: str | int, quality: str, replay: int) -> int:
    if size == FULL:
        return _FULL_SIZES.get(quality, replay)
    try:
        steps = int(size)
    except ValueError:
        steps = 0
    if steps < 1:
        raise InputError(f"--size must be a number of steps, or {FULL}; got {size}")
    return steps
