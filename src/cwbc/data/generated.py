"""Datasets generated on this machine, by behaviour policies of the package or of the user."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cwbc.behaviours import ANT, ANT_MAZES, MAZES, QUALITIES, TASKS, ships
from cwbc.data import store
from cwbc.data.sources import DatasetSource, Offer
from cwbc.system.errors import InputError, unknown

if TYPE_CHECKING:  # listing datasets needs no numpy, so nothing that imports it is imported here
    from cwbc.behaviours.recipes import Recipe
    from cwbc.system.progress import Progress

DEFAULT_SIZE = 200_000  # steps: generated in seconds, enough to compare methods
FULL = "full"  # as a size: D4RL's own
_MOST_STEPS = 100_000_000  # hours of simulation; all of them are in memory until the file is written

_FULL_SIZES = {"random": 1_000_000, "medium": 1_000_000, "medium-expert": 2_000_000, "expert": 1_000_000}
_REPLAYS = {"hopper": 402_000, "walker2d": 302_000, "halfcheetah": 202_000}
_ANT_SIZE = 1_000_000
_MAZE_SIZES = {"umaze": 1_000_000, "medium": 2_000_000, "large": 4_000_000}
_NAME = re.compile(rf"(?P<prefix>.+)/(?P<quality>{'|'.join(sorted(QUALITIES, key=len, reverse=True))})-v\d+")

_POINT_MAZES = {f"cwbc/pointmaze/{maze}-v0": maze for maze in MAZES}
CATALOGUE = (*(f"cwbc/{task}/{quality}-v0" for task in TASKS for quality in QUALITIES), *_POINT_MAZES)
_ANT_MAZES = {f"cwbc/antmaze/{kind}-v0": kind for kind in ANT_MAZES}  # available with the ant's snapshots
_OWN_ANT_MAZE = re.compile(rf"(.*/)?antmaze/(?P<kind>{'|'.join(ANT_MAZES)})-v\d+")


@dataclasses.dataclass(frozen=True)
class DatasetSpec:
    """A dataset to generate, with everything that it depends on."""

    name: str
    recipe: Recipe
    size: int  # steps
    command: str  # that generates it again

    @classmethod
    def of(cls, name: str, size: str | int = DEFAULT_SIZE, folder: Path | None = None) -> DatasetSpec:
        """The specification of a size in steps or "full", from the behaviours in `folder` or our own."""
        recipe, full, comment = _shipped(name) if folder is None else _own(name, folder)
        steps = full if size == FULL else int(size) if str(size).replace("_", "").isdecimal() else 0
        if not 1 <= steps <= _MOST_STEPS:
            wanted = f"a number of steps, at most {_MOST_STEPS:,}, or {FULL}"
            raise InputError(f"--size must be {wanted}; got {size}")
        return cls(name, recipe, steps, f"cwbc data make {name} --size {steps}{comment}")

    def stored(self) -> store.Entry | None:
        """The very same dataset, if it is in the store and looks whole."""
        found = store.find(self.name)
        return found if found and found.source == self.command and found.looks_whole() else None

    def generate(self, overwrite: bool = False, progress: Progress | None = None) -> store.Entry:
        """The dataset, generated unless the same one is stored; waits while another process generates it."""
        from cwbc import envs

        # The place first: if it is taken or not writable, nothing has been generated in vain.
        with store.place(self.name, overwrite=True, wait=True) as folder:
            if not overwrite and (found := store.find(self.name)) is not None:
                if stored := self.stored():
                    return stored
                has = f"there is a dataset {self.name} of {found.steps:,} steps already"
                raise InputError(f"{has}, from `{found.source}`; --overwrite replaces it")
            update = None if progress is None else lambda done: progress(min(done, self.size), self.size)
            data = self.recipe.generate(self.name, self.size, update)
            data = data.described(time_limit=envs.time_limit(self.recipe.environment))
            return store.write(data, folder, self.command)


def _shipped(name: str) -> tuple[Recipe, int, str]:
    """The recipe of a dataset of the package, D4RL's size, and a comment for its command."""
    from cwbc.behaviours import recipes, snapshots

    if not _is_available(name):
        raise _missing_ant(name) if name in _ANT_MAZES else unknown("dataset to generate", name, CATALOGUE)
    if "maze" in name:
        navigation = _navigation()
        if maze := _POINT_MAZES.get(name):
            return navigation.pointmaze(maze), _MAZE_SIZES[maze], ""
        return navigation.antmaze(_ANT_MAZES[name], snapshots.shipped(ANT)), _ANT_SIZE, ""
    _, task, last = name.split("/")
    quality = last.removesuffix("-v0")
    recipe = recipes.SnapshotRecipe(snapshots.shipped(task), quality)
    return recipe, _FULL_SIZES.get(quality, _REPLAYS[task]), ""


