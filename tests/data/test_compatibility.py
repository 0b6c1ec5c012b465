"""Data against the dimensions of environments."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from pixels import PIXELS, pixel_data
from toys import DISCRETE_ENVIRONMENT, ENVIRONMENT, toy_data

from cwbc.core.trajectories import Trajectories
from cwbc.data.checks import Recording
from cwbc.data.compatibility import fitted, with_actions
from cwbc.data.formats.arrays import from_arrays
from cwbc.data.issues import Origin
from cwbc.system.errors import InputError


def looked_at(data: Trajectories, environment: str | None) -> Recording:
    return fitted(Recording(dataclasses.replace(data, environment=environment), Origin("toy")))


@pytest.mark.parametrize("environment", [ENVIRONMENT, None])
def test_what_fits_stays_as_it_is(environment: str | None) -> None:
    recording = looked_at(toy_data(), environment)
    assert (recording.issues, recording.data.content_hash) == ((), toy_data().content_hash)


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        (
            "Hopper-v5",
            "the data does not fit Hopper-v5: it has 2 observation dimensions and 1 action dimensions, ",
        ),
        (
            DISCRETE_ENVIRONMENT,
            "1 action dimensions, the environment 2 and 3 discrete actions; --env ID names",
        ),
    ],
)
def test_what_does_not_fit_is_an_error(environment: str, text: str) -> None:
    recording = looked_at(toy_data(), environment)
    (issue,) = recording.issues
    assert text in issue.sentence()
    with pytest.raises(InputError, match="does not fit"):
        recording.trusted()


def test_the_environment_tells_how_many_discrete_actions_there_are() -> None:
    data = toy_data(episodes=2, discrete=True)
    assert data.action_size == 2  # the third was never taken
    assert looked_at(data, DISCRETE_ENVIRONMENT).data.action_size == 3


def test_data_of_another_environment_is_told_with_its_own_number_of_actions() -> None:
    data = toy_data(episodes=2, discrete=True)  # two dimensions, two actions; Acrobot has six and three
    (issue,) = looked_at(data, "Acrobot-v1").issues
    shown = "it has 2 observation dimensions and 2 discrete actions, the environment 6 and 3 discrete actions"
    assert shown in issue.sentence()


def test_an_action_that_the_environment_does_not_have_is_told_by_its_place() -> None:
    data = toy_data(episodes=3, discrete=True)
    actions = data.actions.copy()
    actions[4] = 7
    recording = looked_at(dataclasses.replace(data, actions=actions.astype(np.int32)), DISCRETE_ENVIRONMENT)
    with pytest.raises(
        InputError, match=r"actions is outside the discrete range: 7 at row 4 \(episode 1, step 1\)"
    ):
        recording.trusted()


def test_what_cannot_be_had_here_is_a_warning_unless_it_is_needed() -> None:
    recording = Recording(dataclasses.replace(toy_data(), environment="Unheard-v0"), Origin("toy"))
    (issue,) = fitted(recording).issues
    assert issue.sentence().startswith(
        "whether the data fits Unheard-v0 cannot be checked here; unknown environment 'Unheard-v0'"
    )
    assert fitted(recording).trusted() is recording.data
    with pytest.raises(InputError, match="unknown environment"):
        fitted(recording, acting=True)


def test_the_data_is_told_as_it_is() -> None:
    data = toy_data(episodes=2, discrete=True)
    (issue,) = looked_at(data, "Acrobot-v1").issues
    assert (
        "it has 2 observation dimensions and 2 discrete actions, the environment 6 and 3 discrete"
        in issue.what
    )


def test_the_bounds_of_the_environment_decide_which_actions_are_odd() -> None:
    wide = [[-1.5], [2.0], [0.5]]
    last = np.arange(3) == 2
    data = from_arrays("pushes", np.eye(3), np.array(wide), np.arange(3), last, ~last & False)
    assert [f.sentence() for f in Recording(data, Origin("pushes")).warnings() if "outside" in f.what] == [
        "actions[0] is outside [-1, 1]: -1.5 at row 0 (episode 0, step 0) and 1 more; the policy stays in "
        "the range of the data; many tools expect [-1, 1]"
    ]
    assert not any("outside" in f.what for f in looked_at(data, "Pendulum-v1").warnings())
    wider = dataclasses.replace(data, actions=data.actions * 2)
    assert [f.sentence() for f in looked_at(wider, "Pendulum-v1").warnings() if "outside" in f.what] == [
        "actions[0] is outside the environment's [-2, 2]: -3 at row 0 (episode 0, step 0) and 1 more; is it "
        "another environment, or another unit of the actions?"
    ]


def test_actions_that_the_environment_does_not_have_are_refused() -> None:
    """As cwbc.train does with data that was put together in Python."""
    last = np.arange(4) == 3
    data = from_arrays(
        "pushes", np.eye(4), np.arange(4), np.ones(4), last, ~last & False, environment="CartPole-v1"
    )
    with pytest.raises(
        InputError, match=r"discrete range: 2 at row 2 .* and 1 more; the 2 actions are numbered from 0 to 1"
    ):
        with_actions(data)
    narrow = dataclasses.replace(data, observations=data.observations[:, :2])
    with pytest.raises(InputError, match="the data does not fit CartPole-v1"):
        with_actions(narrow)


def test_images_have_the_shape_of_the_environments() -> None:
    data = pixel_data().described(environment=PIXELS)
    with_actions(data)
    first = np.moveaxis(data.observations, -1, 1)
    wrong = dataclasses.replace(data, observations=first)
    with pytest.raises(InputError, match="its images are 1 x 10 x 10, the environment's 10 x 10 x 1"):
        with_actions(wrong)
