"""Prediction errors: those of acting along the logged episode, step by step."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import random_parameters, tiny, toy_data

from cwbc.core import acting
from cwbc.core.acting import History
from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.prediction_error import LoggedSteps, step_errors

TRAINING = Training(steps=30, batch_size=8, context=5)
EPISODE = 13  # of 8 steps, more than the context


@pytest.mark.parametrize(("name", "discrete"), [("dt", False), ("rvs", True)])
def test_errors_are_those_of_acting_along_the_episode(name: str, discrete: bool) -> None:
    data = toy_data(discrete=discrete)
    spec = PolicySpec.fit(tiny(name), data, TRAINING)
    parameters = random_parameters(spec, 1)
    some = LoggedSteps.of(spec, data, np.array([EPISODE]), 20)
    found = jax.jit(step_errors, static_argnums=0)(spec, parameters, some)
    act = jax.jit(acting.act, static_argnums=0)
    at = np.take_along_axis(np.asarray(some.histories.timesteps), np.asarray(some.steps)[:, None], 1)[:, 0]
    assert set(at.tolist()) == set(range(int(data.lengths[EPISODE])))

    history, expected = History.empty(spec, 1), []
    for timestep in range(int(data.lengths[EPISODE])):
        row = data.starts[EPISODE] + timestep
        observed = jnp.asarray(spec.observations.received(data.observations[row]))[None]
        remaining = jnp.asarray(spec.standardized(data.returns_to_go[row : row + 1], timestep))
        history, action = act(spec, parameters, history, jnp.asarray(timestep), observed, remaining)
        logged = jnp.asarray(data.actions[row : row + 1])
        difference = spec.actions.encode(action) - spec.actions.encode(logged)
        expected.append(float(action[0] != logged[0]) if discrete else float(jnp.mean(difference**2)))
        step = min(timestep, spec.memory - 1)  # what was logged takes the place of what was chosen
        past = history.actions.at[:, step].set(spec.actions.encode(logged))
        history = History(history.observations, past, history.returns_to_go, history.timesteps, None)
    np.testing.assert_allclose(found, np.array(expected)[at], rtol=1e-4, atol=1e-6)
    assert len(set(expected)) > 1 or discrete  # whose every action is one of three
