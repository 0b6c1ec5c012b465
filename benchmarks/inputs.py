"""Random data in the shapes of the robots', and methods in training on it.

Of the data's contents, speed depends on one thing only: the fraction of regularized windows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cwbc.core import sampling, training_loop
from cwbc.core.device import default_precision
from cwbc.core.methods import Method, Preset, Training, sized
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.trajectories import Trajectories
from cwbc.data.formats.arrays import from_arrays

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
        source: where the data is stored.
        settings: of the training, in place of the preset's.
    """

    def __init__(
        self,
        name: str,
        data: Trajectories,
        preset: Preset,
        seeds: int = 1,
        chunk: int | None = None,
        source: Callable[[Trajectories, Method], sampling.Source] = sampling.to_device,
        **settings: Any,
    ) -> None:
        method, of_preset = sized(name, preset)
        self.training: Training = dataclasses.replace(of_preset, precision=default_precision(), **settings)
        self.spec = PolicySpec.fit(method, data, self.training)
        self.data = source(data, self.spec.method)
        self.seeds = tuple(range(seeds))
        state = training_loop.initialize(self.spec, self.seeds)
        self.state = jax.tree.map(lambda x: jnp.concatenate([x] * self.data.methods), state)
        self.chunk = chunk or training_loop.chunk_length(self.spec, self.training)

    def train(self) -> Any:
        """One more chunk of steps."""
        self.state, metrics = training_loop.run_chunk(
            self.spec, self.training, self.state, self.data, self.seeds, 0, self.chunk
        )
        return metrics

    @property
    def weights(self) -> int:
        """The number of parameters, of all seeds together."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.state.parameters))

    @property
    def windows(self) -> int:
        """Windows that go through the network in a step of one seed, with the regularized ones."""
        sampled = self.training.batch_size
        return sampled + math.ceil(sampled * self.data.episodes.selected_fraction)
