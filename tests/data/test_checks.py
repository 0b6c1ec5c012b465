"""What is wrong or doubtful in logged data, each reported with its location."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from conftest import d4rl_arrays, logged
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.data import checks
from cwbc.data.checks import Recording
from cwbc.data.formats.arrays import from_arrays
from cwbc.data.issues import Origin
from cwbc.system.errors import InputError


def warned(data: Trajectories, **origin: Any) -> list[str]:
    return [issue.sentence() for issue in Recording(data, Origin(data.name, **origin)).warnings()]


def refused(match: str, **changes: Any) -> None:
    with pytest.raises(InputError, match=match):
        from_arrays("small", **d4rl_arrays(**changes))


def wide(observations: NDArray[Any], actions: NDArray[Any] | None = None) -> Trajectories:
    steps = len(observations)
    ends = np.arange(steps) == steps - 1
    actions = np.zeros((steps, 1)) if actions is None else actions
    return from_arrays("wide", observations, actions, np.arange(steps), ends, ends)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("key", "row", "place"),
    [
        ("observations", (5, 2), r"observations\[2\] .* at row 5 \(episode 2, step 1\)"),
        ("actions", (3, 0), r"actions\[0\] .* at row 3 \(episode 1, step 0\)"),
        ("rewards", (2,), r"rewards .* at row 2 \(episode 0, step 2\)"),
    ],
)
def test_a_value_that_is_not_finite(key: str, row: tuple[int, ...], place: str, value: float) -> None:
    arrays = d4rl_arrays()
    arrays[key][row] = value
    place = place.replace(".*", f"is not finite: {value}")
    refused(rf"^small: {place}; every value must be a finite number$", **arrays)


def test_every_wrong_column_is_found_and_every_place_counted() -> None:
    observations = np.zeros((200_000, 3), np.float32)
    observations[[150_001, 3, 70_000], 1] = np.nan
    observations[9, 2] = -np.inf
    data = dataclasses.replace(wide(np.zeros((200_000, 3))), observations=observations)
    one, other = Recording(data, Origin("wide")).errors()
    assert (one.column, one.count, [p.row for p in one.locations]) == (
        "observations[1]",
        3,
        [3, 70_000, 150_001],
    )
    assert other.sentence() == (
        "observations[2] is not finite: -inf at row 9 (episode 0, step 9); "
        "every value must be a finite number"
    )
    assert "nan at row 3 (episode 0, step 3), nan at row 70000" in one.sentence(locations=2)
    assert " and 1 more; " in one.sentence(locations=2)


def test_infinities_that_cancel_are_found() -> None:
    with pytest.raises(InputError, match=r"observations\[0\] is not finite: inf at row 1 .* and 1 more"):
        wide(np.array([[0.0], [np.inf], [-np.inf]]))


def test_huge_but_finite_values_are_fine() -> None:
    huge = np.full((1000, 2), 3e38, np.float32)
    assert wide(huge).steps == 1000
    assert logged(huge[:, 0]).returns[0] == pytest.approx(3e41)


def test_what_float32_cannot_hold_is_refused() -> None:
    with pytest.raises(InputError, match=r"observations\[0\] is not finite: inf at row 1"):
        wide(np.array([[0.0], [1e300]]))


def test_a_bad_value_in_the_unfinished_part_does_no_harm() -> None:
    rewards, ends = np.array([1, 2, 3, np.nan, 1, 1]), np.arange(6) == 2
    data = from_arrays("small", **d4rl_arrays(rewards=rewards, timeouts=np.zeros(6), terminals=ends))
    assert data.returns.tolist() == [6.0]


def test_discrete_actions_outside_their_range() -> None:
    outside = "actions is outside the discrete range: "
    low = rf"^small: {outside}-1 at row 2 \(episode 0, step 2\); discrete actions are"
    refused(low, actions=np.array([0, 1, -1, 0, 0, 0]))
    high = rf"{outside}3 at row 1 \(episode 0, step 1\) and 1 more; the 3 actions are"
    with pytest.raises(InputError, match=high):
        from_arrays("small", **d4rl_arrays(actions=np.array([0, 3, 1, 0, 5, 0])), action_count=3)
    refused("2147483647 at row 0", actions=np.array([2**53, 0, 0, 0, 0, 0]))


def test_actions_outside_one_are_a_warning_per_column() -> None:
    actions = np.zeros((6, 2))
    actions[4, 1], actions[5, 1], actions[0, 0] = -1.5, 1.7, 1 + 1e-7
    found = warned(from_arrays("small", **d4rl_arrays(actions=actions)))
    assert any(
        text.startswith("actions[1] is outside [-1, 1]: -1.5 at row 4 (episode 2, step 0) and 1 more; ")
        for text in found
    )
    assert not any("actions[0]" in text for text in found)


def test_episodes_of_one_step() -> None:
    found = warned(from_arrays("small", **d4rl_arrays()))
    assert found == [
        "1 of 3 episodes have one step: row 3 (episode 1, step 0); an episode of one step is rarely meant: "
        "are the ends of episodes marked correctly?"
    ]


def test_rewards_that_are_all_equal_and_observations_that_never_change() -> None:
    observations = np.stack([np.arange(70_000), np.full(70_000, 4)], axis=1)
    ends = np.arange(70_000) % 7 == 6
    data = from_arrays(
        "still", observations, np.zeros((70_000, 1)), np.full(70_000, 0.5), ends, ~ends & False
    )
    assert warned(data) == [
        "all 10,000 episodes return 3.5; conditioning on the return has nothing to learn; plain bc is the "
        "right choice",
        "rewards is 0.5 in every row; a return is then only the episode's length",
        "observations[1] is 4 in every row; a constant observation has no information",
    ]


def test_what_32_bits_cannot_tell_apart_is_said_to_be_so() -> None:
    data = wide(1.7e12 + np.arange(4.0)[:, None])
    assert any("1.7e+12 in every row, at the precision of float32" in text for text in warned(data))


def test_choices_that_lost_their_type() -> None:
    observations = np.arange(4.0)[:, None]
    shown = warned(wide(observations, np.array([[0.0], [1.0], [0.0], [2.0]])))
    assert any(
        text == "actions[0] is an integer in every row, though its type is a float; "
        "--action-kind discrete reads it as a discrete action"
        for text in shown
    )
    assert not any(
        "an integer" in text for text in warned(wide(observations, np.array([[0.0], [0.5], [0], [2]])))
    )


def test_quantities_that_are_taken_as_choices() -> None:
    found = warned(wide(np.arange(101.0)[:, None], np.arange(101)))
    text = "actions is read as one of 101 discrete actions; --action-kind continuous reads it as a number"
    assert text in found


@pytest.mark.parametrize("value", [-999, 999, -9999, 99_999, -1e9, 1e5, -32_768])
@pytest.mark.parametrize("key", ["observations", "actions", "rewards"])
def test_a_repeated_value_that_stands_for_a_missing_one(key: str, value: float) -> None:
    generator = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "observations": generator.normal(size=(40, 2)),
        "actions": generator.uniform(-1, 1, (40, 2)),
        "rewards": generator.uniform(0, 2, (40, 1)),
    }
    ends = np.arange(40) % 10 == 9
    column = arrays[key].shape[1] - 1
    arrays[key][[3, 17, 18], column] = value

    def sentinels() -> list[str]:
        data = from_arrays("odd", **arrays, terminals=ends, timeouts=ends)
        return [text for text in warned(data, reward_name="rewards[0]") if "far outside" in text]

    (text,) = sentinels()
    assert text.startswith(f"{key}[{column}] is {value:g} in 3 rows, far outside the others, ")
    remedy = "if it stands for a missing value, replace it or drop those rows"
    assert text.endswith(f": row 3 (episode 0, step 3) and 2 more; {remedy}")
    arrays[key][[17, 18], column] = 0.5  # a single one is an outlier
    assert not sentinels()
    arrays[key][[3, 17], column] = -100  # a penalty
    assert not sentinels()


def test_ordinary_columns_have_no_sentinels() -> None:
    counter, coarse = np.arange(1000) % 1000, np.arange(1000) % 2 * 1000
    clipped = np.clip(np.random.default_rng(0).normal(0, 1000, 1000), -999, 999)
    observations = np.stack([counter, counter - 999, coarse, clipped, np.full(1000, 999.0)], axis=1)
    assert not any("far outside" in text for text in warned(wide(np.repeat(observations, 2, axis=0))))


def test_actions_that_are_numbered_from_1() -> None:
    observations = np.random.default_rng(0).normal(size=(6, 1))

    def numbered(*actions: int, count: int | None = None) -> list[str]:
        data = dataclasses.replace(wide(observations, np.array(actions)), action_count=count)
        return [text for text in warned(data) if "never 0" in text]

    assert numbered(1, 2, 3, 3, 1, 2) == [
        "actions has the values 1 to 3 and never 0; numbers start at 0, so 4 actions are trained: subtract 1 "
        "from each"
    ]
    assert not numbered(1, 2, 0, 2, 1, 2)
    assert not numbered(1, 3, 3, 3, 1, 1)  # 2 is missing, too: some actions are rare
    assert not numbered(1, 1, 1, 1, 1, 1)
    assert not numbered(1, 2, 3, 3, 1, 2, count=4)  # the environment has an action 0


def test_rows_that_were_logged_twice() -> None:
    generator = np.random.default_rng(0)
    rows = np.array([0, 1, 2, 3, 2, 4, 5, 6, 7, 5])
    observations = generator.normal(size=(8, 2))[rows]
    ends = np.arange(10) % 5 == 4
    data = from_arrays("twice", observations, np.zeros((10, 1)), rows * 1.0, ends, ends)
    twice = [text for text in warned(data) if "repeat an earlier row" in text]
    # Row 9 repeats row 5 in one episode; row 4 repeats row 2 in the other.
    assert twice == [
        "2 rows repeat an earlier row of their episode, value for value: row 4 (episode 0, step 4) and "
        "1 more; were they logged twice? A column with the number of each step would show it"
    ]
    assert not any("repeat" in text for text in warned(data, in_order=True))


def test_states_that_come_back_in_earnest_are_no_duplicates() -> None:
    grid = np.array([[0, 1], [0, 2], [0, 1], [0, 1]])
    assert not any("repeat" in text for text in warned(wide(grid)))


def test_names_of_columns_are_used() -> None:
    data = dataclasses.replace(
        wide(np.array([[1.0, 0.0], [1.0, 2.0]])),
        observation_names=("speed", "height"),
        action_names=("torque",),
    )
    assert any(text.startswith("speed is 1 in every row") for text in warned(data))
    assert checks.dimension_names(data, "observation") == ("speed", "height")
    assert checks.dimension_names(data, "action") == ("torque",)


def test_the_place_is_the_one_in_the_source() -> None:
    data = dataclasses.replace(wide(np.arange(4.0)[:, None]), rewards=np.array([0, np.nan, 0, 0], np.float32))
    origin = Origin("log.csv", rows=np.array([3, 0, 1, 2]), unit="line", first_row=2, episodes=["north"])
    (issue,) = Recording(data, origin).errors()
    assert issue.sentence().startswith("rewards is not finite: nan at line 2 (episode north, step 1);")


def test_more_discrete_actions_than_can_be_learnt() -> None:
    data = dataclasses.replace(
        logged([1, 2], [3]), actions=np.array([0, 1, 2], np.int32), action_count=10**12
    )
    (issue,) = Recording(data, Origin("mine")).errors()
    assert issue.sentence() == ("there are 1,000,000,000,000 discrete actions; at most 65,536 are supported")
    assert not Recording(dataclasses.replace(data, action_count=65_536), Origin("mine")).errors()
