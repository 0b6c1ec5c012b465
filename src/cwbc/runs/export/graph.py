"""A policy's step as a graph of operations in ONNX's vocabulary, which is smaller than JAX's.

Operations on known values are computed at once. A dimension of -n stands for n times the number of episodes.
A value may have the size 1 along axes that it does not depend on: elementwise operations extend it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cwbc.runs.export.numpy_policy import OPERATIONS

Shape = tuple[int, ...]
_FEW = 64  # elements of constants that are compared


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
    """An array of the graph: an input, a result, or a constant."""

    shape: Shape
    dtype: np.dtype[Any]
    constant: NDArray[Any] | None = None


@dataclasses.dataclass(frozen=True)
class Node:
    """One operation; attributes are those of ONNX, also where ONNX takes them as inputs."""

    operation: str
    inputs: tuple[Value, ...]
    attributes: Mapping[str, Any]
    output: Value


class Graph:
    """Nodes in the order of their computation, and the methods that add them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[Any, Value] = {}  # equal operations are one
        self._before: dict[Value, Value] = {}  # what was reshaped
        self._parts: dict[Value, tuple[Sequence[Value], int]] = {}  # of what was concatenated

    def add(
        self, operation: str, inputs: Sequence[Value], shape: Shape, dtype: Any = None, **attributes: Any
    ) -> Value:
        """The value of an operation; its dtype is that of its first input unless another is given."""
        dtype, shape = np.dtype(inputs[0].dtype if dtype is None else dtype), tuple(map(int, shape))
        if operation in ("Reshape", "Expand"):
            attributes = {"shape": shape}
        known = [each.constant for each in inputs if each.constant is not None]
        if len(known) == len(inputs) and min(shape, default=0) >= 0:
            with np.errstate(all="ignore"):
                return constant(np.asarray(OPERATIONS[operation](**attributes)(*known), dtype))
        key = (operation, *map(_identity, inputs), repr(attributes))
        if key not in self._known:
            self._known[key] = Value(shape, dtype)
            self.nodes.append(Node(operation, tuple(inputs), attributes, self._known[key]))
        return self._known[key]

    def elementwise(self, operation: str, *inputs: Value, dtype: Any = None) -> Value:
        """An operation on every element of arrays, which are extended to one shape."""
        if operation == "Where" and (known := inputs[0].constant) is not None and known.all():
            return inputs[1]
        shapes = [each.shape for each in inputs if each.shape]
        shape = tuple(map(_extended, zip(*shapes, strict=True))) if shapes else ()
        return self.add(operation, inputs, shape, dtype)

    def cast(self, x: Value, dtype: Any) -> Value:
        """The same numbers in another dtype."""
        name = np.dtype(dtype).name
        return x if x.dtype == dtype else self.add("Cast", [x], x.shape, dtype, to=name)

    def reshape(self, x: Value, shape: Shape) -> Value:
        """The same elements in another shape."""
        x = self._before.get(x, x)
        if x.shape == shape:
            return x
        value = self.add("Reshape", [x], shape)
        self._before[value] = x
        return value

    def expand(self, x: Value, shape: Shape) -> Value:
        """The array extended to a shape."""
        return x if x.shape == shape else self.add("Expand", [x], shape)

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        """The axes in another order."""
        permutation = [int(axis) for axis in permutation]
        shape = tuple(x.shape[axis] for axis in permutation)
        if sorted(moved := [axis for axis in permutation if x.shape[axis] != 1]) == moved:
            return self.reshape(x, shape)
        return self.add("Transpose", [x], shape, perm=permutation)

    def concatenate(self, parts: Sequence[Value], axis: int) -> Value:
        """Arrays one after the other; empty ones are left out."""
        parts = [part for part in parts if part.shape[axis] != 0] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        value = self.add("Concat", parts, tuple(shape), axis=axis)
        self._parts[value] = parts, axis
        return value

    def slice(
        self, x: Value, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int] | None = None
    ) -> Value:
        """A part of an array; along the axis of the episodes, all of it."""
        steps = [1] * len(starts) if steps is None else steps
        sizes = zip(x.shape, starts, ends, steps, strict=True)
        shape = tuple(n if n < 0 else max(0, math.ceil((b - a) / s)) for n, a, b, s in sizes)
        if shape == x.shape:
            return x
        x, starts, ends = self._within_a_part(x, starts, ends)
        if shape == x.shape:
            return x
        ends = [2**31 - 1 if size < 0 else end for size, end in zip(x.shape, ends, strict=True)]
        numbers = (list(map(int, each)) for each in (starts, ends, steps))
        return self.add("Slice", [x], shape, **dict(zip(("starts", "ends", "steps"), numbers, strict=True)))

    def _within_a_part(
        self, x: Value, starts: Sequence[int], ends: Sequence[int]
    ) -> tuple[Value, Sequence[int], Sequence[int]]:
        """The part of a concatenation that contains a slice, and where it is there."""
        parts, axis = self._parts.get(x, ((), 0))
        first = 0
        for part in parts:
            size = part.shape[axis]
            if first <= starts[axis] and ends[axis] <= first + size:
                starts, ends = (
                    [at - first if i == axis else at for i, at in enumerate(each)] for each in (starts, ends)
                )
                return self._within_a_part(part, starts, ends)
            first += size
        return x, starts, ends

    def needed(self, outputs: Sequence[Value]) -> list[Node]:
        """The nodes that outputs depend on."""
        wanted, nodes = set(outputs), []
        for node in reversed(self.nodes):
            if node.output in wanted:
                wanted.update(node.inputs)
                nodes.append(node)
        return nodes[::-1]


def constant(array: ArrayLike, dtype: Any = None) -> Value:
    """A value that is known before acting."""
    array = np.asarray(array, dtype)
    return Value(array.shape, array.dtype, array)


def _identity(x: Value) -> Any:
    if x.constant is None or x.constant.size > _FEW:
        return x
    return x.shape, x.dtype, x.constant.tobytes()


def product(sizes: Sequence[int]) -> int:
    """The product of dimensions, of which one may be that of the episodes."""
    return math.prod(map(abs, sizes)) * (-1 if min(sizes, default=0) < 0 else 1)


def _extended(sizes: Sequence[int]) -> int:
    return next((size for size in sizes if size != 1), 1)
