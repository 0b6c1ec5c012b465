"""What depends on the device: how seeds share it, and the precision that pays there."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp

from cwbc.errors import InputError, install

Device = Literal["cpu", "gpu"]
Place = Literal["device", "host"]


def use_device(device: Device | None) -> Device:
    """Settle where to compute."""
    if device is not None:
        platform = {"cpu": "cpu", "gpu": "cuda"}[device]
        jax.config.update("jax_platforms", platform)  # type: ignore[no-untyped-call]
    try:
        backend = jax.default_backend()
    except (RuntimeError, AssertionError) as error:  # jax asserts where it has no plugin for the platform
        if device != "gpu":
            raise
        raise InputError(
            f"--device gpu: jax finds no GPU; on a machine with an NVIDIA GPU, {install('cuda')} brings it"
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


def default_precision(device: Device | None = None) -> Literal["float32", "bfloat16"]:
    """bfloat16 products are faster on a GPU, and slower on a CPU; without a device, this process's."""
    return "float32" if (on_cpu() if device is None else device == "cpu") else "bfloat16"


def default_preset() -> Literal["paper", "small"]:
    """The paper's sizes take hours on a CPU, and minutes on a GPU."""
    return "small" if on_cpu() else "paper"


def default_place(size: int) -> Place:
    """A dataset may take half of the device's free memory: weights, moments and batches need room as well."""
    return "device" if size <= _free_memory() / 2 else "host"


def total_memory() -> float:
    """Bytes that the device has in all: the host's where it is a CPU; infinite where that is not known."""
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
    if limit is not None:
        return float(limit)
    try:
        host = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # as on Windows
        return math.inf
    with contextlib.suppress(OSError, ValueError):  # "max" where a container sets no limit
        host = min(host, float(int(Path("/sys/fs/cgroup/memory.max").read_text())))
    return host


def _free_memory() -> float:
    (device,) = jnp.zeros(()).devices()  # of this thread: others may work on others
    memory = device.memory_stats() or {}
    if "bytes_limit" not in memory:  # as on a CPU, whose memory is the host's
        return math.inf
    return memory["bytes_limit"] - memory["bytes_in_use"]