def _own(name: str, folder: Path) -> tuple[Recipe, int, str]:
    """The same of a dataset by the user's behaviours."""
    from cwbc.behaviours import recipes, snapshots
    from cwbc.data import is_reserved

    parts, first = _NAME.fullmatch(name), name.split("/")[0]
    maze = _OWN_ANT_MAZE.fullmatch(name)
    if parts is None and maze is None:
        like = f"pendulum/medium-replay-v0, with {', '.join(QUALITIES[:-1])} or {QUALITIES[-1]}"
        raise InputError(f"{name!r} does not name what to generate; a name is like {like}")
    if is_reserved(first):
        other = "/".join(("my", *name.split("/")[1:]))
        raise InputError(f"names below {first}/ are reserved; choose another, such as {other}")
    series = snapshots.read(folder)
    # The comment distinguishes these policies from later ones in the same folder.
    comment = f" --behaviours {shlex.quote(str(folder.resolve()))}  # manifest {series.fingerprint}"
    if maze is not None:
        return _navigation().antmaze(maze["kind"], series), _ANT_SIZE, comment
    assert parts is not None
    recipe = recipes.SnapshotRecipe(series, parts["quality"])
    return recipe, _FULL_SIZES.get(recipe.quality, series.medium.steps), comment


def _navigation() -> ModuleType:
    """The recipes of mazes, which need simulators."""
    from cwbc import envs

    envs.need_simulators()
    from cwbc.behaviours import navigation

    return navigation


def _is_available(name: str) -> bool:
    return name in CATALOGUE or (name in _ANT_MAZES and ships(ANT))


def _missing_ant(name: str) -> InputError:
    train = "`cwbc behaviours train cwbc/ant-direction-v0`"
    own = f"{name.replace('cwbc/', 'my/', 1)} --behaviours behaviours/cwbc-ant-direction-v0"
    return InputError(
        f"{name} needs the snapshots of an ant, which do not come with this version of cwbc; {train} trains "
        f"one, and `cwbc data make {own}` generates a dataset with it"
    )


def _hint(name: str) -> str | None:
    if not name.startswith("cwbc/"):
        return None
    return str(_missing_ant(name) if name in _ANT_MAZES else unknown("dataset", name, CATALOGUE))


def _available() -> tuple[str, ...]:
    return (*CATALOGUE, *filter(_is_available, _ANT_MAZES))


def generated_steps(name: str) -> int | None:
    """The size that a stored dataset was generated with, so that another machine can generate the same."""
    entry = store.find(name) if _is_available(name) else None
    found = re.fullmatch(r"cwbc data make \S+ --size (\d+)", entry.source) if entry else None
    return int(found[1]) if found else None


SOURCE = DatasetSource(
    key="makeable",
    headings=("generated in seconds, by `cwbc data make` or on first use",),
    offers=lambda: (Offer(name) for name in _available() if not store.has(name)),
    names=lambda: (*CATALOGUE, *_ANT_MAZES),
    has=_is_available,
    read=lambda name, options, progress: DatasetSpec.of(name).generate(progress=progress).read(),
    hint=_hint,
    activity=("generating", "steps"),
    reserved=True,
)
