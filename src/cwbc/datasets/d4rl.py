"""The D4RL datasets that can be downloaded: where each lies, and what tells it from another.

What only reading needs is imported there: to list them takes no numpy.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cwbc.errors import InputError

if TYPE_CHECKING:
    from cwbc.recordings import Recording
    from cwbc.trajectories import Trajectories

HOST = "http://rail.eecs.berkeley.edu/datasets/offline_rl/"
MIRROR = "CWBC_D4RL_MIRROR"  # environment variable: an address under which the same files lie


@dataclasses.dataclass(frozen=True)
class Published:
    """One dataset as D4RL published it."""

    name: str  # in the store
    d4rl_name: str
    file: str  # below the host
    environment: str  # a Gymnasium id
    transitions: int  # steps of its finished episodes
    exact: bool  # whether that is the very number, or good to 1 %
    observation_size: int
    action_size: int
    bytes: int | None = None  # of the file, where known
    goes_on_at_goal: bool = False  # the episodes go on, step after step at the goal marked as an end

    def url(self, mirror: str | None = None) -> str:
        """Its address: below `mirror`, else below the one that the environment names, else at the host."""
        base = mirror or os.environ.get(MIRROR) or HOST
        return f"{base.rstrip('/')}/{self.file}"


def find(name: str) -> Published | None:
    """The dataset of this name, in our spelling (d4rl/hopper/medium-v2) or D4RL's (hopper-medium-v2)."""
    return _BY_NAME.get(name)


def read(published: Published, path: Path) -> Recording:
    """The episodes of a published file, refused if it is another one."""
    from cwbc.datasets import hdf5
    from cwbc.datasets.columns import ColumnOptions

    if not published.goes_on_at_goal:
        recording = hdf5.read(path)
        data = recording.data
        verify(published, data)
    else:
        # Only the limit ends these episodes. What follows the first step at the goal is no part of the task.
        recording = hdf5.read(path, ColumnOptions(terminated="timeouts", truncated="timeouts"))
        verify(published, recording.data)
        data = _up_to_goal(recording.data)
    data = dataclasses.replace(data, name=published.name, environment=published.environment)
    return dataclasses.replace(recording, data=data)


def _up_to_goal(data: Trajectories) -> Trajectories:
    import numpy as np

    rewarded = np.append(np.flatnonzero(data.rewards > 0), data.steps)
    ends = data.starts + data.lengths
    goals = rewarded[np.searchsorted(rewarded, data.starts)]
    reached = goals < ends
    lengths = np.where(reached, goals + 1, ends) - data.starts
    kept = np.arange(data.steps) - np.repeat(data.starts, data.lengths) < np.repeat(lengths, data.lengths)
    return dataclasses.replace(
        data,
        observations=data.observations[kept],
        actions=data.actions[kept],
        rewards=data.rewards[kept],
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        terminated=reached,
    )


def verify(published: Published, data: Trajectories) -> None:
    """Refuse data that cannot be what was published under this name."""
    observations, actions = data.observations.shape[1], 0 if data.discrete else data.action_size
    slack = 0 if published.exact else published.transitions // 100
    about = "" if published.exact else "about "
    wrong = []
    if observations != published.observation_size:
        wrong.append(f"{observations} observation dimensions, expected {published.observation_size}")
    if actions != published.action_size:
        kind = "discrete actions" if data.discrete else f"{actions} action dimensions"
        wrong.append(f"{kind}, expected {published.action_size}")
    if abs(data.steps - published.transitions) > slack:
        wrong.append(f"{data.steps:,} steps in finished episodes, expected {about}{published.transitions:,}")
    if wrong:
        raise InputError(
            f"this is not {published.d4rl_name}: it has {' and '.join(wrong)}; `cwbc data import FILE "
            "--name NAME` reads any file of D4RL's layout under a name of your own"
        )


def _published(
    d4rl_name: str,
    file: str,
    environment: str,
    transitions: int,
    sizes: tuple[int, int],
    exact: bool = False,
    bytes: int | None = None,
    goes_on_at_goal: bool = False,
) -> Published:
    name = "d4rl/" + d4rl_name.replace("-", "/", 1)
    return Published(name, d4rl_name, file, environment, transitions, exact, *sizes, bytes, goes_on_at_goal)


