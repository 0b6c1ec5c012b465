"""Random data in the shapes of the robots', and methods in training on it.

Of what the data says, speed depends on one thing only: the share of the windows that is raised.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from cwbc import sampling, updates
from cwbc.datasets.arrays import from_arrays
from cwbc.design import Design
from cwbc.device import default_precision
from cwbc.methods import Method, Preset, Training, sized
from cwbc.trajectories import Trajectories

ROBOTS = {"HalfCheetah-v5": (17, 6), "Hopper-v5": (11, 3)}  # sizes of observations and actions


def logged(steps: int, environment: str = "HalfCheetah-v5") -> Trajectories:
    """Episodes of 1,000 steps."""
    observation_size, action_size = ROBOTS[environment]
    generator = np.random.default_rng(0)
    return from_arrays(
        "random",
        generator.standard_normal((steps, observation_size), np.float32),
        2 * generator.random((steps, action_size), np.float32) - 1,
        generator.standard_normal(steps, np.float32),
        np.zeros(steps, bool),
        np.arange(1, steps + 1) % 1000 == 0,
        environment=environment,
        time_limit=1000,
    )


class Trainee:
    """A method in the middle of its training.

    Args:
        chunk: steps trained at once, where a turn should be shorter than training's own chunks.
        source: where the data lies.
    """

    def __init__(
        self,
        name: str,
        data: Trajectories,
        preset: Preset,
        seeds: int = 1,
        chunk: int | None = None,
        source: Callable[[Trajectories, Method], sampling.Source] = sampling.to_device,
    ) -> None:
        method, training = sized(name, preset)
        self.training: Training = dataclasses.replace(training, precision=default_precision())
        self.design = Design.fit(method, data, self.training.context)
        self.data = source(data, self.design.method)
        self.seeds = tuple(range(seeds))
        self.state = updates.initialize(self.design, self.training, self.seeds)
        self.chunk = chunk or updates.chunk_length(self.design, self.training, self.state)

    def train(self) -> Any:
        """One more chunk of steps."""
        self.state, losses = updates.run_chunk(
            self.design, self.training, self.state, self.data, self.seeds, 0, self.chunk
        )
        return losses

    @property
    def weights(self) -> int:
        """The number of parameters, of all seeds together."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.state.parameters))

    @property
    def windows(self) -> int:
        """Windows that go through the network in a step of one seed, the raised ones included."""
        drawn = self.training.batch_size
        return drawn + math.ceil(drawn * self.data.episodes.raised_share)
