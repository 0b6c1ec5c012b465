"""Cost grows as it should with the dataset's file: reading it in proportion, training's memory by a formula.

Run as a program, it trains on one file and reports its memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jax

from benchmarks.growth import DEVICE_MEMORY, HOPPER, SIZES, formula, in_use, memory_row
from benchmarks.inputs import Trainee, logged
from benchmarks.memory import peak
from benchmarks.rows import Row
from benchmarks.timing import Work, side_by_side
from cwbc.core.trajectories import Trajectories
from cwbc.data import load
from cwbc.data.formats import hdf5

LOADING, PROCESS_MEMORY = "loading HDF5", "peak process memory"
LINEAR_FROM = 100_000  # steps; below, what does not depend on the size shows
SEEDS = 3


def whole(path: Path) -> Trajectories:
    """A dataset with all that is computed from it before training."""
    data = load(path)
    _ = data.returns_to_go, data.observation_statistics, data.content_hash
    return data


def cpu_loading_and_memory() -> Iterator[Row]:
    """Datasets of every size, from files."""
    with tempfile.TemporaryDirectory() as directory:
        paths = {size: Path(directory) / f"hopper-{size}.hdf5" for size in SIZES}
        for size, path in paths.items():
            hdf5.write(path, logged(size, HOPPER))
        yield from _loading(paths)
        yield from _memory(paths)


def _loading(paths: dict[int, Path]) -> Iterator[Row]:
    def loading(path: Path) -> Work:
        return lambda: whole(path)

    times = dict(zip(paths, side_by_side(*map(loading, paths.values()), repeats=3), strict=True))
    for size, took in times.items():
        linear = times[LINEAR_FROM] * size / LINEAR_FROM
        promise = 2.0 if size >= LINEAR_FROM else None
        yield Row(LOADING, took, "s", linear, "in proportion", promise=promise, steps=size)


def _memory(paths: dict[int, Path]) -> Iterator[Row]:
    beyond_data = None  # the interpreter, jax and the compiled program, as the smallest dataset shows them
    for size, path in paths.items():
        command = [sys.executable, "-m", "benchmarks.growth_from_files", str(path)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        beyond_data = beyond_data or found["peak"] - found["formula"]
        yield memory_row(DEVICE_MEMORY, found["device"], found["formula"], size, promise=1.1)
        yield memory_row(PROCESS_MEMORY, found["peak"], beyond_data + found["formula"], size)


def main() -> None:
    """Train on a file; print the bytes on the device, those of the process at its peak, and the formula's."""
    data = whole(Path(sys.argv[1]))
    trainee = Trainee("rvs", data, "small", SEEDS)
    jax.block_until_ready(trainee.train())  # type: ignore[no-untyped-call]
    device, expected = in_use(), formula(trainee, data.steps)
    print(json.dumps({"device": device, "peak": peak(), "formula": expected}))


if __name__ == "__main__":
    main()
