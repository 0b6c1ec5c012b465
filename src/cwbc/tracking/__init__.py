"""Where else a run shows itself while it is trained and evaluated: TensorBoard, Weights & Biases."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from cwbc.dataset_summary import DatasetSummary
from cwbc.errors import need_extra, unknown
from cwbc.plain_text import printable
from cwbc.results import Sweep
from cwbc.tracking.tensorboard import EventFiles
from cwbc.tracking.weights_and_biases import WandbRun

Row = dict[str, Any]  # of metrics.jsonl: step, seconds, and every loss as a list over seeds


class Tracker(Protocol):
    """What is told of one run, from its beginning on."""

    def record(self, row: Row) -> None:
        """Take note of a row of the metrics."""

    def show(self, sweep: Sweep, dataset: DatasetSummary) -> None:
        """Take note of what was measured."""

    def close(self) -> None:
        """Nothing more will come."""


# Each takes the run's directory and configuration, and the rows of it that there are already.
_MAKERS: dict[str, Callable[[Path, dict[str, Any], list[Row]], Tracker]] = {
    "tensorboard": EventFiles,
    "wandb": WandbRun,
}


def parse_trackers(asked: str | Sequence[str] | None) -> tuple[str, ...]:
    """The trackers that are asked for, as `tensorboard,wandb` or one by one; each can be had here."""
    names = tuple(dict.fromkeys(asked.split(",") if isinstance(asked, str) else asked or ()))
    for name in names:
        if name not in _MAKERS:
            raise unknown("tracker", name, _MAKERS)
    if "wandb" in names:
        need_extra("wandb", "wandb", "Weights & Biases runs")
    return names


class Tracking:
    """All trackers of a run, or of one after another.

    What goes wrong with one of them is told once, and things go on without it.
    """

    def __init__(self, names: Sequence[str] = (), tell: Callable[[str], None] = warnings.warn) -> None:
        self._names, self._tell = names, tell
        self._trackers: dict[str, Tracker] = {}

    def begin(self, directory: Path, config: dict[str, Any], rows: list[Row]) -> None:
        """Show a run as it is now; an earlier sitting may have shown some of it, or more than was kept."""
        for name in self._names:
            with self._forgiven(name):
                self._trackers[name] = _MAKERS[name](directory, config, rows)

    def record(self, row: Row) -> None:
        """Pass on a row of the metrics."""
        self._each(lambda tracker: tracker.record(row))

    def show(self, sweep: Sweep, dataset: DatasetSummary) -> None:
        """Pass on what was measured."""
        self._each(lambda tracker: tracker.show(sweep, dataset))

    def close(self) -> None:
        """Let go of all trackers."""
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
        except Exception as error:  # whatever it is: no picture is worth a training
            self._trackers.pop(name, None)
            self._names = [each for each in self._names if each != name]
            reason = printable(" ".join(str(error).split())) or type(error).__name__
            self._tell(
                f"{name} is told no more ({reason}); the run goes on, and the same command later shows it all"
            )


@contextlib.contextmanager
def tracked(names: Sequence[str], tell: Callable[[str], None] = warnings.warn) -> Iterator[Tracking]:
    """Trackers, closed at the end however it comes."""
    tracking = Tracking(names, tell)
    try:
        yield tracking
    finally:
        tracking.close()
