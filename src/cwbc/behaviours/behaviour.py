"""What acts when data is made: a small actor in plain numpy, with the same bits on every machine.

A robot's episode is chaotic: one rounding that differs makes another dataset. So everything that an actor
multiplies lies on a grid on which sums of products are exact in float64, in whichever order they are summed.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cwbc import checkpoints
from cwbc.errors import InputError

# The spread of an action is squashed smoothly into this range: clipping would stop its gradient.
LOG_DEVIATIONS = (-5.0, 2.0)
# Products of two numbers on the grid are multiples of 2^-32: their sums are exact up to 2^21.
_GRID = 2.0**-16
# Larger products would wake BLAS's threads, which cost more than they bring while the physics use the cores.
_ROWS = 64
_LAYERS = ("first", "second", "output")

Floats = NDArray[np.floating[Any]]


class Actor(Protocol):
    """Chooses actions; what is random about them is drawn before, step by step."""

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """What `act` takes as noise in each of so many steps of one episode, [step, action]."""
        ...

    def act(self, observations: Floats, noise: Floats | None = None) -> NDArray[np.float32]:
        """Actions [episode, action] in the environment's own range."""
        ...


@dataclasses.dataclass(frozen=True)
class Uniform:
    """Any action as likely as any other."""

    low: NDArray[np.float32]  # [action], the lowest that the environment takes
    high: NDArray[np.float32]  # [action]

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """Numbers between -1 and 1."""
        return generator.uniform(-1, 1, (steps, len(self.low)))

    def act(self, observations: Floats, noise: Floats | None = None) -> NDArray[np.float32]:
        """Actions whatever the observations; without noise, the middle of the range."""
        middle = np.zeros((len(observations), len(self.low)))
        return scale(middle if noise is None else noise, self.low, self.high)


@dataclasses.dataclass(frozen=True)
class Behaviour:
    """A tanh-squashed normal whose mean and spread a small network gives."""

    actor: dict[str, Any]  # layer -> weight [in, out] and bias [out], float64 on the grid
    low: NDArray[np.float32]  # [action], the lowest that the environment takes
    high: NDArray[np.float32]  # [action]

    @classmethod
    def of(cls, actor: dict[str, Any], low: NDArray[np.float32], high: NDArray[np.float32]) -> Behaviour:
        """The behaviour of a trained actor as its file holds it, so that what is measured is what is kept."""
        halves = {
            name: {
                part: _on_grid(np.asarray(tensor)).astype(np.float16).astype(np.float64)
                for part, tensor in layer.items()
            }
            for name, layer in actor.items()
        }
        return cls(halves, low, high)

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """Standard normal numbers."""
        return generator.standard_normal((steps, len(self.low)))

    def act(self, observations: Floats, noise: Floats | None = None) -> NDArray[np.float32]:
        """Actions for observations [episode, dimension]; without noise, the middle of the distribution."""
        hidden = observations.astype(np.float32)
        for name in _LAYERS[:-1]:
            hidden = np.maximum(self._apply(name, hidden), 0)
        means, raw = np.split(self._apply("output", hidden), 2, axis=-1)
        if noise is not None:
            low, high = LOG_DEVIATIONS
            means = means + np.exp(low + (high - low) / 2 * (np.tanh(raw) + 1)) * noise
        return scale(np.tanh(means), self.low, self.high)

    def _apply(self, name: str, inputs: Floats) -> Floats:
        weight, inputs = self.actor[name]["weight"], _on_grid(inputs)
        blocks = [inputs[row : row + _ROWS] @ weight for row in range(0, len(inputs), _ROWS)]
        return np.concatenate(blocks) + self.actor[name]["bias"]

    def save(self, path: Path) -> None:
        """Write the behaviour, in float16."""
        halves = {
            f"actor/{name}/{part}": tensor.astype(np.float16)
            for name, layer in self.actor.items()
            for part, tensor in layer.items()
        }
        checkpoints.write(path, halves | {"low": self.low, "high": self.high}, {})


def load(path: Path) -> Behaviour:
    """A behaviour from the file that save made."""
    tensors, _ = checkpoints.read(path)
    layers = [tensors.get(f"actor/{name}/weight") for name in _LAYERS]
    if any(layer is None or layer.ndim != 2 for layer in layers) or not {"low", "high"} <= set(tensors):
        raise InputError(f"{path} holds no behaviour")
    sizes = [layer.shape[0] for layer in layers if layer is not None] + [2 * tensors["low"].size]
    shapes = {f"actor/{name}/weight": sizes[i : i + 2] for i, name in enumerate(_LAYERS)}
    shapes |= {f"actor/{name}/bias": [sizes[i + 1]] for i, name in enumerate(_LAYERS)}
    shapes |= {name: [tensors["low"].size] for name in ("low", "high")}
    if shapes.keys() != tensors.keys():
        raise InputError(f"{path} holds no behaviour")
    for name, shape in shapes.items():
        checkpoints.check_tensor(path, name, tensors[name], tuple(shape), np.dtype(np.float16))
    return Behaviour.of(checkpoints.nested("actor", tensors), tensors["low"], tensors["high"])


def scale(actions: Floats, low: NDArray[np.float32], high: NDArray[np.float32]) -> NDArray[np.float32]:
    """Actions within -1 and 1 in the range that the environment takes."""
    halves = (high.astype(np.float64) - low) / 2
    return (low + (_on_grid(actions) + 1) * halves).astype(np.float32)


def _on_grid(values: Floats) -> NDArray[np.float64]:
    return np.rint(values.astype(np.float64) / _GRID) * _GRID
