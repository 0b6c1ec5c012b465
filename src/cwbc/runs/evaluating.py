"""The evaluation of policies in an environment, over target returns, and of runs into their directories."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from cwbc import envs
from cwbc.core import memory
from cwbc.core.evaluation import reset_seed, roll_out
from cwbc.core.learned_simulator import DynamicsModel
from cwbc.core.measured_errors import MeasuredErrors
from cwbc.core.spaces import Discrete
from cwbc.data import compatibility
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.evaluated import evaluated
from cwbc.results.sweeps import Sweep
from cwbc.runs.configuration import versions
from cwbc.runs.finished import write_results
from cwbc.runs.policies import Policies
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.errors import InputError, require


def evaluate(
    policies: Policies,
    environment: envs.Environment | DynamicsModel,
    targets: Sequence[float],
    episodes: int = 10,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Sweep:
    """Condition every policy on every target return, `episodes` times each.

    An unconditioned method is evaluated once, whatever the targets. Episode e of a policy begins in the same
    state for every target and method, so that they are compared on equal terms.

    Args:
        environment: or a model of the data, with which the returns are estimated.
        targets: none evaluates methods that choose their target (+q) once, without one.
        progress: called with the number of timesteps done; where episodes take turns, as a fraction of all.
    """
    try:
        wanted = np.unique(np.array([float(target) for target in targets]))
    except (TypeError, ValueError):
        wanted = np.array([np.nan])
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
    count, is_learned = int(np.prod(shape)), isinstance(environment, DynamicsModel)
    simulator = environment.simulator(count) if is_learned else envs.make(environment, count)
    try:
        discrete = isinstance(spec.actions, Discrete)
        size = (math.prod(spec.observations.shape), spec.actions.size)
        name = "the model of the data" if is_learned else envs.describe(environment)
        compatibility.compare("the policy", *size, discrete, simulator, name)
        rollouts = roll_out(
            spec,
            policies.parameters,
            np.broadcast_to(learner.limited(wanted, spec.horizon)[:, None], shape).reshape(-1),
            [reset_seed(seed, s, e) for s in policies.seeds for _ in wanted for e in range(episodes)],
            simulator,
            one_at_a_time=not is_learned and envs.takes_turns(environment),
            overlapping=not is_learned and envs.is_batched(environment),
            progress=progress or (lambda timesteps: None),
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
    progress: Callable[[int], None] | None = None,
    before_writing: Callable[[], None] = lambda: None,
    model: DynamicsModel | None = None,
) -> tuple[Sweep, DatasetSummary]:
    """Evaluate policies, and write results.csv and summary.json unless `before_writing` raises.

    Args:
        model: of the data, where the environment is that of an offline evaluation.
    """
    sweep = evaluate(policies, model or environment, targets, episodes, 0, progress)
    run = RunDirectory(directory)
    stored = DatasetSummary.from_json(run.config()["dataset"])
    dataset = dataclasses.replace(stored, environment=environment)
    errors = MeasuredErrors.of(run.metrics(), len(policies.seeds))
    known = {sweep.method: errors.final} if errors else {}
    methods = evaluated([sweep], dataset, {sweep.method: policies.warnings}, known)
    write_results(directory, methods, {sweep.method: versions()}, before_replacing=before_writing)
    return sweep, dataset
