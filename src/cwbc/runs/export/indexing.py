"""JAX's gather and scatter: parts of arrays at indices that depend on the episode, such as its timestep."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.lax import GatherScatterMode
from numpy.typing import NDArray

from cwbc.runs.export.equation import Equation
from cwbc.runs.export.graph import Graph, Shape, Value, constant
from cwbc.system.errors import InputError


def gathered(graph: Graph, equation: Equation) -> Value:
    """Parts of an array that begin at indices. [..., offset, ...]"""
    x, indices, params = equation.whole(graph), equation.whole(graph, 1), equation.params
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    mapped, mode = tuple(map(int, numbers.start_index_map)), GatherScatterMode.from_any(params["mode"])
    batch, batch_of_indices = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    others = [i for i in range(len(indices.shape) - 1) if i not in batch_of_indices]
    collapsed, rank = numbers.collapsed_slice_dims, len(x.shape)
    columns = [_column(graph, indices, number) for number in range(len(mapped))]
    valid = _valid(graph, columns, [x.shape[d] - sizes[d] for d in mapped], mode)
    # Where a part is all of an axis, it begins at 0.
    read = [number for number, d in enumerate(mapped) if sizes[d] != x.shape[d]]
    axes = [mapped[number] for number in read]
    rest = [d for d in range(rank) if d not in (*batch, *axes)]
    found = graph.transpose(x, (*batch, *axes, *rest))
    # What is found has the axes of the indices, those along which parts begin somewhere, and the rest.
    labels = [*(("index", i) for i in (*batch_of_indices, *others)), *(("part", d) for d in (*axes, *rest))]
    leading = len(batch) + len(others)
    if read:
        grid = [
            _positions(graph, columns[number], [sizes[d] for d in axes], place, x.shape[d] - sizes[d])
            for place, (number, d) in enumerate(zip(read, axes, strict=True))
        ]
        order = (*batch_of_indices, *others, *range(leading, leading + len(axes) + 1))
        found = _found(graph, found, [graph.transpose(each, order) for each in grid], len(batch))
    else:
        shape = tuple(indices.shape[i] for i in (*batch_of_indices, *others))
        whole = (*found.shape[: len(batch)], *[1] * len(others), *found.shape[len(batch) :])
        found = graph.expand(graph.reshape(found, whole), (*shape, *found.shape[len(batch) :]))
    gone = [place for place, (kind, d) in enumerate(labels) if kind == "part" and d in collapsed]
    gone += [place for place, (kind, d) in enumerate(labels) if kind == "part" and d in batch]
    found = graph.reshape(found, tuple(n for place, n in enumerate(found.shape) if place not in gone))
    labels = [label for place, label in enumerate(labels) if place not in gone]
    parts, places = sorted(d for kind, d in labels if kind == "part"), iter(range(len(indices.shape) - 1))
    offsets = dict(zip(map(int, numbers.offset_dims), parts, strict=True))
    wanted = [
        ("part", offsets[axis]) if axis in offsets else ("index", next(places))
        for axis in range(len(equation.shape))
    ]
    found = graph.transpose(found, [labels.index(label) for label in wanted])
    if valid is None:
        return found
    kept = tuple(n if kind == "index" else 1 for (kind, _), n in zip(wanted, found.shape, strict=True))
    fill = params["fill_value"]
    if fill is None:
        fill = (
            np.nan if found.dtype.kind == "f" else np.iinfo(found.dtype).min if found.dtype.kind == "i" else 0
        )
    return graph.elementwise(
        "Where", graph.reshape(valid, kept), found, constant(fill, found.dtype), dtype=found.dtype
    )


def scattered(graph: Graph, equation: Equation) -> Value:
    """An array in which one part of each episode is replaced, by choosing every element from either."""
    x, indices, updates = (equation.whole(graph, number) for number in range(3))
    numbers, mode = equation.params["dimension_numbers"], equation.params["mode"]
    batch, batch_of_indices = numbers.operand_batching_dims, numbers.scatter_indices_batching_dims
    inserted, rank = numbers.inserted_window_dims, len(x.shape)
    windows = [d for d in range(rank) if d not in (*inserted, *batch)]
    of_updates = dict(zip(windows, map(int, numbers.update_window_dims), strict=True))
    left = [i for i in range(len(updates.shape)) if i not in of_updates.values()]
    of_updates |= {
        d: left[sorted(batch_of_indices).index(i)] for d, i in zip(batch, batch_of_indices, strict=True)
    }
    others = [i for i in left if i not in of_updates.values()]
    size = {d: updates.shape[of_updates[d]] if d in of_updates else 1 for d in range(rank)}
    if any(updates.shape[i] != 1 for i in others):
        raise InputError("exported policies cannot write to several parts of an array at once (scatter)")
    order = [*others, *(of_updates[d] for d in range(rank) if d in of_updates)]
    placed = graph.reshape(graph.transpose(updates, order), tuple(size[d] for d in range(rank)))
    chosen = constant(True)
    for number, d in enumerate(map(int, numbers.scatter_dims_to_operand_dims)):
        column = _column(graph, indices, number)
        if size[d] not in (1, x.shape[d]):
            raise InputError("exported policies write single entries of an array only (scatter)")
        if GatherScatterMode.from_any(mode) == GatherScatterMode.CLIP:
            column = _limited(graph, column, x.shape[d] - size[d])
        shape = [1] * rank
        for axis, i in zip(batch, batch_of_indices, strict=True):
            shape[axis] = column.shape[i]
        first = graph.reshape(column, tuple(shape))
        shape = [1] * rank
        shape[d] = x.shape[d]
        places = constant(
            np.arange(x.shape[d]).reshape(shape) if size[d] == 1 else np.zeros((1,) * rank), first.dtype
        )
        here = graph.elementwise("Equal", places, first, dtype=bool)
        chosen = graph.elementwise("And", chosen, here)
    return graph.elementwise("Where", chosen, placed, x, dtype=x.dtype)


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
