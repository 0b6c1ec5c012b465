"""Experiment trackers that show a run while it is trained and evaluated: TensorBoard, Weights & Biases."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.sweeps import Sweep
from cwbc.runs.tracking.tensorboard import EventFiles
from cwbc.runs.tracking.weights_and_biases import WandbRun
from cwbc.system.console import printable
from cwbc.system.errors import need_extra, unknown

Row = dict[str, Any]  # of metrics.jsonl: step, seconds, and every loss as a list over seeds
Tracker = EventFiles | WandbRun
# Each takes the run's directory, its configuration and its metrics so far.
_MAKERS: dict[str, type[Tracker]] = {"tensorboard": EventFiles, "wandb": WandbRun}


def parse_trackers(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """The names of trackers, given as `tensorboard,wandb` or as a list; all of them are installed."""
    names = tuple(dict.fromkeys(given.split(",") if isinstance(given, str) else given or ()))
    for name in names:
        if name not in _MAKERS:
            raise unknown("tracker", name, _MAKERS)
    if "wandb" in names:
        need_extra("wandb", "wandb", "Weights & Biases runs")
    return names


class Tracking:
    """All trackers of a run, or of several runs in turn; `contextlib.closing` ends them.

    An error of a tracker is reported once, and the run continues without that tracker.
    """

    def __init__(self, names: Sequence[str] = (), warn: Callable[[str], None] = warnings.warn) -> None:
        self._names, self._warn = names, warn
        self._trackers: dict[str, Tracker] = {}

    def begin(self, directory: Path, config: dict[str, Any], rows: list[Row]) -> None:
        """Log the metrics of a run so far; an earlier session may have logged some of them, or later ones."""
        for name in self._names:
            with self._forgiven(name):
                self._trackers[name] = _MAKERS[name](directory, config, rows)

    def record(self, row: Row) -> None:
        """Log a row of the metrics to all trackers."""
        self._each(lambda tracker: tracker.record(row))

    def show(self, sweep: Sweep, dataset: DatasetSummary) -> None:
        """Log the results of an evaluation to all trackers."""
        self._each(lambda tracker: tracker.show(sweep, dataset))

    def close(self) -> None:
        """Close all trackers."""
        self._each(lambda tracker: tracker.close())
        self._trackers = {}

    def _each(self, action: Callable[[Tracker], None]) -> None:
        for name, tracker in list(self._trackers.items()):
            with self._forgiven(name):
                action(tracker)

    @contextlib.contextmanager
    def _forgiven(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # no error of a tracker may stop a training
            self._trackers.pop(name, None)
            self._names = [each for each in self._names if each != name]
            reason = printable(" ".join(str(error).split())) or type(error).__name__
            self._warn(
                f"{name} is not updated any more ({reason}); the run continues, and the same command "
                "shows all of it later"
            )
