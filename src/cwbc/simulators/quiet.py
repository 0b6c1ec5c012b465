"""MuJoCo reports to the terminal and to a file in the working directory; here it is told to do neither."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import mujoco

_lock = threading.Lock()
_inside = 0  # how many are in the block now, in all threads: the setting is the whole process's
_before: Any = None


@contextlib.contextmanager
def quiet_mujoco() -> Iterator[None]:
    """Keep MuJoCo's warnings from the terminal and from MUJOCO_LOG.TXT; its errors still raise."""
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = mujoco.MjLogConfig.get()
            silent = mujoco.MjLogConfig.get()
            silent.logto_console = False
            silent.logto_file = False
            silent.set()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _before.set()
