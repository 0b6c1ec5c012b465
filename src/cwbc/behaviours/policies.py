"""The policies that generate data, in plain numpy, with the same bits on every machine.

A robot's episode is chaotic: one rounding that differs gives another dataset. So everything that a policy
multiplies lies on a grid on which sums of products are exact in float64, in whichever order they are summed.
Noise is sampled before the actions: [step, action] for an episode, [episode, action] to act.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.behaviours import value_policies
from cwbc.behaviours.value_policies import UniformChoice, ValuePolicy
from cwbc.system import tensor_files
from cwbc.system.errors import InputError

# The log std of an action is squashed smoothly into this range: clipping would stop its gradient.
LOG_STDS = (-5.0, 2.0)
# Products of two numbers on the grid are multiples of 2^-32: their sums are exact up to 2^21.
_GRID = 2.0**-16
# Larger products would wake BLAS's threads, which cost more than they bring while the physics use the cores.
_ROWS = 64
_LAYERS = ("actor/first", "actor/second", "actor/output")

Floats = NDArray[np.floating[Any]]
Float32s = NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class UniformPolicy:
    """Uniformly random actions."""

    low: Float32s  # [action], the bounds of the environment's actions
    high: Float32s  # [action]
    stack, action_count = 1, None

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """Numbers between -1 and 1."""
        return generator.uniform(-1, 1, (steps, len(self.low)))

    def act(self, observations: Floats, noise: Floats | None = None) -> Float32s:
        """Actions whatever the observations; without noise, the middle of the range."""
        middle = np.zeros((len(observations), len(self.low)))
        return scale(middle if noise is None else noise, self.low, self.high)


@dataclasses.dataclass(frozen=True)
class BehaviourPolicy:
    """A tanh-squashed normal distribution whose mean and std are given by a small network."""

    actor: dict[str, NDArray[np.float64]]  # weights [in, out] and biases [out] by their path, on the grid
    low: Float32s  # [action], the bounds of the environment's actions
    high: Float32s  # [action]
    stack, action_count = 1, None

    @property
    def uniform(self) -> UniformPolicy:
        """The policy of random actions in the same environment."""
        return UniformPolicy(self.low, self.high)

    @classmethod
    def of(cls, actor: Mapping[str, Floats], low: Float32s, high: Float32s) -> BehaviourPolicy:
        """The policy of a trained actor, rounded as its file is, so that the file's policy is evaluated."""
        rounded = {
            name: _on_grid(tensor).astype(np.float16).astype(np.float64) for name, tensor in actor.items()
        }
        return cls(rounded, low, high)

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """Standard normal numbers."""
        return generator.standard_normal((steps, len(self.low)))

    def act(self, observations: Floats, noise: Floats | None = None) -> Float32s:
        """Actions for observations [episode, dimension]; without noise, the squashed mean."""
        hidden: Floats = observations.astype(np.float32)
        for layer in _LAYERS[:-1]:
            hidden = np.maximum(self._apply(layer, hidden), 0)
        means, raw = np.split(self._apply(_LAYERS[-1], hidden), 2, axis=-1)
        if noise is not None:
            low, high = LOG_STDS
            means = means + np.exp(low + (high - low) / 2 * (np.tanh(raw) + 1)) * noise
        return scale(np.tanh(means), self.low, self.high)

    def _apply(self, layer: str, inputs: Floats) -> Floats:
        weight, inputs = self.actor[f"{layer}/weight"], _on_grid(inputs)
        blocks = [inputs[row : row + _ROWS] @ weight for row in range(0, len(inputs), _ROWS)]
        return np.concatenate(blocks) + self.actor[f"{layer}/bias"]

    def save(self, path: Path) -> None:
        """Write the policy, in float16."""
        tensors = {name: tensor.astype(np.float16) for name, tensor in self.actor.items()}
        tensor_files.write(path, tensors | {"low": self.low, "high": self.high}, {})


LearnedActor = BehaviourPolicy | ValuePolicy
Actor = UniformPolicy | UniformChoice | LearnedActor


def load(path: Path) -> LearnedActor:
    """The policy that `save` wrote."""
    tensors, description = tensor_files.read(path)
    if value_policies.is_value_policy(description):
        return value_policies.of_file(path, tensors, description)
    sizes = [len(np.atleast_1d(tensors.get(f"{layer}/weight", 0))) for layer in _LAYERS]
    sizes.append(2 * np.size(tensors.get("low", 0)))
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("low", "high"), (sizes[-1] // 2,))
    for layer, before, after in zip(_LAYERS, sizes[:-1], sizes[1:], strict=True):
        shapes |= {f"{layer}/weight": (before, after), f"{layer}/bias": (after,)}
    if shapes.keys() != tensors.keys():
        raise InputError(f"{path} holds no behaviour policy")
    for name, shape in shapes.items():
        tensor_files.check_tensor(path, name, tensors[name], shape, np.dtype(np.float16))
    low, high = tensors.pop("low"), tensors.pop("high")
    return BehaviourPolicy.of(tensors, low, high)


def scale(actions: Floats, low: Float32s, high: Float32s) -> Float32s:
    """Actions within -1 and 1 in the range of the environment's actions."""
    halves = (high.astype(np.float64) - low) / 2
    return (low + (_on_grid(actions) + 1) * halves).astype(np.float32)


def _on_grid(values: Floats) -> NDArray[np.float64]:
    return np.rint(values.astype(np.float64) / _GRID) * _GRID
