"""What a handler of Ctrl-C may do: it runs in the midst of anything, even of a line being printed."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def remarks(say: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """A function that prints from within a handler, where `say` itself might fail.

    A stream that is being written to refuses to be written to by the same thread, so another one does it.
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
