"""Speed and memory beside their limits, each pair measured side by side in one run."""

from __future__ import annotations

import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import jax
import mujoco
import numpy as np
import pyarrow
import pyarrow.parquet
from rich.console import Console
from rich.table import Table

from cwbc import sampling, simulators, updates
from cwbc.behaviours import recipes, zoo
from cwbc.datasets import load
from cwbc.datasets.arrays import from_arrays
from cwbc.design import Design
from cwbc.device import default_precision, on_cpu
from cwbc.evaluation import evaluate
from cwbc.methods import Training, parse
from cwbc.policy import Policies
from cwbc.simulators.locomotion import ROBOTS, Locomotion
from cwbc.trajectories import Trajectories

ROWS, WIDTH = 64 * 20, 1024  # of a paper-size RvS batch


@dataclasses.dataclass(frozen=True)
class Line:
    """One row of the table: what was measured beside its limit, and whether it keeps its promise."""

    what: str
    measured: str
    limit: str
    ratio: str
    promise: str
    kept: bool


def logged(steps: int, observation_size: int = 17, action_size: int = 6) -> Trajectories:
    """Random data in the shape of HalfCheetah's; speed does not depend on what it says."""
    generator = np.random.default_rng(0)
    ends = np.arange(1, steps + 1) % 1000 == 0
    return from_arrays(
        "random",
        generator.normal(size=(steps, observation_size)).astype(np.float32),
        generator.uniform(-1, 1, (steps, action_size)).astype(np.float32),
        generator.normal(size=steps).astype(np.float32),
        np.zeros(steps, bool),
        ends,
        environment="HalfCheetah-v5",
        time_limit=1000,
    )


def seconds(work: Callable[[], Any]) -> float:
    """The time of one call, the device's work included."""
    began = time.perf_counter()
    jax.block_until_ready(work())  # type: ignore[no-untyped-call]
    return time.perf_counter() - began


def side_by_side(one: Callable[[], Any], other: Callable[[], Any], repeats: int = 7) -> tuple[float, float]:
    """Median times of two kinds of work that take turns, so that a noisy machine disturbs both alike."""
    seconds(one), seconds(other)
    times = [(seconds(one), seconds(other)) for _ in range(repeats)]
    return statistics.median(t for t, _ in times), statistics.median(t for _, t in times)


def training_step() -> Line:
    """A paper-size RvS step against the same amount of plain matrix products."""
    data = logged(20_000)
    method, settings = parse("rvs"), Training()
    design = Design.fit(method, data, settings.context)
    device_data = sampling.to_device(data, design.method)
    state = [updates.initialize(design, settings, (0,))]
    chunk = updates.chunk_length(design, settings, state[0])

    def train() -> Any:
        state[0], losses = updates.run_chunk(design, settings, state[0], device_data, (0,), 0, chunk)
        return losses

    inputs, outputs = data.observations.shape[1] + 1, data.action_size
    operations = chunk * 6 * ROWS * (inputs * WIDTH + WIDTH * WIDTH + WIDTH * outputs)
    keys = jax.random.split(jax.random.key(0), 2)
    x = jax.random.normal(keys[0], (ROWS, WIDTH))
    w = jax.random.normal(keys[1], (WIDTH, WIDTH)) / WIDTH**0.5  # keeps the size of x
    products = round(operations / (2 * ROWS * WIDTH * WIDTH))
    multiply = jax.jit(lambda x, w: jax.lax.fori_loop(0, products, lambda _, y: y @ w, x))
    ours, limit = side_by_side(train, lambda: multiply(x, w))
    # Both are rates of useful operations: the number of plain products is rounded, so they are scaled.
    rate, limit_rate = operations / ours / 1e9, products * 2 * ROWS * WIDTH**2 / limit / 1e9
    return Line(
        "RvS step, paper size",
        f"{ours / chunk * 1e3:.0f} ms, {rate:.0f} GFLOP/s",
        f"{limit_rate:.0f} GFLOP/s plain product",
        f"{rate / limit_rate:.0%}",
        "at least 80 %",
        rate / limit_rate >= 0.8,
    )


def simulation(environment: str, count: int = 128, steps: int = 60) -> Line:
    """A simulator's step against MuJoCo's own C loop over the same states and actions."""
    simulator = simulators.make(environment, count)
    assert isinstance(simulator, Locomotion)
    episodes = np.arange(count)
    generator = np.random.default_rng(0)
    actions = generator.uniform(-1, 1, (count, simulator.action_size)).astype(np.float32)
    simulator.reset(episodes, list(range(count)))
    model, frame_skip = simulator.batch.model, ROBOTS[environment].frame_skip
    bare = mujoco.batch.Batch(model, count)
    bare.bind("ctrl")[:] = actions
    ours, limit = 0.0, 0.0
    for _ in range(steps):
        bare.state[:] = simulator.batch.state  # the cost of a step depends on the contacts of its state
        limit += seconds(lambda: bare.step(nstep=frame_skip))
        began = time.perf_counter()
        outcome = simulator.step(episodes, actions)
        ours += time.perf_counter() - began
        if (ended := episodes[outcome.terminated | outcome.truncated]).size:
            simulator.reset(ended, list(range(len(ended))))
    simulator.close()
    return Line(
        f"simulation, {environment} x {count}",
        f"{count * steps / ours:,.0f} steps/s",
        f"{count * steps / limit:,.0f} steps/s open-loop C",
        f"{limit / ours:.0%}",
        "at least 80 %",
        limit / ours >= 0.8,
    )


