"""Data against the dimensions of environments."""

from __future__ import annotations

import pytest
from toys import DISCRETE_ENVIRONMENT, ENVIRONMENT, toy_data

from cwbc.errors import InputError
from cwbc.fitting import fitted


def test_what_fits_stays_as_it_is() -> None:
    data = toy_data()
    assert fitted(data, ENVIRONMENT) is data


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"dataset toy does not fit Hopper-v5: it has 2 observation"):
        fitted(toy_data(), "Hopper-v5")
    with pytest.raises(InputError, match=r"1 action dimensions, the environment 2 and 3 discrete actions"):
        fitted(toy_data(), DISCRETE_ENVIRONMENT)


def test_the_environment_tells_how_many_discrete_actions_there_are() -> None:
    data = toy_data(episodes=2, discrete=True)
    assert data.action_size == 2  # the third was never taken
    assert fitted(data, DISCRETE_ENVIRONMENT).action_size == 3
