"""How long an exported policy takes to act: one observation, one thread, RvS at the paper's size."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import jax

from benchmarks.inputs import logged
from benchmarks.rows import Row
from cwbc.core.methods import Training, parse
from cwbc.core.policy_spec import PolicySpec
from cwbc.runs.policies import Policy

ACTING, FIRST = 0.15, 0.5  # milliseconds of one action, seconds until the first of a process
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_NUMPY = """
from policy import Policy
policy = Policy.load("policy.npz")
policy.begin()
policy.act([0.0] * 17)
def act(): policy.act(observation, 0.5)
"""
_ONNX = """
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession("policy.onnx", options)
inputs = {"reward": numpy.zeros(1), "state": numpy.array([[1.0, 0.0]])}
inputs["observation"] = numpy.zeros((1, 17), numpy.float32)
session.run(None, inputs)
def act(): session.run(None, inputs)
"""
_PRODUCT = """
import numpy
weights, hidden = numpy.ones((1024, 1024), numpy.float32), numpy.ones((1, 1024), numpy.float32)
def act(): hidden @ weights
"""
# The shortest of many: a process that is interrupted takes longer, however fast it is.
_TIMING = """
import time, numpy
observation = numpy.zeros(17)
def once():
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
print(min(once() for _ in range(10_000)))
"""
_FIRST_REPEATS = 10


def cpu_deployment() -> Iterator[Row]:
    """Actions by NumPy and by ONNX Runtime, beside the hidden layer's product in NumPy."""
    spec = PolicySpec.fit(parse("rvs"), logged(2000), Training())
    state = spec.method.learner.initialize(spec, jax.random.key(0))
    with tempfile.TemporaryDirectory() as folder:
        policy = Policy(spec, state.parameters)
        policy.export(Path(folder, "policy.npz"), "numpy", target=1.0)
        policy.export(Path(folder, "policy.onnx"), "onnx", target=1.0)
        product = 1000 * float(_run(folder, _PRODUCT + _TIMING))
        for name, program in (("NumPy", _NUMPY), ("ONNX Runtime", _ONNX)):
            took = 1000 * float(_run(folder, program + _TIMING))
            limit = (product, "the hidden product in NumPy")
            yield Row(
                f"exported rvs, one action, {name}", took, "ms", *limit, promise=ACTING, promise_on="measured"
            )
            first = min(_seconds(folder, program) for _ in range(_FIRST_REPEATS))
            yield Row(
                f"exported rvs, first action of a process, {name}",
                first,
                "s",
                promise=FIRST,
                promise_on="measured",
            )


def _seconds(folder: str, program: str) -> float:
    began = time.perf_counter()
    _run(folder, program)
    return time.perf_counter() - began


def _run(folder: str, program: str) -> str:
    """What a program prints that runs in one thread."""
    environment = os.environ | dict.fromkeys(_THREADS, "1")
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout
