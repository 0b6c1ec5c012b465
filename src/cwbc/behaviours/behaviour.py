"""A trained actor that needs nothing but numpy to act, and the small file it lives in."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc import checkpoints
from cwbc.behaviours.sac import LOG_DEVIATIONS
from cwbc.errors import InputError

_LAYERS = ("first", "second", "output")


@dataclasses.dataclass(frozen=True)
class Behaviour:
    """What acts: a tanh-squashed normal whose mean and spread a small network gives."""

    actor: dict[str, Any]  # layer -> weight [in, out] and bias [out], float32
    low: NDArray[np.float32]  # [action], the lowest that the environment takes
    high: NDArray[np.float32]  # [action]
    about: dict[str, Any] = dataclasses.field(default_factory=dict)  # environment, steps, return, ...

    def act(
        self, observations: NDArray[np.floating[Any]], generator: np.random.Generator | None = None
    ) -> NDArray[np.float32]:
        """Actions [episode, action] in the environment's own range.

        Args:
            generator: draws the actions; without one they are the middle of the distribution.
        """
        hidden = np.asarray(observations, np.float32)
        for name in _LAYERS[:-1]:
            hidden = np.maximum(hidden @ self.actor[name]["weight"] + self.actor[name]["bias"], 0)
        output = hidden @ self.actor["output"]["weight"] + self.actor["output"]["bias"]
        means, raw = np.split(output, 2, axis=-1)
        if generator is not None:
            low, high = LOG_DEVIATIONS
            deviations = np.exp(low + (high - low) / 2 * (np.tanh(raw) + 1))
            means = means + deviations * generator.standard_normal(means.shape, np.float32)
        return scale(np.tanh(means), self.low, self.high)

    def save(self, path: Path) -> None:
        """Write the behaviour in float16; what is read back is what `rounded` gives."""
        half = {name: tensor.astype(np.float16) for name, tensor in self._tensors().items()}
        bounds = {"low": self.low, "high": self.high}
        checkpoints.write(path, half | bounds, {"behaviour": self.about})

    def rounded(self) -> Behaviour:
        """The behaviour as its file holds it, so that what is measured is what is kept."""
        actor = {
            name: {part: _half(tensor) for part, tensor in layer.items()}
            for name, layer in self.actor.items()
        }
        return dataclasses.replace(self, actor=actor)

    def _tensors(self) -> dict[str, NDArray[np.float32]]:
        return {
            f"actor/{name}/{part}": tensor
            for name, layer in self.actor.items()
            for part, tensor in layer.items()
        }


def load(path: Path) -> Behaviour:
    """A behaviour from the file that save made."""
    tensors, description = checkpoints.read(path)
    actor = checkpoints.nested("actor", tensors)
    if "behaviour" not in description or set(actor) != set(_LAYERS):
        raise InputError(f"{path} holds no behaviour")
    wide = {
        name: {part: tensor.astype(np.float32) for part, tensor in layer.items()}
        for name, layer in actor.items()
    }
    return Behaviour(wide, tensors["low"], tensors["high"], description["behaviour"])


def scale(
    actions: NDArray[np.float32], low: NDArray[np.float32], high: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Actions within -1 and 1 in the range that the environment takes."""
    return (low + (actions + 1) * ((high - low) / 2)).astype(np.float32)


def _half(tensor: NDArray[np.float32]) -> NDArray[np.float32]:
    return tensor.astype(np.float16).astype(np.float32)
