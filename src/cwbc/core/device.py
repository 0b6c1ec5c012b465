"""Choices that depend on the device: where seeds run, in which precision, and where the data is stored."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from cwbc.system.errors import InputError, install
from cwbc.system.host_memory import host_memory

Device = Literal["cpu", "gpu"]
Place = Literal["device", "host", "disk"]  # of a dataset in training
PLACES: tuple[Place, ...] = ("device", "host", "disk")


def use_device(device: Device | None) -> Device:
    """Choose where to compute; by default a GPU where there is one."""
    if device is not None:
        platform = {"cpu": "cpu", "gpu": "cuda"}[device]
        jax.config.update("jax_platforms", platform)  # type: ignore[no-untyped-call]
    try:
        backend = jax.default_backend()
    except (RuntimeError, AssertionError) as error:  # jax asserts where it has no plugin for the platform
        if device != "gpu":
            raise
        raise InputError(
            f"--device gpu: jax finds no GPU; on a machine with an NVIDIA GPU, {install('cuda')} adds it"
        ) from error
    return "cpu" if backend == "cpu" else "gpu"


def on_cpu() -> bool:
    """Whether computation is on a CPU rather than an accelerator."""
    return jax.default_backend() == "cpu"


def over_seeds(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function over a leading seed axis: side by side on a GPU, in turn on a CPU."""
    if on_cpu():
        return lambda *arguments: jax.lax.map(lambda seed: function(*seed), arguments)
    return jax.vmap(function)


@functools.cache
def compiler_options() -> dict[str, str]:
    """Options of a program of many small kernels: those that do not depend on each other run side by side."""
    options = {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"}
    if on_cpu():
        return {}
    try:
        jax.jit(lambda x: x + 1, compiler_options=options).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:  # a compiler without it
        return {}
    return options


def default_precision(device: Device | None = None) -> Literal["float32", "bfloat16"]:
    """bfloat16 on a GPU, where it is faster, and float32 on a CPU; without a device, this process's."""
    return "float32" if (on_cpu() if device is None else device == "cpu") else "bfloat16"


def default_preset() -> Literal["paper", "small"]:
    """The paper's sizes on a GPU; on a CPU they would take hours."""
    return "small" if on_cpu() else "paper"


def default_place(size: int, is_mapped: bool = False) -> Place:
    """The device if the dataset takes at most half of its free memory: parameters and batches need room.

    Args:
        is_mapped: whether the dataset is a file that is mapped, as it exceeds the host's memory.
    """
    # A CPU's memory is the host's.
    if size <= _free_memory() / 2 and not (is_mapped and on_cpu()):
        return "device"
    return "disk" if is_mapped else "host"


def total_memory() -> float:
    """Bytes of the device's memory; of the host's on a CPU; infinite where that is unknown."""
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
    if limit is not None:
        return float(limit)
    return host_memory()


def _free_memory() -> float:
    (device,) = jnp.zeros(()).devices()  # of this thread: others may work on others
    memory = device.memory_stats() or {}
    if "bytes_limit" not in memory:  # as on a CPU, whose memory is the host's
        return math.inf
    return memory["bytes_limit"] - memory["bytes_in_use"]
