"""Getting at data: generated, read from HDF5, imported from Parquet."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet

from benchmarks.growth_from_files import whole
from benchmarks.inputs import logged
from benchmarks.limits import open_loop
from benchmarks.rows import Row
from benchmarks.timing import seconds, side_by_side
from cwbc.behaviours import snapshots
from cwbc.behaviours.recipes import SnapshotRecipe
from cwbc.data.formats import hdf5

MADE_STEPS, MADE_COPIES = 200_000, 200


def cpu_making() -> Iterator[Row]:
    """200,000 steps of HalfCheetah from the snapshots that come with the package."""
    name = "cwbc/halfcheetah/medium-replay-v0"
    recipe, sample = SnapshotRecipe(snapshots.shipped("halfcheetah"), "medium-replay"), 100
    limit = open_loop(recipe.environment, MADE_COPIES, sample)
    took = seconds(lambda: recipe.generate(name, MADE_STEPS))
    limit += open_loop(recipe.environment, MADE_COPIES, sample)
    yield Row(
        f"generating {name}",
        took,
        "s",
        limit / 2 * MADE_STEPS / (sample * MADE_COPIES),
        "open-loop C, as many steps",
        promise=20.0,
        promise_on="measured",
    )


def cpu_loading() -> Iterator[Row]:
    """A million transitions from HDF5: time beside the raw read, and peak memory over the arrays."""
    data = logged(1_000_000)
    size = data.observations.nbytes + data.actions.nbytes + data.rewards.nbytes
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "halfcheetah-random-v2.hdf5"
        hdf5.write(path, data)
        del data

        def raw() -> None:
            with h5py.File(path) as file:
                for key in file:
                    file[key][()]

        ours, limit = side_by_side(lambda: whole(path), raw, repeats=9)
        tracemalloc.start()
        whole(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    yield Row(
        "HDF5, a million steps",
        ours,
        "s",
        limit,
        "raw read",
        promise=limit + 2,
        promise_on="measured",
    )
    yield Row("HDF5, peak memory", peak / 1e6, "MB", size / 1e6, "of arrays", promise=2.0)


IMPORT = """
import sys, time
from benchmarks.memory import peak
from cwbc.cli.main import main
began = time.perf_counter()
try:
    main(["data", "import", sys.argv[1], "--name", "logs"])
except SystemExit as ended:
    assert ended.code == 0
print(time.perf_counter() - began, peak())
"""


def cpu_importing(rows: int = 10_000_000) -> Iterator[Row]:
    """Ten million rows of Parquet into the store, in no order: the time of it all, and peak memory."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "logs.parquet"
        _write_log(path, rows)
        before = seconds(lambda: pyarrow.parquet.read_table(path))
        environment = os.environ | {"CWBC_DATA": directory}
        command = [sys.executable, "-c", IMPORT, str(path)]
        printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        after = seconds(lambda: pyarrow.parquet.read_table(path))
    took, peak = float(printed.split()[0]), float(printed.split()[1])
    yield Row(
        "Parquet, ten million rows",
        took,
        "s",
        (before + after) / 2,
        "raw read",
        promise=30.0,
        promise_on="measured",
    )
    size = rows * (11 + 3 + 1) * 4
    yield Row("Parquet, peak memory of the process", peak / 1e6, "MB", size / 1e6, "of arrays", promise=3.0)


def _write_log(path: Path, rows: int, lot: int = 500_000) -> None:
    """A log in the shape of Hopper's, in float64 as most tools write it, its rows in no order at all."""
    generator = np.random.default_rng(0)
    order = generator.permutation(rows)
    writer = None
    for first in range(0, rows, lot):
        row = order[first : first + lot]
        columns = {"episode": row // 1000, "step": row % 1000, "reward": generator.normal(size=len(row))}
        columns |= {f"observation_{i}": generator.normal(size=len(row)) for i in range(11)}
        columns |= {f"action_{i}": generator.uniform(-1, 1, len(row)) for i in range(3)}
        table = pyarrow.table(columns)
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
