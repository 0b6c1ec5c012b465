"""Hopper, Walker2d and HalfCheetah on MuJoCo's own thread pool: bit-exact with Gymnasium's v4 and v5
environments, at the speed of the physics alone."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from cwbc.core.simulation import Transition

Floats = NDArray[np.float64]

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


@dataclasses.dataclass(frozen=True)
class Robot:
    """What distinguishes one locomotion task from another."""

    model: str  # file among Gymnasium's assets
    frame_skip: int  # physics steps per environment step
    control_cost: float  # weight of the squared action
    reset_noise: float
    gaussian_velocities: bool = False  # whether the initial velocities are normal rather than uniform
    velocity_clip: float = math.inf  # in the observation only
    healthy: tuple[tuple[float, float], ...] = ()  # the torso's height and angle, else an episode terminates
    limit: float = math.inf  # on the magnitude of every position and velocity but the torso's position
    bonus: float = 1.0  # reward for every healthy step
    bonus_on_fall: bool = False  # whether the terminating step has the bonus too


_HOPPER = Robot(
    "hopper.xml", 4, 1e-3, 5e-3, velocity_clip=10.0, healthy=((0.7, math.inf), (-0.2, 0.2)), limit=100.0
)
_WALKER2D = Robot("walker2d_v5.xml", 4, 1e-3, 5e-3, velocity_clip=10.0, healthy=((0.8, 2.0), (-1.0, 1.0)))
_HALF_CHEETAH = Robot("half_cheetah.xml", 5, 0.1, 0.1, gaussian_velocities=True, bonus=0.0)
ROBOTS = {
    "Hopper-v4": dataclasses.replace(_HOPPER, bonus_on_fall=True),
    "Hopper-v5": _HOPPER,
    # v5 gave both feet the same friction
    "Walker2d-v4": dataclasses.replace(_WALKER2D, bonus_on_fall=True, model="walker2d.xml"),
    "Walker2d-v5": _WALKER2D,
    "HalfCheetah-v4": _HALF_CHEETAH,
    "HalfCheetah-v5": _HALF_CHEETAH,
}


class Locomotion:
    """A batch of one robot."""

    discrete = False
    horizon = 1000

    def __init__(self, robot: Robot, count: int, threads: int = 0) -> None:
        # By path: importing gymnasium.envs.mujoco would need its rendering packages.
        assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
        with quiet_mujoco():
            model = mujoco.MjModel.from_xml_path(str(assets / robot.model))
        self._robot = robot
        # MuJoCo itself counts the cores of the whole machine, rather than those that this process may use.
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.batch = Batch(model, count, threads or cores)
        self._initial = model.qpos0.copy()  # [position]
        self._duration = model.opt.timestep * robot.frame_skip
        self._elapsed = np.zeros(count, np.int64)  # [episode]
        # Views of the batch's state, so writing to them moves the robots.
        self._positions: Floats = self.batch.bind("qpos")  # [episode, position]
        self._velocities: Floats = self.batch.bind("qvel")  # [episode, velocity]
        self._controls: Floats = self.batch.bind("ctrl")  # [episode, action]
        self.observation_size = model.nq - 1 + model.nv
        self.image_shape: tuple[int, ...] | None = None
        self.action_size = model.nu
        low, high = model.actuator_ctrlrange.astype(np.float32).T
        self.action_bounds: tuple[NDArray[Any], NDArray[Any]] | None = (low, high)

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[np.floating[Any]]:
        """Reset the given episodes, each to the state of Gymnasium's `reset(seed=...)`."""
        noise = self._robot.reset_noise
        positions, velocities = self._positions[episodes], self._velocities[episodes]  # copies
        for position, velocity, seed in zip(positions, velocities, seeds, strict=True):
            generator = np.random.default_rng(seed)
            position[:] = self._initial + generator.uniform(-noise, noise, len(position))
            if self._robot.gaussian_velocities:
                velocity[:] = noise * generator.standard_normal(len(velocity))
            else:
                velocity[:] = generator.uniform(-noise, noise, len(velocity))
        with quiet_mujoco():
            self.batch.reset(episodes, stage=mujoco.mjtStage.mjSTAGE_NONE.value)
            self._positions[episodes] = positions
            self._velocities[episodes] = velocities
            # The solver starts its next step from the accelerations computed here.
            self.batch.forward(episodes)
        self._elapsed[episodes] = 0
        return self._observe(positions, velocities)

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step."""
        # Rows of float32 in C order: the control cost is summed in that precision, along that axis.
        actions = np.ascontiguousarray(actions, np.float32)
        before = self._positions[episodes, 0]
        self._controls[episodes] = actions
        with quiet_mujoco():
            self.batch.step(episodes, nstep=self._robot.frame_skip)
        self._elapsed[episodes] += 1
        positions, velocities = self._positions[episodes], self._velocities[episodes]
        progress = (positions[:, 0] - before) / self._duration
        costs = self._robot.control_cost * np.square(actions).sum(axis=1)
        healthy = self._healthy(positions, velocities)
        bonuses = self._robot.bonus * (healthy | self._robot.bonus_on_fall)
        truncated = self._elapsed[episodes] >= self.horizon
        observations = self._observe(positions, velocities)
        return Transition(observations, progress + bonuses - costs, ~healthy, truncated)

    def close(self) -> None:
        """Nothing to release: the threads end with the batch."""

    def _healthy(self, positions: Floats, velocities: Floats) -> NDArray[np.bool_]:
        """Which episodes do not terminate."""
        robot, healthy = self._robot, np.ones(len(positions), np.bool_)
        for (low, high), values in zip(robot.healthy, positions.T[1:3], strict=False):
            healthy &= (low < values) & (values < high)
        if robot.limit < math.inf:
            healthy &= (np.abs(positions[:, 2:]) < robot.limit).all(axis=1)
            healthy &= (np.abs(velocities) < robot.limit).all(axis=1)
        return healthy

    def _observe(self, positions: Floats, velocities: Floats) -> Floats:
        """All but the distance travelled, on which a policy must not depend."""
        clip = self._robot.velocity_clip
        return np.concatenate((positions[:, 1:], velocities.clip(-clip, clip)), axis=1)
