"""Offline evaluation: models of a dataset's dynamics, shared by all methods, in place of a simulator."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from cwbc.core import training_loop
from cwbc.core.dynamics import Dynamics
from cwbc.core.fitted_evaluation import FittedEvaluation
from cwbc.core.learned_simulator import DynamicsModel
from cwbc.core.methods import Method, Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.training_loop import Trainee
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByLength
from cwbc.runs.policies import Policies
from cwbc.runs.training import Control, Run, train_together
from cwbc.system.errors import InputError

FEWEST, MOST = 5_000, 20_000  # steps of a model's training, a tenth of the data's
VALUES = Training(4_000, batch_size=256)  # of fitted Q evaluation
MOST_STARTS = 512  # first observations that values are averaged over
MEMBERS = tuple(range(5))  # seeds of the models
_METHOD = Method("dynamics", Dynamics(), ByLength())


@dataclasses.dataclass(frozen=True, eq=False)
class OfflineData:
    """What takes the place of a simulator: a dataset, and models of its dynamics."""

    data: Trajectories
    model: DynamicsModel


def model_training(data: Trajectories) -> Training:
    """How long models of a dataset are trained."""
    return Training(min(max(data.steps // 10, FEWEST), MOST), batch_size=256)


def check_data(data: Trajectories) -> None:
    """Refuse data that no model is learned from."""
    if data.has_images:
        raise InputError(
            f"{data.name} has images, and offline evaluation takes vector observations; "
            "give --env ID to evaluate in a simulator"
        )


def model_directory(root: Path, content_hash: str) -> Path:
    """The run directory of a dataset's models, below that of the runs which they evaluate."""
    return root / "offline" / content_hash[:16]


def offline_data(
    data: Trajectories, directory: Path | None = None, **control: Unpack[Control]
) -> OfflineData:
    """A dataset with its models; with a directory, which the caller locks, their training resumes there."""
    check_data(data)
    settings = model_training(data)
    run = Run(data, PolicySpec.fit(_METHOD, data, settings), directory)
    (trained,) = train_together([run], settings, MEMBERS, **control)
    return OfflineData(data, DynamicsModel.of(trained.spec, trained.parameters, data))


def fitted_returns(
    policies: Policies, data: Trajectories, targets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The expected return of every policy at every target, by fitted Q evaluation. [seed, target]"""
    spec = policies.spec.acting("greedy")  # critics learn the value of one action at every step
    learner = spec.method.learner
    if np.isnan(targets).any():  # without a target
        targets = np.array([learner.open_target(spec.horizon)], np.float64)
    evaluation = FittedEvaluation(learner, tuple(learner.limited(targets, spec.horizon).tolist())).fit(data)
    method = Method("", evaluation, ByLength())
    fitted = dataclasses.replace(spec, method=method)
    state = training_loop.initialize(fitted, policies.seeds)
    state = dataclasses.replace(state, policy=policies.parameters)
    trained = Trainee(data, fitted, method, policies.seeds, state)
    training_loop.train([trained], VALUES)
    first = data.observations[data.starts][:MOST_STARTS]
    return evaluation.initial_values(spec, trained.state, first) * evaluation.range
