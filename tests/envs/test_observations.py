"""Numbers from observations of any space: one at a time as Gymnasium does it, and many at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from cwbc.envs.observations import dtype, flatten, flatten_batch, names, size
from cwbc.system.errors import InputError

FLOAT = spaces.Box(-1, 1, (3,), np.float32)
DOUBLE = spaces.Box(-np.inf, np.inf, (2,), np.float64)
IMAGE = spaces.Box(0, 255, (2, 2, 3), np.uint8)
DOOR = spaces.Discrete(3, start=-1)
KEYS = spaces.MultiDiscrete(np.array([[2, 3], [1, 4]]), start=np.array([[0, 5], [-2, 1]]))
FLAGS = spaces.MultiBinary((2, 2))
GOAL = spaces.Dict({"observation": DOUBLE, "desired_goal": FLOAT, "achieved_goal": FLOAT})
NESTED = spaces.Dict({"b": spaces.Tuple([DOOR, spaces.Dict({"image": IMAGE, "keys": KEYS})]), "a": FLAGS})
SPACES: dict[str, spaces.Space[Any]] = {
    "float": FLOAT,
    "double": DOUBLE,
    "half": spaces.Box(-1, 1, (2,), np.float16),
    "scalar": spaces.Box(-1, 1, ()),
    "image": IMAGE,
    "empty": spaces.Box(-1, 1, (0, 2)),
    "discrete": spaces.Discrete(5),
    "shifted": DOOR,
    "flags": FLAGS,
    "choices": spaces.MultiDiscrete([2, 3, 4]),
    "grid of choices": KEYS,
    "goal": GOAL,
    "tuple": spaces.Tuple([spaces.Discrete(4), FLOAT, spaces.Discrete(2)]),
    "nested": NESTED,
}


def stacked(space: spaces.Space[Any], samples: list[Any]) -> Any:
    """Observations as Minari stores them: containers of arrays."""
    if isinstance(space, spaces.Dict):
        return {key: stacked(inner, [s[key] for s in samples]) for key, inner in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(stacked(inner, [s[i] for s in samples]) for i, inner in enumerate(space.spaces))
    return np.stack(samples)


@pytest.mark.parametrize("name", SPACES)
def test_one_and_many_are_what_gymnasium_flattens(name: str) -> None:
    space = SPACES[name]
    space.seed(0)
    samples = [space.sample() for _ in range(20)]
    expected = np.array([spaces.flatten(space, sample) for sample in samples])
    batch = flatten_batch(space, stacked(space, samples), 20)
    assert batch.shape == (20, size(space)) == (20, spaces.flatdim(space))
    assert batch.dtype == dtype(space)
    np.testing.assert_array_equal(batch, expected)
    for row, sample in zip(batch, samples, strict=True):
        one = flatten(space, sample)
        assert one.dtype == batch.dtype
        np.testing.assert_array_equal(one, row)
    assert len(set(names(space))) == size(space)


@pytest.mark.parametrize("space", [FLOAT, IMAGE, DOOR, KEYS, FLAGS], ids=str)
def test_no_observations_are_no_rows(space: spaces.Space[Any]) -> None:
    none = np.empty((0, *(space.shape or ())), space.dtype)
    assert flatten_batch(space, none, 0).shape == (0, size(space))


def test_the_order_of_the_keys_does_not_matter() -> None:
    # A space that Minari has stored comes back with its keys sorted, whatever their order was.
    sorted_keys, kept = spaces.Dict({"a": DOUBLE, "z": FLOAT}), spaces.Dict([("z", FLOAT), ("a", DOUBLE)])
    assert list(kept.spaces) == ["z", "a"]
    assert names(kept) == names(sorted_keys)
    sample = kept.sample()
    np.testing.assert_array_equal(flatten(kept, sample), np.concatenate((sample["a"], sample["z"])))
    np.testing.assert_array_equal(flatten(kept, sample), flatten(sorted_keys, sample))
    logged = stacked(kept, [sample, sample])
    np.testing.assert_array_equal(flatten_batch(kept, logged, 2), flatten_batch(sorted_keys, logged, 2))


def test_only_wide_floats_are_kept_wide() -> None:
    kinds = {name: dtype(space) for name, space in SPACES.items()}
    wide = {name for name, kind in kinds.items() if kind == np.float64}
    assert wide == {"double", "goal"}
    assert kinds.pop("half") == np.float16
    assert set(kinds.values()) == {np.dtype(np.float32), np.dtype(np.float64)}


def test_every_number_has_a_name() -> None:
    assert names(FLOAT) == ("observation[0]", "observation[1]", "observation[2]")
    assert names(spaces.Box(0, 1, (1, 2))) == ("observation[0,0]", "observation[0,1]")
    assert names(spaces.Box(0, 1, ())) == ("observation",)
    assert names(DOOR) == ("observation=-1", "observation=0", "observation=1")
    assert names(GOAL)[:5] == (
        *(f"achieved_goal[{i}]" for i in range(3)),
        *(f"desired_goal[{i}]" for i in range(2)),
    )
    assert names(spaces.Tuple([spaces.Discrete(2), FLOAT]))[1:3] == ("observation[0]=1", "observation[1][0]")
    nested = names(NESTED)
    assert nested[:5] == ("a[0,0]", "a[0,1]", "a[1,0]", "a[1,1]", "b[0]=-1")
    assert nested[7] == "b[1].image[0,0,0]"
    assert nested[-7:-3] == ("b[1].keys[0,1]=6", "b[1].keys[0,1]=7", "b[1].keys[1,0]=-2", "b[1].keys[1,1]=1")


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Text(5), "'observation' is in a Text space, which has no fixed dimensions; Box,"),
        (spaces.Dict({"mission": spaces.Text(5), "view": FLOAT}), "'mission' is in a Text space"),
        (spaces.Tuple([FLOAT, spaces.Sequence(FLOAT)]), r"'observation\[1\]' is in a Sequence space"),
        (spaces.Dict({"a": spaces.Dict({"b": spaces.Graph(FLOAT, None)})}), "'a.b' is in a Graph space"),
        (spaces.OneOf([FLOAT, DOOR]), "'observation' is in a OneOf space"),
    ],
)
def test_spaces_without_a_fixed_size_are_named(space: spaces.Space[Any], message: str) -> None:
    for ask in (size, names, dtype, lambda s: flatten(s, s.sample()), lambda s: flatten_batch(s, None, 1)):
        with pytest.raises(InputError, match=message):
            ask(space)


@pytest.mark.parametrize(
    ("space", "logged", "message"),
    [
        (FLOAT, np.zeros((2, 3)), r"'observation' has values of shape \(2, 3\); expected \(4, 3\)"),
        (FLOAT, np.zeros((4, 2)), r"'observation' has values of shape \(4, 2\); expected \(4, 3\)"),
        (
            GOAL,
            {"observation": np.zeros((4, 2))},
            "'achieved_goal' is in the observation space, but",
        ),
        (spaces.Tuple([DOOR, DOOR]), (np.zeros(4, int),), r"'observation\[1\]' is in the observation space"),
        (
            DOOR,
            np.array([0, 1, -1, 2]),
            r"values from -1 to 2, not all .* in Discrete\(3, start=-1\)",
        ),
        (DOOR, np.array([0, 1, -1, -2]), r"values from -2 to 1, not all of which are in"),
        (spaces.Dict({"door": DOOR}), {"door": np.zeros(4)}, "'door' holds float64; Discrete.* has integers"),
    ],
)
def test_logged_observations_that_do_not_fit_are_refused(
    space: spaces.Space[Any], logged: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        flatten_batch(space, logged, 4)
