"""Cost grows as it should with the dataset: a step's time not at all, memory by the dataset's own size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import jax

from benchmarks.inputs import ROBOTS, Trainee, logged
from benchmarks.limits import GPU_SEEDS
from benchmarks.rows import Row
from benchmarks.timing import side_by_side
from cwbc.core.device import default_preset

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)  # steps of the dataset
HOPPER = "Hopper-v5"
STEP_TIME, DEVICE_MEMORY = "training step", "device memory"


def cpu_step_time() -> Iterator[Row]:
    """Steps of small RvS, on which sampling would show most."""
    trainees = [Trainee("rvs", logged(size, HOPPER), default_preset(), chunk=100) for size in SIZES]
    yield from _step_times(trainees, repeats=15)


def gpu_step_time_and_memory() -> Iterator[Row]:
    """Steps of ten seeds at the paper's size, and what the device holds for each dataset."""
    trainees = []
    for size in SIZES:
        before = in_use()
        trainee = Trainee("rvs", logged(size, HOPPER), default_preset(), GPU_SEEDS)
        trainee.train()
        jax.block_until_ready(trainee.state)  # type: ignore[no-untyped-call]
        trainees.append(trainee)
        yield memory_row(DEVICE_MEMORY, in_use() - before, formula(trainee, size), size, promise=1.1)
    yield from _step_times(trainees, repeats=5)


def _step_times(trainees: Sequence[Trainee], repeats: int) -> Iterator[Row]:
    times = side_by_side(*(trainee.train for trainee in trainees), repeats=repeats)
    steps = [1e3 * took / trainee.chunk for took, trainee in zip(times, trainees, strict=True)]
    for size, step in zip(SIZES, steps, strict=True):
        yield Row(STEP_TIME, step, "ms", steps[0], "with the smallest dataset", promise=1.15, steps=size)


def formula(trainee: Trainee, size: int) -> int:
    """Bytes that training needs at the least: the dataset, weights with AdamW's two moments, and a batch."""
    row = 4 * (sum(ROBOTS[HOPPER]) + 1)  # observation, action and return-to-go
    batch = len(trainee.seeds) * trainee.windows * trainee.training.context * row
    return size * row + trainee.weights * 3 * 4 + batch


def memory_row(name: str, measured: float, expected: float, size: int, promise: float | None = None) -> Row:
    """Bytes beside those of the formula."""
    return Row(name, measured / 1e6, "MB", expected / 1e6, "by the formula", promise=promise, steps=size)


def in_use() -> int:
    """Bytes that the arrays on the device take."""
    statistics = jax.devices()[0].memory_stats()
    if statistics is None:  # as on a CPU
        return sum(array.nbytes for array in jax.live_arrays())  # type: ignore[no-untyped-call]
    return int(statistics["bytes_in_use"])
