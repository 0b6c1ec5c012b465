"""Rollouts: which episodes are simulated when, in halves, in blocks, and one at a time."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from toys import random_parameters, tiny, toy_data

from cwbc.core import evaluation
from cwbc.core.acting import History, act
from cwbc.core.evaluation import Rollouts, reset_seed, roll_out
from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.simulation import Simulator, Transition
from cwbc.core.trajectories import Trajectories

TARGETS = np.array([1.0, 1.0, 2.0, 2.0])
Bounds = tuple[NDArray[Any], NDArray[Any]]


class Ending:
    """Episode i terminates after i + 1 steps; records which ones were stepped."""

    observation_size, action_size, discrete, horizon = 2, 1, False, 6
    action_bounds: Bounds | None = (np.array([-0.01], np.float32), np.array([0.01], np.float32))
    image_shape: tuple[int, ...] | None = None

    def __init__(self) -> None:
        self.stepped: list[list[int]] = []
        self.threads: set[int] = set()
        self.largest = 0.0
        self.times = np.zeros(4, int)

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[Any]:
        self.times[episodes] = 0
        return np.zeros((len(episodes), 2))

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        self.stepped.append(episodes.tolist())
        self.threads.add(threading.get_ident())
        self.largest = max(self.largest, float(np.abs(actions).max()))
        self.times[episodes] += 1
        ended = self.times[episodes] > episodes
        return Transition(np.zeros((len(episodes), 2)), np.ones(len(episodes)), ended, np.zeros_like(ended))

    def close(self) -> None:
        pass


class Paying(Ending):
    """The reward is the action."""

    action_bounds: Bounds | None = (np.array([-1.0]), np.array([1.0]))

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        outcome = super().step(episodes, actions)
        observations = np.stack([episodes, self.times[episodes]], axis=1) / 4
        return dataclasses.replace(outcome, observations=observations, rewards=actions[:, 0].astype(float))


def rolled_out(
    name: str,
    simulator: Simulator,
    progress: Callable[[int], None] = lambda timesteps: None,
    seeds: int = 1,
    data: Trajectories | None = None,
    **how: bool,
) -> Rollouts:
    """Four episodes of an untrained policy, shared by its seeds."""
    spec = PolicySpec.fit(tiny(name), data or toy_data(), Training(context=4))
    parameters = [random_parameters(spec, seed) for seed in range(seeds)]
    stacked = jax.tree.map(lambda *x: np.stack(x), *parameters)
    return roll_out(spec, stacked, TARGETS, range(4), simulator, progress=progress, **how)


def test_finished_episodes_are_not_simulated() -> None:
    simulator, steps = Ending(), list[int]()
    rollouts = rolled_out("rvs", simulator, steps.append)
    assert simulator.stepped == [[0, 1, 2, 3], [1, 2, 3], [2, 3], [3]]
    assert rollouts.lengths.tolist() == [1, 2, 3, 4]
    assert rollouts.returns.tolist() == [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_array_equal(rollouts.remaining, TARGETS - rollouts.returns)
    assert steps == [1, 2, 3, 4]
    assert simulator.largest == np.float32(0.01)  # actions are clipped to the environment's bounds
    assert simulator.threads == {threading.get_ident()}


def test_clipped_rewards_are_subtracted_and_raw_returns_reported() -> None:
    class Generous(Ending):
        def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
            return dataclasses.replace(super().step(episodes, actions), rewards=np.full(len(episodes), 25.0))

    rollouts = rolled_out("rvs", Generous(), data=toy_data().with_clipped_rewards())
    assert rollouts.returns.tolist() == [25, 50, 75, 100]
    np.testing.assert_array_equal(rollouts.remaining, TARGETS - [1, 2, 3, 4])


def test_one_half_is_simulated_while_the_device_acts_for_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "on_cpu", lambda: False)
    simulator, steps = Ending(), list[int]()
    rollouts = rolled_out("rvs", simulator, steps.append, overlapping=True)
    assert simulator.stepped == [[0, 2], [1, 3], [2], [1, 3], [2], [3], [3]]
    assert rollouts.lengths.tolist() == [1, 2, 3, 4]
    assert steps == [1, 1, 2, 2, 3, 3, 4]
    assert threading.get_ident() not in simulator.threads


@pytest.mark.parametrize("seeds", [1, 2])
def test_episodes_one_at_a_time_equal_those_side_by_side(seeds: int) -> None:
    together, in_turn, steps = Paying(), Paying(), list[int]()
    expected = rolled_out("dt", together, seeds=seeds)
    found = rolled_out("dt", in_turn, steps.append, seeds, one_at_a_time=True)
    assert in_turn.stepped == [[row] for row in range(4) for _ in range(row + 1)]
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    np.testing.assert_allclose(found.returns, expected.returns, rtol=1e-5)
    assert steps == sorted(steps)
    assert steps[-1] <= Paying.horizon


def test_blocks_without_running_episodes_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []

    def counting(*arguments: Any) -> tuple[History, jax.Array]:
        jax.debug.callback(lambda: computed.append(1))
        return act(*arguments)

    def returns(block: int) -> NDArray[np.float64]:
        monkeypatch.setattr(evaluation, "_BLOCK", block)
        evaluation._program.cache_clear()
        computed.clear()
        found = rolled_out("dt", Paying()).returns
        jax.effects_barrier()  # type: ignore[no-untyped-call]
        return found

    memory = 4
    monkeypatch.setattr(evaluation, "act", counting)
    together = returns(block=4 * memory)
    assert len(computed) == 4  # steps until the last episode terminates
    by_two = returns(block=2 * memory)
    assert len(computed) == 2 + 2 + 1 + 1
    np.testing.assert_allclose(together, by_two, rtol=1e-5)
    assert np.ptp(together) > 0.01
    evaluation._program.cache_clear()


def test_a_first_state_depends_on_evaluation_policy_and_episode() -> None:
    seeds = {reset_seed(e, p, n) for e in range(3) for p in range(3) for n in range(3)}
    assert len(seeds) == 27
    assert reset_seed(1, 2, 3) == reset_seed(1, 2, 3)
