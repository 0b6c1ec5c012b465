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
class Health:
    """The open ranges outside of which an episode terminates."""

    heights: tuple[float, float]  # of the torso
    angles: tuple[float, float]  # of the torso
    limit: float = math.inf  # on the magnitude of every position and velocity but the torso's position
    bonus: float = 1.0  # reward for every healthy step
    bonus_on_fall: bool = False  # whether the terminating step has the bonus too


@dataclasses.dataclass(frozen=True)
class Robot:
    """What distinguishes one locomotion task from another."""

    model: str  # file among Gymnasium's assets
    frame_skip: int  # physics steps per environment step
    control_cost: float  # weight of the squared action
    reset_noise: float
    gaussian_velocities: bool = False  # whether the initial velocities are normal rather than uniform
    velocity_clip: float = math.inf  # in the observation only
    health: Health | None = None  # None never terminates


def _v4(robot: Robot, **changes: Any) -> Robot:
    """The v4 of a v5 task: the terminating step has the healthy bonus too."""
    health = robot.health and dataclasses.replace(robot.health, bonus_on_fall=True)
    return dataclasses.replace(robot, health=health, **changes)


_HOPPER = Robot(
    model="hopper.xml",
    frame_skip=4,
    control_cost=1e-3,
    reset_noise=5e-3,
    velocity_clip=10.0,
    health=Health(heights=(0.7, math.inf), angles=(-0.2, 0.2), limit=100.0),
)
_WALKER2D = Robot(
    model="walker2d_v5.xml",
    frame_skip=4,
    control_cost=1e-3,
    reset_noise=5e-3,
    velocity_clip=10.0,
    health=Health(heights=(0.8, 2.0), angles=(-1.0, 1.0)),
)
_HALF_CHEETAH = Robot(
    model="half_cheetah.xml", frame_skip=5, control_cost=0.1, reset_noise=0.1, gaussian_velocities=True
)

ROBOTS = {
    "Hopper-v4": _v4(_HOPPER),
    "Hopper-v5": _HOPPER,
    # v5 gave both feet the same friction
    "Walker2d-v4": _v4(_WALKER2D, model="walker2d.xml"),
    "Walker2d-v5": _WALKER2D,
    "HalfCheetah-v4": _v4(_HALF_CHEETAH),
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
        self.batch = Batch(model, count, threads or _cores())
        self._initial = model.qpos0.copy()  # [position]
        self._duration = model.opt.timestep * robot.frame_skip
        self._elapsed = np.zeros(count, np.int64)  # [episode]
        # Views of the batch's state, so writing to them moves the robots.
        self._positions: NDArray[np.float64] = self.batch.bind("qpos")  # [episode, position]
        self._velocities: NDArray[np.float64] = self.batch.bind("qvel")  # [episode, velocity]
        self._controls: NDArray[np.float64] = self.batch.bind("ctrl")  # [episode, action]
        self.observation_size = model.nq - 1 + model.nv
        self.action_size = model.nu
        low, high = model.actuator_ctrlrange.astype(np.float32).T
        self.action_bounds: tuple[NDArray[Any], NDArray[Any]] | None = (low, high)

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[np.floating[Any]]:
        """Reset the given episodes, each to the state of Gymnasium's `reset(seed=...)`."""
        noise = self._robot.reset_noise
        positions = np.empty((len(episodes), self._positions.shape[1]))
        velocities = np.empty((len(episodes), self._velocities.shape[1]))
        for row, seed in zip(range(len(episodes)), seeds, strict=True):
            generator = np.random.default_rng(seed)
            positions[row] = self._initial + generator.uniform(-noise, noise, positions.shape[1])
            if self._robot.gaussian_velocities:
                velocities[row] = noise * generator.standard_normal(velocities.shape[1])
            else:
                velocities[row] = generator.uniform(-noise, noise, velocities.shape[1])
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
        healthy, bonuses = self._healthy(positions, velocities)
        return Transition(
            observations=self._observe(positions, velocities),
            rewards=progress + bonuses - costs,
            terminated=~healthy,
            truncated=self._elapsed[episodes] >= self.horizon,
        )

    def close(self) -> None:
        """Nothing to release: the threads end with the batch."""

    def _healthy(
        self, positions: NDArray[np.float64], velocities: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.floating[Any]] | float]:
        """Which episodes do not terminate, and the bonus of each."""
        health = self._robot.health
        if health is None:
            return np.ones(len(positions), np.bool_), 0.0
        heights, angles = positions[:, 1], positions[:, 2]
        healthy: NDArray[np.bool_] = (health.heights[0] < heights) & (heights < health.heights[1])
        healthy &= (health.angles[0] < angles) & (angles < health.angles[1])
        if health.limit < math.inf:
            healthy &= (np.abs(positions[:, 2:]) < health.limit).all(axis=1)
            healthy &= (np.abs(velocities) < health.limit).all(axis=1)
        return healthy, health.bonus if health.bonus_on_fall else health.bonus * healthy

    def _observe(
        self, positions: NDArray[np.float64], velocities: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """All but the distance travelled, on which a policy must not depend."""
        clip = self._robot.velocity_clip
        return np.concatenate((positions[:, 1:], velocities.clip(-clip, clip)), axis=1)


def _cores() -> int:
    """The cores that this process may use; MuJoCo itself counts those of the whole machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
