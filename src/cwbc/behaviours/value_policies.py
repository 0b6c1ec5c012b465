"""Epsilon-greedy policies in plain numpy, with the same bits on every machine.

Weights, inputs and activations are small whole numbers, whose sums of products float32 holds exactly, in
whichever order they are summed. All else works on one number at a time, and is rounded alike everywhere.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.system import tensor_files
from cwbc.system.errors import InputError
from cwbc.system.tensor_files import Tensors

_PIXEL = 1 / 255  # as networks read bytes
_OBSERVATION = 2.0**-16  # the grid of observations that are no images
_SUM = 2.0**-10  # the grid on which a layer norm computes, so that its own sums are exact
_EPSILON = 1e-5  # beside the variance that a layer norm divides by
_LARGEST = 255  # of a pixel and of an activation
_WIDEST = 6.0  # stds, at which activations are clipped
_LEVELS = 127  # the largest weight of a layer
_FEW_LEVELS = 7  # the same of a large one, which makes up most of a file
_LARGE = 1 << 17  # weights
_EXACT = 2.0**24  # whole numbers below this are exact in float32
_ROWS = 16  # images whose patches stay in the cache
# Larger products would wake BLAS's threads, which cost more than they bring while emulators use the cores.
_MOST_PRODUCTS = 1 << 18

Floats = NDArray[np.floating[Any]]
Choices = NDArray[np.int32]


@dataclasses.dataclass(frozen=True)
class UniformChoice:
    """Uniformly random discrete actions."""

    action_count: int
    stack = 1

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """Numbers between 0 and 1."""
        return generator.uniform(0, 1, steps)

    def act(self, observations: NDArray[Any], noise: Floats | None = None) -> Choices:
        """Actions whatever the observations; without noise, the first."""
        chosen = np.zeros(len(observations)) if noise is None else noise * self.action_count
        return chosen.astype(np.int32)


@dataclasses.dataclass(frozen=True)
class Layer:
    """A convolution or a dense layer; all but the last are followed by a layer norm and a ReLU."""

    weight: NDArray[np.int8]  # [in, out], or [row, column, in, out] of a convolution
    unit: float  # what 1 stands for in its sums of products
    bias: NDArray[np.float32]  # [out]
    stride: int = 0  # of a convolution
    scale: NDArray[np.float32] | None = None  # [out], of the layer norm; None of the last layer
    shift: NDArray[np.float32] | None = None  # [out], likewise
    activation: float = 1.0  # what 1 stands for in its activations

    @classmethod
    def of(
        cls, linear: dict[str, Any], norm: dict[str, Any] | None, input_unit: float, stride: int = 0
    ) -> Layer:
        """A trained layer, with rounded weights."""
        weight = np.asarray(linear["weight"], np.float64)
        levels = _LEVELS if weight.size <= _LARGE else _FEW_LEVELS
        step = _rounding(weight, levels)
        whole = np.rint(weight / step).clip(-levels, levels).astype(np.int8)
        layer = cls(whole, step * input_unit, np.asarray(linear["bias"], np.float32), stride)
        if norm is None:
            return layer
        scale, shift = (np.asarray(norm[part], np.float32) for part in ("scale", "bias"))
        highest = float((_WIDEST * np.abs(scale) + shift).max())
        return dataclasses.replace(layer, scale=scale, shift=shift, activation=max(highest, 1e-3) / _LARGEST)

    def __call__(self, inputs: Floats) -> Floats:
        """Activations of whole inputs [row, ...], in whole units; of the last layer, the values."""
        outputs = self.sums(inputs).astype(np.float64) * self.unit + self.bias
        if self.scale is None or self.shift is None:
            return outputs
        whole = np.rint(outputs / _SUM)
        mean = whole.mean(axis=-1, keepdims=True)
        variance = (whole * whole).mean(axis=-1, keepdims=True) - mean * mean
        normal = (whole - mean) / np.sqrt(variance + _EPSILON / _SUM**2)
        activations = (normal * self.scale.astype(np.float64) + self.shift) / self.activation
        return np.rint(activations).clip(0, _LARGEST).astype(np.float32)

    def sums(self, inputs: Floats) -> Floats:
        """The sums of products, which are whole numbers. [row, ..., out]"""
        weight = self._small if inputs.dtype == np.float32 else self._wide
        inputs = inputs.astype(weight.dtype, copy=False)
        if self.stride:
            return (
                _patches(inputs, len(self.weight), self.stride) @ weight
            )  # a product for each row of pixels
        return _product(inputs.reshape(len(inputs), -1), weight)

    @functools.cached_property
    def _wide(self) -> NDArray[np.float64]:
        """The weights in float64, for inputs of any size. [in, out]"""
        return self.weight.reshape(-1, self.weight.shape[-1]).astype(np.float64)

    @functools.cached_property
    def _small(self) -> Floats:
        """The weights for pixels and activations: in float32, unless a sum could be too large for it."""
        largest = _LARGEST * np.abs(self._wide).sum(axis=0).max()
        return self._wide.astype(np.float32) if largest < _EXACT else self._wide


@dataclasses.dataclass(frozen=True)
class ValuePolicy:
    """The action with the highest value; with probability epsilon, a random one."""

    layers: tuple[Layer, ...]
    shape: tuple[int, ...]  # of an observation: [number], or [height, width, channel] of an image
    stack: int  # frames that it reads
    epsilon: float

    @classmethod
    def of(
        cls,
        trained: Iterable[tuple[dict[str, Any], dict[str, Any] | None, int]],
        shape: tuple[int, ...],
        stack: int,
        epsilon: float,
    ) -> ValuePolicy:
        """The policy of trained layers, their norms and strides, rounded as its file is."""
        layers: list[Layer] = []
        unit = _OBSERVATION if len(shape) == 1 else _PIXEL
        for linear, norm, stride in trained:
            layers.append(Layer.of(linear, norm, unit, stride))
            unit = layers[-1].activation
        return cls(tuple(layers), shape, stack, epsilon)

    @property
    def action_count(self) -> int:
        """How many actions there are."""
        return len(self.layers[-1].bias)

    @property
    def uniform(self) -> UniformChoice:
        """The policy of random actions in the same environment."""
        return UniformChoice(self.action_count)

    def noise(self, generator: np.random.Generator, steps: int) -> Floats:
        """Numbers between 0 and 1."""
        return generator.uniform(0, 1, steps)

    def act(self, observations: NDArray[Any], noise: Floats | None = None) -> Choices:
        """Actions for observations [episode, number], of which the frames of a stack follow each other."""
        blocks = [observations[row : row + _ROWS] for row in range(0, len(observations), _ROWS)]
        best = np.concatenate([self.values(block).argmax(axis=-1) for block in blocks])
        if noise is not None:
            # A number below epsilon is as random as any other, once it is scaled up.
            random = np.minimum(noise / max(self.epsilon, 1e-9) * self.action_count, self.action_count - 1)
            best = np.where(noise < self.epsilon, random.astype(np.int64), best)
        return best.astype(np.int32)

    def values(self, observations: NDArray[Any]) -> Floats:
        """The value of each action, [episode, action]."""
        if len(self.shape) == 1:
            whole = np.rint(observations.astype(np.float32).astype(np.float64) / _OBSERVATION)
        else:
            frames = observations.reshape(len(observations), self.stack, *self.shape)
            images = np.moveaxis(frames, 1, -2).reshape(len(observations), *self.shape[:2], -1)
            whole = images.astype(np.float32)
        for layer in self.layers:
            whole = layer(whole)
        return whole

    def save(self, path: Path) -> None:
        """Write the policy."""
        tensors: Tensors = {}
        for number, layer in enumerate(self.layers):
            packed = np.frombuffer(zlib.compress(layer.weight.tobytes(), 9), np.uint8)
            arrays: dict[str, NDArray[Any] | None] = {"weight": packed, "bias": layer.bias}
            arrays |= {"scale": layer.scale, "shift": layer.shift}
            tensors |= {f"{number}/{name}": array for name, array in arrays.items() if array is not None}
        layers = [
            {
                "shape": layer.weight.shape,
                "unit": layer.unit,
                "stride": layer.stride,
                "activation": layer.activation,
            }
            for layer in self.layers
        ]
        facts = {"layers": layers, "shape": self.shape, "stack": self.stack, "epsilon": self.epsilon}
        tensor_files.write(path, tensors, {"values": facts})


def is_value_policy(description: dict[str, Any]) -> bool:
    """Whether the file with this description holds such a policy."""
    return "values" in description


def of_file(path: Path, tensors: Tensors, description: dict[str, Any]) -> ValuePolicy:
    """The policy that `save` wrote."""
    try:
        facts = description["values"]
        layers = [_layer(path, tensors, number, **each) for number, each in enumerate(facts["layers"])]
        shape = tuple(map(int, facts["shape"]))
        policy = ValuePolicy(tuple(layers), shape, int(facts["stack"]), float(facts["epsilon"]))
        policy.values(np.zeros((1, policy.stack * math.prod(shape)), np.uint8))  # do the layers fit?
    except InputError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, zlib.error, OverflowError) as error:
        raise InputError(f"{path} holds no behaviour policy") from error
    return policy


def _layer(path: Path, tensors: Tensors, number: int, shape: list[int], **numbers: float) -> Layer:
    arrays = {}
    for name in ("bias", "scale", "shift"):
        if (array := tensors.get(f"{number}/{name}")) is not None:
            tensor_files.check_tensor(path, f"{number}/{name}", array, (shape[-1],), np.dtype(np.float32))
            arrays[name] = array
    packed = tensors[f"{number}/weight"].tobytes()
    unpacked = zlib.decompressobj().decompress(packed, math.prod(shape) + 1)
    weight = np.frombuffer(unpacked, np.int8).reshape(shape)
    return Layer(weight, **arrays, **numbers)  # type: ignore[arg-type]


def _rounding(weight: NDArray[np.float64], levels: int) -> float:
    """The step between rounded weights with the smallest squared error."""
    largest = np.abs(weight).max() or 1.0
    steps = largest / levels * np.linspace(1, 0.1, 19)
    return float(min(steps, key=lambda step: np.square(_rounded(weight, step, levels) - weight).sum()))


def _rounded(weight: NDArray[np.float64], step: float, levels: int) -> NDArray[np.float64]:
    return np.rint(weight / step).clip(-levels, levels) * step


def _product(inputs: Floats, weight: Floats) -> Floats:
    """inputs @ weight as a sum of small products; as all sums are exact, their order does not matter."""
    if len(inputs) == 1:  # of vectors, BLAS would use threads for much smaller ones
        return _product(np.repeat(inputs, 2, axis=0), weight)[:1]
    size = max(1, _MOST_PRODUCTS // (len(inputs) * weight.shape[1]))
    parts = (slice(first, first + size) for first in range(0, len(weight), size))
    return sum((inputs[:, part] @ weight[part] for part in parts), np.zeros((), weight.dtype))


def _patches(images: Floats, side: int, stride: int) -> Floats:
    """What each output of a convolution without padding reads. [image, row, column, input]"""
    images = np.ascontiguousarray(images)
    count, height, width, channels = images.shape
    down, right = (height - side) // stride + 1, (width - side) // stride + 1
    image, row, column, item = images.strides
    # The columns of a patch lie side by side in memory, with their channels.
    shape = (count, down, right, side, side * channels)
    strides = (image, stride * row, stride * column, row, item)
    return np.lib.stride_tricks.as_strided(images, shape, strides).reshape(count, down, right, -1)
