"""A run's curves as TensorBoard reads them: event files in the run's directory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.sweeps import Sweep
from cwbc.runs.tracking.event_files import event, first_event
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
        written = [self._events(row) for row in rows]
        for number, path in enumerate(self._paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Written in place: TensorBoard reads every file with such a name, also while it grows.
            with create(path) as file:
                file.write(first_event(self._began) + b"".join(events[number] for events in written))
        for path in old:
            path.unlink()

    def record(self, row: dict[str, Any]) -> None:
        """Add the losses at a step."""
        self._append(self._events(row))

    def show(self, sweep: Sweep, dataset: DatasetSummary) -> None:
        """Add the achieved returns, with the target return in place of the step; 0 where there is none."""
        returns = sweep.means  # [seed, target]
        achieved = {"return": returns, "normalized score": dataset.task.normalize(returns)}
        scale = 1  # steps are whole numbers, so small returns are scaled
        targets = np.nan_to_num(sweep.targets)
        while scale * np.abs(sweep.targets).max() < 100 and scale < 10**6:  # NaN is not below
            scale *= 10
        unit = "" if scale == 1 else f", target return x {scale}"
        for number, target in enumerate(targets):
            values = {f"sweep/{name}{unit}": value[:, number] for name, value in achieved.items()}
            self._append(self._each(time.time(), round(target * scale), values))

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _events(self, row: dict[str, Any]) -> list[bytes]:
        losses = {f"training/{name}": row[name] for name in row if name not in ("step", "seconds")}
        return self._each(self._began + row["seconds"], row["step"], losses)

    def _each(self, wall_time: float, step: int, values: Mapping[str, Any]) -> list[bytes]:
        """One event for every file, from values over seeds."""
        of_files = {tag: [*value, np.mean(value)] for tag, value in values.items()}
        return [
            event(wall_time, step, {tag: float(value[number]) for tag, value in of_files.items()})
            for number in range(len(self._paths))
        ]

    def _append(self, events: list[bytes]) -> None:
        for path, added in zip(self._paths, events, strict=True):
            with open_to_append(path) as file:
                file.write(added)


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
    folders = [folder for folder in (directory / EVENTS).glob("*") if not folder.is_symlink()]
    if (directory / EVENTS).is_symlink():
        return []
    return [path for folder in folders for path in folder.glob(f"{_NAME}*")]
