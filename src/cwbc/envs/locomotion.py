"""Hopper, Walker2d and HalfCheetah on MuJoCo's own thread pool: bit-exact with Gymnasium's v4 and v5
environments, at the speed of the physics alone."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

from cwbc.core.simulation import Transition
from cwbc.envs.physics import BatchedPhysics, Floats, quiet_mujoco
from cwbc.envs.scenes import Scene


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
        self._robot, self.physics = robot, BatchedPhysics(model, count, threads)
        self.substeps = robot.frame_skip
        self._initial = model.qpos0.copy()  # [position]
        self._duration = model.opt.timestep * robot.frame_skip
        self.observation_size = model.nq - 1 + model.nv
        self.image_shape: tuple[int, ...] | None = None
        self.action_size = model.nu
        self.action_bounds: tuple[NDArray[Any], NDArray[Any]] | None = self.physics.action_bounds

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[np.floating[Any]]:
        """Reset the given episodes, each to the state of Gymnasium's `reset(seed=...)`."""
        noise = self._robot.reset_noise
        positions = np.empty((len(episodes), self.physics.model.nq))
        velocities = np.empty((len(episodes), self.physics.model.nv))
        for position, velocity, seed in zip(positions, velocities, seeds, strict=True):
            generator = np.random.default_rng(seed)
            position[:] = self._initial + generator.uniform(-noise, noise, len(position))
            if self._robot.gaussian_velocities:
                velocity[:] = noise * generator.standard_normal(len(velocity))
            else:
                velocity[:] = generator.uniform(-noise, noise, len(velocity))
        self.physics.reset(episodes, positions, velocities)
        return self._observe(positions, velocities)

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step."""
        # Rows of float32 in C order: the control cost is summed in that precision, along that axis.
        actions = np.ascontiguousarray(actions, np.float32)
        before = self.physics.positions[episodes, 0]
        self.physics.step(episodes, actions, self.substeps)
        positions, velocities = self.physics.positions[episodes], self.physics.velocities[episodes]
        progress = (positions[:, 0] - before) / self._duration
        costs = self._robot.control_cost * np.square(actions).sum(axis=1)
        healthy = self._healthy(positions, velocities)
        bonuses = self._robot.bonus * (healthy | self._robot.bonus_on_fall)
        truncated = self.physics.elapsed[episodes] >= self.horizon
        observations = self._observe(positions, velocities)
        return Transition(observations, progress + bonuses - costs, ~healthy, truncated)

    def picture(self, episode: int) -> NDArray[np.uint8]:
        """The robot from the side. [height, width, 3]"""
        return self._scene.picture(self.physics.positions[episode])

    def close(self) -> None:
        """Nothing to release: the threads end with the batch."""

    @functools.cached_property
    def _scene(self) -> Scene:
        return Scene(self.physics.model)

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
