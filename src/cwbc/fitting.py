"""Whether data and policies have the dimensions of an environment; needs no jax."""

from __future__ import annotations

import dataclasses

from cwbc import simulators
from cwbc.errors import InputError
from cwbc.trajectories import Trajectories


def fitted(data: Trajectories, environment: str) -> Trajectories:
    """The same data with what the environment tells about its actions; refused where dimensions differ."""
    simulator = simulators.make(environment, 1)
    try:
        sizes = (data.observations.shape[1], data.action_size, data.discrete)
        hint = "; --env ID says where the data is from"
        compare(f"dataset {data.name}", *sizes, simulator, environment, hint)
        # Logged actions may leave out the highest ones, which are there all the same.
        return dataclasses.replace(data, action_count=simulator.action_size) if data.discrete else data
    finally:
        simulator.close()


def compare(
    what: str,
    observation_size: int,
    action_size: int,
    discrete: bool,
    simulator: simulators.Simulator,
    environment: str,
    hint: str = "",
) -> None:
    """Refuse what does not have the dimensions of the environment."""
    kinds = {True: "discrete actions", False: "action dimensions"}
    actions_fit = discrete == simulator.discrete and (
        action_size <= simulator.action_size if discrete else action_size == simulator.action_size
    )
    if observation_size != simulator.observation_size or not actions_fit:
        raise InputError(
            f"{what} does not fit {environment}: it has {observation_size} observation dimensions and "
            f"{action_size} {kinds[discrete]}, the environment {simulator.observation_size} and "
            f"{simulator.action_size} {kinds[simulator.discrete]}{hint}"
        )
