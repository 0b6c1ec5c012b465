"""Datasets generated on this machine, by behaviour policies of the package or of the user."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.behaviours import QUALITIES, TASKS
from cwbc.data import store
from cwbc.data.sources import DatasetSource, Offer
from cwbc.system.errors import InputError, unknown

if TYPE_CHECKING:  # listing datasets needs no numpy, so nothing that imports it is imported here
    from cwbc.behaviours.snapshots import Series
    from cwbc.system.progress import Progress

DEFAULT_SIZE = 200_000  # steps: generated in seconds, enough to compare methods
FULL = "full"  # as a size: D4RL's own
_MOST_STEPS = 100_000_000  # hours of simulation; all of them are in memory until the file is written

_FULL_SIZES = {"random": 1_000_000, "medium": 1_000_000, "medium-expert": 2_000_000, "expert": 1_000_000}
_REPLAYS = {"hopper": 402_000, "walker2d": 302_000, "halfcheetah": 202_000}
_NAME = re.compile(rf"(?P<prefix>.+)/(?P<quality>{'|'.join(sorted(QUALITIES, key=len, reverse=True))})-v\d+")

CATALOGUE = tuple(f"cwbc/{task}/{quality}-v0" for task in TASKS for quality in QUALITIES)


@dataclasses.dataclass(frozen=True)
class DatasetSpec:
    """A dataset to generate, with everything that it depends on."""

    name: str
    quality: str
    series: Series
    size: int  # steps
    command: str  # that generates it again

    @classmethod
    def of(cls, name: str, size: str | int = DEFAULT_SIZE, folder: Path | None = None) -> DatasetSpec:
        """The specification of a size in steps or "full", from the behaviours in `folder` or our own."""
        from cwbc.behaviours import snapshots
        from cwbc.data import is_reserved

        parts, first = _NAME.fullmatch(name), name.split("/")[0]
        if folder is None and name not in CATALOGUE:
            raise unknown("dataset to generate", name, CATALOGUE)
        if parts is None:
            like = f"pendulum/medium-replay-v0, with {', '.join(QUALITIES[:-1])} or {QUALITIES[-1]}"
            raise InputError(f"{name!r} does not name what to generate; a name is like {like}")
        if folder is not None and is_reserved(first):
            other = "/".join(("my", *name.split("/")[1:]))
            raise InputError(f"names below {first}/ are reserved; choose another, such as {other}")
        quality, task = parts["quality"], parts["prefix"].rsplit("/", 1)[-1]
        series = snapshots.shipped(task) if folder is None else snapshots.read(folder)
        replay = _REPLAYS[task] if folder is None else series.medium.steps
        full = _FULL_SIZES.get(quality, replay)
        steps = full if size == FULL else int(size) if str(size).replace("_", "").isdecimal() else 0
        if not 1 <= steps <= _MOST_STEPS:
            wanted = f"a number of steps, at most {_MOST_STEPS:,}, or {FULL}"
            raise InputError(f"--size must be {wanted}; got {size}")
        command = f"cwbc data make {name} --size {steps}"
        if folder is not None:
            # The comment distinguishes these policies from later ones in the same folder.
            command += f" --behaviours {shlex.quote(str(folder.resolve()))}  # manifest {series.fingerprint}"
        return cls(name, quality, series, steps, command)

    def stored(self) -> store.Entry | None:
        """The very same dataset, if it is in the store and looks whole."""
        found = store.find(self.name)
        return found if found and found.source == self.command and found.looks_whole() else None

    def generate(self, overwrite: bool = False, progress: Progress | None = None) -> store.Entry:
        """The dataset, generated unless the same one is stored; waits while another process generates it."""
        from cwbc import envs
        from cwbc.behaviours import recipes

        # The place first: if it is taken or not writable, nothing has been generated in vain.
        with store.place(self.name, overwrite=True, wait=True) as folder:
            if not overwrite and (found := store.find(self.name)) is not None:
                if stored := self.stored():
                    return stored
                has = f"there is a dataset {self.name} of {found.steps:,} steps already"
                raise InputError(f"{has}, from `{found.source}`; --overwrite replaces it")
            update = None if progress is None else lambda done: progress(min(done, self.size), self.size)
            data = recipes.generate(self.series, self.name, self.quality, self.size, update)
            data = data.described(time_limit=envs.time_limit(self.series.environment))
            return store.write(data, folder, self.command)


def generated_steps(name: str) -> int | None:
    """The size that a stored dataset was generated with, so that another machine can generate the same."""
    entry = store.find(name) if name in CATALOGUE else None
    found = re.fullmatch(r"cwbc data make \S+ --size (\d+)", entry.source) if entry else None
    return int(found[1]) if found else None


SOURCE = DatasetSource(
    key="makeable",
    headings=("generated in seconds, by `cwbc data make` or on first use",),
    offers=lambda: (Offer(name) for name in CATALOGUE if not store.has(name)),
    names=lambda: CATALOGUE,
    has=lambda name: name in CATALOGUE,
    read=lambda name, options, progress: DatasetSpec.of(name).generate(progress=progress).read(),
    hint=lambda name: str(unknown("dataset", name, CATALOGUE)) if name.startswith("cwbc/") else None,
    activity=("generating", "steps"),
    reserved=True,
)
