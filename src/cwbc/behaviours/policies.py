"""The policies that generate data, in plain numpy, with the same bits on every machine.

A robot's episode is chaotic: one rounding that differs gives another dataset. So everything that a policy
multiplies lies on a grid on which sums of products are exact in float64, in whichever order they are summed.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cwbc.system import tensor_files
from cwbc.system.errors import InputError

# The log std of an action is squashed smoothly into this range: clipping would stop its gradient.
LOG_STDS = (-5.0, 2.0)
# Products of two numbers on the grid are multiples of 2^-32: their sums are exact up to 2^21.
_GRID = 2.0**-16
# Larger products would wake BLAS's threads, which cost more than they bring while the physics use the cores.
_ROWS = 64
_LAYERS = ("first", "second", "output")

Floats = NDArray[np.floating[Any]]


class Actor(Protocol):
    """Chooses actions from observations and noise, which is sampled before, step by step."""

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """The noise that `act` takes in each of so many steps of one episode, [step, action]."""
        ...

    def act(self, observations: Floats, noise: Floats | None = None) -> NDArray[np.float32]:
        """Actions [episode, action] in the environment's own range; without noise, deterministic ones."""
        ...


@dataclasses.dataclass(frozen=True)
class UniformPolicy:
    """Uniformly random actions."""

    low: NDArray[np.float32]  # [action], the bounds of the environment's actions
    high: NDArray[np.float32]  # [action]

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """Numbers between -1 and 1."""
        return generator.uniform(-1, 1, (steps, len(self.low)))

    def act(self, observations: Floats, noise: Floats | None = None) -> NDArray[np.float32]:
        """Actions whatever the observations; without noise, the middle of the range."""
        middle = np.zeros((len(observations), len(self.low)))
        return scale(middle if noise is None else noise, self.low, self.high)


@dataclasses.dataclass(frozen=True)
class BehaviourPolicy:
    """A tanh-squashed normal distribution whose mean and std are given by a small network."""

    actor: dict[str, Any]  # layer -> weight [in, out] and bias [out], float64 on the grid
    low: NDArray[np.float32]  # [action], the bounds of the environment's actions
    high: NDArray[np.float32]  # [action]

    @classmethod
    def of(
        cls, actor: dict[str, Any], low: NDArray[np.float32], high: NDArray[np.float32]
    ) -> BehaviourPolicy:
        """The policy of a trained actor, rounded as its file is, so that the file's policy is evaluated."""
        rounded = {
            name: {
                part: _on_grid(np.asarray(tensor)).astype(np.float16).astype(np.float64)
                for part, tensor in layer.items()
            }
            for name, layer in actor.items()
        }
        return cls(rounded, low, high)

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """Standard normal numbers."""
        return generator.standard_normal((steps, len(self.low)))

    def act(self, observations: Floats, noise: Floats | None = None) -> NDArray[np.float32]:
        """Actions for observations [episode, dimension]; without noise, the squashed mean."""
        hidden = observations.astype(np.float32)
        for name in _LAYERS[:-1]:
            hidden = np.maximum(self._apply(name, hidden), 0)
        means, raw = np.split(self._apply("output", hidden), 2, axis=-1)
        if noise is not None:
            low, high = LOG_STDS
            means = means + np.exp(low + (high - low) / 2 * (np.tanh(raw) + 1)) * noise
        return scale(np.tanh(means), self.low, self.high)

    def _apply(self, name: str, inputs: Floats) -> Floats:
        weight, inputs = self.actor[name]["weight"], _on_grid(inputs)
        blocks = [inputs[row : row + _ROWS] @ weight for row in range(0, len(inputs), _ROWS)]
        return np.concatenate(blocks) + self.actor[name]["bias"]

    def save(self, path: Path) -> None:
        """Write the policy, in float16."""
        tensors = {
            f"actor/{name}/{part}": tensor.astype(np.float16)
            for name, layer in self.actor.items()
            for part, tensor in layer.items()
        }
        tensor_files.write(path, tensors | {"low": self.low, "high": self.high}, {})


def load(path: Path) -> BehaviourPolicy:
    """The policy that `save` wrote."""
    tensors, _ = tensor_files.read(path)
    weights = [tensors.get(f"actor/{name}/weight") for name in _LAYERS]
    sizes = [len(weight) for weight in weights if weight is not None and weight.ndim]
    sizes.append(2 * tensors.get("low", np.zeros(0)).size)
    shapes = {"low": [sizes[-1] // 2], "high": [sizes[-1] // 2]}
    for name, *shape in zip(_LAYERS, sizes, sizes[1:], strict=False):
        shapes |= {f"actor/{name}/weight": shape, f"actor/{name}/bias": shape[1:]}
    if shapes.keys() != tensors.keys():
        raise InputError(f"{path} holds no behaviour policy")
    for name, shape in shapes.items():
        tensor_files.check_tensor(path, name, tensors[name], tuple(shape), np.dtype(np.float16))
    return BehaviourPolicy.of(tensor_files.nested("actor", tensors), tensors["low"], tensors["high"])


def scale(actions: Floats, low: NDArray[np.float32], high: NDArray[np.float32]) -> NDArray[np.float32]:
    """Actions within -1 and 1 in the range of the environment's actions."""
    halves = (high.astype(np.float64) - low) / 2
    return (low + (_on_grid(actions) + 1) * halves).astype(np.float32)


def _on_grid(values: Floats) -> NDArray[np.float64]:
    return np.rint(values.astype(np.float64) / _GRID) * _GRID
