"""Policies that `cwbc export --format numpy` wrote: this module and the weights are all that acting needs.

policy = Policy.load("policy.npz"); policy.begin(target); action = policy.act(observation, reward)
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

FORMAT = 1
DESCRIPTION = "description"  # the name of the JSON text among the weights
_INPUTS = 3  # observation, reward, state: the first values of a step

Array = np.ndarray[Any, Any]
_erf = np.frompyfunc(math.erf, 1, 1)


def _divided(x: Array, y: Array) -> Array:
    quotient = np.divide(x, y)  # of whole numbers, rounded towards zero
    return quotient if x.dtype.kind == "f" else np.trunc(quotient).astype(x.dtype)


def _sliced(starts: list[int], ends: list[int], steps: list[int]) -> Callable[[Array], Array]:
    places = tuple(map(slice, starts, ends, steps))
    return lambda x: x[places]


def _gathered(batch_dims: int) -> Callable[[Array, Array], Array]:
    def gather(x: Array, indices: Array) -> Array:
        sizes = indices.shape[:-1]
        rows = [np.arange(sizes[i]).reshape(-1, *[1] * (len(sizes) - i - 1)) for i in range(batch_dims)]
        return x[(*rows, *(indices[..., i] for i in range(indices.shape[-1])))]

    return gather


def _convolution(strides: list[int]) -> Callable[[Array, Array], Array]:
    def convolve(x: Array, weight: Array) -> Array:  # [image, channel, row, column], [output, channel, ...]
        windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], (2, 3))
        windows = windows[:, :, :: strides[0], :: strides[1]]
        return np.moveaxis(np.tensordot(windows, weight, ((1, 4, 5), (1, 2, 3))), -1, 1)

    return convolve


def _reduction(reduce: Callable[..., Any]) -> Callable[..., Callable[[Array], Array]]:
    return lambda axes: lambda x: np.asarray(reduce(x, axis=tuple(axes)), x.dtype)


def _always(function: Callable[..., Any]) -> Callable[[], Callable[..., Any]]:
    return lambda: function


# The operations of a step, called as in ONNX: those without attributes, then all, by their attributes.
_PLAIN: dict[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _divided, "MatMul": np.matmul,
    "Max": np.maximum, "Min": np.minimum, "Pow": np.power, "Neg": np.negative, "Abs": np.abs,
    "Sign": np.sign, "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Tanh": np.tanh, "Sin": np.sin,
    "Cos": np.cos, "Floor": np.floor, "Ceil": np.ceil, "Round": np.rint, "IsNaN": np.isnan,
    "IsInf": np.isinf, "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal,
    "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "And": np.logical_and,
    "Or": np.logical_or, "Not": np.logical_not, "Xor": np.logical_xor, "Where": np.where,
    "Mod": np.fmod, "Sigmoid": lambda x: (1 + np.tanh(x / 2)) / 2,
    "Erf": lambda x: np.asarray(_erf(x), x.dtype),
}  # fmt: skip
OPERATIONS: dict[str, Callable[..., Callable[..., Any]]] = {
    **{name: _always(function) for name, function in _PLAIN.items()},
    "Cast": lambda to: lambda x: x.astype(to),
    "Reshape": lambda shape: lambda x: x.reshape(shape),
    "Expand": lambda shape: lambda x: np.broadcast_to(x, shape),
    "Transpose": lambda perm: lambda x: x.transpose(perm),
    "Concat": lambda axis: lambda *parts: np.concatenate(parts, axis),
    "Slice": _sliced,
    "Gather": lambda axis: lambda x, indices: x.take(indices, axis),
    "GatherND": _gathered,
    "ReduceSum": _reduction(np.sum), "ReduceProd": _reduction(np.prod),
    "ReduceMax": _reduction(np.max), "ReduceMin": _reduction(np.min),
    "ArgMax": lambda axis: lambda x: x.argmax(axis), "ArgMin": lambda axis: lambda x: x.argmin(axis),
    "CumSum": lambda axis: lambda x: x.cumsum(axis, x.dtype),
    "Conv": _convolution,
}  # fmt: skip


class Policy:
    """One policy: `begin(target)`, then `act(observation, reward)` at every step.

    `step(observations, rewards, state)` is the same without memory: what acts in many episodes, each of which
    has a clock of its own, with a row of `state` as `begin` makes it for each.
    """

    def __init__(self, description: dict[str, Any], weights: list[Array]) -> None:
        self.about = description["about"]  # method, dataset, horizon, observation, actions, target, ...
        self._nodes = description["nodes"]  # operation, numbers of the values that it reads, attributes
        self._outputs = description["outputs"]  # the numbers of the action and the next state
        self._size, self._dtype = description["state_size"], np.dtype(description["observation_dtype"])
        self._shape = tuple(description["observation_shape"])
        self._weights = weights
        self._state: Array | None = None
        self._episodes = 0
        self._prepare(1)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """The policy of a file that cwbc exported."""
        with open(path, "rb") as file:
            return cls.read(file, path)

    @classmethod
    def read(cls, opened: BinaryIO, path: Any = "the file") -> Policy:
        """The policy of an opened file; errors name its path."""
        try:
            with np.load(opened, allow_pickle=False) as file:
                text = str(file[DESCRIPTION])
                weights = [file[name] for name in sorted(set(file.files) - {DESCRIPTION})]
            description = json.loads(text)
            if description["format"] != FORMAT:
                raise ValueError(f"it has format {description['format']!r}; this module reads {FORMAT}")
            if description["weights"] != [[list(weight.shape), weight.dtype.name] for weight in weights]:
                raise ValueError("its weights are not those that it describes")
            return cls(description, weights)
        except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError,
                zipfile.BadZipFile) as error:  # fmt: skip
            raise ValueError(f"{path} is no policy that cwbc exported, or it is damaged: {error}") from error

    def _prepare(self, episodes: int) -> None:
        """Turn nodes into functions for so many episodes; a dimension of -n stands for n times as many."""
        steps = []
        first = _INPUTS + len(self._weights)
        for number, (operation, inputs, attributes) in enumerate(self._nodes, first):
            if operation not in OPERATIONS or not all(0 <= each < number for each in inputs):
                raise ValueError(f"there is no operation {operation!r} of the values {inputs}")
            if "shape" in attributes:
                shape = tuple(-size * episodes if size < 0 else size for size in attributes["shape"])
                attributes = {"shape": shape}
            function = OPERATIONS[operation](**attributes)
            steps.append((function, inputs[0], inputs[1] if len(inputs) == 2 else None, inputs, number))
        if not 0 <= min(self._outputs) <= max(self._outputs) < first + len(self._nodes):
            raise ValueError(f"there are no values {self._outputs}")
        self._steps, self._episodes = steps, episodes
        self._values: list[Any] = [*[None] * _INPUTS, *self._weights, *[None] * len(self._nodes)]

    def begin(self, target: Any = None) -> None:
        """Begin one episode (a number) or several at once (a sequence), each with its target return."""
        if target is None:
            target = self.about["target"]
            if target is None:
                raise ValueError(f"{self.about['method']} is conditioned on a target; call begin(target)")
        targets = np.asarray(target)
        is_number = targets.dtype.kind in "buif"  # NumPy would take the text "600" for one
        if not is_number or targets.ndim > 1 or not targets.size or not np.isfinite(targets).all():
            raise ValueError(f"a target is a finite number, or a sequence of at least one; got {target!r}")
        self._leading, self._is_first = targets.shape, True
        self._state = np.zeros((targets.size, self._size))
        self._state[:, 0] = targets.reshape(-1)

    def act(self, observation: Any, reward: Any = None) -> Array:
        """The action for an observation; `reward` is that of the previous action (none at the first step)."""
        if self._state is None:
            raise ValueError("call begin(target) before act(observation)")
        if self._is_first != (reward is None):
            raise ValueError("act takes the reward of the previous action, from the second step on")
        observations = _numbers("an observation", observation, (*self._leading, *self._shape))
        if self._dtype == np.uint8 and np.any(observations != observations.astype(np.uint8)):
            raise ValueError(f"an observation is bytes, 0 to 255; got {observation!r:.60}")
        rewards = _numbers("a reward", np.zeros(self._leading) if reward is None else reward, self._leading)
        observations = observations.reshape(-1, *self._shape)
        actions, self._state = self.step(observations, rewards.reshape(-1), self._state)
        self._is_first = False
        return actions.reshape((*self._leading, *actions.shape[1:]))

    def step(self, observations: Any, rewards: Any, state: Array) -> tuple[Array, Array]:
        """The actions [episode, ...] and the next state, given observations, rewards and the state."""
        if len(state) != self._episodes:
            self._prepare(len(state))
        values = self._values.copy()
        values[:_INPUTS] = np.asarray(observations, self._dtype), np.asarray(rewards, np.float64), state
        with np.errstate(all="ignore"):
            for function, one, two, inputs, number in self._steps:
                if two is not None:
                    values[number] = function(values[one], values[two])
                elif len(inputs) == 1:
                    values[number] = function(values[one])
                else:
                    values[number] = function(*[values[each] for each in inputs])
        return values[self._outputs[0]], values[self._outputs[1]]


def _numbers(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Finite numbers of a shape, or an error."""
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "biuf" or numbers.shape != shape or not np.isfinite(numbers).all():
        raise ValueError(f"{name} is finite numbers of shape {shape}; got {given!r:.60}")
    return numbers
