"""The D4RL datasets that can be downloaded: the address of each, and what identifies it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.data import store
from cwbc.data.sources import DatasetSource, Offer, Remote, size_text
from cwbc.system.errors import InputError

if TYPE_CHECKING:  # listing datasets needs no numpy, so nothing that imports it is imported here
    from cwbc.core.trajectories import Trajectories
    from cwbc.data.checks import Recording
    from cwbc.system.progress import Progress

HOST = "http://rail.eecs.berkeley.edu/datasets/offline_rl/"
MIRROR = "CWBC_D4RL_MIRROR"  # environment variable: another address of the same files


@dataclasses.dataclass(frozen=True)
class Published:
    """One dataset as D4RL published it."""

    d4rl_name: str
    file: str  # below the host
    environment: str  # a Gymnasium id
    transitions: int  # steps of its finished episodes
    observation_size: int
    action_size: int
    exact: bool = False  # whether the number of transitions is exact, or right to 1 %
    bytes: int | None = None  # of the file, where known
    continues_at_goal: bool = False  # its episodes continue at the goal, where every step is marked as an end

    @property
    def name(self) -> str:
        """Its name in the store."""
        return "d4rl/" + self.d4rl_name.replace("-", "/", 1)

    def url(self) -> str:
        """Its address: at the mirror that the environment variable names, else at the host."""
        return f"{(os.environ.get(MIRROR) or HOST).rstrip('/')}/{self.file}"


def environment_of(file: str, observation_size: int, action_size: int) -> str | None:
    """The robot that the name of a file starts with, if its data has these dimensions."""
    robot = file.replace("_", "-").split("-")[0].lower()  # which alone does not identify a maze
    environment, sizes = _ROBOTS.get(robot, (None, ()))
    return environment if sizes == (observation_size, action_size) else None


def _download(
    name: str, url: str | None, overwrite: bool, progress: Progress | None
) -> tuple[store.Entry, str]:
    """Download a dataset into the store; later downloads are compared with the first."""
    from cwbc import envs
    from cwbc.data import download as network
    from cwbc.data.formats import hdf5

    published = _BY_NAME[name]
    url = url or published.url()
    with store.place(published.name, overwrite) as folder:
        part = folder / store.PART
        # A copy may be compressed differently, but not be another file altogether.
        network.download(url, part, progress, most=2 * (published.bytes or network.MOST // 2))
        first = store.readable(published.name)
        with part.open("rb") as file:
            file_hash = hashlib.file_digest(file, "sha256").hexdigest()
        try:
            data = read(published, part).trusted()
            if first and {file_hash, data.content_hash}.isdisjoint((first.download_hash, first.content_hash)):
                which = f"that was downloaded first, on {first.created[:10]} from {first.source}"
                remedy = f"run `cwbc data remove {published.name}` before downloading it"
                raise InputError(
                    f"this is not the {published.d4rl_name} {which}: its data differs (SHA-256 "
                    f"{file_hash[:16]}). The first one stays; if the new one is right, {remedy}"
                )
        except InputError as error:
            network.discard(part)  # complete, and wrong: resuming it would not help
            raise InputError(f"{url}: {str(error).replace(str(part), 'the file')}") from error
        data = dataclasses.replace(data, time_limit=envs.time_limit(published.environment))
        if published.continues_at_goal:
            hdf5.write(part, data)
        entry = store.adopt(data, part, url, (first and first.download_hash) or file_hash)
        network.discard(part)
    compared = "it equals the first download" if first else "later downloads are compared with this one"
    checked = "D4RL publishes no hashes: dimensions and number of steps are right"
    return entry, f"{checked}; {compared} (SHA-256 {file_hash[:16]})"


def read(published: Published, path: Path) -> Recording:
    """The episodes of a published file; another file is refused."""
    from cwbc.data.formats import hdf5
    from cwbc.data.formats.columns import BY_NAME, ColumnOptions

    # Where episodes continue at the goal, only the time limit ends them.
    only_limit = ColumnOptions(terminated="timeouts", truncated="timeouts")
    recording = hdf5.read(path, only_limit if published.continues_at_goal else BY_NAME)
    verify(published, recording.data)
    data = _up_to_goal(recording.data) if published.continues_at_goal else recording.data
    recording = dataclasses.replace(recording, data=data)
    return recording.described(name=published.name, environment=published.environment)


def _up_to_goal(data: Trajectories) -> Trajectories:
    """The episodes without the steps after the first one at the goal, which are no part of the task."""
    import numpy as np

    rewarded = np.append(np.flatnonzero(data.rewards > 0), data.steps)
    ends = data.starts + data.lengths
    goals = rewarded[np.searchsorted(rewarded, data.starts)]
    reached = goals < ends
    lengths = np.where(reached, goals + 1, ends) - data.starts
    used = data.timesteps < np.repeat(lengths, data.lengths)
    arrays = {name: getattr(data, name)[used] for name in ("observations", "actions", "rewards")}
    starts = np.cumsum(lengths) - lengths
    return dataclasses.replace(data, **arrays, starts=starts, lengths=lengths, terminated=reached)


def verify(published: Published, data: Trajectories) -> None:
    """Refuse data that cannot be what was published under this name."""
    observations, actions = data.observations.shape[1], 0 if data.discrete else data.action_size
    slack, about = (0, "") if published.exact else (published.transitions // 100, "about ")
    kind = "discrete actions" if data.discrete else f"{actions} action dimensions"
    found = {
        f"{observations} observation dimensions, expected {published.observation_size}":
            observations == published.observation_size and data.observations.ndim == 2,
        f"{kind}, expected {published.action_size}": actions == published.action_size,
        f"{data.steps:,} steps in finished episodes, expected {about}{published.transitions:,}":
            abs(data.steps - published.transitions) <= slack,
    }  # fmt: skip
    if wrong := " and ".join(what for what, right in found.items() if not right):
        instead = (
            "`cwbc data import FILE --name NAME` reads any file of D4RL's layout under a name of your own"
        )
        raise InputError(f"this is not {published.d4rl_name}: it has {wrong}; {instead}")


# D4RL's v2 data was recorded with mujoco-py; Gymnasium's v4 rules are the closest to it.
_ROBOTS = {
    "hopper": ("Hopper-v4", (11, 3)),
    "walker2d": ("Walker2d-v4", (17, 6)),
    "halfcheetah": ("HalfCheetah-v4", (17, 6)),
}
# Files: D4RL's own list of addresses, d4rl/infos.py in github.com/Farama-Foundation/D4RL.
# Sizes: TensorFlow Datasets' checksums of the same addresses.
# Counts: the medium files have 1,000,000 rows each (scripts/generation/mujoco/collect_data.py there truncates
# them), of which 94 of hopper and 5 of walker2d are an episode without an end: the steps of finished episodes
# distinguish files that rows do not. TensorFlow Datasets' catalogue counts that episode too: 2,187 and 1,191,
# and 2,000 whole ones in halfcheetah's medium-expert. The others are sizes as they are commonly given,
# in which a last episode may be missing.
_LOCOMOTION = (  # robot, kind, transitions, whether exact, bytes
    ("hopper", "medium", 999_906, True, 152_756_557),
    ("hopper", "medium-replay", 402_000, False, 75_854_457),
    ("hopper", "medium-expert", 1_999_400, False, 304_537_315),
    ("walker2d", "medium", 999_995, True, 232_254_996),
    ("walker2d", "medium-replay", 302_000, False, 86_323_963),
    ("walker2d", "medium-expert", 1_999_209, False, 462_197_079),
    ("halfcheetah", "medium", 1_000_000, True, 237_727_262),
    ("halfcheetah", "medium-replay", 202_000, False, 59_448_533),
    ("halfcheetah", "medium-expert", 2_000_000, True, 474_567_252),
)
_ANTMAZE = (  # kind, maze and varying starts and goals in the name of the file, bytes
    ("umaze", "u-maze", False, False, 232_532_949),
    ("umaze-diverse", "u-maze", True, True, 230_854_272),
    ("medium-play", "big-maze", True, False, None),
    ("medium-diverse", "big-maze", True, True, 231_095_166),
    ("large-play", "hardest-maze", True, False, 230_880_653),
    ("large-diverse", "hardest-maze", True, True, 231_183_710),
)
_MAZE2D = {"umaze": 1_000_000, "medium": 2_000_000, "large": 4_000_000}  # transitions


def _catalogue() -> Iterator[Published]:
    for robot, kind, transitions, exact, size in _LOCOMOTION:
        file = f"gym_mujoco_v2/{robot}_{kind.replace('-', '_')}-v2.hdf5"
        environment, sizes = _ROBOTS[robot]
        yield Published(f"{robot}-{kind}-v2", file, environment, transitions, *sizes, exact, size)
    for kind, maze, starts, goals, bytes in _ANTMAZE:
        name = f"antmaze-{kind}-v2"
        file = f"ant_maze_v2/Ant_maze_{maze}_noisy_multistart_{starts}_multigoal_{goals}_sparse_fixed.hdf5"
        # Not umaze-diverse: its file marks the first step at the goal alone (D4RL's issue 199).
        continues = kind != "umaze-diverse"
        yield Published(name, file, f"d4rl/{name}", 1_000_000, 29, 8, False, bytes, continues)
    for maze, transitions in _MAZE2D.items():
        for kind, suffix in (("sparse", ""), ("dense", "-dense")):
            name = f"maze2d-{maze}{suffix}-v1"
            yield Published(name, f"maze2d/maze2d-{maze}-{kind}-v1.hdf5", f"d4rl/{name}", transitions, 4, 2)


CATALOGUE = tuple(_catalogue())
_BY_NAME = {name: each for each in CATALOGUE for name in (each.name, each.d4rl_name)}
find = _BY_NAME.get  # by its name in the store (d4rl/hopper/medium-v2), or D4RL's


def _offers() -> Iterator[Offer]:
    for each in CATALOGUE:
        if not store.has(each.name):
            steps = f"{'' if each.exact else 'about '}{each.transitions:,}"
            size = "" if each.bytes is None else size_text(each.bytes)
            facts = {"name": each.name} | dataclasses.asdict(each) | {"url": each.url()}
            yield Offer(each.name, (steps, size), facts)


def _stored_name(name: str) -> str:
    return _BY_NAME[name].name if name in _BY_NAME else name


def _hint(name: str) -> str | None:
    if (published := find(name)) is None:
        return None
    command = f"cwbc data download {published.d4rl_name}"
    return f"{published.name} is not available here yet; `{command}` downloads it"


SOURCE = DatasetSource(
    key="obtainable",
    headings=("available with `cwbc data download`", "steps", "size"),
    offers=_offers,
    names=lambda: _BY_NAME,
    has=lambda name: name in _BY_NAME and store.has(_stored_name(name)),
    read=lambda name, options, progress: store.SOURCE.read(_stored_name(name), options, progress),
    hint=_hint,
    stored_name=_stored_name,
    remote=Remote(lambda name: name in _BY_NAME, _download),
    reserved=True,
)
