"""Which columns are found by name or option, and the errors where they are not."""

from __future__ import annotations

from typing import Any

import pytest

from cwbc.data.formats.columns import ColumnOptions, Kind, Roles, StepColumn, assign

WHOLE: dict[str, Kind] = {"action": "integer", "episode": "integer", "step": "integer", "done": "boolean"}


def table(*names: str, **kinds: Any) -> dict[str, StepColumn]:
    """Columns of reals, or of what their name suggests; a number makes a column of lists."""
    made = {}
    for name in (*names, *kinds):
        kind = kinds.get(name, WHOLE.get(name, "float"))
        made[name] = StepColumn(name, "float", kind) if isinstance(kind, int) else StepColumn(name, kind)
    return made


def roles(columns: dict[str, StepColumn], **options: Any) -> Roles:
    found, problems = assign(columns, ColumnOptions(**options))
    assert found is not None, [problem.sentence() for problem in problems]
    return found


def problems(columns: dict[str, StepColumn], **options: Any) -> list[str]:
    found, shown = assign(columns, ColumnOptions(**options))
    assert found is None
    return [issue.sentence() for issue in shown]


def names(columns: tuple[StepColumn, ...]) -> list[str]:
    return [column.name for column in columns]


def test_columns_are_found_by_name() -> None:
    found = roles(
        table("episode", "step", "observation_0", "observation_1", "action", "reward", "done", "user")
    )
    assert names(found.observations) == ["observation_0", "observation_1"]
    assert names(found.actions) == ["action"]
    assert [c.name if c else None for c in (found.episode, found.step, found.done, found.terminated)] == [
        "episode",
        "step",
        "done",
        None,
    ]
    assert (found.discrete, found.ignored) == (True, ("user",))


@pytest.mark.parametrize(
    "spelled",
    [
        ("observations", "actions", "rewards", "terminals", "timeouts"),
        ("Observation", "Action", "Reward", "Terminated", "Truncated"),
        ("obs", "action_x", "reward", "terminal", "timeout"),
        ("state", "actions", "rewards", "terminations", "truncations"),
        ("obs0", "act", "rew", "terminated", "truncated"),
        ("obs_0", "act_0", "rew", "terminated", "truncated"),
        ("state1", "acts", "rew", "terminated", "truncated"),
    ],
)
def test_other_ways_to_spell_them(spelled: tuple[str, ...]) -> None:
    found = roles(table(*spelled))
    assert found.terminated is not None
    assert found.truncated is not None
    assert [*names(found.observations), *names(found.actions), found.reward.name] == list(spelled[:3])


def test_numbered_columns_are_in_the_order_of_their_numbers() -> None:
    shuffled = [f"observation_{i}" for i in (10, 2, 0, 1, 9, 3, 11)]
    assert names(roles(table(*shuffled, "action", "reward", "done")).observations) == [
        f"observation_{i}" for i in (0, 1, 2, 3, 9, 10, 11)
    ]
    named = ["observation_speed", "observation_height", "observation_2"]
    assert names(roles(table(*named, "action", "reward", "done")).observations) == named


def test_what_stands_beside_the_action_is_not_the_action() -> None:
    found = roles(table("observation", "action", "action_probability", "reward", "done", "next_observation"))
    assert names(found.actions) == ["action"]
    assert found.ignored == ("action_probability", "next_observation")
    numbered = ("obs_0", "obs_1", "obs_next_0", "action_0", "action_1", "action_log_prob", "reward", "done")
    found = roles(table(*numbered))
    assert (names(found.observations), names(found.actions)) == (["obs_0", "obs_1"], ["action_0", "action_1"])
    assert found.ignored == ("obs_next_0", "action_log_prob")


def test_the_likeliest_name_comes_first() -> None:
    assert names(
        roles(table("state", "observation_0", "observation_1", "action", "reward")).observations
    ) == [
        "observation_0",
        "observation_1",
    ]


def test_names_of_robot_logs() -> None:
    found = roles(
        table("episode_index", "frame_index", "observation.state", "action", "next.reward", "next.done")
    )
    assert (names(found.observations), found.reward.name, found.ignored) == (
        ["observation.state"],
        "next.reward",
        (),
    )


def test_a_pattern_takes_no_column_of_another_meaning() -> None:
    found = roles(
        table("episode", "step", "a", "b", "action", "paid", "done"), observations="*", reward="paid"
    )
    assert names(found.observations) == ["a", "b"]
    several = table("observation", "action", "pay1", "pay2")
    assert problems(several, reward="pay*") == ["--reward names 2 columns; it takes one"]


def test_columns_are_taken_by_option() -> None:
    columns = table("speed", "joint2", "joint10", "torque", "paid", "run", "t", "over", run="text")
    found = roles(
        columns,
        observations="speed,joint*",
        actions="torque",
        reward="paid",
        episode="run",
        done="over",
    )
    assert names(found.observations) == ["speed", "joint2", "joint10"]
    assert (found.reward.name, found.discrete, found.ignored) == ("paid", False, ())
    assert found.episode == columns["run"]
    assert found.step == columns["t"]


