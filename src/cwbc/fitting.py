"""Whether data and policies have the dimensions of an environment; needs no jax."""

from __future__ import annotations

import dataclasses

from cwbc import simulators
from cwbc.errors import InputError, UnavailableError
from cwbc.findings import Finding
from cwbc.recordings import Recording
from cwbc.trajectories import Trajectories


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
    size = data.observations.shape[1]
    try:
        data = _with_actions(data, simulator)
        compare("the data", size, data.action_size, data.discrete, simulator, environment)
    except InputError as error:
        remedy = "--env ID says where the data is from, and --env none that it is from nowhere"
        found.append(Finding("error", str(error), remedy))
    else:
        if (longest := int(data.lengths.max())) > simulator.horizon:
            ends = f"{environment} ends them after {simulator.horizon:,}"
            what = f"episodes have up to {longest:,} steps, but {ends}"
            found.append(Finding("warning", what, "is it the right environment?"))
    finally:
        simulator.close()
    return dataclasses.replace(recording, data=data, findings=tuple(found))


def with_actions(data: Trajectories) -> Trajectories:
    """The same with what its environment tells about the actions, if that is available here and they fit."""
    if data.environment is None:
        return data
    try:
        simulator = simulators.make(data.environment, 1)
    except UnavailableError:
        return data
    try:
        fitted = _with_actions(data, simulator)
        compare(
            "the data",
            data.observations.shape[1],
            fitted.action_size,
            data.discrete,
            simulator,
            data.environment,
        )
    finally:
        simulator.close()
    if fitted.discrete and fitted.actions.max() >= fitted.action_size:
        raise InputError(
            f"the data has action {fitted.actions.max()}; the {fitted.action_size} actions of "
            f"{data.environment} are numbered from 0 to {fitted.action_size - 1}"
        )
    return fitted


def _with_actions(data: Trajectories, simulator: simulators.Simulator) -> Trajectories:
    if data.observations.shape[1] != simulator.observation_size:
        return data
    if data.discrete and simulator.discrete:
        # Logged actions may leave out the highest ones, which are there all the same. Those that are not are
        # told by their places.
        return data.described(action_count=simulator.action_size)
    if not (data.discrete or simulator.discrete) and data.action_size == simulator.action_size:
        assert simulator.action_bounds is not None  # as its actions are continuous
        low, high = (tuple(bound.astype(float).tolist()) for bound in simulator.action_bounds)
        return data.described(action_bounds=(low, high))
    return data


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
