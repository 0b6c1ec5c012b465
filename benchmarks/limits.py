"""What the machine can do at most: plain matrix products, copies of memory, MuJoCo's own loop in C."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from benchmarks.rows import Row
from benchmarks.timing import Work, seconds, side_by_side
from cwbc import envs
from cwbc.envs.locomotion import Locomotion
from cwbc.envs.mazes import BatchedMaze
from cwbc.envs.physics import BatchedPhysics

ROWS, WIDTH = 64 * 20, 1024  # of a paper-size RvS batch, and of its hidden layers
GPU_SEEDS = 10


def products(shape: tuple[int, ...], width: int, dtype: str, count: int) -> tuple[Work, float]:
    """So many products of [..., row, width] with [..., width, width], and the operations that they take."""
    keys = jax.random.split(jax.random.key(0), 2)
    x = jax.random.normal(keys[0], shape, dtype)
    w = jax.random.normal(keys[1], (*shape[:-2], width, width), dtype) / width**0.5  # keeps the size of x
    multiply = jax.jit(lambda x, w: jax.lax.fori_loop(0, count, lambda _, y: y @ w, x))
    return lambda: multiply(x, w), 2.0 * count * x.size * width


def copies(size: int, count: int) -> tuple[Work, float]:
    """So many times reading and writing an array of `size` bytes, and the bytes that moves."""
    x = jnp.zeros(size // 4, jnp.float32)
    # The count of the round keeps the compiler from making one round of them.
    copy = jax.jit(lambda x: jax.lax.fori_loop(0, count, lambda i, y: y + i, x))
    return lambda: copy(x), 2.0 * count * size


def rate(work: Work, amount: float) -> float:
    """How much of an amount of work is done in a second."""
    return amount / side_by_side(work, repeats=5)[0]


@functools.cache
def seeds_product_rate() -> float:
    """Operations per second of a GPU on the hidden products of a paper-size RvS batch of ten seeds."""
    return rate(*products((GPU_SEEDS, ROWS, WIDTH), WIDTH, "bfloat16", 200))


@functools.cache
def gpu_bandwidth() -> float:
    """Bytes per second that a GPU reads and writes."""
    return rate(*copies(2 << 30, 20))


def cpu_limits() -> Iterator[Row]:
    """A core's arithmetic and the way to memory."""
    product = rate(*products((ROWS, WIDTH), WIDTH, "float32", 10))
    yield Row("product of [1280, 1024] and [1024, 1024], float32", product / 1e9, "GFLOP/s")
    yield Row("copy of 256 MiB, bytes read and written", rate(*copies(256 << 20, 4)) / 1e9, "GB/s")


def gpu_limits() -> Iterator[Row]:
    """The GPU's arithmetic and the way to its memory."""
    batched = seeds_product_rate() / 1e12
    yield Row("product of [10, 1280, 1024] and [10, 1024, 1024], bfloat16", batched, "TFLOP/s")
    square = rate(*products((8192, 8192), 8192, "bfloat16", 10)) / 1e12
    yield Row("product of [8192, 8192] and [8192, 8192], bfloat16", square, "TFLOP/s")
    yield Row("copy of 2 GiB, bytes read and written", gpu_bandwidth() / 1e12, "TB/s")


def physical(environment: str, count: int) -> tuple[Locomotion | BatchedMaze, BatchedPhysics]:
    """Copies of a robot on MuJoCo's own thread pool, and their physics."""
    simulator = envs.make(environment, count)
    assert isinstance(simulator, Locomotion | BatchedMaze)
    return simulator, simulator.physics


def advance(batch: mujoco.batch.Batch, simulator: Locomotion | BatchedMaze) -> None:
    """What MuJoCo itself computes in one step of a simulator."""
    if isinstance(simulator, BatchedMaze) and simulator.maze.top_speed is not None:
        batch.forward()
    batch.step(nstep=simulator.substeps)


def open_loop(environment: str, count: int, steps: int) -> float:
    """Seconds that MuJoCo's own loop takes for `steps` steps of `count` robots under random actions."""
    simulator, physics = physical(environment, count)
    simulator.reset(np.arange(count), range(count))
    generator = np.random.default_rng(0)
    controls = physics.batch.bind("ctrl")
    took = 0.0
    for _ in range(steps):
        controls[:] = generator.uniform(-1, 1, controls.shape)
        took += seconds(lambda: advance(physics.batch, simulator))
    simulator.close()
    return took
