"""The ant that learns to walk in any direction: D4RL's ant by MuJoCo's own steps, rewards by hand."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco
import numpy as np

from cwbc.envs import is_batched, make, time_limit
from cwbc.envs.directed_ant import ENVIRONMENT, DirectedAnt

EPISODES = np.arange(3)


def d4rls_ant() -> mujoco.MjModel:
    """Gymnasium's ant on its endless floor, with D4RL's torques, time step and contacts."""
    assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    model = mujoco.MjModel.from_xml_path(str(assets / "ant.xml"))
    model.actuator_gear[:, 0], model.opt.timestep = 30, 0.02
    model.geom_solimp[:, :3] = (0.8, 0.8, 0.01)
    return model


def test_it_is_d4rls_ant_without_walls_rewarded_along_the_direction() -> None:
    ants, model = DirectedAnt(3, threads=2), d4rls_ant()
    singles = [mujoco.MjData(model) for _ in EPISODES]
    seen = ants.reset(EPISODES, [3, 4, 5])
    assert seen.shape == (3, 29)
    first = ants.physics.positions[:, :2].copy()
    for data, place, observation in zip(singles, first, seen, strict=True):
        data.qpos[:], data.qvel[:] = [*place, *observation[:13]], observation[13:27]
        mujoco.mj_forward(model, data)
    generator = np.random.default_rng(0)
    for step in range(120):
        np.testing.assert_allclose(np.linalg.norm(seen[:, 27:], axis=1), 1)
        actions = generator.uniform(-1.2, 1.2, (3, 8)).astype(np.float32)
        before = np.array([data.qpos[:2] for data in singles])
        found = ants.step(EPISODES, actions)
        for data, action in zip(singles, actions, strict=True):
            data.ctrl[:] = action.clip(-1, 1)
            mujoco.mj_step(model, data, 5)
        moved = np.array([data.qpos[:2] for data in singles]) - before
        expected = np.array([[*data.qpos[2:], *data.qvel] for data in singles])
        np.testing.assert_array_equal(found.observations[:, :27], expected)
        np.testing.assert_allclose(found.rewards, (moved * seen[:, 27:]).sum(axis=1))
        assert (found.observations[:, 27:] == seen[:, 27:]).all() == (step != 99)
        seen = found.observations
    assert np.abs(ants.physics.positions[:, :2] - first).max() > 0.2


def test_no_wall_stops_it() -> None:
    ants = DirectedAnt(1)
    ants.reset(EPISODES[:1], [0])
    ants.physics.positions[0, :2] += 1.5  # as close to a wall of the maze as it can be
    ants.physics.velocities[0, :2] = -4
    start = ants.physics.positions[0, :2].copy()
    for _ in range(60):
        ants.physics.velocities[0, :2] = -4
        ants.step(EPISODES[:1], np.zeros((1, 8), np.float32))
    assert (ants.physics.positions[0, :2] < start - 10).all()


def test_an_ant_on_its_back_terminates_the_episode() -> None:
    ants = DirectedAnt(2)
    ants.reset(EPISODES[:2], [0, 1])
    ants.physics.positions[1, 2:7] = 1.5, 0, 1, 0, 0  # half a turn around x
    outcome = ants.step(EPISODES[:2], np.zeros((2, 8), np.float32))
    assert outcome.terminated.tolist() == [False, True]
    assert not outcome.truncated.any()


def test_an_episode_depends_on_its_seed_alone() -> None:
    together, alone = make(ENVIRONMENT, 3), make(ENVIRONMENT, 1)
    assert is_batched(ENVIRONMENT)
    assert time_limit(ENVIRONMENT) == together.horizon == 1000
    seen, same = together.reset(EPISODES, [1, 2, 3]), alone.reset(EPISODES[:1], [2])
    actions = np.random.default_rng(0).uniform(-1, 1, (205, 3, 8)).astype(np.float32)
    directions = set()
    for each in actions:
        np.testing.assert_array_equal(seen[1], same[0])
        directions |= {tuple(row) for row in seen[:, 27:]}
        seen = together.step(EPISODES, each).observations
        same = alone.step(EPISODES[:1], each[1:2]).observations
    assert len(directions) == 9


def test_directions_are_uniform() -> None:
    ants = DirectedAnt(400)
    directions = ants.reset(np.arange(400), range(400))[:, 27:]
    angles = np.arctan2(*directions.T)
    counts, _ = np.histogram(angles, 8, (-np.pi, np.pi))
    assert counts.min() > 25
    assert counts.max() < 80


def test_gymnasium_makes_one() -> None:
    single, batch = gymnasium.make(ENVIRONMENT), make(ENVIRONMENT, 1)
    np.testing.assert_array_equal(single.reset(seed=7)[0], batch.reset(EPISODES[:1], [7])[0])
    action = np.full(8, 0.3, np.float32)
    seen, reward, terminated, truncated, _ = single.step(action)
    outcome = batch.step(EPISODES[:1], action[None])
    np.testing.assert_array_equal(seen, outcome.observations[0])
    assert (reward, terminated, truncated) == (outcome.rewards[0], False, False)
