"""Rules for primitives that move elements without computing: shapes, orders and parts of arrays."""

from __future__ import annotations

import numpy as np

from cwbc.runs.export.equation import Equation, sizes
from cwbc.runs.export.graph import Graph, Value, constant
from cwbc.system.errors import InputError


def split(graph: Graph, equation: Equation) -> list[Value]:
    """Parts of an array along an axis, without it where they are unstacked."""
    x, axis, parts, first = equation.whole(graph), int(equation.params["axis"]), [], 0
    is_unstacked = equation.name == "unstack"
    for size in [1] * x.shape[axis] if is_unstacked else map(int, equation.params["sizes"]):
        starts, ends = [0] * len(x.shape), list(x.shape)
        starts[axis], ends[axis] = first, first + size
        part = graph.slice(x, starts, ends)
        parts.append(graph.reshape(part, equation.shape) if is_unstacked else part)
        first += size
    return parts


def broadcast(graph: Graph, equation: Equation) -> Value:
    """Axes of size 1 where the array is only repeated."""
    placed = dict(
        zip(map(int, equation.params["broadcast_dimensions"]), equation.inputs[0].shape, strict=True)
    )
    return graph.reshape(
        equation.inputs[0], tuple(placed.get(axis, 1) for axis in range(len(equation.shape)))
    )


def reshaped(graph: Graph, equation: Equation) -> Value:
    return graph.reshape(equation.whole(graph), equation.shape)


def squeezed(graph: Graph, equation: Equation) -> Value:
    gone = {int(axis) for axis in equation.params["dimensions"]}
    return graph.reshape(
        equation.inputs[0], tuple(n for i, n in enumerate(equation.inputs[0].shape) if i not in gone)
    )


def transposed(graph: Graph, equation: Equation) -> Value:
    return graph.transpose(equation.inputs[0], equation.params["permutation"])


def concatenated(graph: Graph, equation: Equation) -> Value:
    parts = [equation.whole(graph, number) for number in range(len(equation.inputs))]
    return graph.concatenate(parts, int(equation.params["dimension"]))


def stacked(graph: Graph, equation: Equation) -> Value:
    axis = int(equation.params["axis"])
    parts = [equation.whole(graph, number) for number in range(len(equation.inputs))]
    return graph.concatenate([graph.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in parts], axis)


def tiled(graph: Graph, equation: Equation) -> Value:
    """Every axis repeated, as a second one before it that is joined with it."""
    x, pairs = equation.whole(graph), []
    for count, size in zip(equation.params["reps"], equation.shapes[0], strict=True):
        pairs += [int(count), size]
    apart = graph.reshape(x, tuple(n if i % 2 else 1 for i, n in enumerate(pairs)))
    return graph.reshape(graph.expand(apart, tuple(pairs)), equation.shape)


def sliced(graph: Graph, equation: Equation) -> Value:
    starts, ends = (
        sizes(equation.params[name], equation.episodes) for name in ("start_indices", "limit_indices")
    )
    return graph.slice(equation.whole(graph), starts, ends, equation.params["strides"])


def in_reverse(graph: Graph, equation: Equation) -> Value:
    x = equation.whole(graph)
    for axis in map(int, equation.params["dimensions"]):
        x = flipped(graph, x, axis)
    return x


def flipped(graph: Graph, x: Value, axis: int) -> Value:
    order = constant(np.arange(x.shape[axis])[::-1].copy())
    return graph.add("Gather", [x, order], x.shape, axis=axis)


def padded(graph: Graph, equation: Equation) -> Value:
    """Constants before and after an array, along each axis in turn."""
    x, value = equation.whole(graph), equation.inputs[1]
    for axis, (before, after, between) in enumerate(equation.params["padding_config"]):
        if between or before < 0 or after < 0:
            raise InputError("exported policies cannot pad with less than nothing, or within arrays")
        shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in (before, after)]
        ends = [graph.expand(graph.reshape(value, (1,) * len(shape)), shape) for shape in shapes]
        x = graph.concatenate([ends[0], x, ends[1]], axis)
    return x


def iota(graph: Graph, equation: Equation) -> Value:
    axis, rank = int(equation.params["dimension"]), len(equation.shape)
    shape = tuple(equation.shape[axis] if i == axis else 1 for i in range(rank))
    return constant(np.arange(shape[axis]).reshape(shape), equation.dtype)
