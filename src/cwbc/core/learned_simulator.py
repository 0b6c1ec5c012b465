"""A simulator learned from logged data: episodes begin as logged ones did, and a model continues them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from cwbc.core.dynamics import LOG_STD, Dynamics
from cwbc.core.layers import Parameters
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.simulation import Transition
from cwbc.core.spaces import Continuous
from cwbc.core.support import Support, encoded_actions
from cwbc.core.trajectories import Trajectories

_BEYOND = 0.05  # of a dimension's range, by which simulated observations may leave it
_LOOKS = 20  # steps of an episode that are compared with logged ones
_LOOKED_AT = 2_000  # logged steps, to tell noise from errors
_NOTABLE = 0.125  # of a mean square change: less unexplained variance is an error of prediction
_NOISE_STEPS = 32  # steps whose random numbers are drawn at once


@dataclasses.dataclass(frozen=True, eq=False)
class DynamicsModel:
    """Trained models of one dataset's dynamics, with the facts that simulation needs."""

    spec: PolicySpec  # whose learner is Dynamics
    members: list[Parameters]  # NumPy arrays
    first: NDArray[np.float32]  # [episode, dimension] observations at the start of logged episodes
    bounds: tuple[NDArray[np.float32], NDArray[np.float32]]  # of logged observations, normalized [dimension]
    rewards: tuple[float, float]  # min and max of the logged ones
    random: NDArray[np.float32]  # [dimension + 1] 1 where outcomes are random, 0 where they are determined
    support: Support

    @classmethod
    def of(cls, spec: PolicySpec, parameters: Parameters, data: Trajectories) -> DynamicsModel:
        """The models of stacked parameters [member, ...]."""
        host = jax.tree.map(np.asarray, parameters)
        count = len(jax.tree.leaves(host)[0])
        members = [jax.tree.map(lambda x, row=row: x[row], host) for row in range(count)]
        mean, std = spec.observations.arrays
        low, high = ((f(data.observations, axis=0) - mean) / std for f in (np.min, np.max))
        room = _BEYOND * (high - low)
        limits = (float(data.rewards.min()), float(data.rewards.max()))
        starts, bounds = data.observations[data.starts], (low - room, high + room)
        random = _is_random(spec, members, data).astype(np.float32)
        return cls(spec, members, starts, bounds, limits, random, Support.of(spec, data))