def _locomotion(robot: str, kind: str, transitions: int, bytes: int, exact: bool = False) -> Published:
    # D4RL's v2 data was recorded with mujoco-py; Gymnasium's v4 rules are the closest to it.
    environment, sizes = {
        "hopper": ("Hopper-v4", (11, 3)),
        "walker2d": ("Walker2d-v4", (17, 6)),
        "halfcheetah": ("HalfCheetah-v4", (17, 6)),
    }[robot]
    file = f"gym_mujoco_v2/{robot}_{kind.replace('-', '_')}-v2.hdf5"
    return _published(f"{robot}-{kind}-v2", file, environment, transitions, sizes, exact, bytes)


def _antmaze(kind: str, maze: str, starts: bool, goals: bool, bytes: int | None) -> Published:
    file = f"ant_maze_v2/Ant_maze_{maze}_noisy_multistart_{starts}_multigoal_{goals}_sparse_fixed.hdf5"
    # Not umaze-diverse: its file marks the first step at the goal alone (D4RL's issue 199).
    goes_on = kind != "umaze-diverse"
    environment = f"d4rl/antmaze-{kind}-v2"
    return _published(
        f"antmaze-{kind}-v2", file, environment, 1_000_000, (29, 8), bytes=bytes, goes_on_at_goal=goes_on
    )


def _maze2d(maze: str, transitions: int, dense: bool) -> Published:
    name = f"maze2d-{maze}-dense-v1" if dense else f"maze2d-{maze}-v1"
    file = f"maze2d/maze2d-{maze}-{'dense' if dense else 'sparse'}-v1.hdf5"
    return _published(name, file, f"d4rl/{name}", transitions, (4, 2))


# Files: D4RL's own list of addresses, d4rl/infos.py in github.com/Farama-Foundation/D4RL.
# Sizes: TensorFlow Datasets' checksums of the same addresses.
# Counts: the medium files have 1,000,000 rows each (scripts/generation/mujoco/collect_data.py there cuts them
# off), of which 94 of hopper and 5 of walker2d are an episode without an end: the steps of finished episodes
# tell files apart that rows do not. TensorFlow Datasets' catalogue counts that episode too: 2,187 and 1,191,
# and 2,000 whole ones in halfcheetah's medium-expert. The others are sizes as they are commonly given,
# in which a last episode may be missing.
CATALOGUE = (
    _locomotion("hopper", "medium", 999_906, 152_756_557, exact=True),
    _locomotion("hopper", "medium-replay", 402_000, 75_854_457),
    _locomotion("hopper", "medium-expert", 1_999_400, 304_537_315),
    _locomotion("walker2d", "medium", 999_995, 232_254_996, exact=True),
    _locomotion("walker2d", "medium-replay", 302_000, 86_323_963),
    _locomotion("walker2d", "medium-expert", 1_999_209, 462_197_079),
    _locomotion("halfcheetah", "medium", 1_000_000, 237_727_262, exact=True),
    _locomotion("halfcheetah", "medium-replay", 202_000, 59_448_533),
    _locomotion("halfcheetah", "medium-expert", 2_000_000, 474_567_252, exact=True),
    _antmaze("umaze", "u-maze", starts=False, goals=False, bytes=232_532_949),
    _antmaze("umaze-diverse", "u-maze", starts=True, goals=True, bytes=230_854_272),
    _antmaze("medium-play", "big-maze", starts=True, goals=False, bytes=None),
    _antmaze("medium-diverse", "big-maze", starts=True, goals=True, bytes=231_095_166),
    _antmaze("large-play", "hardest-maze", starts=True, goals=False, bytes=230_880_653),
    _antmaze("large-diverse", "hardest-maze", starts=True, goals=True, bytes=231_183_710),
    _maze2d("umaze", 1_000_000, dense=False),
    _maze2d("umaze", 1_000_000, dense=True),
    _maze2d("medium", 2_000_000, dense=False),
    _maze2d("medium", 2_000_000, dense=True),
    _maze2d("large", 4_000_000, dense=False),
    _maze2d("large", 4_000_000, dense=True),
)
_BY_NAME = {name: each for each in CATALOGUE for name in (each.name, each.d4rl_name)}
