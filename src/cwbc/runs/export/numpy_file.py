"""A step as a file for `numpy_policy`: the weights, and a JSON description of the graph."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from cwbc.runs.export import numpy_policy
from cwbc.runs.export.step import Step


def encoded(step: Step, about: dict[str, Any]) -> bytes:
    """The content of the file."""
    weights = [
        x
        for x in dict.fromkeys(each for node in step.nodes for each in node.inputs)
        if x.constant is not None
    ]
    values = [*step.inputs, *weights, *(node.output for node in step.nodes)]
    numbers = {value: number for number, value in enumerate(values)}
    observation, _, state = step.inputs
    description = {
        "format": numpy_policy.FORMAT,
        "about": about,
        "observation_shape": observation.shape[1:],
        "observation_dtype": observation.dtype.name,
        "state_size": state.shape[1],
        "weights": [[x.shape, x.dtype.name] for x in weights],
        "nodes": [
            [node.operation, [numbers[each] for each in node.inputs], node.attributes] for node in step.nodes
        ],
        "outputs": [numbers[each] for each in step.outputs],
    }
    arrays: dict[str, Any] = {
        f"w{number:05}": np.ascontiguousarray(x.constant).reshape(x.shape) for number, x in enumerate(weights)
    }
    arrays[numpy_policy.DESCRIPTION] = np.array(json.dumps(description))
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()
