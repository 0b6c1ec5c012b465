"""The catalogue: every file under the address that D4RL gives, and no other file in its place."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from cwbc.core.trajectories import Trajectories
from cwbc.data.d4rl import CATALOGUE, MIRROR, Published, find, verify
from cwbc.system.errors import InputError

HOST = "http://rail.eecs.berkeley.edu/datasets/offline_rl"

# From d4rl/infos.py of github.com/Farama-Foundation/D4RL.
ANTMAZE = {
    "umaze": "u-maze_noisy_multistart_False_multigoal_False",
    "umaze-diverse": "u-maze_noisy_multistart_True_multigoal_True",
    "medium-play": "big-maze_noisy_multistart_True_multigoal_False",
    "medium-diverse": "big-maze_noisy_multistart_True_multigoal_True",
    "large-play": "hardest-maze_noisy_multistart_True_multigoal_False",
    "large-diverse": "hardest-maze_noisy_multistart_True_multigoal_True",
}
FILES = {
    "hopper-medium-v2": "gym_mujoco_v2/hopper_medium-v2.hdf5",
    "hopper-medium-replay-v2": "gym_mujoco_v2/hopper_medium_replay-v2.hdf5",
    "hopper-medium-expert-v2": "gym_mujoco_v2/hopper_medium_expert-v2.hdf5",
    "walker2d-medium-v2": "gym_mujoco_v2/walker2d_medium-v2.hdf5",
    "walker2d-medium-replay-v2": "gym_mujoco_v2/walker2d_medium_replay-v2.hdf5",
    "walker2d-medium-expert-v2": "gym_mujoco_v2/walker2d_medium_expert-v2.hdf5",
    "halfcheetah-medium-v2": "gym_mujoco_v2/halfcheetah_medium-v2.hdf5",
    "halfcheetah-medium-replay-v2": "gym_mujoco_v2/halfcheetah_medium_replay-v2.hdf5",
    "halfcheetah-medium-expert-v2": "gym_mujoco_v2/halfcheetah_medium_expert-v2.hdf5",
    "maze2d-umaze-v1": "maze2d/maze2d-umaze-sparse-v1.hdf5",
    "maze2d-medium-v1": "maze2d/maze2d-medium-sparse-v1.hdf5",
    "maze2d-large-v1": "maze2d/maze2d-large-sparse-v1.hdf5",
    "maze2d-umaze-dense-v1": "maze2d/maze2d-umaze-dense-v1.hdf5",
    "maze2d-medium-dense-v1": "maze2d/maze2d-medium-dense-v1.hdf5",
    "maze2d-large-dense-v1": "maze2d/maze2d-large-dense-v1.hdf5",
} | {f"antmaze-{kind}-v2": f"ant_maze_v2/Ant_maze_{file}_sparse_fixed.hdf5" for kind, file in ANTMAZE.items()}


def known(name: str) -> Published:
    published = find(name)
    assert published
    return published


def shaped(steps: int, observations: int, actions: int, unfinished: int = 0) -> Trajectories:
    """One episode of that many steps, in arrays that take no memory."""
    return Trajectories(
        name="file",
        observations=np.broadcast_to(np.float32(0), (steps, observations)),
        actions=np.broadcast_to(np.float32(0), (steps, actions)),
        rewards=np.broadcast_to(np.float32(0), steps),
        starts=np.array([0]),
        lengths=np.array([steps]),
        terminated=np.array([False]),
        unfinished_steps=unfinished,
    )


def refused(published: Published, data: Trajectories, *parts: str) -> None:
    parts = (f"this is not {published.d4rl_name}: it has ", *parts, "; `cwbc data import FILE --name NAME`")
    with pytest.raises(InputError, match=".*".join(map(re.escape, parts))):
        verify(published, data)


@pytest.fixture(autouse=True)
def _no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MIRROR, raising=False)


def test_every_address_is_d4rls() -> None:
    assert {each.d4rl_name: each.url() for each in CATALOGUE} == {k: f"{HOST}/{v}" for k, v in FILES.items()}
    assert len(CATALOGUE) == 9 + 6 + 6


@pytest.mark.parametrize(
    ("name", "d4rl_name", "environment"),
    [
        ("d4rl/hopper/medium-replay-v2", "hopper-medium-replay-v2", "Hopper-v4"),
        ("d4rl/walker2d/medium-v2", "walker2d-medium-v2", "Walker2d-v4"),
        ("d4rl/halfcheetah/medium-expert-v2", "halfcheetah-medium-expert-v2", "HalfCheetah-v4"),
        ("d4rl/antmaze/umaze-v2", "antmaze-umaze-v2", "d4rl/antmaze-umaze-v2"),
        ("d4rl/antmaze/medium-play-v2", "antmaze-medium-play-v2", "d4rl/antmaze-medium-play-v2"),
        ("d4rl/maze2d/umaze-v1", "maze2d-umaze-v1", "d4rl/maze2d-umaze-v1"),
        ("d4rl/maze2d/umaze-dense-v1", "maze2d-umaze-dense-v1", "d4rl/maze2d-umaze-dense-v1"),
    ],
)
def test_both_spellings_find_it(name: str, d4rl_name: str, environment: str) -> None:
    published = known(name)
    assert published is known(d4rl_name)
    assert (published.name, published.d4rl_name, published.environment) == (name, d4rl_name, environment)


@pytest.mark.parametrize("name", ["", "hopper", "hopper-medium", "hopper-medium-v1", "d4rl/hopper-medium-v2"])
def test_other_names_find_nothing(name: str) -> None:
    assert find(name) is None


def test_a_mirror_takes_the_hosts_place(monkeypatch: pytest.MonkeyPatch) -> None:
    published = known("hopper-medium-v2")
    file = "gym_mujoco_v2/hopper_medium-v2.hdf5"
    monkeypatch.setenv(MIRROR, "https://mirror.example/d4rl")
    assert published.url() == f"https://mirror.example/d4rl/{file}"
    monkeypatch.setenv(MIRROR, "")
    assert published.url() == f"{HOST}/{file}"


def test_the_published_data_passes() -> None:
    for published in (known("walker2d-medium-v2"), known("maze2d-umaze-v1")):
        sizes = published.observation_size, published.action_size
        verify(published, shaped(published.transitions, *sizes, unfinished=5))
    verify(published, shaped(999_869, *sizes, unfinished=131))  # as the file on the host has it


def test_the_count_alone_tells_files_of_one_shape_apart() -> None:
    walker2d, halfcheetah = known("walker2d-medium-v2"), known("halfcheetah-medium-v2")
    refused(walker2d, shaped(1_000_000, 17, 6), "1,000,000 steps in finished episodes, expected 999,995")
    data = shaped(999_995, 17, 6, unfinished=5)
    refused(halfcheetah, data, "999,995 steps in finished episodes, expected 1,000,000")


def test_another_shape_is_told_with_both_numbers() -> None:
    refused(
        known("hopper-medium-v2"),
        shaped(6, 3, 2),
        "3 observation dimensions, expected 11 and 2 action dimensions, expected 3 and 6 steps",
    )


def test_one_percent_is_allowed_where_the_count_is_not_exact() -> None:
    published = dataclasses.replace(
        known("hopper-medium-replay-v2"), observation_size=3, action_size=2, transitions=200
    )
    verify(published, shaped(198, 3, 2))
    verify(published, shaped(202, 3, 2))
    refused(published, shaped(203, 3, 2), "203 steps in finished episodes, expected about 200")
    exact = dataclasses.replace(published, exact=True)
    refused(exact, shaped(199, 3, 2), "199 steps in finished episodes, expected 200")


def test_discrete_actions_are_never_d4rls() -> None:
    published = dataclasses.replace(known("hopper-medium-v2"), observation_size=3, transitions=6)
    data = dataclasses.replace(shaped(6, 3, 2), actions=np.array([0, 1, 2, 0, 1, 2], np.int32))
    assert data.action_size == published.action_size
    refused(published, data, "discrete actions, expected 3")
