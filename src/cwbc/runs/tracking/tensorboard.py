"""A run's curves as TensorBoard reads them: event files in the run's directory.

They are written without TensorBoard: records with checksums around a few protobuf fields.
"""

from __future__ import annotations

import contextlib
import functools
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.sweeps import Sweep
from cwbc.system.errors import InputError
from cwbc.system.files import create, open_to_append

EVENTS = "events"  # the folder in a run's directory, with one folder for each seed and one for their mean
_NAME = "events.out.tfevents."


class EventFiles:
    """The curves of a run: TensorBoard shows each seed, and the mean of them all, as a run of its own."""

    def __init__(self, directory: Path, config: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        for folder in (directory / EVENTS, *(directory / EVENTS).glob("*")):
            if folder.is_symlink():  # its target may hold files of others
                raise InputError(f"{folder} is a symbolic link, and event files are not written through one")
        old = _files(directory)
        runs = [f"seed-{seed}" for seed in config["seeds"]]
        runs += ["mean"] if len(runs) > 1 else []
        now = time.time()
        self._began = now - (rows[-1]["seconds"] if rows else 0)
        # A name that sorts after the old ones: an open TensorBoard continues with this file from its start.
        self._paths = [directory / EVENTS / run / f"{_NAME}{now:.6f}.cwbc" for run in runs]
        for path in self._paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Written in place: TensorBoard reads every file with such a name, also while it grows.
            with create(path) as file:  # begins with an Event that has file_version = 3
                file.write(_record(self._began, 0, _field(3, b"brain.Event:2")))
        for row in rows:
            self.record(row)
        for path in old:
            path.unlink()

    def record(self, row: dict[str, Any]) -> None:
        """Add the losses at a step."""
        losses = {f"training/{name}": row[name] for name in row if name not in ("step", "seconds")}
        self._append(self._began + row["seconds"], row["step"], losses)

    def show(self, sweep: Sweep, dataset: DatasetSummary) -> None:
        """Add the achieved returns, with the target return in place of the step; 0 where there is none."""
        returns = sweep.means  # [seed, target]
        achieved = {"return": returns, "normalized score": dataset.task.normalize(returns)}
        scale = 1  # steps are whole numbers, so small returns are scaled
        while scale * np.abs(sweep.targets).max() < 100 and scale < 10**6:  # NaN is not below
            scale *= 10
        unit = "" if scale == 1 else f", target return x {scale}"
        for number, target in enumerate(np.nan_to_num(sweep.targets)):
            values = {f"sweep/{name}{unit}": value[:, number] for name, value in achieved.items()}
            self._append(time.time(), round(target * scale), values)

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _append(self, wall_time: float, step: int, values: Mapping[str, Any]) -> None:
        """Add an event to every file, from values over seeds."""
        of_files = {tag: [*value, np.mean(value)] for tag, value in values.items()}
        for number, path in enumerate(self._paths):
            with open_to_append(path) as file:
                now = {tag: float(each[number]) for tag, each in of_files.items()}
                file.write(event(wall_time, step, now))


def discard(directory: Path) -> None:
    """Remove the event files of a run, and their folders if these are empty."""
    for path in _files(directory):
        path.unlink()
        with contextlib.suppress(OSError):
            path.parent.rmdir()
    with contextlib.suppress(OSError):
        (directory / EVENTS).rmdir()


def _files(directory: Path) -> list[Path]:
    """The event files of a run, without those behind symbolic links."""
    folders = [] if (directory / EVENTS).is_symlink() else (directory / EVENTS).glob("*")
    return [path for folder in folders if not folder.is_symlink() for path in folder.glob(f"{_NAME}*")]


def event(wall_time: float, step: int, values: Mapping[str, float]) -> bytes:
    """The record of an Event: wall_time = 1, step = 2, summary = 5; a value has tag = 1, simple_value = 2."""
    summary = b"".join(
        _field(1, _field(1, tag.encode()) + struct.pack("<Bf", 2 << 3 | 5, value))
        for tag, value in values.items()
    )
    return _record(wall_time, step, _field(5, summary))


def _record(wall_time: float, step: int, rest: bytes) -> bytes:
    # A negative step is written as its two's complement in 64 bits.
    event = struct.pack("<BdB", 1 << 3 | 1, wall_time, 2 << 3) + _varint(step % 2**64) + rest
    length = struct.pack("<Q", len(event))
    return length + _masked_sum(length) + event + _masked_sum(event)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def _masked_sum(data: bytes) -> bytes:
    checksum = crc32c(data)
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) % 2**32)


def crc32c(data: bytes) -> int:
    """The checksum that Python's own libraries lack."""
    checksum = 2**32 - 1
    for byte in data:
        checksum = checksum >> 8 ^ _remainder((checksum ^ byte) & 0xFF)
    return checksum ^ (2**32 - 1)


@functools.cache
def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial, reflected
    return byte
