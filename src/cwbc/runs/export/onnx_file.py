"""A step as an ONNX file: from observation, reward and state to action and next_state of several episodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cwbc.runs.export.checking import Stepper
from cwbc.runs.export.graph import Node, Shape, Value
from cwbc.runs.export.step import Step
from cwbc.system.errors import InputError, need_extra

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

INPUTS, OUTPUTS = ("observation", "reward", "state"), ("action", "next_state")
# Of 2022: all that the operations need, and what runtimes of the last years read.
_OPERATORS, _FORMAT = 18, 8
# Attributes that are inputs here, in the order of the operation's inputs.
_AS_INPUTS = {"Slice": ("starts", "ends", "axes", "steps"), "CumSum": ("axis",)} | dict.fromkeys(
    ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"), ("axes",)
)


def load_onnx() -> Any:
    """The package onnx, or an error with the command that installs it."""
    return need_extra("onnx", "onnx", "exports to ONNX")


def encoded(step: Step, about: dict[str, Any]) -> bytes:
    """The content of the file."""
    return _model(load_onnx(), step, about).SerializeToString()


def steppers(content: bytes) -> dict[str, Stepper]:
    """ONNX Runtime acting with a file, where it is installed."""
    try:
        import onnxruntime
        from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph
        from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotSupported
    except ImportError:
        return {}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except (Fail, InvalidGraph, NotSupported) as error:
        raise InputError(
            f"ONNX Runtime cannot compute this policy, and nothing was written: {error}"
        ) from error
    kinds = {each.name: np.uint8 if "uint8" in each.type else np.float32 for each in session.get_inputs()[:1]}

    def step(observations: Any, rewards: Any, state: Any) -> Any:
        inputs = (observations.astype(kinds[INPUTS[0]]), rewards, state)
        return session.run(list(OUTPUTS), dict(zip(INPUTS, inputs, strict=True)))

    return {"ONNX Runtime": step}


def _model(onnx: Any, step: Step, about: dict[str, Any]) -> ModelProto:
    writer = _Writer(onnx, step)
    nodes = [each for node in step.nodes for each in writer.nodes(node)]
    # Outputs may be inputs, or one value twice.
    nodes += [
        onnx.helper.make_node("Identity", [writer.name(value)], [name])
        for value, name in zip(step.outputs, OUTPUTS, strict=True)
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "policy",
        [writer.info(value, name) for value, name in zip(step.inputs, INPUTS, strict=True)],
        [writer.info(value, name) for value, name in zip(step.outputs, OUTPUTS, strict=True)],
        writer.constants,
    )
    operators = [onnx.helper.make_opsetid("", _OPERATORS)]
    model = onnx.helper.make_model(
        graph,
        opset_imports=operators,
        ir_version=_FORMAT,
        producer_name="cwbc",
        producer_version=about["cwbc_version"],
    )
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in about.items()
        if value is not None
    }
    onnx.helper.set_model_props(model, texts)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise InputError(f"ONNX cannot express this policy, and nothing was written: {error}") from error
    return model


class _Writer:
    """Names of values, and the constants that nodes read."""

    def __init__(self, onnx: Any, step: Step) -> None:
        self._onnx = onnx
        self._names: dict[Any, str] = dict(zip(step.inputs, INPUTS, strict=True))
        self._state = step.inputs[2]
        self.constants: list[TensorProto] = []

    def name(self, value: Value) -> str:
        """The name of a value; a constant is written with its first."""
        if value.constant is not None:
            return self.constant(value.constant)
        return self._names.setdefault(value, f"value{len(self._names)}")

    def constant(self, array: Any) -> str:
        """The name of a constant."""
        array = np.asarray(array)
        key = (array.shape, array.dtype, array.tobytes() if array.size < 64 else id(array))
        if key not in self._names:
            self._names[key] = f"constant{len(self._names)}"
            self.constants.append(
                self._onnx.numpy_helper.from_array(
                    np.ascontiguousarray(array).reshape(array.shape), self._names[key]
                )
            )
        return self._names[key]

    def info(self, value: Value, name: str) -> ValueInfoProto:
        """An input or an output, with an open number of episodes."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        shape = ["episodes" if size < 0 else size for size in value.shape]
        return self._onnx.helper.make_tensor_value_info(name, kind, shape)

    def nodes(self, node: Node) -> Iterator[NodeProto]:
        """ONNX's nodes for one of the graph."""
        operation, attributes = node.operation, dict(node.attributes)
        inputs = [self.name(each) for each in node.inputs]
        if operation == "Slice":
            attributes["axes"] = list(range(len(attributes["starts"])))
        if operation in ("Reshape", "Expand"):
            shape = attributes.pop("shape")
            if operation == "Reshape":
                inputs.append(self.constant(np.array([-1 if size < 0 else size for size in shape])))
            else:
                yield from self._shape(node.inputs[0].shape, shape, of := f"shape{len(self._names)}")
                inputs.append(of)
        for name in _AS_INPUTS.get(operation, ()):
            inputs.append(self.constant(np.array(attributes.pop(name), np.int64)))
        if operation == "Cast":
            attributes["to"] = self._onnx.helper.np_dtype_to_tensor_dtype(node.output.dtype)
        elif operation.startswith(("Reduce", "Arg")):
            attributes["keepdims"] = 0
        elif operation == "Mod":
            attributes["fmod"] = 1
        yield self._onnx.helper.make_node(operation, inputs, [self.name(node.output)], **attributes)

    def _shape(self, before: Shape, after: Shape, name: str) -> Iterator[NodeProto]:
        """The shape that an array is extended to: 1 where it has its size already."""
        before = (1,) * (len(after) - len(before)) + before
        sizes = [1 if old == new else new for old, new in zip(before, after, strict=True)]
        if min(sizes) >= 0:
            yield self._onnx.helper.make_node("Identity", [self.constant(np.array(sizes))], [name])
            return
        count, times = f"{name}-episodes", f"{name}-times"
        # n * episodes + m, where either is 0.
        factors, others = (np.array([max(0, sign * size) for size in sizes]) for sign in (-1, 1))
        make = self._onnx.helper.make_node
        yield make("Shape", [self._names[self._state]], [count], start=0, end=1)
        yield make("Mul", [count, self.constant(factors)], [times])
        yield make("Add", [times, self.constant(others)], [name])
