"""Whether data and policies have the dimensions of an environment; needs no jax."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc import simulators
from cwbc.errors import InputError, UnavailableError
from cwbc.findings import Finding
from cwbc.recordings import Recording
from cwbc.trajectories import ActionBounds, Trajectories


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
        data = _with_actions(data, simulator)
        sizes = (data.observations.shape[1], data.action_size, data.discrete)
        compare("the data", *sizes, simulator, environment)
    except InputError as error:
        remedy = "--env ID says where the data is from, and --env none that it is from nowhere"
        found.append(Finding("error", str(error), remedy))
    finally:
        simulator.close()
    return dataclasses.replace(recording, data=data, findings=tuple(found))


def with_actions(data: Trajectories) -> Trajectories:
    """The same with what its environment tells about the actions, if that is available here."""
    if data.environment is None:
        return data
    try:
        simulator = simulators.make(data.environment, 1)
    except UnavailableError:
        return data
    try:
        return _with_actions(data, simulator)
    finally:
        simulator.close()


def _with_actions(data: Trajectories, simulator: simulators.Simulator) -> Trajectories:
    if data.discrete and simulator.discrete:
        # Logged actions may leave out the highest ones, which are there all the same.
        return data.described(action_count=simulator.action_size)
    if not data.discrete and data.action_size == simulator.action_size:
        return data.described(action_bounds=_finite(simulator.action_bounds))
    return data


def _finite(bounds: tuple[NDArray[Any], NDArray[Any]] | None) -> ActionBounds | None:
    """The bounds of actions, where all of them are numbers."""
    if bounds is None or not np.isfinite(bounds).all():
        return None
    return tuple(bounds[0].astype(float).tolist()), tuple(bounds[1].astype(float).tolist())


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
