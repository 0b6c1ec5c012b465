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
    stopping = False  # no Event: a handler that comes while one is being set would wait for itself
    with remarks(say) as remark:

        def stop(*_: object) -> None:
            nonlocal stopping
            if stopping or not saves():
                if stop_now is None:
                    raise KeyboardInterrupt
                stop_now()
            stopping = True
            remark("saving; Ctrl-C again stops at once")

        signal.signal(signal.SIGINT, stop)
        try:
            yield lambda: stopping
        finally:
            signal.signal(signal.SIGINT, previous)


@contextlib.contextmanager
def remarks(say: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """A function that prints from within a signal handler.

    A handler runs in the middle of anything, even of a line being printed. A stream that is being written to
    refuses to be written to by the same thread, so another one does it.
    """
    texts: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # the one that handlers may put into

    def print_all() -> None:
        for text in iter(texts.get, None):
            say(text)

    thread = threading.Thread(target=print_all, daemon=True)
    thread.start()
    try:
        yield texts.put
    finally:
        texts.put(None)
        thread.join()
