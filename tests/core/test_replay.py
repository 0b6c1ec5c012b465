"""Logged episodes replayed in a model: an exact one reproduces them, whatever corrects the actions."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from drifting import EDGE, STEPS, drifting_data
from numpy.typing import NDArray
from toys import random_parameters, tiny

from cwbc.core import replay
from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.simulation import Transition

DATA = drifting_data(20)


class Walks:
    """The walk of the data, some of whose copies (members) are pushed aside at every step."""

    action_bounds = None
    pushed_by = (0.0,)  # each member
    edge = EDGE

    def __init__(self, model: Any, count: int) -> None:
        self._places, self._pushed, self._time = np.zeros(count), np.zeros(count), np.zeros(count, int)

    def begin(self, rows: Any, observations: Any, members: Any, seeds: Sequence[int]) -> NDArray[Any]:
        self._places[:] = observations[:, 0]
        self._pushed[:] = np.array(self.pushed_by)[members]
        return self._places[:, None].astype(np.float32)

    def step(self, rows: NDArray[np.int64], actions: NDArray[Any]) -> Transition:
        pushes = actions[:, 0].astype(np.float64)
        self._places[rows] += pushes / 2 + self._pushed[rows]
        self._time[rows] += 1
        return Transition(
            self._places[rows, None].astype(np.float32),
            1 - pushes**2,
            np.abs(self._places[rows]) > self.edge,
            self._time[rows] == STEPS,
        )


def returns(monkeypatch: pytest.MonkeyPatch, **model: Any) -> NDArray[np.float64]:
    """Of all episodes in walks that differ from the logged one."""
    walks = type("Changed", (Walks,), model)
    monkeypatch.setattr(replay, "LearnedSimulator", walks)
    clone = PolicySpec.fit(tiny("rvs"), DATA, Training())
    members: Any = types.SimpleNamespace(members=[None] * len(walks.pushed_by))  # type: ignore[attr-defined]
    return replay.replayed_returns(members, clone, random_parameters(clone, 3), DATA)


def test_an_exact_model_reproduces_every_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < DATA.terminated.sum() < DATA.episodes
    np.testing.assert_allclose(returns(monkeypatch), DATA.returns, atol=1e-4)


def test_a_wrong_model_does_not_and_members_are_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    pushed = returns(monkeypatch, pushed_by=(0.3,))
    assert np.abs(pushed - DATA.returns).mean() > 0.3  # it soon is beyond the edge
    both = returns(monkeypatch, pushed_by=(0.0, 0.3))
    np.testing.assert_allclose(both, (DATA.returns + pushed) / 2, atol=1e-4)


def test_an_end_that_a_model_misses_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = returns(monkeypatch, edge=np.inf)
    early = DATA.terminated & (DATA.lengths < STEPS)
    assert early.any()
    np.testing.assert_allclose(endless[~DATA.terminated], DATA.returns[~DATA.terminated], atol=1e-4)
    # The clone goes on for the steps that are left; its actions are small.
    assert (endless[early] > DATA.returns[early] + 0.5).all()


def test_discrete_actions_change_where_the_clone_changes_its_mind() -> None:
    logged, here, there = np.array([0, 0, 0]), np.array([1, 2, 2]), np.array([1, 1, 2])
    chosen = replay._corrected(logged, here, there, np.array([True, True, False]))
    np.testing.assert_array_equal(chosen, [0, 2, 2])
