"""Whether data and policies have the dimensions of an environment; needs no jax."""

from __future__ import annotations

import contextlib
import dataclasses
import math

from cwbc import envs
from cwbc.core.simulation import Simulator
from cwbc.core.trajectories import Trajectories
from cwbc.data.checks import Recording
from cwbc.data.issues import Issue, Origin
from cwbc.system.errors import InputError, UnavailableError


def fitted(recording: Recording, acting: bool = False) -> Recording:
    """The recording with its environment's actions, or an issue; when `acting`, these are needed."""
    data, environment = recording.data, recording.data.environment
    issues = list(recording.issues)
    if environment is None:
        return recording
    try:
        with contextlib.closing(envs.make(environment, 1)) as simulator:
            size, horizon = math.prod(data.observations.shape[1:]), simulator.horizon
            if data.discrete and simulator.discrete and size == simulator.observation_size:
                # Logged actions may lack the last ones. The checks report those that the environment lacks.
                data = data.described(action_count=simulator.action_size)
            compare("the data", size, data.action_size, data.discrete, simulator, environment)
            shape, known = data.observations.shape[1:], simulator.image_shape
            if data.has_images and known is not None and known != shape:
                ours, theirs = (" x ".join(map(str, each)) for each in (shape, known))
                sizes = f"its images are {ours}, the environment's {theirs} (height x width x channels)"
                raise InputError(f"the data does not fit {environment}: {sizes}")
            if simulator.action_bounds is not None:
                low, high = (tuple(bound.astype(float).tolist()) for bound in simulator.action_bounds)
                data = data.described(action_bounds=(low, high))
        if (longest := int(data.lengths.max())) > horizon:
            limit = f"the time limit of {environment} is {horizon:,}"
            what = f"episodes have up to {longest:,} steps, but {limit}"
            issues.append(Issue("warning", what, "is it the right environment?"))
    except UnavailableError as error:
        if acting:
            raise
        what = f"whether the data fits {environment} cannot be checked here"
        issues.append(Issue("warning", what, f"{error}; if that is a mistake, import again with --overwrite"))
    except InputError as error:
        remedy = "--env ID names the environment of the data, and --env none means that it has none"
        issues.append(Issue("error", str(error), remedy))
    return dataclasses.replace(recording, data=data, issues=tuple(issues))


def with_actions(data: Trajectories) -> Trajectories:
    """The data with the actions of its environment, if available here; other dimensions are refused."""
    return fitted(Recording(data, Origin(data.name))).trusted()


def compare(
    what: str, observation_size: int, action_size: int, discrete: bool, simulator: Simulator, environment: str
) -> None:
    """Refuse what does not have the dimensions of the environment."""
    kinds = {True: "discrete actions", False: "action dimensions"}
    fewer = discrete and action_size < simulator.action_size
    actions_fit = discrete == simulator.discrete and (fewer or action_size == simulator.action_size)
    if observation_size != simulator.observation_size or not actions_fit:
        raise InputError(
            f"{what} does not fit {environment}: it has {observation_size} observation dimensions and "
            f"{action_size} {kinds[discrete]}, the environment {simulator.observation_size} and "
            f"{simulator.action_size} {kinds[simulator.discrete]}"
        )
