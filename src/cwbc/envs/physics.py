"""Many copies of one MuJoCo model on its own thread pool, at the speed of the physics alone."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Episodes = NDArray[np.integer[Any]]

_lock = threading.Lock()
_inside = 0  # how many blocks of quiet_mujoco are active in all threads: the setting is the whole process's
_before: Any = None


@contextlib.contextmanager
def quiet_mujoco() -> Iterator[None]:
    """Suppress MuJoCo's warnings on the terminal and in MUJOCO_LOG.TXT; its errors still raise."""
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = mujoco.MjLogConfig.get()
            silent = mujoco.MjLogConfig.get()
            silent.logto_console = silent.logto_file = False
            silent.set()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _before.set()


class BatchedPhysics:
    """The states of all copies, as views: writing to them moves the robots."""

    def __init__(self, model: mujoco.MjModel, count: int, threads: int = 0) -> None:
        # MuJoCo itself counts the cores of the whole machine, rather than those that this process may use.
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.model, self.batch = model, Batch(model, count, threads or cores)
        self.positions: Floats = self.batch.bind("qpos")  # [episode, position]
        self.velocities: Floats = self.batch.bind("qvel")  # [episode, velocity]
        self.elapsed = np.zeros(count, np.int64)  # [episode] steps since the reset
        self._controls: Floats = self.batch.bind("ctrl")  # [episode, action]
        low, high = model.actuator_ctrlrange.astype(np.float32).T
        self.action_bounds: tuple[NDArray[Any], NDArray[Any]] = low, high

    def reset(self, episodes: Episodes, positions: Floats, velocities: Floats) -> None:
        """Start the given episodes in these states."""
        with quiet_mujoco():
            self.batch.reset(episodes, stage=mujoco.mjtStage.mjSTAGE_NONE.value)
            self.positions[episodes], self.velocities[episodes] = positions, velocities
            # The solver starts its next step from the accelerations computed here.
            self.batch.forward(episodes)
        self.elapsed[episodes] = 0

    def step(
        self,
        episodes: Episodes,
        controls: NDArray[np.floating[Any]],
        substeps: int,
        top_speed: float | None = None,
    ) -> None:
        """Advance the given episodes by so many steps of the physics, from at most `top_speed`."""
        self._controls[episodes] = controls
        with quiet_mujoco():
            if top_speed is not None:
                self.velocities[episodes] = self.velocities[episodes].clip(-top_speed, top_speed)
                self.batch.forward(episodes)
            self.batch.step(episodes, nstep=substeps)
        self.elapsed[episodes] += 1
