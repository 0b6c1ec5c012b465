"""The evaluation of policies in an environment, over target returns, and of runs into their directories."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc import envs
from cwbc.core import memory
from cwbc.core.evaluation import Progress, reset_seed, roll_out
from cwbc.core.learned_simulator import LearnedSimulator
from cwbc.core.measured_errors import MeasuredErrors
from cwbc.core.simulation import Simulator
from cwbc.core.spaces import Discrete
from cwbc.data import compatibility
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.estimates import Estimates
from cwbc.results.evaluated import evaluated
from cwbc.results.sweeps import Sweep
from cwbc.runs.configuration import versions
from cwbc.runs.filming import Film
from cwbc.runs.finished import write_results
from cwbc.runs.inputs import numbers
from cwbc.runs.offline import OfflineData, fitted_returns
from cwbc.runs.path_recorder import PathRecorder, recorded_rows
from cwbc.runs.policies import Policies
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.errors import InputError, require

Shape = tuple[int, int, int]  # seeds, targets, episodes


def evaluate(
    policies: Policies,
    environment: envs.Environment,
    targets: Sequence[float],
    episodes: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> Sweep:
    """Condition every policy on every target return, `episodes` times each.

    An unconditioned method is evaluated once, whatever the targets. Episode e of a policy begins in the same
    state for every target and method, so that they are compared on equal terms.

    Args:
        targets: none evaluates methods that choose their target (+q) once, without one.
        progress: called with the number of timesteps done; where episodes take turns, as a fraction of all.
    """
    return _simulated(policies, environment, (targets, episodes, seed), progress, best=None)


def _simulated(
    policies: Policies,
    environment: envs.Environment,
    protocol: tuple[Sequence[float], int, int],
    progress: Progress | None,
    best: float | None,
) -> Sweep:
    """The sweep; in a maze with paths at the lowest target and at the best return, where that is given."""
    recorders = []

    def make(shape: Shape, targets: NDArray[np.float64]) -> Simulator:
        simulator = envs.make(environment, math.prod(shape))
        if best is None or not envs.is_maze(environment):
            return simulator
        recorders.append(PathRecorder(simulator, recorded_rows(shape, targets, best)))
        return recorders[0]

    sweep = _evaluated(
        policies,
        make,
        envs.describe(environment),
        protocol,
        one_at_a_time=envs.takes_turns(environment),
        overlapping=envs.is_batched(environment),
        independent=envs.is_independent(environment),
        progress=progress or (lambda timesteps: None),
    )
    return dataclasses.replace(sweep, paths=[path for each in recorders for path in each.paths(sweep)])


def evaluate_offline(
    policies: Policies,
    offline: OfflineData,
    targets: Sequence[float],
    episodes: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Sweep, Estimates]:
    """The same with a model of the data, and what else the data says about the policies' returns.

    Args:
        progress: called with the fraction that is done, in timesteps of an episode.
    """
    simulators = []

    def make(shape: Shape, targets: NDArray[np.float64]) -> LearnedSimulator:
        simulators.append(LearnedSimulator(offline.model, math.prod(shape)))
        return simulators[-1]

    protocol = (targets, episodes, seed)
    progress, half = progress or (lambda timesteps: None), policies.spec.horizon / 2

    def first_half(timesteps: int) -> None:
        progress(timesteps // 2)

    def second_half(fraction: float) -> None:
        progress(round(half + half * fraction))

    sweep = _evaluated(policies, make, "the model of the data", protocol, progress=first_half)
    (simulator,) = simulators
    support = simulator.support.reshape(sweep.returns.shape).mean(axis=2)
    fitted = fitted_returns(policies, offline.data, sweep.targets, second_half)
    return sweep, Estimates(sweep.seeds, sweep.targets, fitted, support, offline.replays)


def film(
    policies: Policies,
    environment: str,
    targets: Sequence[float],
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Sweep, Film]:
    """The first episode of an evaluation at each target return, with pictures of it."""
    films = []

    def make(shape: Shape, targets: NDArray[np.float64]) -> Film:
        films.append(Film(envs.make(environment, math.prod(shape), drawn=True)))
        return films[-1]

    protocol, progress = (targets, 1, seed), progress or (lambda timesteps: None)
    sweep = _evaluated(policies, make, envs.describe(environment), protocol, progress=progress)
    return sweep, films[0]


def _evaluated(
    policies: Policies,
    make: Callable[[Shape, NDArray[np.float64]], Simulator],
    environment: str,
    protocol: tuple[Sequence[float], int, int],
    **how: Any,
) -> Sweep:
    targets, episodes, seed = protocol
    given = numbers(targets)
    wanted = np.array([np.nan]) if given is None or given.ndim != 1 else np.unique(given)
    spec = policies.spec
    learner = spec.method.learner
    if not np.isfinite(wanted).all() or (learner.needs_target and not wanted.size):
        raise InputError(f"targets must be at least one finite number; got {targets!r}")
    shown = wanted
    if not learner.is_conditioned or not wanted.size:
        wanted, shown = np.array([learner.open_target(spec.horizon)], np.float64), np.array([np.nan])
    require(episodes >= 1, "episodes", episodes, "at least 1")
    require(seed >= 0, "seed", seed, "at least 0")
    shape = (len(policies.seeds), len(wanted), episodes)
    memory.check_evaluation(spec, *shape)
    simulator = make(shape, shown)
    try:
        discrete = isinstance(spec.actions, Discrete)
        size = (math.prod(spec.observations.shape), spec.actions.size)
        compatibility.compare("the policy", *size, discrete, simulator, environment)
        rollouts = roll_out(
            spec,
            policies.parameters,
            np.broadcast_to(learner.limited(wanted, spec.horizon)[:, None], shape).reshape(-1),
            [reset_seed(seed, s, e) for s in policies.seeds for _ in wanted for e in range(episodes)],
            simulator,
            **how,
        )
    finally:
        simulator.close()
    return Sweep(
        spec.method.name,
        np.asarray(policies.seeds, np.int64),
        shown,
        rollouts.returns.reshape(shape),
        rollouts.lengths.reshape(shape),
    )


def evaluate_run(
    directory: Path,
    policies: Policies,
    environment: str,
    targets: tuple[float, ...],
    episodes: int,
    progress: Progress | None = None,
    before_writing: Callable[[], None] = lambda: None,
    offline: OfflineData | None = None,
) -> tuple[Sweep, DatasetSummary]:
    """Evaluate policies, and write results.csv and summary.json unless `before_writing` raises.

    Args:
        offline: what takes the place of the environment in an offline evaluation.
    """
    run = RunDirectory(directory)
    stored = DatasetSummary.from_json(run.config()["dataset"])
    if offline is None:
        protocol = (targets, episodes, 0)
        sweep, estimates = _simulated(policies, environment, protocol, progress, stored.best), None
    else:
        sweep, estimates = evaluate_offline(policies, offline, targets, episodes, 0, progress)
    name = sweep.method
    dataset = dataclasses.replace(stored, environment=environment, sampled_actions=policies.spec.sampled)
    errors = MeasuredErrors.of(run.metrics(), len(policies.seeds))
    known = {name: errors.final} if errors else {}
    methods = evaluated([sweep], dataset, {name: policies.warnings}, known, {name: estimates})
    write_results(directory, methods, {name: versions()}, None, before_writing, estimates, sweep.paths)
    return sweep, dataset
