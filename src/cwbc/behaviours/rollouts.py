"""What behaviours achieve: whole episodes of several behaviours, side by side in one batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cwbc import simulators
from cwbc.behaviours.behaviour import Behaviour


def measure(
    environment: str,
    behaviours: Sequence[Behaviour],
    episodes: int,
    seed: int,
    stochastic: bool = False,
    threads: int = 0,
) -> NDArray[np.float64]:
    """The returns of each behaviour, [behaviour, episode]; all of them start from the same states."""
    count = len(behaviours)
    simulator = simulators.make(environment, count * episodes, threads)
    first_seeds = np.random.default_rng(seed).integers(2**31, size=episodes).tolist()
    generators = [np.random.default_rng((seed, row)) if stochastic else None for row in range(count)]
    running = np.arange(count * episodes)
    observations = simulator.reset(running, first_seeds * count)
    returns = np.zeros(len(running))
    while len(running):
        starts = np.searchsorted(running, np.arange(1, count) * episodes)
        parts = zip(behaviours, np.split(observations, starts), generators, strict=True)
        actions = np.concatenate([behaviour.act(part, generator) for behaviour, part, generator in parts])
        outcome = simulator.step(running, actions)
        returns[running] += outcome.rewards
        going = ~(outcome.terminated | outcome.truncated)
        running, observations = running[going], outcome.observations[going]
    simulator.close()
    return returns.reshape(count, episodes)
