"""One equation of a jaxpr, with its inputs as values of a graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend import core

from cwbc.runs.export.graph import Graph, Shape, Value


@dataclasses.dataclass(frozen=True)
class Equation:
    """A primitive, what it is computed of, and the shape of its first output."""

    primitive: core.Primitive
    inputs: list[Value]
    shapes: list[Shape]  # of the inputs; a value may have the size 1 instead
    params: dict[str, Any]
    shape: Shape
    dtype: Any
    episodes: Any  # the symbol of their number in JAX's shapes

    @classmethod
    def of(cls, equation: core.JaxprEqn, inputs: list[Value], episodes: Any) -> Equation:
        """The equation with shapes of numbers."""
        arrays: list[Any] = [each.aval for each in (*equation.invars, equation.outvars[0])]
        shapes, output = [sizes(each.shape, episodes) for each in arrays], arrays[-1]
        return cls(
            equation.primitive, inputs, shapes[:-1], equation.params, shapes[-1], output.dtype, episodes
        )

    @property
    def name(self) -> str:
        """Of the primitive."""
        return self.primitive.name

    def whole(self, graph: Graph, number: int = 0) -> Value:
        """An input in its full shape."""
        return graph.expand(self.inputs[number], self.shapes[number])


def sizes(shape: Sequence[Any], episodes: Any) -> Shape:
    """A shape in which a dimension of n times the episodes is -n."""
    return tuple(
        int(size) if isinstance(size, int | np.integer) else -int(size // episodes) for size in shape
    )