def test_a_name_with_the_signs_of_a_pattern_is_itself() -> None:
    assert names(roles(table("x[0]", "x0", "action", "reward"), observations="x[0]").observations) == ["x[0]"]


def test_every_missing_column_is_told() -> None:
    shown = problems(table("speed", "torque"))
    assert [text.split(" (looked")[0] for text in shown] == [
        "no column for observations",
        "no column for actions",
        "no column for the reward",
    ]
    assert shown[0] == (
        "no column for observations (looked for observation, observations, obs, state or observation_*; it "
        "has speed, torque); rename one, or name it to `cwbc data import` (and `check`) with --observations "
        "COLUMN,COLUMN,..."
    )
    assert "it has no columns" in problems({})[0]
    assert "c19 and 5 more" in problems(table(*(f"c{i}" for i in range(25))))[0]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"reward": "rewart"}, "there is no column 'rewart' (--reward); did you mean 'reward'?"),
        ({"episode": "zzz"}, "there is no column 'zzz' (--episode); it has observation, reward, action"),
        ({"observations": "observation, joint*"}, "there is no column 'joint*' (--observations); "),
        ({"reward": "o*"}, "there is no column 'o*' (--reward)"),
    ],
)
def test_wrong_options(options: dict[str, Any], text: str) -> None:
    (shown,) = [t for t in problems(table("observation", "reward", action="float"), **options) if text in t]
    assert shown.startswith(text)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ({"observation": "text"}, "observation holds text; expected a number, or a list of numbers, per row"),
        ({"action": "time"}, "action holds time; expected a number, or a list of numbers, per row"),
        ({"reward": "text"}, "reward holds text; expected one number per row"),
        ({"reward": 3}, "reward holds lists of 3 values (float); expected one number per row"),
        ({"episode": "time"}, "episode holds time; expected an integer or a name per row"),
        ({"observation": 0}, "observation holds lists of 0 values (float); expected a number, or a list"),
        ({"step": "text"}, "step holds text; expected an integer per row"),
        ({"done": "time"}, "done holds time; expected true or false per row"),
        ({"observation": "other"}, "observation holds other; expected a number, or a list"),
    ],
)
def test_columns_of_the_wrong_type(column: dict[str, Any], text: str) -> None:
    everything = table("observation", "action", "reward", "episode", "step", "done") | table(**column)
    (shown,) = problems(everything)
    assert shown.startswith(text)


def test_which_actions_are_discrete() -> None:
    rest = ("observation", "reward")
    assert roles(table(*rest, action="integer")).discrete
    assert roles(table(*rest, action="boolean")).discrete
    assert roles(table(*rest, action="float"), action_kind="discrete").discrete
    assert not roles(table(*rest, action="float")).discrete
    assert not roles(table(*rest, action=2)).discrete
    assert not roles(table(*rest, action="integer"), action_kind="continuous").discrete
    several = table(*rest, action_0="integer", action_1="integer")
    assert problems(several) == [
        "actions are several integers per step; discrete actions are one integer; "
        "--action-kind continuous reads them as continuous"
    ]
    assert not roles(several, action_kind="continuous").discrete


@pytest.mark.parametrize("episode", ["episode_id", "ep_id", "ep"])
@pytest.mark.parametrize("step", ["t", "time"])
def test_short_names(episode: str, step: str) -> None:
    found = roles(
        table(
            *(f"obs{i}" for i in (10, 1, 0, 2)),
            "act0",
            "act1",
            "rew",
            "obscure",
            **{episode: "integer", step: "integer"},
        )
    )
    assert names(found.observations) == ["obs0", "obs1", "obs2", "obs10"]
    assert names(found.actions) == ["act0", "act1"]
    assert found.episode is not None
    assert found.step is not None
    assert (found.reward.name, found.episode.name, found.step.name) == ("rew", episode, step)
    assert found.ignored == ("obscure",)


def test_numbers_that_are_not_digits_or_too_long() -> None:
    odd = ["obs_\u00b2", "obs_0" + "1" * 5000, "obs_3"]
    assert set(names(roles(table(*odd, "action", "reward", "done")).observations)) == set(odd)


@pytest.mark.parametrize(
    ("column", "hint"),
    [
        ("obs_1", "encode text as numbers, such as a column of 0 and 1 for each of its values"),
        ("reward", "expected one number per row; encode text as numbers"),
        ("action", "number the discrete actions 0, 1, ..."),
    ],
)
def test_text_gets_the_hint_to_encode_it(column: str, hint: str) -> None:
    columns = table("obs_0", "obs_1", "action", "reward", "done") | table(**{column: "text"})
    (shown,) = problems(columns)
    assert hint in shown


class Compared(str):
    """A name that counts how often it is compared with another."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("options", [{}, {"observations": "obs_*,obs_1*"}])
def test_the_work_does_not_grow_with_the_square_of_the_columns(options: dict[str, Any]) -> None:
    plain = table(*(f"obs_{i}" for i in range(300)), "action", "reward", "done")
    columns: dict[str, StepColumn] = {Compared(name): column for name, column in plain.items()}
    Compared.times = 0
    assert len(roles(columns, **options).observations) == 300
    assert Compared.times < 30 * 300