class LearnedSimulator:
    """Many copies of a learned simulator; each copy follows one member of the ensemble."""

    def __init__(self, model: DynamicsModel, count: int) -> None:
        spec, actions = model.spec, model.spec.actions
        self._model, self._count = model, count
        self.observation_size, self.action_size = spec.observations.shape[0], actions.size
        self.discrete = not isinstance(actions, Continuous)
        self.image_shape: tuple[int, ...] | None = None
        self.action_bounds = None
        if isinstance(actions, Continuous):
            self.action_bounds = np.asarray(actions.lowest), np.asarray(actions.highest)
        self.horizon = spec.horizon
        self._observations = np.zeros((count, self.observation_size), np.float32)  # normalized
        self._timesteps = np.zeros(count, np.int64)
        self._members = np.zeros(count, np.int64)
        self._every = max(1, spec.horizon // _LOOKS)
        self._looked, self._supported = np.zeros((2, count), np.int64)
        self._random: dict[int, np.random.Generator] = {}
        self._noise = np.zeros((count, _NOISE_STEPS, self.observation_size + 2), np.float32)

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[Any]:
        """Begin episodes; equal seeds begin alike, and different ones share members and starts evenly."""
        first, members = self._model.first, len(self._model.members)
        order = np.random.default_rng(0).permutation(len(first))
        known = {seed: place for place, seed in enumerate(dict.fromkeys(seeds))}
        places = np.array([known[seed] for seed in seeds])
        return self.begin(episodes, first[order[places % len(first)]], places % members, seeds)

    def begin(
        self,
        episodes: NDArray[np.integer[Any]],
        observations: NDArray[np.float32],  # [episode, dimension]
        members: NDArray[np.int64],  # [episode]
        seeds: Sequence[int],
    ) -> NDArray[Any]:
        """Begin episodes with given first observations, each with a member of the ensemble."""
        self._observations[episodes] = self._model.spec.observations.received(observations)
        self._members[episodes] = members
        for row, seed in zip(episodes.tolist(), seeds, strict=True):
            self._random[row] = np.random.default_rng(seed)
        self._timesteps[episodes] = 0
        return self._seen(episodes)

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        """Advance episodes by one step of their member."""
        self._look(episodes, actions)
        noise, spec = self._drawn(episodes), self._model.spec
        outcomes = np.empty((len(episodes), self.observation_size + 1), np.float32)
        terminated = np.empty(len(episodes), bool)
        for number, parameters in enumerate(self._model.members):
            mine = self._members[episodes] == number
            if mine.any():
                rows = episodes[mine]
                inputs = _inputs(spec, self._observations[rows], self._timesteps[rows], actions[mine])
                outcomes[mine], terminated[mine] = self._sampled(parameters, inputs, noise[mine])
        learner = spec.method.learner
        assert isinstance(learner, Dynamics)
        assert learner.reward is not None
        change = np.asarray(learner.change, np.float32)
        moved = self._observations[episodes] + outcomes[:, :-1] * change
        self._observations[episodes] = np.clip(moved, *self._model.bounds)
        mean, std = learner.reward
        self._timesteps[episodes] += 1
        return Transition(
            self._seen(episodes),
            np.clip(mean + std * outcomes[:, -1].astype(np.float64), *self._model.rewards),
            terminated,
            self._timesteps[episodes] >= self.horizon,
        )

    @property
    def support(self) -> NDArray[np.float64]:
        """The fraction of each copy's steps that are like logged ones. [copy]"""
        return self._supported / np.maximum(self._looked, 1)

    def _look(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> None:
        """Compare some of the steps with logged ones."""
        looks = self._timesteps[episodes] % self._every == 0
        if not looks.any():
            return
        rows = episodes[looks]
        encoded = encoded_actions(self._model.spec, actions[looks])
        self._looked[rows] += 1
        self._supported[rows] += self._model.support.is_near(self._observations[rows], encoded)

    def close(self) -> None:
        """Nothing is open."""

    def _seen(self, episodes: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        mean, std = self._model.spec.observations.arrays
        seen: NDArray[np.float32] = self._observations[episodes] * std + mean
        return seen

    def _drawn(self, episodes: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Random numbers of a step: normal ones for the outcomes, then a logistic one for the end."""
        places = self._timesteps[episodes] % _NOISE_STEPS
        for row in episodes[places == 0].tolist():
            random = self._random[row]
            self._noise[row] = random.standard_normal(self._noise.shape[1:], np.float32)
            self._noise[row, :, -1] = random.logistic(size=_NOISE_STEPS)
        return self._noise[episodes, places]

    def _sampled(
        self, parameters: Parameters, inputs: NDArray[np.float32], noise: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Standardized outcomes [row, dimension + 1], and whether episodes terminate [row]."""
        means, stds, logits = _outputs(parameters, inputs)
        # A logistic variable is below a logit with the probability that the logit means. Where nothing is
        # random, ends are not either: one in a thousand steps would end most episodes of a thousand.
        random = self._model.random
        return means + stds * random * noise[:, :-1], random.max() * noise[:, -1] < logits


def _is_random(spec: PolicySpec, members: list[Parameters], data: Trajectories) -> NDArray[np.bool_]:
    """Which outcomes are random, rather than predicted with an error, which a model takes for noise as well.

    Errors are small beside the changes from step to step. As noise they would end episodes that go well.
    """
    rows = np.random.default_rng(0).choice(data.steps, min(_LOOKED_AT, data.steps), replace=False)
    observations = spec.observations.received(data.observations[rows])
    inputs = _inputs(spec, observations, data.timesteps[rows], data.actions[rows])
    squares = [np.square(_outputs(parameters, inputs)[1]).mean(axis=0) for parameters in members]
    return np.asarray(np.mean(squares, axis=0) > _NOTABLE)


def _inputs(
    spec: PolicySpec,
    observations: NDArray[np.float32],  # normalized
    timesteps: NDArray[np.int64],
    actions: NDArray[Any],
) -> NDArray[np.float32]:
    times = (timesteps / spec.horizon).astype(np.float32)
    return np.concatenate([observations, times[:, None], encoded_actions(spec, actions)], axis=1)


def _outputs(
    parameters: Parameters, inputs: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Means and stds of standardized outcomes [row, dimension + 1], and logits of the end [row]."""
    x = inputs
    for number in range(last := len(parameters) - 1):
        x = np.maximum(_dense(parameters[f"layer{number}"], x), 0)
    y = _dense(parameters[f"layer{last}"], x)
    means, log_stds = np.split(y[:, :-1], 2, axis=1)
    low, high = LOG_STD
    log_stds = high - np.logaddexp(0, high - log_stds)
    return means, np.exp(low + np.logaddexp(0, log_stds - low)), y[:, -1]


def _dense(layer: Parameters, x: NDArray[np.float32]) -> NDArray[np.float32]:
    return x @ layer["weight"] + layer["bias"]
