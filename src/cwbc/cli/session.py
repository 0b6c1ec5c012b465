"""One invocation of a command: what was typed, where it prints, and how Ctrl-C stops it with all saved."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from cwbc.system.console import PlainConsole, say
from cwbc.system.formatting import amount, counted
from cwbc.system.progress import Progress, gauge

if TYPE_CHECKING:
    from cwbc.core.trajectories import Trajectories
    from cwbc.data.store import Entry


class Session:
    """The command line, its console, and whether the user has stopped it."""

    def __init__(self, command_line: str) -> None:
        self.command_line = command_line
        self.console = PlainConsole(stderr=True)
        self.is_stopping: Callable[[], bool] = lambda: False
        self.saves = False  # whether there is something to save just now

    def say(self, text: str) -> None:
        """Print a remark above the progress."""
        say(text, self.console)

    def warn(self, text: str) -> None:
        """Print a warning above the progress."""
        self.say(f"warning: {text}")

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """A time in which the first Ctrl-C lets the work save everything and stop."""
        self.saves = True
        yield
        self.saves = False
        if self.is_stopping():  # at the very end: everything is saved
            raise KeyboardInterrupt

    def reading(self, dataset: str) -> AbstractContextManager[Progress]:
        """Show how far the reading of a dataset is."""
        from cwbc.data import activity

        return gauge(self.console, *activity(dataset))

    def show(self, dataset: Trajectories | Entry) -> None:
        """Print a dataset in one line."""
        sizes = f"{counted(dataset.episodes, 'episode')}, {counted(dataset.steps, 'step')}"
        returns = f"returns {amount(dataset.lowest)} to {amount(dataset.best)}"
        self.say(f"{dataset.name}: {sizes}, {returns}, environment {dataset.environment or 'unknown'}")