def sweep() -> Line:
    """100 whole episodes of HalfCheetah under a paper-size RvS policy."""
    data = logged(5000)
    design = Design.fit(parse("rvs"), data, 20)
    parameters = jax.vmap(design.initialize)(jax.random.split(jax.random.key(0), 1))
    policies = Policies(design, parameters, (0,), *data.observation_statistics)
    evaluate(policies, "HalfCheetah-v5", [1000.0], episodes=1)  # compiles all but the batch size
    took = seconds(
        lambda: evaluate(policies, "HalfCheetah-v5", [1000.0 * k for k in range(1, 11)], 10).returns
    )
    return Line(
        "100 HalfCheetah episodes, RvS", f"{took:.1f} s", "", "", "under 10 s on two cores", took < 10
    )


def making() -> Line:
    """200,000 steps of HalfCheetah from the snapshots that come with the package."""
    name = "cwbc/halfcheetah/medium-replay-v0"
    took = seconds(lambda: recipes.make(zoo.series("halfcheetah"), name, "medium-replay", 200_000))
    return Line(f"making {name}", f"{took:.1f} s", "", "", "under 20 s on two cores", took < 20)


def loading() -> Iterator[Line]:
    """A million transitions from HDF5: time beyond the raw read, and peak memory over the arrays."""
    data = logged(1_000_000)
    arrays = {"observations": data.observations, "actions": data.actions, "rewards": data.rewards}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "halfcheetah-random-v2.hdf5"
        with h5py.File(path, "w") as file:
            for key, array in arrays.items():
                file[key] = array
            file["terminals"] = np.zeros(data.steps, bool)
            file["timeouts"] = np.arange(1, data.steps + 1) % 1000 == 0

        def raw() -> None:
            with h5py.File(path) as file:
                for key in file:
                    file[key][()]

        def whole() -> None:
            loaded = load(path)
            _ = loaded.returns_to_go, loaded.observation_statistics, loaded.content_hash

        ours, limit = side_by_side(whole, raw, repeats=3)
        tracemalloc.start()
        whole()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    beyond = ours - limit
    yield Line(
        "HDF5, a million steps",
        f"{ours:.2f} s",
        f"{limit:.2f} s raw read",
        f"+{beyond:.2f} s",
        "within 2 s beyond",
        beyond < 2,
    )
    size = sum(array.nbytes for array in arrays.values())
    yield Line(
        "  peak memory",
        f"{peak / 1e6:.0f} MB",
        f"{size / 1e6:.0f} MB of arrays",
        f"{peak / size:.2f}x",
        "under 2x",
        peak < 2 * size,
    )


IMPORT = """
import resource, sys, time
from cwbc.cli import main
began = time.perf_counter()
try:
    main(["data", "import", sys.argv[1], "--name", "logs"])
except SystemExit as ended:
    assert ended.code == 0
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def importing(rows: int = 10_000_000) -> Iterator[Line]:
    """Ten million rows of Parquet into the store, in no order: the time of it all, and peak memory."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "logs.parquet"
        write_log(path, rows)
        environment = os.environ | {"CWBC_DATA": directory}
        command = [sys.executable, "-c", IMPORT, str(path)]
        told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    took, peak = float(told.split()[0]), float(told.split()[1]) * 1024
    size = rows * (11 + 3 + 1) * 4
    yield Line("Parquet, ten million rows", f"{took:.1f} s", "", "", "under 30 s on two cores", took < 30)
    yield Line(
        "  peak memory of the process",
        f"{peak / 1e6:.0f} MB",
        f"{size / 1e6:.0f} MB of arrays",
        f"{peak / size:.2f}x",
        "under 3x",
        peak < 3 * size,
    )


def write_log(path: Path, rows: int, lot: int = 500_000) -> None:
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


def ten_seeds(name: str, promise: float, chunks: int = 4) -> Line:
    """Ten seeds of a paper-size method on a GPU: compile time, and what 100,000 steps come to."""
    data = logged(100_000)
    settings = Training(precision=default_precision())
    design = Design.fit(parse(name), data, settings.context)
    device_data, seeds = sampling.to_device(data, design.method), tuple(range(10))
    state = [updates.initialize(design, settings, seeds)]
    length = updates.chunk_length(design, settings, state[0])

    def train() -> Any:
        state[0], losses = updates.run_chunk(design, settings, state[0], device_data, seeds, 0, length)
        return losses

    first = seconds(train)
    chunk = statistics.median(seconds(train) for _ in range(chunks))
    total = (first - chunk) + chunk * settings.steps / length
    kind = jax.devices()[0].device_kind
    return Line(
        f"{name}, 10 seeds x 100,000",
        f"{total:.0f} s projected ({first - chunk:.0f} s compile)",
        kind,
        "",
        f"{promise:.0f} s or less",
        total <= promise,
    )


def lines() -> Iterator[Line]:
    """Every measurement, one after the other."""
    if on_cpu():
        yield training_step()
    else:
        yield ten_seeds("rvs+cwbc", 130)
        yield ten_seeds("dt", 360)
    for environment in ("Hopper-v5", "Walker2d-v5", "HalfCheetah-v5"):
        yield simulation(environment)
    yield sweep()
    yield making()
    yield from loading()
    yield from importing()


def main() -> None:
    """Print the table."""
    console = Console(width=130)
    headings = ("what", "measured", "limit in the same run", "ratio", "promise", "kept")
    table = Table(*headings)
    with console.status("measuring"):
        for line in lines():
            table.add_row(
                line.what, line.measured, line.limit, line.ratio, line.promise, "yes" if line.kept else "NO"
            )
    console.print(table)


if __name__ == "__main__":
    main()
