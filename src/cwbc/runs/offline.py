"""Offline evaluation: models of a dataset's dynamics, shared by all methods, in place of a simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from cwbc.core.dynamics import Dynamics
from cwbc.core.learned_simulator import DynamicsModel
from cwbc.core.methods import Method, Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByLength
from cwbc.runs.training import Control, Run, train_together
from cwbc.system.errors import InputError

TRAINING = Training(5_000, batch_size=256)
MEMBERS = tuple(range(5))  # seeds of the models
_METHOD = Method("dynamics", Dynamics(), ByLength())


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


def learned_model(
    data: Trajectories, directory: Path | None = None, **control: Unpack[Control]
) -> DynamicsModel:
    """The models of a dataset; with a directory, which the caller locks, their training resumes there."""
    check_data(data)
    run = Run(data, PolicySpec.fit(_METHOD, data, TRAINING), directory)
    (trained,) = train_together([run], TRAINING, MEMBERS, **control)
    return DynamicsModel.of(trained.spec, trained.parameters, data)
