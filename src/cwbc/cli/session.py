"""One invocation of a command that trains: where it prints, and how Ctrl-C stops it with everything saved."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

from cwbc.cli.main import stop_now
from cwbc.system import interrupts
from cwbc.system.console import PlainConsole, say


class Session:
    """The console of a command, and whether the user has stopped it."""

    def __init__(self, command_line: str) -> None:
        self.command_line = command_line
        self.console = PlainConsole(stderr=True)
        self.output = PlainConsole()
        self.training = False
        self.is_stopping: Callable[[], bool] = lambda: False

    def say(self, text: str) -> None:
        say(text, self.console)

    def warn(self, text: str) -> None:
        self.say(f"warning: {text}")


@contextlib.contextmanager
def stoppable(command_line: str) -> Iterator[Session]:
    """A session whose training the first Ctrl-C stops with everything saved; a second one stops at once."""
    session = Session(command_line)
    end = functools.partial(stop_now, command_line)
    with interrupts.stoppable(session.say, end, lambda: session.training) as session.is_stopping:
        yield session
