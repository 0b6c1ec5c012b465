"""From a function of JAX to a graph: it is traced for a number of episodes that is left open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import export as jax_export
from jax.extend import core

from cwbc.runs.export.equation import Equation, sizes
from cwbc.runs.export.graph import Graph, Value, constant
from cwbc.runs.export.primitives import converted
from cwbc.system.errors import InputError

# Calls of functions, whose equations become part of the caller's.
_CALLS = (
    "jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat2",
)  # fmt: skip


def traced(
    graph: Graph,
    function: Callable[..., Any],
    constants: Any,  # a tree of arrays, the same for all episodes
    inputs: Sequence[Value],  # [episode, ...]
) -> list[Value]:
    """The leaves of what a function of constants and of one episode's arrays returns. [episode, ...]"""
    (episodes,) = jax_export.symbolic_shape("episodes")
    leaves = jax.tree.leaves(constants)
    array: Any = jax.ShapeDtypeStruct
    like = [array((episodes, *each.shape[1:]), each.dtype) for each in inputs]
    every = jax.vmap(function, in_axes=(None, *[0] * len(inputs)))
    try:
        closed = jax.make_jaxpr(every)(constants, *like)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        first = str(error).splitlines()[0]
        raise InputError(f"the policy cannot be exported: JAX cannot trace it ({first})") from error
    known = [constant(np.asarray(leaf)) for leaf in leaves]
    return _whole(graph, closed, [*known, *inputs], episodes)


def _whole(graph: Graph, closed: Any, inputs: Sequence[Value], episodes: Any) -> list[Value]:
    values = _inlined(graph, closed.jaxpr, closed.consts, inputs, episodes)
    shapes = (sizes(variable.aval.shape, episodes) for variable in closed.jaxpr.outvars)
    return [graph.expand(*each) for each in zip(values, shapes, strict=True)]


def _inlined(
    graph: Graph, jaxpr: Any, constants: Sequence[Any], inputs: Sequence[Value], episodes: Any
) -> list[Value]:
    """The values of a jaxpr's outputs; those of functions that it calls are inlined."""
    known: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))
    known.update(
        (name, constant(np.asarray(each))) for name, each in zip(jaxpr.constvars, constants, strict=True)
    )

    def value(variable: Any) -> Value:
        if isinstance(variable, core.Literal):
            literal: Any = variable.aval
            return constant(variable.val, literal.dtype)
        return known[variable]

    for equation in jaxpr.eqns:
        found, params = [value(variable) for variable in equation.invars], equation.params
        if equation.primitive.name in _CALLS:
            inner = params["jaxpr" if "jaxpr" in params else "call_jaxpr"]
            within = getattr(inner, "consts", ())  # none where it is open
            outputs = _inlined(graph, getattr(inner, "jaxpr", inner), within, found, episodes)
        else:
            outputs = converted(graph, Equation.of(equation, found, episodes))
        known.update(zip(equation.outvars, outputs, strict=True))
    return [value(variable) for variable in jaxpr.outvars]
