"""Offline evaluation: models of a dataset's dynamics, shared by all methods, in place of a simulator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

import jax
import numpy as np
from numpy.typing import NDArray

from cwbc.core import holdout, training_loop
from cwbc.core.dynamics import Dynamics
from cwbc.core.fitted_evaluation import FittedEvaluation
from cwbc.core.learned_simulator import DynamicsModel
from cwbc.core.methods import Method, Training, sized
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.replay import replayed_returns
from cwbc.core.training_loop import Trainee
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByLength
from cwbc.results.replays import LEAST, Replays
from cwbc.runs.policies import Policies
from cwbc.runs.training import Control, Run, train_together
from cwbc.system.errors import InputError

FEWEST, MOST = 5_000, 20_000  # steps of a model's training, a tenth of the data's
VALUES = Training(4_000, batch_size=256)  # of fitted Q evaluation
CLONE = Training(4_000, batch_size=32)  # of the clone with which held-out episodes are replayed
MOST_STARTS = 512  # first observations that values are averaged over
MOST_REPLAYS = 200  # held-out episodes
MEMBERS = tuple(range(5))  # seeds of the models
CHECKED = MEMBERS[:2]  # seeds of those that are not trained on held-out episodes
_METHOD = Method("dynamics", Dynamics(), ByLength())
_HELD_OUT = 0.1  # of the episodes


@dataclasses.dataclass(frozen=True, eq=False)
class OfflineData:
    """What takes the place of a simulator: a dataset, and models of its dynamics."""

    data: Trajectories
    model: DynamicsModel
    replays: Replays | None  # of held-out episodes; None where there are too few to hold some out


def model_training(data: Trajectories) -> Training:
    """How long models of a dataset are trained."""
    return Training(min(max(data.steps // 10, FEWEST), MOST), batch_size=256)


def training_steps(data: Trajectories) -> int:
    """The steps of all trainings that an offline evaluation needs once for a dataset."""
    steps, parts = model_training(data).steps, _split(data)
    return steps if parts.held_out is None else steps + model_training(parts.training).steps + CLONE.steps


def check_data(data: Trajectories) -> None:
    """Refuse data that no model is learned from."""
    if data.has_images:
        raise InputError(
            f"{data.name} has images, and offline evaluation takes vector observations; give --env ID to "
            "evaluate in a simulator, or train alone, which measures prediction errors on held-out episodes"
        )


def model_directory(root: Path, content_hash: str) -> Path:
    """The run directory of a dataset's models, below that of the runs which they evaluate."""
    return root / "offline" / content_hash[:16]


def offline_data(
    data: Trajectories, directory: Path | None = None, **control: Unpack[Control]
) -> OfflineData:
    """A dataset with its models; with a directory, which the caller locks, their training resumes there."""
    check_data(data)
    model = _model(data, MEMBERS, directory, control)
    return OfflineData(data, model, _replays(data, directory, control))


def _model(
    data: Trajectories, members: tuple[int, ...], directory: Path | None, control: Control
) -> DynamicsModel:
    settings = model_training(data)
    run = Run(data, PolicySpec.fit(_METHOD, data, settings), directory)
    (trained,) = train_together([run], settings, members, **control)
    return DynamicsModel.of(trained.spec, trained.parameters, data)


def _replays(data: Trajectories, directory: Path | None, control: Control) -> Replays | None:
    """Held-out episodes in models that are trained on the others, as the models of all data are."""
    parts, steps = _split(data), model_training(data).steps
    if parts.held_out is None:
        return None
    training, some = parts.training, holdout.some_of(parts.held_out, MOST_REPLAYS)
    below = {name: None if directory is None else directory / name for name in ("check", "clone")}
    model = _model(training, CHECKED, below["check"], _after(steps, control))
    steps += model_training(training).steps
    method, _ = sized("rvs", "small")
    run = Run(training, PolicySpec.fit(method, training, CLONE), below["clone"])
    (clone,) = train_together([run], CLONE, CHECKED[:1], **_after(steps, control))
    parameters = jax.tree.map(lambda x: x[0], clone.parameters)
    return Replays(some.returns, replayed_returns(model, clone.spec, parameters, some))


def _split(data: Trajectories) -> holdout.Split:
    few = data.episodes < holdout.FEWEST
    return holdout.split(data, 0.0 if few else max(_HELD_OUT, LEAST / data.episodes))


def _after(steps: int, control: Control) -> Control:
    """The same control of a training that follows others, whose steps count in the progress."""
    progress, later = control.get("progress"), control.copy()
    if progress is not None:
        later["progress"] = lambda step: progress(steps + step)
    return later


def fitted_returns(
    policies: Policies,
    data: Trajectories,
    targets: NDArray[np.float64],
    progress: Callable[[float], None] = lambda fraction: None,
) -> NDArray[np.float64]:
    """The expected return of every policy at every target, by fitted Q evaluation. [seed, target]

    Args:
        progress: called with the fraction that is done.
    """
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
    training_loop.train([trained], VALUES, progress=lambda step: progress(step / VALUES.steps))
    first = data.observations[data.starts][:MOST_STARTS]
    return evaluation.initial_values(spec, trained.state, first) * evaluation.range
