"""One handler of Ctrl-C: the first asks the work to save and stop, the second stops at once."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stoppable(
    say: Callable[[str], None],
    stop_now: Callable[[], object] | None = None,
    saves: Callable[[], bool] = lambda: True,
) -> Iterator[Callable[[], bool]]:
    """Yields a function that returns whether Ctrl-C was pressed; always False outside the main thread.

    Args:
        say: prints a line.
        stop_now: called at the second Ctrl-C; by default KeyboardInterrupt is raised.
        saves: whether there is something to save just now; if not, the first Ctrl-C stops at once, too.
    """
    is_main = threading.current_thread() is threading.main_thread()  # which alone can set a handler
    previous = signal.getsignal(signal.SIGINT)
    if not is_main or previous is None:  # not a handler of Python's, so it could not be restored
        yield lambda: False
        return
    stopping = False
    # A handler runs in the middle of anything, even of a line being printed, and a stream that is being
    # written to refuses to be written to by the same thread: so another one prints. No Event wakes it: a
    # handler that comes while one is being set would wait for itself.
    pressed: queue.SimpleQueue[bool] = queue.SimpleQueue()
    printer = threading.Thread(
        target=lambda: say("saving; Ctrl-C again stops at once") if pressed.get() else None, daemon=True
    )

    def stop(*_: object) -> None:
        nonlocal stopping
        if stopping or not saves():
            if stop_now is None:
                raise KeyboardInterrupt
            stop_now()
        stopping = True
        pressed.put(True)

    printer.start()
    signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: stopping
    finally:
        signal.signal(signal.SIGINT, previous)
        pressed.put(False)
        printer.join()
