"""MuJoCo reports to the terminal and to a file in the working directory; here it is told to do neither."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import mujoco


@contextlib.contextmanager
def quiet_mujoco() -> Iterator[None]:
    """Keep MuJoCo's warnings from the terminal and from MUJOCO_LOG.TXT; its errors still raise."""
    before = mujoco.MjLogConfig.get()
    silent = mujoco.MjLogConfig.get()
    silent.logto_console = False
    silent.logto_file = False
    silent.set()
    try:
        yield
    finally:
        before.set()
