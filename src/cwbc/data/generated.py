"""Datasets generated on this machine, by behaviour policies of the package or of the user."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc import behaviours
from cwbc.behaviours import GAMES, QUALITIES, REPLAY, TASKS
from cwbc.data import store
from cwbc.data.sources import DatasetSource, Offer
from cwbc.system.errors import InputError, unknown

if TYPE_CHECKING:  # listing datasets needs no numpy, so nothing that imports it is imported here
    from cwbc.behaviours.snapshots import Series
    from cwbc.system.progress import Progress

DEFAULT_SIZE = 200_000  # steps: generated in seconds, enough to compare methods
SMALL = "small"  # as a size: the default
FULL = "full"  # as a size: D4RL's own, or the paper's of a game
_MOST_STEPS = 100_000_000  # hours of simulation; all of them are in memory until the file is written

_SMALL_SIZES = {REPLAY: 25_000}  # images take more time and memory
_FULL_SIZES = {"random": 1_000_000, "medium": 1_000_000, "medium-expert": 2_000_000, "expert": 1_000_000}
_FULL_SIZES |= {REPLAY: 500_000}
_KINDS = (*QUALITIES, REPLAY)
_REPLAYS = {"hopper": 402_000, "walker2d": 302_000, "halfcheetah": 202_000}
_NAME = re.compile(rf"(?P<prefix>.+)/(?P<quality>{'|'.join(_KINDS)})-v\d+")

CATALOGUE = tuple(f"cwbc/{task}/{quality}-v0" for task in TASKS for quality in QUALITIES)
_OF_GAMES = {f"cwbc/{game}/{REPLAY}-v0": game for game in GAMES}


def catalogue() -> tuple[str, ...]:
    """Every dataset whose behaviour policies come with the package."""
    return (*CATALOGUE, *(name for name, game in _OF_GAMES.items() if behaviours.is_shipped(game)))


def _not_available(name: str) -> InputError:
    """The error for a name that is not in the catalogue."""
    if (game := _OF_GAMES.get(name)) is None:
        return unknown("dataset to generate", name, catalogue())
    task, folder = f"ALE/{game.capitalize()}-v5", f"behaviours/ALE-{game.capitalize()}-v5"
    return InputError(
        f"the behaviour policies of {name} do not come with this version of cwbc; `cwbc behaviours train "
        f"{task}` trains some, and `cwbc data make my/{game}/{REPLAY}-v0 --behaviours {folder}` generates a "
        "dataset of them"
    )


@dataclasses.dataclass(frozen=True)
class DatasetSpec:
    """A dataset to generate, with everything that it depends on."""

    name: str
    quality: str
    series: Series
    size: int  # steps
    command: str  # that generates it again

    @classmethod
    def of(cls, name: str, size: str | int = SMALL, folder: Path | None = None) -> DatasetSpec:
        """The specification of a size in steps, "small" or "full", from those in `folder` or our own."""
        from cwbc.behaviours import snapshots
        from cwbc.data import is_reserved

        parts, first = _NAME.fullmatch(name), name.split("/")[0]
        if folder is None and name not in catalogue():
            raise _not_available(name)
        if parts is None:
            like = f"pendulum/medium-replay-v0, with {', '.join(_KINDS[:-1])} or {_KINDS[-1]}"
            raise InputError(f"{name!r} does not name what to generate; a name is like {like}")
        if folder is not None and is_reserved(first):
            other = "/".join(("my", *name.split("/")[1:]))
            raise InputError(f"names below {first}/ are reserved; choose another, such as {other}")
        quality, task = parts["quality"], parts["prefix"].rsplit("/", 1)[-1]
        series = snapshots.shipped(task) if folder is None else snapshots.read(folder)
        sizes = {SMALL: _SMALL_SIZES.get(quality, DEFAULT_SIZE), FULL: _FULL_SIZES.get(quality)}
        sizes[FULL] = sizes[FULL] or (_REPLAYS[task] if folder is None else series.medium.steps)
        steps = sizes.get(str(size)) or (int(size) if str(size).replace("_", "").isdecimal() else 0)
        if not 1 <= steps <= _MOST_STEPS:
            wanted = f"a number of steps, at most {_MOST_STEPS:,}, {SMALL} or {FULL}"
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
    entry = store.find(name) if name in catalogue() else None
    found = re.fullmatch(r"cwbc data make \S+ --size (\d+)", entry.source) if entry else None
    return int(found[1]) if found else None


SOURCE = DatasetSource(
    key="makeable",
    headings=("generated in seconds, by `cwbc data make` or on first use",),
    offers=lambda: (Offer(name) for name in catalogue() if not store.has(name)),
    names=catalogue,
    has=lambda name: name in catalogue() or name in _OF_GAMES,
    read=lambda name, options, progress: DatasetSpec.of(name).generate(progress=progress).read(),
    hint=lambda name: str(unknown("dataset", name, catalogue())) if name.startswith("cwbc/") else None,
    activity=("generating", "steps"),
    reserved=True,
)
