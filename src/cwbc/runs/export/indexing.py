"""JAX's gather and scatter: parts of arrays at indices that depend on the episode, such as its timestep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode
from numpy.typing import NDArray

from cwbc.runs.export.equation import Equation, sizes
from cwbc.runs.export.graph import Graph, Shape, Value, constant
from cwbc.system.errors import InputError


def gathered(graph: Graph, equation: Equation) -> Value:
    """Parts of an array that begin at indices. [index or offset, ...]"""
    x, indices, params = equation.whole(graph), equation.whole(graph, 1), equation.params
    numbers, part = params["dimension_numbers"], sizes(params["slice_sizes"], equation.episodes)
    mapped = tuple(map(int, numbers.start_index_map))
    batch, rank = tuple(map(int, numbers.operand_batching_dims)), len(x.shape)
    _check_within_episodes(x, mapped)
    if any(part[d] != x.shape[d] for d in range(rank) if d not in (*mapped, *batch)):
        raise InputError("exported policies cannot read a part of an axis without an index (gather)")
    columns = [_column(graph, indices, number) for number in range(len(mapped))]
    # Where a part is all of an axis, it begins at 0.
    starts = {d: column for d, column in zip(mapped, columns, strict=True) if part[d] != x.shape[d]}
    found, axes = _parts(graph, x, indices, starts, numbers, part)
    gone = [
        place for place, axis in enumerate(axes) if axis in {("x", d) for d in numbers.collapsed_slice_dims}
    ]
    found = graph.reshape(found, tuple(n for place, n in enumerate(found.shape) if place not in gone))
    axes = [axis for place, axis in enumerate(axes) if place not in gone]
    of_parts = iter(sorted(axis for axis in axes if axis[0] == "x"))
    of_indices = iter([("index", i) for i in range(len(indices.shape) - 1)])
    offsets = set(map(int, numbers.offset_dims))
    wanted = [next(of_parts if place in offsets else of_indices) for place in range(len(axes))]
    found = graph.transpose(found, [axes.index(axis) for axis in wanted])
    mode = GatherScatterMode.from_any(params["mode"])
    valid = _valid(graph, columns, [x.shape[d] - part[d] for d in mapped], mode)
    if valid is None:
        return found
    shape = tuple(n if kind == "index" else 1 for (kind, _), n in zip(wanted, found.shape, strict=True))
    fill = _fill(found.dtype) if params["fill_value"] is None else params["fill_value"]
    others = constant(fill, found.dtype)
    return graph.elementwise("Where", graph.reshape(valid, shape), found, others, dtype=found.dtype)


def _parts(
    graph: Graph, x: Value, indices: Value, starts: Mapping[int, Value], numbers: Any, part: Shape
) -> tuple[Value, list[tuple[str, int]]]:
    """All parts of x, and which axis of the indices or of x each of their axes is.

    Args:
        starts: coordinates by the axis of x, where parts are not all of it.
    """
    batch, batch_of_indices = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    leading = [*batch_of_indices, *(i for i in range(len(indices.shape) - 1) if i not in batch_of_indices)]
    rest = [d for d in range(len(x.shape)) if d not in (*batch, *starts)]
    axes = [*(("index", int(i)) for i in leading), *(("x", d) for d in (*starts, *rest))]
    found = graph.transpose(x, (*batch, *starts, *rest))
    if starts:
        lengths = [part[d] for d in starts]
        grid = [
            _positions(graph, column, lengths, place, x.shape[d] - part[d])
            for place, (d, column) in enumerate(starts.items())
        ]
        order = (*leading, *range(len(leading), len(leading) + len(starts) + 1))
        return _found(graph, found, [graph.transpose(each, order) for each in grid], len(batch)), axes
    several = len(batch)
    repeated = (*found.shape[:several], *[1] * (len(leading) - several), *found.shape[several:])
    shape = (*(indices.shape[i] for i in leading), *found.shape[several:])
    return graph.expand(graph.reshape(found, repeated), shape), axes


def _fill(dtype: np.dtype[Any]) -> float:
    """What JAX reads beyond the end of an array."""
    if dtype.kind == "f":
        return np.nan
    return int(np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max) if dtype.kind in "iu" else 1


def scattered(graph: Graph, equation: Equation) -> Value:
    """An array in which one part of each episode is replaced, by choosing every element from either."""
    x, indices, updates = (equation.whole(graph, number) for number in range(3))
    numbers, mode = equation.params["dimension_numbers"], equation.params["mode"]
    mapped = tuple(map(int, numbers.scatter_dims_to_operand_dims))
    _check_within_episodes(x, mapped)
    part, size = _placed(graph, x, updates, numbers)
    if any(size[d] not in (x.shape[d], *([1] if d in mapped else [])) for d in range(len(size))):
        raise InputError("exported policies write to single entries of axes, or to all of them (scatter)")
    chosen = constant(True)
    for number, d in enumerate(mapped):
        column = _column(graph, indices, number)
        if GatherScatterMode.from_any(mode) == GatherScatterMode.CLIP:
            column = _limited(graph, column, x.shape[d] - size[d])
        shape = [1] * len(size)
        for axis, i in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
            shape[axis] = column.shape[i]
        first = graph.reshape(column, tuple(shape))
        places = np.arange(x.shape[d] - size[d] + 1).reshape(
            [-1 if axis == d else 1 for axis in range(len(size))]
        )
        here = graph.elementwise("Equal", constant(places, first.dtype), first, dtype=bool)
        chosen = graph.elementwise("And", chosen, here)
    if equation.name == "scatter-add":
        part = graph.elementwise("Add", x, part)
    return graph.elementwise("Where", chosen, part, x, dtype=x.dtype)


def _placed(graph: Graph, x: Value, updates: Value, numbers: Any) -> tuple[Value, Shape]:
    """Updates with the axes of x, and their sizes along these; those of the batch as in x."""
    batch, rank = tuple(map(int, numbers.operand_batching_dims)), len(x.shape)
    windows = [d for d in range(rank) if d not in (*numbers.inserted_window_dims, *batch)]
    axes = dict(zip(windows, map(int, numbers.update_window_dims), strict=True))
    left = [axis for axis in range(len(updates.shape)) if axis not in axes.values()]  # those of the indices
    axes |= {d: left[i] for d, i in zip(batch, numbers.scatter_indices_batching_dims, strict=True)}
    others = [axis for axis in left if axis not in axes.values()]
    if any(updates.shape[axis] != 1 for axis in others):
        raise InputError("exported policies cannot write to several parts of an array at once (scatter)")
    shape = tuple(updates.shape[axes[d]] if d in axes else 1 for d in range(rank))
    return graph.reshape(graph.transpose(updates, [*others, *(axes[d] for d in sorted(axes))]), shape), shape


def sliced(graph: Graph, equation: Equation) -> Value:
    """A part that begins at known indices; those that depend on the episode are gathered."""
    x = equation.whole(graph)
    return graph.slice(x, *_ends(x, equation.shape, equation.inputs[1:]))


def updated(graph: Graph, equation: Equation) -> Value:
    """An array with a part of it replaced, at known indices."""
    x, part = equation.whole(graph), equation.whole(graph, 1)
    starts, ends = _ends(x, part.shape, equation.inputs[2:])
    inside: NDArray[Any] = np.ones((1,) * len(x.shape), bool)
    for axis, (first, last, size) in enumerate(zip(starts, ends, x.shape, strict=True)):
        if part.shape[axis] != size:
            shape = [*part.shape[:axis], 0, *part.shape[axis + 1 :]]
            before, after = ((*shape[:axis], n, *shape[axis + 1 :]) for n in (first, size - last))
            zero = constant(np.zeros((1,) * len(shape)), part.dtype)
            part = graph.concatenate([graph.expand(zero, before), part, graph.expand(zero, after)], axis)
            places = np.arange(size).reshape([-1 if i == axis else 1 for i in range(len(shape))])
            inside = inside & (places >= first) & (places < last)
    return graph.elementwise("Where", constant(inside), part, x, dtype=x.dtype)


def _ends(x: Value, sizes: Shape, indices: list[Value]) -> tuple[list[int], list[int]]:
    """Where a part of x begins and ends."""
    starts = []
    for index, size, whole in zip(indices, sizes, x.shape, strict=True):
        if index.constant is None:
            raise InputError("exported policies cannot read or write at an index that all episodes share")
        starts.append(0 if size == whole else int(np.clip(index.constant, 0, whole - size)))
    return starts, [size if size < 0 else at + size for at, size in zip(starts, sizes, strict=True)]


def _check_within_episodes(x: Value, mapped: tuple[int, ...]) -> None:
    if any(x.shape[d] < 0 for d in mapped):
        raise InputError("exported policies cannot index the episodes of a batch (gather, scatter)")


def _column(graph: Graph, indices: Value, number: int) -> Value:
    """One coordinate of all indices."""
    shape = indices.shape
    column = graph.slice(indices, [0] * len(shape[:-1]) + [number], [*shape[:-1], number + 1])
    return graph.reshape(column, shape[:-1])


def _limited(graph: Graph, column: Value, last: int) -> Value:
    low = graph.elementwise("Max", column, constant(0, column.dtype))
    return graph.elementwise("Min", low, constant(last, column.dtype))


def _valid(graph: Graph, columns: list[Value], lasts: list[int], mode: GatherScatterMode) -> Value | None:
    """Which indices are within an array, where it matters."""
    valid: Value | None = None
    for column, last in zip(columns if mode == GatherScatterMode.FILL_OR_DROP else [], lasts, strict=False):
        ends = ("GreaterOrEqual", 0), ("LessOrEqual", last)
        low, high = (
            graph.elementwise(name, column, constant(end, column.dtype), dtype=bool) for name, end in ends
        )
        within = graph.elementwise("And", low, high)
        if within.constant is None or not within.constant.all():
            valid = within if valid is None else graph.elementwise("And", valid, within)
    return valid


def _positions(graph: Graph, column: Value, sizes: list[int], place: int, last: int) -> Value:
    """The coordinates along one axis of all elements of the parts. [index, ..., part, ..., 1]"""
    first = graph.reshape(_limited(graph, column, last), (*column.shape, *[1] * len(sizes), 1))
    shape = [sizes[place] if i == place else 1 for i in range(len(sizes))]
    steps = np.arange(sizes[place]).reshape(*[1] * len(column.shape), *shape, 1)
    return graph.cast(graph.elementwise("Add", first, constant(steps, column.dtype)), np.int64)


def _found(graph: Graph, x: Value, grid: list[Value], batch: int) -> Value:
    """The elements of x at a grid of coordinates for each of its axes after those of the batch."""
    known = grid[0].constant
    if len(grid) == 1 and batch == 0 and known is not None:
        shape = (*known.shape[:-1], *x.shape[1:])
        return graph.add("Gather", [x, constant(known[..., 0])], shape, axis=0)
    full = tuple(max((each.shape[i] for each in grid), key=abs) for i in range(len(grid[0].shape) - 1))
    indices = graph.concatenate([graph.expand(each, (*full, 1)) for each in grid], len(full))
    return graph.add("GatherND", [x, indices], (*full, *x.shape[batch + len(grid) :]), batch_dims=batch)
