"""Encoders: from image observations to features, the input of every network."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from cwbc.core.device import on_cpu
from cwbc.core.layers import Parameters, relu
from cwbc.system.errors import InputError, require

_LARGEST = 65_536  # channels, or pixels
SMALL = 36  # pixels, below which the strides of the default would leave nothing


def is_large(shape: tuple[int, ...]) -> bool:
    """Whether observations are images that the paper's convolutions fit."""
    return len(shape) > 1 and min(shape[:2]) >= SMALL


@dataclasses.dataclass(frozen=True)
class Convolutions:
    """Convolutions with ReLU and without padding; the features are the outputs of the last one.

    None takes the paper's values, or small kernels for small images.

    Args:
        channels: channels of each convolution, for image observations (paper: 32,32,64).
        kernels: side of each convolution's kernel in pixels (paper: 8,4,3).
        strides: stride of each convolution in pixels (paper: 4,2,1).
    """

    channels: tuple[int, ...] | None = None
    kernels: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name, values in dataclasses.asdict(self).items():
            if values is not None:
                require(1 <= len(values) <= 100, name, values, "1 to 100 numbers")
                require(1 <= min(values) <= max(values) <= _LARGEST, name, values, f"1 to {_LARGEST:,} each")
        given = [values for values in dataclasses.astuple(self) if values is not None]
        require(len(set(map(len, given))) <= 1, "channels, kernels and strides", given, "equally many")

    def fit(self, shape: tuple[int, ...]) -> Convolutions:
        """The same with its values for images [height, width, channel] filled in; vectors need none."""
        if len(shape) == 1:
            if self != Convolutions():
                raise InputError("channels, kernels and strides are options for image observations only")
            return self
        default = _DEFAULT if is_large(shape) else _DEFAULT_OF_SMALL
        return Convolutions(
            self.channels or default.channels,
            self.kernels or default.kernels,
            self.strides or default.strides,
        )

    def features(self, shape: tuple[int, ...]) -> int:
        """How many features an image [height, width, channel] becomes."""
        return self._sizes(shape)[-1][0]

    def outputs(self, shape: tuple[int, ...]) -> int:
        """How many numbers all layers give for an image."""
        return sum(outputs for outputs, _ in self._sizes(shape))

    def products(self, shape: tuple[int, ...]) -> int:
        """How many multiplications all layers need for an image."""
        return sum(outputs * inputs for outputs, inputs in self._sizes(shape))

    def _sizes(self, shape: tuple[int, ...]) -> list[tuple[int, int]]:
        """How many outputs each layer has for an image, and how many inputs each of them."""
        height, width, inputs = shape
        sizes = []
        for outputs, side, stride in self._layers():
            height, width = (height - side) // stride + 1, (width - side) // stride + 1
            if min(height, width) < 1:
                raise InputError(f"images of {shape[0]} x {shape[1]} pixels are too small for {self}")
            sizes.append((height * width * outputs, side * side * inputs))
            inputs = outputs
        return sizes

    def initialize(self, key: jax.Array, shape: tuple[int, ...]) -> Parameters:
        """Fresh parameters, uniform within 1 / sqrt(inputs)."""
        keys, inputs = jax.random.split(key, len(self._layers())), shape[-1]
        layers = {}
        for i, (outputs, side, _) in enumerate(self._layers()):
            weight_key, bias_key = jax.random.split(keys[i])
            kernel = (side, side, inputs, outputs)
            limit = 1 / math.sqrt(math.prod(kernel[:3]))
            layers[f"convolution{i}"] = {
                "weight": jax.random.uniform(weight_key, kernel, minval=-limit, maxval=limit),
                "bias": jax.random.uniform(bias_key, (outputs,), minval=-limit, maxval=limit),
            }
            inputs = outputs
        return layers

    def __call__(
        self,
        parameters: Parameters,
        images: jax.Array,
        activation: Callable[[int, jax.Array], jax.Array] = lambda layer, x: relu(x),
    ) -> jax.Array:
        """The features of images of bytes. [..., height, width, channel] to [..., feature]"""
        x = images.reshape(-1, *images.shape[-3:]).astype(jnp.float32) / 255
        for i, (_, _, stride) in enumerate(self._layers()):
            layer = parameters[f"convolution{i}"]
            x = activation(i, _convolution(x, layer["weight"], stride) + layer["bias"])
        return x.reshape(*images.shape[:-3], -1)

    def _layers(self) -> list[tuple[int, int, int]]:
        """Channels, kernel and stride of each layer."""
        if self.channels is None or self.kernels is None or self.strides is None:
            raise ValueError("the convolutions are not known before fit(shape)")
        return list(zip(self.channels, self.kernels, self.strides, strict=True))


def _convolution(images: jax.Array, weight: jax.Array, stride: int) -> jax.Array:
    """A convolution without padding. [image, height, width, channel]"""
    if not on_cpu():
        axes = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(images, weight, (stride,) * 2, "VALID", dimension_numbers=axes)
    # In a loop, XLA's own convolutions are an order of magnitude slower on a CPU than a product of patches.
    side = len(weight)
    height, width = (stride * ((size - side) // stride) + 1 for size in images.shape[1:3])
    patches = [
        images[:, row : row + height : stride, column : column + width : stride]
        for row in range(side)
        for column in range(side)
    ]
    return jnp.concatenate(patches, axis=-1) @ weight.reshape(-1, weight.shape[-1])


_DEFAULT = Convolutions((32, 32, 64), (8, 4, 3), (4, 2, 1))
_DEFAULT_OF_SMALL = Convolutions((32, 64), (3, 3), (1, 1))
