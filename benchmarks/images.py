"""Image datasets: read from the store, and streamed from disk where they exceed the memory."""

from __future__ import annotations

import contextlib
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.inputs import Trainee
from benchmarks.rows import Row
from benchmarks.timing import side_by_side
from cwbc.core import sampling
from cwbc.core.trajectories import Trajectories
from cwbc.data import load, store

Images = NDArray[np.uint8]  # [step, height, width, channel]
SIDE, LENGTH = 84, 500  # of a frame, in pixels; of an episode, in steps
READ_STEPS, STREAMED_STEPS = 50_000, 50_000
NAME = "frames"
MEMORY = 1_000_000_000  # bytes that a training may allocate, on images of four times as many


def frames(steps: int, out: Images) -> Images:
    """Frames like a game's: a fixed background, and a few small things that move."""
    background = np.kron(np.arange(9, dtype=np.uint8).reshape(3, 3) * 25, np.ones((28, 28), np.uint8))
    random = np.random.default_rng(0)
    places = (np.cumsum(random.integers(-2, 3, (steps, 6, 2)), axis=0) % (SIDE - 4)).astype(int)
    for step in range(steps):
        out[step, ..., 0] = background
        for number, (row, column) in enumerate(places[step]):
            out[step, row : row + 4, column : column + 4] = 40 * number
    return out


def filmed(steps: int, observations: Images) -> Trajectories:
    """Episodes of such frames, with random actions."""
    random, lengths = np.random.default_rng(0), np.full(steps // LENGTH, LENGTH)
    return Trajectories(
        name=NAME,
        observations=frames(steps, observations),
        actions=random.integers(0, 4, steps, np.int32),
        rewards=(random.random(steps) < 0.05).astype(np.float32),
        starts=np.cumsum(lengths) - LENGTH,
        lengths=lengths,
        terminated=np.ones(len(lengths), bool),
        action_count=4,
    )


@contextlib.contextmanager
def _stored(steps: int) -> Iterator[Path]:
    """A store with a dataset that is never in memory as a whole."""
    with tempfile.TemporaryDirectory() as directory:
        before = os.environ.get(store.VARIABLE)
        os.environ[store.VARIABLE] = directory
        path = Path(directory) / "frames.raw"
        try:
            shape = (steps, SIDE, SIDE, 1)
            store.add(filmed(steps, np.memmap(path, np.uint8, "w+", shape=shape)), "benchmarks")
            path.unlink()
            yield Path(directory)
        finally:
            os.environ.pop(store.VARIABLE)
            if before is not None:
                os.environ[store.VARIABLE] = before


def cpu_reading() -> Iterator[Row]:
    """Steps per second from the store, decompressed and verified, beside the decompressed bytes of a file."""
    with _stored(READ_STEPS) as directory:
        raw = directory / "raw"
        raw.write_bytes(load(NAME).observations.data)
        ours, limit = side_by_side(lambda: load(NAME, on_disk=False), lambda: np.fromfile(raw, np.uint8))
    yield Row(
        f"reading {READ_STEPS:,} images of {SIDE} x {SIDE}",
        READ_STEPS / ours,
        "steps/s",
        READ_STEPS / limit,
        "raw read",
        promise=50_000,
        promise_on="measured",
        more_is_better=True,
    )


def cpu_streaming() -> Iterator[Row]:
    """A step of RvS on images with the paper's convolutions: from disk, from memory and on the device."""
    with _stored(STREAMED_STEPS):
        mapped, whole = load(NAME, on_disk=True), load(NAME, on_disk=False)
        sizes: Any = {"batch_size": 8, "context": 4}
        on_device = Trainee("rvs", whole, "small", chunk=2, **sizes)
        on_disk = Trainee("rvs", mapped, "small", chunk=2, source=sampling.in_host_memory, **sizes)

        def cold() -> object:
            forget(mapped.observations)
            return on_disk.train()

        limit, warm, took = side_by_side(on_device.train, on_disk.train, cold, repeats=9)
    step = 1e3 / on_disk.chunk
    for name, seconds in (("", took), (", cached by the system", warm)):
        yield Row(
            f"rvs on images, streamed from disk{name}: a step",
            step * seconds,
            "ms",
            step * limit,
            "images on the device",
            promise=3.0,
        )


def forget(images: Images) -> None:
    """Drop the pages of a mapped file from memory, as where the file exceeds it."""
    assert isinstance(images, np.memmap)
    images._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
    with open(str(images.filename), "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


TRAINING = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]), int(sys.argv[1])))
import cwbc
data = cwbc.load("frames")
assert data.is_mapped
cwbc.train(data, "rvs", seeds=1, preset="small", steps=20, batch_size=4, context=2, holdout=0.1)
with open("/proc/self/status") as file:
    print(next(line.split()[1] for line in file if line.startswith("VmData:")), data.nbytes)
"""


def cpu_little_memory() -> Iterator[Row]:
    """A whole training in a process that may allocate a quarter of what the images take (`ulimit -d`)."""
    steps = 4 * MEMORY // SIDE**2 // LENGTH * LENGTH + LENGTH
    with _stored(steps):
        command = [sys.executable, "-c", TRAINING, str(MEMORY)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    allocated, size = 1024 * int(printed[-2]), int(printed[-1])
    yield Row(
        "rvs on images in little memory: allocated in the end",
        allocated / 1e6,
        "MB",
        size / 1e6,
        "of images",
        promise=0.25,
    )


def cpu_images() -> Iterator[Row]:
    """All of these."""
    yield from cpu_reading()
    yield from cpu_streaming()
    yield from cpu_little_memory()
