"""Observations by name, and warnings of those far outside of the data."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import random_parameters, tiny, toy_data

from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.spaces import Vector
from cwbc.runs.policies import Policy
from cwbc.system import tensor_files
from cwbc.system.errors import InputError

DATA = toy_data()


class Row:
    """A row of a table, as libraries of tables have them: neither a dictionary nor a sequence."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def keys(self) -> Any:
        return self._values.keys()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]


def policy(*names: str) -> Policy:
    spec = PolicySpec.fit(tiny("rvs"), DATA.described(observation_names=names), Training())
    return Policy(spec, random_parameters(spec, 7))


def first(trained: Policy, target: Any, observation: Any) -> list[Any]:
    trained.begin(target)
    action: list[Any] = trained.act(observation).tolist()
    return action


@pytest.mark.parametrize("kind", [dict, Row])
def test_an_observation_by_name_in_any_order(kind: Any) -> None:
    trained = policy("speed", "angle")
    assert trained.observation_names == ("speed", "angle")
    expected = first(trained, 1.0, [0.5, -0.25])
    assert first(trained, 1.0, kind(angle=-0.25, speed=0.5)) == expected
    assert first(trained, 1.0, kind(reward="?", angle=np.float32(-0.25), speed=0.5)) == expected
    several = first(trained, [1.0, 2.0], [[0.5, -0.25], [3, 4]])
    assert first(trained, [1.0, 2.0], [kind(angle=-0.25, speed=0.5), kind(speed=3, angle=4)]) == several
    assert first(trained, [1.0, 2.0], kind(angle=np.array([-0.25, 4]), speed=[0.5, 3])) == several


@pytest.mark.parametrize("kind", [dict, Row])
def test_arrays_by_name_are_taken_apart(kind: Any) -> None:
    trained = policy("goal[0]", "goal[1]")
    expected = first(trained, 1.0, [0.5, -0.25])
    assert first(trained, 1.0, kind(goal=np.array([0.5, -0.25]), other=np.zeros(9))) == expected
    several = first(trained, [1.0, 2.0], [[0.5, -0.25], [3, 4]])
    assert first(trained, [1.0, 2.0], kind(goal=[[0.5, -0.25], [3, 4]])) == several
    assert first(trained, [1.0, 2.0], [kind(goal=[0.5, -0.25]), kind(goal=(3, 4))]) == several
    for short in ([0.5], 0.5, "here"):
        with pytest.raises(InputError, match=r"the observation lacks .*goal\[1\]"):
            first(trained, 1.0, kind(goal=short))
    grid = policy("map[0,0]", "map[1,0]")
    assert first(grid, 1.0, kind(map=[[0.5], [-0.25]])) == expected


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ({"speed": 1.0}, "^the observation lacks angle$"),
        ({"sped": 1.0, "x": 2.0}, "^the observation lacks speed, angle; 'sped' may be meant for 'speed'$"),
        ({"speed": "1", "angle": 0.0}, "the observation's speed is a number; got '1'"),
        ({"speed": 1.0, "angle": [1.0, 2.0]}, "the observation's angle is a number; got"),
        ({"speed": 1.0, "angle": np.nan}, r"an observation is finite numbers; got nan at \[1\] \(angle\)"),
        ([{"speed": 1.0, "angle": 0.0}], "observations by name: expected one, not a list; got"),
    ],
)
def test_what_is_wrong_is_named(observation: Any, message: str) -> None:
    trained = policy("speed", "angle")
    trained.begin(1.0)
    with pytest.raises(InputError, match=message):
        trained.act(observation)
    trained.act({"speed": 1.0, "angle": 0.0})


def test_several_episodes_need_an_observation_each() -> None:
    trained = policy("speed", "angle")
    trained.begin([1.0, 2.0])
    whole = {"speed": 1.0, "angle": 0.0}
    for few in ([whole], [whole, [1.0, 0.0]]):
        with pytest.raises(InputError, match="by name: expected 2, one for each episode; got"):
            trained.act(few)
    with pytest.raises(InputError, match=r"the observation's speed is numbers of shape \(2,\); got"):
        trained.act({"speed": [1.0], "angle": [0.0]})


def test_data_without_names_has_none() -> None:
    trained = policy()
    assert trained.observation_names == ()
    trained.begin(1.0)
    with pytest.raises(InputError, match="by name it cannot be given, as the policy's data had no names"):
        trained.act({"speed": 1.0, "angle": 0.0})


def test_a_file_keeps_names_and_ranges_and_may_lack_them(tmp_path: Path) -> None:
    saved = policy("speed", "angle")
    saved.save(tmp_path / "policy")
    space = Policy.load(tmp_path / "policy").spec.observations
    assert isinstance(space, Vector)
    assert space.names == ("speed", "angle")
    assert space.lowest == tuple(DATA.observations.min(axis=0).tolist())
    assert space.highest == tuple(DATA.observations.max(axis=0).tolist())
    assert space.form == policy().spec.observations.form
    tensors, description = tensor_files.read(tmp_path / "policy")
    for added in ("names", "lowest", "highest"):  # as in files of earlier versions
        del description["design"]["observations"][added]
    tensor_files.write(tmp_path / "policy", tensors, description)
    old = Policy.load(tmp_path / "policy")
    assert old.observation_names == ()
    assert first(old, 1.0, [0.5, 0.5]) == first(saved, 1.0, [0.5, 0.5])
    old.warn_outside = True
    with pytest.raises(InputError, match="needs the ranges of the data"):
        first(old, 1.0, [0.5, 0.5])
    description["design"]["observations"]["names"] = ["speed"]
    tensor_files.write(tmp_path / "policy", tensors, description)
    with pytest.raises(InputError, match="names has 1 values, where there are 2 dimensions"):
        Policy.load(tmp_path / "policy")


def test_values_far_outside_of_the_data_are_warned_about_once_per_episode() -> None:
    trained = policy("speed", "angle")
    lowest, highest = DATA.observations.min(axis=0), DATA.observations.max(axis=0)
    near, far = highest + 0.09 * (highest - lowest), lowest - 0.2 * (highest - lowest)
    first(trained, 1.0, far)  # not asked for
    trained.warn_outside = True
    first(trained, 1.0, near)
    with pytest.warns(UserWarning, match="far outside of the data") as found:
        first(trained, [1.0, 2.0], [near, [near[0], far[1]]])
    assert [str(each.message) for each in found] == [
        f"the observation's angle is {far[1]:g} in episode 1, far outside of the data "
        f"({lowest[1]:g} to {highest[1]:g})"
    ]
    with pytest.warns(UserWarning, match="far outside of the data") as found:
        trained.act([[far[0], near[1]], far], [0, 0])
    # The angle of episode 1 was warned about.
    assert ["speed" in str(each.message) for each in found] == [True, True]
    trained.act([far * [1, 0], far], [0, 0])
    trained.begin(1.0, episodes=[1])
    with pytest.warns(UserWarning, match="far outside of the data") as found:
        trained.act([near, far], [0, 0])
    assert len(found) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first(trained, 1.0, far)
