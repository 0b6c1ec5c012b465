"""Fitted Q evaluation finds the known value of policies that the data was not collected with."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drifting import STEPS, drifting_data

from cwbc.core.methods import Training, method, with_options
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.training_loop import initialize
from cwbc.runs import offline
from cwbc.runs.policies import Policies


def constant_policies(name: str, action: float) -> Policies:
    """Two seeds that always take one action, whatever they observe and aim for."""
    data, small = drifting_data(), {"width": 8, "layers": 1}
    chosen, training, _ = with_options(method(name, "small"), Training(10), small)
    spec = PolicySpec.fit(chosen, data, training)
    parameters = initialize(spec, (0, 1)).parameters
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    (low,), (high,) = spec.actions.lowest, spec.actions.highest  # type: ignore[union-attr]
    last = f"layer{1}"
    output = np.arctanh((action - (low + high) / 2) / ((high - low) / 2))
    zeros[last] = {**zeros[last], "bias": jnp.full_like(zeros[last]["bias"], output)}
    return Policies(spec, zeros, (0, 1), {})


@pytest.mark.parametrize(("name", "action", "value"), [("bc", 0.0, 6.0), ("rvs", 0.0, 6.0)])
def test_the_value_of_a_better_policy(
    monkeypatch: pytest.MonkeyPatch, name: str, action: float, value: float
) -> None:
    """Standing still earns 1 a step; the logged actions earn 2/3 a step, and leave early."""
    monkeypatch.setattr(offline, "VALUES", Training(1_500, batch_size=128))
    data = drifting_data()
    assert data.returns.mean() < 0.7 * STEPS
    targets = np.array([2.0, 4.0, 8.0]) if name == "rvs" else np.array([np.nan])
    found = offline.fitted_returns(constant_policies(name, action), data, targets)
    assert found.shape == (2, len(targets))
    np.testing.assert_allclose(found, value, atol=0.6)


def test_evaluation_does_not_change_the_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "VALUES", Training(50, batch_size=128))
    policies = constant_policies("rvs", 0.3)
    before = jax.tree.map(np.array, policies.parameters)
    offline.fitted_returns(policies, drifting_data(), np.array([2.0, 4.0, 8.0]))
    jax.tree.map(np.testing.assert_array_equal, before, dataclasses.replace(policies).parameters)
