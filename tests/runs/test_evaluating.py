"""Evaluation against a loop written by hand, its determinism, and what does not fit."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from toys import DISCRETE_ENVIRONMENT, ENVIRONMENT, HORIZON, random_parameters, tiny, toy_data

from cwbc import envs
from cwbc.core import evaluation
from cwbc.core.evaluation import reset_seed
from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.simulation import Simulator
from cwbc.core.spaces import Continuous, Vector
from cwbc.envs.locomotion import Locomotion
from cwbc.runs.evaluating import evaluate
from cwbc.runs.policies import Policies
from cwbc.system.errors import InputError


def untrained(name: str, seeds: tuple[int, ...] = (0, 3), discrete: bool = False) -> Policies:
    spec = PolicySpec.fit(tiny(name), toy_data(discrete=discrete), Training(context=4))
    return Policies(spec, parameters(spec, seeds), seeds)


def parameters(spec: PolicySpec, seeds: tuple[int, ...]) -> Any:
    return jax.tree.map(lambda *x: np.stack(x), *(random_parameters(spec, seed) for seed in seeds))


@pytest.mark.parametrize(
    ("name", "discrete"), [("rvs", False), ("dt", False), ("dt-concat", True)], ids=["rvs", "dt", "discrete"]
)
def test_every_row_is_an_episode_of_its_seed_target_and_number(name: str, discrete: bool) -> None:
    environment = DISCRETE_ENVIRONMENT if discrete else ENVIRONMENT
    policies, targets = untrained(name, discrete=discrete), [-2.0, 1.0, 4.0]
    sweep = evaluate(policies, environment, targets, episodes=2)
    assert sweep.returns.shape == (2, 3, 2)
    assert (sweep.lengths == HORIZON).all()
    by_hand = gymnasium.make(environment)
    for row, column, episode in ((0, 0, 0), (1, 2, 1)):
        policy = policies.policy(policies.seeds[row])
        policy.begin(targets[column])
        observation, _ = by_hand.reset(seed=reset_seed(0, policies.seeds[row], episode))
        reward, total = None, 0.0
        for _ in range(HORIZON):
            observation, paid, *_ = by_hand.step(policy.act(observation, reward))
            reward = float(paid)
            total += reward
        assert sweep.returns[row, column, episode] == pytest.approx(total, abs=1e-4)


def test_evaluation_is_deterministic_and_a_seed_is_the_same_alone() -> None:
    both = evaluate(untrained("rvs"), ENVIRONMENT, [1.0, 2.0], episodes=3)
    again = evaluate(untrained("rvs"), ENVIRONMENT, [1.0, 2.0], episodes=3)
    np.testing.assert_array_equal(both.returns, again.returns)
    alone = evaluate(untrained("rvs", seeds=(3,)), ENVIRONMENT, [1.0, 2.0], episodes=3)
    np.testing.assert_allclose(both.returns[1], alone.returns[0], rtol=1e-5)
    other = evaluate(untrained("rvs"), ENVIRONMENT, [1.0, 2.0], episodes=3, seed=1)
    assert (both.returns != other.returns).all()


def test_targets_are_sorted_and_counted_once() -> None:
    sweep = evaluate(untrained("rvs", seeds=(0,)), ENVIRONMENT, [2.0, 1.0, 2.0], episodes=1)
    assert sweep.targets.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(("name", "episodes"), [("rvs", 3), ("dt", 2)])  # halves of 5 and 4; 3 and 3
def test_episodes_do_not_depend_on_the_halves(
    name: str, episodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Locomotion, "horizon", 12)
    hopper = Continuous((-1.0,) * 3, (1.0,) * 3)
    space = Vector((0.0,) * 11, (1.0,) * 11)
    spec = dataclasses.replace(untrained(name).spec, observations=space, actions=hopper)
    policies = Policies(spec, parameters(spec, (0, 1)), (0, 1))
    whole = evaluate(policies, "Hopper-v5", [1.0, 20.0, 3000.0], episodes)
    monkeypatch.setattr(evaluation, "on_cpu", lambda: False)
    halves = evaluate(policies, "Hopper-v5", [1.0, 20.0, 3000.0], episodes)
    np.testing.assert_array_equal(whole.lengths, halves.lengths)
    np.testing.assert_allclose(whole.returns, halves.returns, rtol=1e-5)
    assert np.ptp(whole.returns, axis=2).min() > 0.01  # so that an exchange of two would be seen


def test_a_policy_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"the policy does not fit CartPole-v1"):
        evaluate(untrained("rvs"), "CartPole-v1", [1.0])


def test_targets_and_episodes_that_make_no_sense_are_refused() -> None:
    for targets in ([], [1.0, float("nan")], "100", ["100"], 100.0, [[1.0]]):
        with pytest.raises(InputError, match="targets must be at least one finite number"):
            evaluate(untrained("rvs"), ENVIRONMENT, targets)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="episodes must be at least 1; got 0"):
        evaluate(untrained("rvs"), ENVIRONMENT, [1.0], episodes=0)


def test_the_interface_is_the_protocol() -> None:
    simulator: Simulator = envs.make(ENVIRONMENT, 1)
    assert simulator.horizon == HORIZON
    simulator.close()


def test_a_method_that_takes_no_target_is_evaluated_once() -> None:
    policies = untrained("bc")
    sweep = evaluate(policies, ENVIRONMENT, [-2.0, 1.0, 4.0], episodes=2)
    assert not sweep.takes_target
    assert sweep.returns.shape == (2, 1, 2)
    assert np.isfinite(sweep.returns).all()
    again = evaluate(policies, ENVIRONMENT, [100.0], episodes=2)
    np.testing.assert_array_equal(sweep.returns, again.returns)


@pytest.mark.parametrize("name", ["rvs", "dt"])
def test_sampled_actions_depend_on_the_seed_alone(name: str) -> None:
    greedy = untrained(name, discrete=True)
    sampled = greedy.acting("sampled")

    def returns(policies: Policies, seed: int = 0) -> Any:
        return evaluate(policies, DISCRETE_ENVIRONMENT, [1.0, 4.0], episodes=3, seed=seed).returns

    found = returns(sampled)
    np.testing.assert_array_equal(returns(sampled), found)
    assert (returns(sampled, seed=1) != found).any()
    assert (returns(greedy) != found).any()
    alone = evaluate(policies_of(sampled, 1), DISCRETE_ENVIRONMENT, [1.0, 4.0], episodes=3)
    np.testing.assert_array_equal(alone.returns[0], found[1])
    one_by_one = evaluate(sampled, gymnasium.make(DISCRETE_ENVIRONMENT), [1.0, 4.0], episodes=3)
    np.testing.assert_array_equal(one_by_one.returns, found)


def policies_of(policies: Policies, row: int) -> Policies:
    """Those of one seed."""
    parameters = jax.tree.map(lambda x: x[row : row + 1], policies.parameters)
    return dataclasses.replace(policies, parameters=parameters, seeds=policies.seeds[row : row + 1])
