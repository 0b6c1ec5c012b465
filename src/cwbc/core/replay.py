"""Logged episodes replayed in a model of the dynamics: whether it reproduces what it was not trained on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.core.acting import History, act
from cwbc.core.layers import Parameters
from cwbc.core.learned_simulator import DynamicsModel, LearnedSimulator
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.trajectories import Trajectories


def replayed_returns(
    model: DynamicsModel, clone: PolicySpec, parameters: Parameters, logged: Trajectories
) -> NDArray[np.float64]:
    """The return of every logged episode in the model, the mean over its members. [episode]

    Logged actions alone would soon be those of other states: behaviour policies react to what they observe.
    So a clone of them corrects each logged action by how much its own differs between the simulated and the
    logged state. An exact model of deterministic dynamics thus reproduces an episode whatever the clone is.

    Args:
        clone: of the behaviour policies, conditioned on the returns-to-go of the log; it reads one step.
    """
    rows = np.arange(len(model.members) * logged.episodes)
    episodes, members = rows % logged.episodes, rows // logged.episodes
    lengths, starts = logged.lengths[episodes], logged.starts[episodes]
    simulator = LearnedSimulator(model, len(rows))
    seen = simulator.begin(rows, logged.observations[starts], members, rows.tolist())
    returns, running, timestep = np.zeros(len(rows)), np.ones(len(rows), bool), 0
    program = _program(clone.form)
    while running.any():
        timesteps = np.minimum(timestep, lengths - 1)
        steps = starts + timesteps
        condition = clone.standardized(logged.returns_to_go[steps], timesteps)
        # Both in one call, always of the same shape.
        observations = clone.observations.received(np.concatenate([seen, logged.observations[steps]]))
        cloned = np.asarray(program(parameters, observations, np.tile(condition, 2)))
        here, there = np.split(cloned, 2)
        actions = _corrected(logged.actions[steps], here, there, timestep < lengths)
        if simulator.action_bounds is not None:
            actions = actions.clip(*simulator.action_bounds)
        own = rows[running]
        outcome = simulator.step(own, actions[running])
        returns[own] += outcome.rewards
        seen[own] = outcome.observations
        timestep += 1
        # Where the logged episode terminated, the replay has to terminate by itself.
        is_truncated = (timestep >= lengths[own]) & ~logged.terminated[episodes[own]]
        running[own] = ~(outcome.terminated | outcome.truncated | is_truncated)
    return returns.reshape(len(model.members), logged.episodes).mean(axis=0)


def _corrected(
    logged: NDArray[Any],  # [row, ...]
    here: NDArray[Any],  # [row, ...] the clone's actions in the simulated states
    there: NDArray[Any],  # [row, ...] and in the logged ones
    is_logged: NDArray[np.bool_],  # [row] whether the logged episode still goes on
) -> NDArray[Any]:
    if logged.ndim == 1:
        return np.where(is_logged & (here == there), logged, here)
    return np.where(is_logged[:, None], logged + here - there, here)


@functools.lru_cache(maxsize=8)
def _program(form: PolicySpec) -> Callable[[Parameters, Any, Any], jax.Array]:
    def actions(parameters: Parameters, observations: jax.Array, returns_to_go: jax.Array) -> jax.Array:
        nothing = jax.tree.map(jnp.asarray, History.empty(form, len(observations)))
        return act(form, parameters, nothing, jnp.zeros((), jnp.int32), observations, returns_to_go)[1]

    return jax.jit(actions)
