"""JAX's primitives as operations of a graph: whatever a learner computes while acting, in one table."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from cwbc.runs.export import indexing
from cwbc.runs.export.equation import Equation, sizes
from cwbc.runs.export.graph import Graph, Value, constant, product
from cwbc.system.errors import InputError

_KINDS = ("float32", "float64", "int32", "int64", "uint8", "bool")
# Elementwise operations with the names that ONNX has for them.
_NAMES = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow",
    "add_any": "Add", "rem": "Mod", "neg": "Neg", "abs": "Abs", "sign": "Sign", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "tanh": "Tanh", "sin": "Sin", "cos": "Cos", "floor": "Floor", "ceil": "Ceil",
    "logistic": "Sigmoid", "erf": "Erf",
}  # fmt: skip
_COMPARISONS = {
    "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
}  # fmt: skip
_LOGIC = {"and": "And", "or": "Or", "not": "Not", "xor": "Xor"}
_REDUCTIONS = {
    "reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
}  # fmt: skip
_UNCHANGED = ("copy", "stop_gradient", "optimization_barrier")


def _split(graph: Graph, equation: Equation) -> list[Value]:
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


def _reduced(graph: Graph, equation: Equation) -> Value:
    axes = sorted(map(int, equation.params["axes"]))
    x = equation.whole(graph)
    return graph.add(_REDUCTIONS[equation.name], [x], equation.shape, axes=axes) if axes else x


def _broadcast(graph: Graph, equation: Equation) -> Value:
    """Axes of size 1 where the array is only repeated."""
    placed = dict(
        zip(map(int, equation.params["broadcast_dimensions"]), equation.inputs[0].shape, strict=True)
    )
    return graph.reshape(
        equation.inputs[0], tuple(placed.get(axis, 1) for axis in range(len(equation.shape)))
    )


def _reshaped(graph: Graph, equation: Equation) -> Value:
    return graph.reshape(equation.whole(graph), equation.shape)


def _squeezed(graph: Graph, equation: Equation) -> Value:
    gone = {int(axis) for axis in equation.params["dimensions"]}
    return graph.reshape(
        equation.inputs[0], tuple(n for i, n in enumerate(equation.inputs[0].shape) if i not in gone)
    )


def _transposed(graph: Graph, equation: Equation) -> Value:
    return graph.transpose(equation.inputs[0], equation.params["permutation"])


def _concatenated(graph: Graph, equation: Equation) -> Value:
    parts = [equation.whole(graph, number) for number in range(len(equation.inputs))]
    return graph.concatenate(parts, int(equation.params["dimension"]))


def _stacked(graph: Graph, equation: Equation) -> Value:
    axis = int(equation.params["axis"])
    parts = [equation.whole(graph, number) for number in range(len(equation.inputs))]
    return graph.concatenate([graph.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in parts], axis)


def _tiled(graph: Graph, equation: Equation) -> Value:
    """Every axis repeated, as a second one before it that is joined with it."""
    x, pairs = equation.whole(graph), []
    for count, size in zip(equation.params["reps"], equation.shapes[0], strict=True):
        pairs += [int(count), size]
    apart = graph.reshape(x, tuple(n if i % 2 else 1 for i, n in enumerate(pairs)))
    return graph.reshape(graph.expand(apart, tuple(pairs)), equation.shape)


def _sliced(graph: Graph, equation: Equation) -> Value:
    starts, ends = (
        sizes(equation.params[name], equation.episodes) for name in ("start_indices", "limit_indices")
    )
    return graph.slice(equation.whole(graph), starts, ends, equation.params["strides"])


def _reversed(graph: Graph, equation: Equation) -> Value:
    x = equation.whole(graph)
    for axis in map(int, equation.params["dimensions"]):
        x = _flipped(graph, x, axis)
    return x


def _flipped(graph: Graph, x: Value, axis: int) -> Value:
    order = constant(np.arange(x.shape[axis])[::-1].copy())
    return graph.add("Gather", [x, order], x.shape, axis=axis)


def _padded(graph: Graph, equation: Equation) -> Value:
    """Constants before and after an array, along each axis in turn."""
    x, value = equation.whole(graph), equation.inputs[1]
    for axis, (before, after, between) in enumerate(equation.params["padding_config"]):
        if between or before < 0 or after < 0:
            raise InputError("exported policies cannot pad with less than nothing, or within arrays")
        shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in (before, after)]
        ends = [graph.expand(graph.reshape(value, (1,) * len(shape)), shape) for shape in shapes]
        x = graph.concatenate([ends[0], x, ends[1]], axis)
    return x


def _iota(graph: Graph, equation: Equation) -> Value:
    axis, rank = int(equation.params["dimension"]), len(equation.shape)
    shape = tuple(equation.shape[axis] if i == axis else 1 for i in range(rank))
    return constant(np.arange(shape[axis]).reshape(shape), equation.dtype)


def _selected(graph: Graph, equation: Equation) -> Value:
    which, first, *others = equation.inputs
    for number, other in enumerate(others, 1):
        chosen = which
        if which.dtype != bool:
            chosen = graph.elementwise("Equal", which, constant(number, which.dtype), dtype=bool)
        first = graph.elementwise("Where", chosen, other, first, dtype=equation.dtype)
    return first


def _product(graph: Graph, equation: Equation) -> Value:
    """A product of matrices: the axes of both are moved and joined until they are."""
    (of_left, of_right), (left_batch, right_batch) = equation.params["dimension_numbers"]
    left, right = equation.whole(graph), equation.whole(graph, 1)
    rows = [i for i in range(len(left.shape)) if i not in (*of_left, *left_batch)]
    columns = [i for i in range(len(right.shape)) if i not in (*of_right, *right_batch)]
    left = graph.transpose(left, (*left_batch, *rows, *of_left))
    right = graph.transpose(right, (*right_batch, *of_right, *columns))
    several, shared, ranks = len(left_batch), len(of_left), (len(rows), len(columns))
    batch = left.shape[:several]
    inner = product(left.shape[several + ranks[0] :])
    height, width = (
        product(left.shape[several : several + ranks[0]]),
        product(right.shape[several + shared :]),
    )
    left, right = graph.reshape(left, (*batch, height, inner)), graph.reshape(right, (*batch, inner, width))
    result = graph.add("MatMul", [left, right], (*batch, height, width))
    return graph.cast(graph.reshape(result, equation.shape), equation.dtype)


def _convolution(graph: Graph, equation: Equation) -> Value:
    """A convolution of images; ONNX has their channels first."""
    params, axes = equation.params, equation.params["dimension_numbers"]
    plain = all(set(params[name]) == {1} for name in ("lhs_dilation", "rhs_dilation"))
    if (
        len(equation.shape) != 4
        or not plain
        or params["feature_group_count"] != 1
        or params["batch_group_count"] != 1
    ):
        raise InputError("exported policies compute convolutions of images without dilation and groups only")
    pads = params["padding"]
    x = graph.transpose(equation.whole(graph), axes.lhs_spec)
    zero = constant(0, x.dtype)
    for axis, (before, after) in enumerate(pads, 2):
        shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in (before, after)]
        x = graph.concatenate([graph.expand(zero, shapes[0]), x, graph.expand(zero, shapes[1])], axis)
    weight = graph.transpose(equation.whole(graph, 1), axes.rhs_spec)
    shape = tuple(equation.shape[axis] for axis in axes.out_spec)
    result = graph.add("Conv", [x, weight], shape, strides=list(params["window_strides"]))
    return graph.transpose(result, np.argsort(axes.out_spec).tolist())


def _best(graph: Graph, equation: Equation) -> Value:
    name = {"argmax": "ArgMax", "argmin": "ArgMin"}[equation.name]
    (axis,) = equation.params["axes"]
    return graph.cast(
        graph.add(name, [equation.whole(graph)], equation.shape, np.int64, axis=int(axis)), equation.dtype
    )


def _summed(graph: Graph, equation: Equation) -> Value:
    """Cumulative sums; from the end, they are those of the reversed array."""
    axis, x = int(equation.params["axis"]), equation.whole(graph)
    if not equation.params["reverse"]:
        return graph.add("CumSum", [x], equation.shape, axis=axis)
    return _flipped(graph, graph.add("CumSum", [_flipped(graph, x, axis)], equation.shape, axis=axis), axis)


def _powered(graph: Graph, equation: Equation) -> Value:
    x, power = equation.inputs[0], equation.params.get("y", 2)
    result = x
    for _ in range(min(abs(power), 4) - 1):
        result = graph.elementwise("Mul", result, x)
    if not 1 <= abs(power) <= 4:
        return graph.elementwise("Pow", x, constant(power, x.dtype))
    return result if power > 0 else graph.elementwise("Div", constant(1, x.dtype), result)


def _rounded(graph: Graph, equation: Equation) -> Value:
    if int(equation.params["rounding_method"]) == 1:  # halves to even numbers
        return graph.elementwise("Round", *equation.inputs)
    x, half = equation.inputs[0], constant(0.5, equation.dtype)
    size = graph.elementwise("Floor", graph.elementwise("Add", graph.elementwise("Abs", x), half))
    return graph.elementwise("Mul", graph.elementwise("Sign", x), size)


def _is_finite(graph: Graph, equation: Equation) -> Value:
    broken = [graph.elementwise(name, *equation.inputs, dtype=bool) for name in ("IsNaN", "IsInf")]
    return graph.elementwise("Not", graph.elementwise("Or", *broken))


def _with_one(graph: Graph, equation: Equation) -> Value:
    """log(1 + x), e^x - 1, and 1 / sqrt(x)."""
    x, one = equation.inputs[0], constant(1, equation.dtype)
    if equation.name == "log1p":
        return graph.elementwise("Log", graph.elementwise("Add", x, one))
    if equation.name == "expm1":
        return graph.elementwise("Sub", graph.elementwise("Exp", x), one)
    return graph.elementwise("Div", one, graph.elementwise("Sqrt", x))


def _clamped(graph: Graph, equation: Equation) -> Value:
    low, x, high = equation.inputs
    return graph.elementwise("Min", graph.elementwise("Max", x, low), high)


def _any_or_all(graph: Graph, equation: Equation) -> Value:
    axes, name = (
        sorted(map(int, equation.params["axes"])),
        "ReduceMax" if equation.name == "reduce_or" else "ReduceMin",
    )
    found = graph.add(name, [graph.cast(equation.whole(graph), np.int32)], equation.shape, axes=axes)
    return graph.cast(found, bool)


_RULES: dict[str, Callable[[Graph, Equation], Value]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshaped,
    "squeeze": _squeezed,
    "expand_dims": _reshaped,
    "transpose": _transposed,
    "concatenate": _concatenated,
    "slice": _sliced,
    "stack": _stacked,
    "tile": _tiled,
    "rev": _reversed,
    "pad": _padded,
    "iota": _iota,
    "select_n": _selected,
    "clamp": _clamped,
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "cumsum": _summed,
    "argmax": _best,
    "argmin": _best,
    "square": _powered,
    "integer_pow": _powered,
    "round": _rounded,
    "is_finite": _is_finite,
    "log1p": _with_one,
    "expm1": _with_one,
    "rsqrt": _with_one,
    "reduce_or": _any_or_all,
    "reduce_and": _any_or_all,
    "ne": lambda graph, equation: graph.elementwise(
        "Not", graph.elementwise("Equal", *equation.inputs, dtype=bool)
    ),
    "convert_element_type": lambda graph, equation: graph.cast(equation.inputs[0], equation.dtype),
    "gather": indexing.gathered,
    "scatter": indexing.scattered,
    "scatter-add": indexing.scattered,
    "dynamic_slice": indexing.sliced,
    "dynamic_update_slice": indexing.updated,
}


def converted(graph: Graph, equation: Equation) -> list[Value]:
    """The values of an equation's outputs."""
    name, inputs = equation.name, equation.inputs
    if name in _UNCHANGED:
        return inputs
    if name in ("split", "unstack"):
        return _split(graph, equation)
    if name in _NAMES:
        return [graph.elementwise(_NAMES[name], *inputs)]
    if name in _COMPARISONS:
        return [graph.elementwise(_COMPARISONS[name], *inputs, dtype=bool)]
    if name in _LOGIC and inputs[0].dtype == bool:
        return [graph.elementwise(_LOGIC[name], *inputs)]
    if name in _REDUCTIONS:
        return [_reduced(graph, equation)]
    if name in _RULES and str(np.dtype(equation.dtype)) in _KINDS:
        return [_RULES[name](graph, equation)]
    is_array = min(equation.shape, default=0) >= 0 and not jnp.issubdtype(equation.dtype, jax.dtypes.extended)
    if is_array and all(each.constant is not None for each in inputs):
        # Whatever JAX computes from parameters alone.
        known = (equation.whole(graph, number).constant for number in range(len(inputs)))
        results = equation.primitive.bind(*known, **equation.params)  # type: ignore[no-untyped-call]
        return [constant(np.asarray(each)) for each in jax.tree.leaves(results)]
    raise InputError(
        f"exported policies cannot compute {name} of {inputs[0].dtype if inputs else 'nothing'}, "
        "which this method does while acting; save the policy and act with cwbc.Policy instead"
    )
