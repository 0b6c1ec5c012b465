"""Whether data and policies have the dimensions of an environment; needs no jax."""

from __future__ import annotations

import dataclasses

from cwbc import simulators
from cwbc.errors import InputError, UnavailableError
from cwbc.findings import Finding
from cwbc.recordings import Recording


def fitted(recording: Recording, acting: bool = False) -> Recording:
    """The same with what its environment tells about the actions; what does not fit is an error in it.

    Args:
        acting: the environment is needed, so one that cannot be had here is refused.
    """
    data, found = recording.data, list(recording.findings)
    environment = data.environment
    if environment is None:
        return recording
    try:
        simulator = simulators.make(environment, 1)
    except UnavailableError as error:
        if acting:
            raise
        what = f"whether the data fits {environment} cannot be seen here"
        found.append(
            Finding("warning", what, f"{error}; if that is a mistake, import again with --overwrite")
        )
        return dataclasses.replace(recording, findings=tuple(found))
    try:
        same_observations = data.observations.shape[1] == simulator.observation_size
        if data.discrete and simulator.discrete and same_observations:
            # Logged actions may leave out the highest ones, which are there all the same.
            data = data.described(action_count=simulator.action_size)
        sizes = (data.observations.shape[1], data.action_size, data.discrete)
        compare("the data", *sizes, simulator, environment)
    except InputError as error:
        remedy = "--env ID says where the data is from, and --env none that it is from nowhere"
        found.append(Finding("error", str(error), remedy))
    finally:
        simulator.close()
    return dataclasses.replace(recording, data=data, findings=tuple(found))


def compare(
    what: str,
    observation_size: int,
    action_size: int,
    discrete: bool,
    simulator: simulators.Simulator,
    environment: str,
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
            f"{simulator.action_size} {kinds[simulator.discrete]}"
        )
