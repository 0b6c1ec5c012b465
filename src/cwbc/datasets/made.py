"""Datasets that are made on the spot, by behaviours that come with the package or that users trained.

What only making one needs is imported there: to list them takes no numpy.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.behaviours import QUALITIES, TASKS
from cwbc.datasets import store
from cwbc.errors import InputError, unknown

if TYPE_CHECKING:
    from cwbc.behaviours.series import Series
    from cwbc.datasets.source import Progress

DEFAULT_SIZE = 200_000  # steps: seconds to make, enough to tell methods apart
FULL = "full"  # as a size: D4RL's own
_MOST_STEPS = 100_000_000  # hours of simulation; all of them are in memory until the file is written

_FULL_SIZES = {"random": 1_000_000, "medium": 1_000_000, "medium-expert": 2_000_000, "expert": 1_000_000}
_REPLAYS = {"hopper": 402_000, "walker2d": 302_000, "halfcheetah": 202_000}
_NAME = re.compile(rf"(?P<prefix>.+)/(?P<quality>{'|'.join(sorted(QUALITIES, key=len, reverse=True))})-v\d+")

CATALOGUE = tuple(f"cwbc/{task}/{quality}-v0" for task in TASKS for quality in QUALITIES)


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
        from cwbc.behaviours import series as behaviours
        from cwbc.behaviours import zoo

        quality, task = _parts(name, own=folder is not None)
        series = zoo.series(task) if folder is None else behaviours.read(folder)
        steps = _steps(size, quality, _REPLAYS[task] if folder is None else series.medium.steps)
        command = f"cwbc data make {name} --size {steps}"
        if folder is not None:
            # The comment tells these behaviours from others that lie there later.
            command += f" --behaviours {shlex.quote(str(folder.resolve()))}  # manifest {series.fingerprint}"
        return cls(name, quality, series, steps, command)

    def kept(self) -> store.Entry | None:
        """The very same dataset, where it was made before and looks whole."""
        found = store.find(self.name)
        same = found is not None and found.source == self.command and found.looks_whole()
        return found if same else None

    def make(self, overwrite: bool = False, progress: Progress | None = None) -> store.Entry:
        """The dataset, made now unless the very same is kept; waits while another process makes it."""
        from cwbc import simulators
        from cwbc.behaviours import recipes
        from cwbc.datasets import hdf5

        # The place first: who finds it taken or not writable has not made a dataset in vain.
        with store.place(self.name, overwrite=True, wait=True) as folder:
            if not overwrite and (kept := self.kept()) is not None:
                return kept
            if not overwrite and (other := store.find(self.name)) is not None:
                has = f"there is a dataset {self.name} of {other.steps:,} steps already"
                raise InputError(f"{has}, from `{other.source}`; --overwrite replaces it")
            tell = None if progress is None else lambda done: progress(min(done, self.size), self.size)
            data = recipes.make(self.series, self.name, self.quality, self.size, tell)
            data = data.described(time_limit=simulators.time_limit(self.series.environment))
            aside = folder / ".data.tmp"
            hdf5.write(aside, data)
            return store.adopt(data, aside, self.command)


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


def ordered_size(name: str) -> int | None:
    """The steps that a kept dataset was made with, by which another machine can make the same."""
    entry = store.find(name) if name in CATALOGUE else None
    found = re.fullmatch(r"cwbc data make \S+ --size (\d+)", entry.source) if entry else None
    return int(found[1]) if found else None


def _steps(size: str | int, quality: str, replay: int) -> int:
    if size == FULL:
        return _FULL_SIZES.get(quality, replay)
    try:
        steps = int(size)
    except ValueError:
        steps = 0
    if not 1 <= steps <= _MOST_STEPS:
        raise InputError(f"--size must be a number of steps, at most {_MOST_STEPS:,}, or {FULL}; got {size}")
    return steps
