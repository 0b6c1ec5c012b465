"""Evaluation against a loop written by hand, in parts and blocks, its determinism, and what does not fit."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from toys import DISCRETE_ENVIRONMENT, ENVIRONMENT, HORIZON, drawn, toy_data

from cwbc import evaluation, simulators
from cwbc.design import Design
from cwbc.errors import InputError
from cwbc.evaluation import _begin_seed, evaluate
from cwbc.methods import parse, small
from cwbc.policy import History, Policies, act
from cwbc.simulators import Simulator, Transition
from cwbc.simulators.locomotion import Locomotion
from cwbc.spaces import Continuous


def untrained(name: str, seeds: tuple[int, ...] = (0, 3), discrete: bool = False) -> Policies:
    method = small(parse(name))
    method = dataclasses.replace(method, network=dataclasses.replace(method.network, width=16, layers=1))
    data = toy_data(discrete=discrete)
    design = Design.fit(method, data, 4)
    return Policies(design, parameters(design, seeds), seeds, *data.observation_statistics)


def parameters(design: Design, seeds: tuple[int, ...]) -> Any:
    return jax.tree.map(lambda *x: np.stack(x), *(drawn(design.initialize, seed) for seed in seeds))


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
        observation, _ = by_hand.reset(seed=_begin_seed(0, policies.seeds[row], episode))
        reward, total = None, 0.0
        for _ in range(HORIZON):
            observation, paid, *_ = by_hand.step(policy.act(observation, reward))
            reward = float(paid)
            total += reward
        assert sweep.returns[row, column, episode] == pytest.approx(total, abs=1e-4)


def test_it_is_deterministic_and_a_seed_is_the_same_alone() -> None:
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


class Ending:
    """Episode i ends after i + 1 steps; remembers which ones were stepped."""

    observation_size, action_size, discrete, horizon = 2, 1, False, 6
    action_bounds = (np.array([-0.01], np.float32), np.array([0.01], np.float32))

    def __init__(self) -> None:
        self.stepped: list[list[int]] = []
        self.threads: set[int] = set()
        self.largest = 0.0

    def reset(self, episodes: NDArray[np.int64], seeds: Sequence[int]) -> NDArray[np.float64]:
        self.times = np.zeros(len(seeds), int)
        return np.zeros((len(episodes), 2))

    def step(self, episodes: NDArray[np.int64], actions: NDArray[np.float32]) -> Transition:
        self.stepped.append(episodes.tolist())
        self.threads.add(threading.get_ident())
        self.largest = max(self.largest, float(np.abs(actions).max()))
        self.times[episodes] += 1
        ended = self.times[episodes] > episodes
        return Transition(np.zeros((len(episodes), 2)), np.ones(len(episodes)), ended, np.zeros_like(ended))

    def close(self) -> None:
        pass


def test_finished_episodes_are_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = Ending()
    monkeypatch.setattr(simulators, "make", lambda *_: simulator)
    told: list[int] = []
    sweep = evaluate(untrained("rvs", seeds=(0,)), "ending", [1.0, 2.0], episodes=2, progress=told.append)
    assert simulator.stepped == [[0, 1, 2, 3], [1, 2, 3], [2, 3], [3]]
    assert sweep.lengths.reshape(-1).tolist() == [1, 2, 3, 4]
    assert sweep.returns.reshape(-1).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert told == [1, 2, 3, 4]
    assert simulator.largest == np.float32(0.01)  # actions are clipped to what the environment takes
    assert simulator.threads == {threading.get_ident()}


def test_of_two_halves_one_is_simulated_while_the_other_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = Ending()
    monkeypatch.setattr(simulators, "make", lambda *_: simulator)
    monkeypatch.setattr(simulators, "is_batched", lambda _: True)
    monkeypatch.setattr(evaluation, "on_cpu", lambda: False)
    told: list[int] = []
    sweep = evaluate(untrained("rvs", seeds=(0,)), "ending", [1.0, 2.0], episodes=2, progress=told.append)
    assert simulator.stepped == [[0, 2], [1, 3], [2], [1, 3], [2], [3], [3]]
    assert sweep.lengths.reshape(-1).tolist() == [1, 2, 3, 4]
    assert told == [1, 1, 2, 2, 3, 3, 4]
    assert threading.get_ident() not in simulator.threads


@pytest.mark.parametrize(("name", "episodes"), [("rvs", 3), ("dt", 2)])  # halves of 5 and 4; 3 and 3
def test_episodes_do_not_depend_on_the_halves(
    name: str, episodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Locomotion, "horizon", 12)
    hopper = Continuous((-1.0,) * 3, (1.0,) * 3)
    design = dataclasses.replace(untrained(name).design, observation_size=11, actions=hopper)
    statistics = np.zeros(11, np.float32), np.ones(11, np.float32)
    policies = Policies(design, parameters(design, (0, 1)), (0, 1), *statistics)
    whole = evaluate(policies, "Hopper-v5", [1.0, 20.0, 3000.0], episodes)
    monkeypatch.setattr(evaluation, "on_cpu", lambda: False)
    halves = evaluate(policies, "Hopper-v5", [1.0, 20.0, 3000.0], episodes)
    np.testing.assert_array_equal(whole.lengths, halves.lengths)
    np.testing.assert_allclose(whole.returns, halves.returns, rtol=1e-5)
    assert np.ptp(whole.returns, axis=2).min() > 0.01  # so that one taken for another would be seen


class Paying(Ending):
    """Pays an action with itself."""

    def step(self, episodes: NDArray[np.int64], actions: NDArray[np.float32]) -> Transition:
        outcome = super().step(episodes, actions)
        observations = np.stack([episodes, self.times[episodes]], axis=1) / 4
        return dataclasses.replace(outcome, observations=observations, rewards=actions[:, 0].astype(float))


def test_blocks_whose_episodes_are_over_are_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    policies, answered = untrained("dt", seeds=(0,)), []

    def counting(*arguments: Any) -> tuple[History, jax.Array]:
        jax.debug.callback(lambda: answered.append(1))
        return act(*arguments)

    def sweep(block: int) -> NDArray[np.float64]:
        monkeypatch.setattr(evaluation, "_BLOCK", block)
        evaluation._program.cache_clear()
        answered.clear()
        returns = evaluate(policies, "paying", [1.0, 2.0], episodes=2).returns
        jax.effects_barrier()  # type: ignore[no-untyped-call]
        return returns

    monkeypatch.setattr(simulators, "make", lambda *_: Paying())
    monkeypatch.setattr(Paying, "action_bounds", (np.array([-1.0]), np.array([1.0])))
    monkeypatch.setattr(evaluation, "act", counting)
    together = sweep(block=4 * policies.design.memory)
    assert len(answered) == 4  # steps until the last is over
    by_two = sweep(block=2 * policies.design.memory)
    assert len(answered) == 2 + 2 + 1 + 1
    np.testing.assert_allclose(together, by_two, rtol=1e-5)
    assert np.ptp(together) > 0.01
    evaluation._program.cache_clear()


def test_a_policy_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"the policy does not fit CartPole-v1"):
        evaluate(untrained("rvs"), "CartPole-v1", [1.0])


def test_questions_that_cannot_be_asked() -> None:
    for targets in ([], [1.0, float("nan")]):
        with pytest.raises(InputError, match="targets must be at least one finite number"):
            evaluate(untrained("rvs"), ENVIRONMENT, targets)
    with pytest.raises(InputError, match="episodes must be at least 1; got 0"):
        evaluate(untrained("rvs"), ENVIRONMENT, [1.0], episodes=0)


def test_the_interface_is_the_protocol() -> None:
    simulator: Simulator = simulators.make(ENVIRONMENT, 1)
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
