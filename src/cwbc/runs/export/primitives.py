"""JAX's primitives as operations of a graph: whatever a learner computes while acting, in one table."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from cwbc.runs.export import indexing, shapes
from cwbc.runs.export.equation import Equation
from cwbc.runs.export.graph import Graph, Value, constant, product
from cwbc.system.errors import InputError

_KINDS = ("float32", "float64", "int32", "int64", "uint8", "bool")
# Elementwise operations with the names that ONNX has for them.
_NAMES = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "add_any": "Add",
    "rem": "Mod", "neg": "Neg", "abs": "Abs", "sign": "Sign", "exp": "Exp", "log": "Log",
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


def _reduced(graph: Graph, equation: Equation) -> Value:
    axes = sorted(map(int, equation.params["axes"]))
    x = equation.whole(graph)
    return graph.add(_REDUCTIONS[equation.name], [x], equation.shape, axes=axes) if axes else x


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
    dilations = {*params["lhs_dilation"], *params["rhs_dilation"]}
    groups = {params["feature_group_count"], params["batch_group_count"]}
    if len(equation.shape) != 4 or dilations | groups != {1}:
        raise InputError("exported policies compute convolutions of images without dilation and groups only")
    x = graph.transpose(equation.whole(graph), axes.lhs_spec)
    zero = constant(0, x.dtype)
    for axis, (before, after) in enumerate(params["padding"], 2):
        around = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in (before, after)]
        x = graph.concatenate([graph.expand(zero, around[0]), x, graph.expand(zero, around[1])], axis)
    weight = graph.transpose(equation.whole(graph, 1), axes.rhs_spec)
    shape = tuple(equation.shape[axis] for axis in axes.out_spec)
    result = graph.add("Conv", [x, weight], shape, strides=list(params["window_strides"]))
    return graph.transpose(result, np.argsort(axes.out_spec).tolist())


def _best(graph: Graph, equation: Equation) -> Value:
    name = {"argmax": "ArgMax", "argmin": "ArgMin"}[equation.name]
    (axis,) = equation.params["axes"]
    found = graph.add(name, [equation.whole(graph)], equation.shape, np.int64, axis=int(axis))
    return graph.cast(found, equation.dtype)


def _summed(graph: Graph, equation: Equation) -> Value:
    """Cumulative sums; from the end, they are those of the reversed array."""
    axis, x = int(equation.params["axis"]), equation.whole(graph)
    if not equation.params["reverse"]:
        return graph.add("CumSum", [x], equation.shape, axis=axis)
    sums = graph.add("CumSum", [shapes.flipped(graph, x, axis)], equation.shape, axis=axis)
    return shapes.flipped(graph, sums, axis)


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
    axes, x = sorted(map(int, equation.params["axes"])), equation.whole(graph)
    name = "ReduceMax" if equation.name == "reduce_or" else "ReduceMin"
    found = graph.add(name, [graph.cast(x, np.int32)], equation.shape, axes=axes) if axes else x
    return graph.cast(found, bool)


_RULES: dict[str, Callable[[Graph, Equation], Value]] = {
    "broadcast_in_dim": shapes.broadcast,
    "reshape": shapes.reshaped,
    "squeeze": shapes.squeezed,
    "expand_dims": shapes.reshaped,
    "transpose": shapes.transposed,
    "concatenate": shapes.concatenated,
    "slice": shapes.sliced,
    "stack": shapes.stacked,
    "tile": shapes.tiled,
    "rev": shapes.in_reverse,
    "pad": shapes.padded,
    "iota": shapes.iota,
    "select_n": _selected,
    "clamp": _clamped,
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "cumsum": _summed,
    "argmax": _best,
    "argmin": _best,
    "square": _powered,
    "integer_pow": _powered,
    "pow": lambda graph, equation: graph.elementwise(
        "Pow", equation.inputs[0], graph.cast(equation.inputs[1], equation.dtype)
    ),
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
        return shapes.split(graph, equation)
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
