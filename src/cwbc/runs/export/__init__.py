"""Policies for other runtimes: one ONNX file, or weights for a module of NumPy alone."""

from __future__ import annotations

import dataclasses
import functools
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import cwbc
from cwbc.core.spaces import Discrete
from cwbc.runs.export import checking, numpy_file, numpy_policy, onnx_file
from cwbc.runs.export.checking import Stepper
from cwbc.runs.export.step import Step
from cwbc.runs.inputs import numbers
from cwbc.system.errors import InputError, unknown
from cwbc.system.files import read_text, write_together

if TYPE_CHECKING:
    from cwbc.runs.policies import Policy

Format = Literal["onnx", "numpy"]
FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: Mapping[Format, str] = {"onnx": ".onnx", "numpy": ".npz"}
MODULE = "policy.py"  # the module that reads weights, written beside them


@dataclasses.dataclass(frozen=True)
class Export:
    """What was written, and how it was compared with the policy."""

    files: tuple[Path, ...]
    difference: float  # largest, of actions, in units of their range
    runtimes: tuple[str, ...]  # that acted


def export(policy: Policy, path: Path, format: Format, target: float | None, overwrite: bool) -> Export:
    """Write a policy for another runtime, once it has acted there as it does here."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if format == "onnx":
        onnx_file.load_onnx()
    module = Path(numpy_policy.__file__).read_text()
    others = {path.parent / MODULE: module} if format == "numpy" else {}
    _check_free(path, others, overwrite)
    policy = policy.acting("greedy")  # random numbers are not exported
    about = description(policy, target)
    step = Step.of(policy.spec, policy.parameters)
    weights = numpy_file.encoded(step, about)
    steppers: dict[str, Stepper] = {"NumPy": numpy_policy.Policy.read(io.BytesIO(weights)).step}
    content = weights
    if format == "onnx":
        content = onnx_file.encoded(step, about)
        steppers |= onnx_file.steppers(content)
    difference = checking.largest_difference(policy, steppers, step.inputs[2].shape[1], about["target"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_together({path: content, **others}, functools.partial(_check_free, path, others, overwrite))
    return Export((path, *others), difference, tuple(steppers))


def description(policy: Policy, target: float | None) -> dict[str, Any]:
    """What those who deploy a policy have to know of it.

    Args:
        target: the target return to begin with, where none is given; by default the recommended one.
    """
    spec, learner = policy.spec, policy.spec.method.learner
    if target is not None and not spec.method.is_conditioned:
        raise InputError(f"{spec.method.name} takes no target return; export it without one")
    given = None if target is None else numbers(target)
    if target is not None and (given is None or given.ndim or not math.isfinite(given)):
        raise InputError(f"the target must be a finite number; got {target!r:.60}")
    if target is None:
        target = learner.open_target(spec.horizon)
        target = policy.recommended_target if target is None else target
    is_discrete = isinstance(spec.actions, Discrete)
    actions = {"kind": "discrete", "choice": "greedy"} if is_discrete else {"kind": "continuous"}
    return {
        "method": spec.method.name,
        "target": None if target is None else float(target),
        "horizon": spec.horizon,
        "context": spec.memory,
        "observation": {"shape": list(spec.observations.shape), "values": spec.observations.values},
        "actions": {**actions, **dataclasses.asdict(spec.actions)},
        **({"clipped_rewards": True} if spec.clipped_rewards else {}),
        "cwbc_version": cwbc.__version__,
        **policy.about,
    }


def _check_free(path: Path, others: Mapping[Path, str], overwrite: bool) -> None:
    """Refuse to replace what is there, but for the same module."""
    if path in others:
        raise InputError(f"{path} is the name of the module that reads the weights; give them another")
    for file in () if overwrite else (path, *others):
        if file.exists() and not (file in others and read_text(file) == others[file]):
            raise InputError(f"{file} exists; --overwrite replaces it")
