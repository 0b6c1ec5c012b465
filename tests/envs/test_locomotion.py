"""The batched robots against Gymnasium's own environments: no difference at all is allowed."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from cwbc.core.simulation import Transition
from cwbc.envs import make
from cwbc.envs.locomotion import ROBOTS, Locomotion
from cwbc.envs.physics import quiet_mujoco

Policy = Callable[[NDArray[Any], int], NDArray[np.float32]]  # observations [episode, dimension], step

# Torque on hip, knee and ankle from the torso's angle, angular velocity and forward velocity: keeps both
# Hopper and Walker2d on their feet.
BALANCE = np.array([[0.0, 0.2, -0.8], [-0.2, -0.3, -0.3], [0.3, 0.3, -0.3]])


def balance(observations: NDArray[Any], step: int) -> NDArray[np.float32]:
    """Hold a posture and sway a little; works on any of the robots, one leg or two."""
    joints = (observations.shape[1] - 5) // 2
    angles, velocities = observations[:, 2 : 2 + joints], observations[:, 5 + joints :]
    torso = observations[:, [1, 4 + joints, 2 + joints]]
    torques = torso @ np.tile(BALANCE, joints // 3) + (0.1 - angles) - 0.1 * velocities
    return (torques + 0.1 * np.sin(0.3 * step)).astype(np.float32)


def flail(observations: NDArray[Any], step: int) -> NDArray[np.float32]:
    """Random actions, some beyond what the motors can do."""
    joints = (observations.shape[1] - 5) // 2
    generator = np.random.default_rng(step)
    return generator.uniform(-1.5, 1.5, (len(observations), joints)).astype(np.float32)


def reference(environment: str) -> gymnasium.Env[Any, Any]:
    with quiet_mujoco(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return gymnasium.make(environment, disable_env_checker=True)


class Pair:
    """A batch and as many Gymnasium environments, moved together and compared at every step."""

    def __init__(self, environment: str, count: int) -> None:
        self.batch = Locomotion(ROBOTS[environment], count, threads=2)
        self.singles = [reference(environment) for _ in range(count)]
        self.observations = np.zeros((count, self.batch.observation_size))
        self.reset(np.arange(count), range(count))

    def reset(self, episodes: NDArray[np.int64], seeds: range) -> None:
        self.observations[episodes] = self.batch.reset(episodes, seeds)
        for episode, seed in zip(episodes, seeds, strict=True):
            expected, _ = self.singles[episode].reset(seed=seed)
            np.testing.assert_array_equal(self.observations[episode], expected)

    def step(self, episodes: NDArray[np.int64], actions: NDArray[np.float32]) -> Transition:
        transition = self.batch.step(episodes, actions)
        with quiet_mujoco():
            expected = [self.singles[i].step(action) for i, action in zip(episodes, actions, strict=True)]
        observations, rewards, terminated, truncated, _ = zip(*expected, strict=True)
        np.testing.assert_array_equal(transition.observations, observations)
        np.testing.assert_array_equal(transition.rewards, rewards)
        np.testing.assert_array_equal(transition.terminated, terminated)
        np.testing.assert_array_equal(transition.truncated, truncated)
        self.observations[episodes] = transition.observations
        return transition

    def throw(self, episode: int, speed: float) -> None:
        """Set an episode's forward speed behind the backs of both simulations."""
        assert isinstance(self.batch, Locomotion)
        single: Any = self.singles[episode].unwrapped
        self.batch.physics.velocities[episode, 0] = single.data.qvel[0] = speed


@pytest.mark.parametrize("environment", ROBOTS)
def test_whole_episodes_equal_gymnasium(environment: str) -> None:
    pair = Pair(environment, 2)
    for step in range(1000):
        if step == 300:
            pair.reset(np.array([1]), range(7, 8))
        last = pair.step(np.arange(2), balance(pair.observations, step))
        assert not last.terminated.any(), (
            "the balancing policy must stay on its feet for this test to mean much"
        )
        assert last.truncated.tolist() == [step == 999, False]


@pytest.mark.parametrize("environment", ROBOTS)
def test_falls_and_partial_resets_equal_gymnasium(environment: str) -> None:
    pair, falls = Pair(environment, 4), 0
    for step in range(150):
        # A different one pauses at each step, as finished episodes do.
        episodes = np.delete(np.arange(4), step % 4)
        last = pair.step(episodes, flail(pair.observations[episodes], step))
        fallen = episodes[last.terminated]
        falls += len(fallen)
        pair.reset(fallen, range(100 * step, 100 * step + len(fallen)))
    assert falls >= 5 or environment.startswith("HalfCheetah")


def test_only_v4_pays_the_bonus_on_the_step_that_falls() -> None:
    episodes = np.arange(1)
    old, new = make("Hopper-v4", 1), make("Hopper-v5", 1)
    observations = old.reset(episodes, [3])
    new.reset(episodes, [3])
    for step in range(1000):
        actions = flail(observations, step)
        paid, unpaid = old.step(episodes, actions), new.step(episodes, actions)
        if paid.terminated.any():
            break
        np.testing.assert_array_equal(paid.rewards, unpaid.rewards)
    assert paid.terminated.all()
    assert unpaid.terminated.all()
    np.testing.assert_allclose(paid.rewards, unpaid.rewards + 1.0)


def test_the_number_of_threads_changes_nothing() -> None:
    episodes = np.arange(5)
    one, two = (Locomotion(ROBOTS["Walker2d-v5"], 5, threads) for threads in (1, 2))
    np.testing.assert_array_equal(
        one.reset(episodes, range(5)), observations := two.reset(episodes, range(5))
    )
    for step in range(50):
        actions = flail(observations, step)
        left, right = one.step(episodes, actions), two.step(episodes, actions)
        np.testing.assert_array_equal(left.observations, right.observations)
        np.testing.assert_array_equal(left.rewards, right.rewards)


def test_stepping_some_episodes_leaves_the_others_alone() -> None:
    together, apart = make("HalfCheetah-v5", 4), make("HalfCheetah-v5", 4)
    observations = together.reset(np.arange(4), range(4))
    apart.reset(np.arange(4), range(4))
    actions = [flail(observations, step) for step in range(20)]
    for step in range(20):
        expected = together.step(np.arange(4), actions[step]).observations
    for episodes in np.array([0, 2]), np.array([1, 3]):
        for step in range(20):
            found = apart.step(episodes, actions[step][episodes]).observations
        np.testing.assert_array_equal(found, expected[episodes])
    assert apart.step(np.arange(0), np.zeros((0, 6), np.float32)).rewards.shape == (0,)


def test_a_hopper_thrown_too_fast_ends_as_in_gymnasium() -> None:
    pair = Pair("Hopper-v5", 2)
    for episode, speed in enumerate([95.0, 120.0]):
        pair.throw(episode, speed)
    # A reset leaves it just above the ground, so the speed lasts through the step.
    last = pair.step(np.arange(2), np.zeros((2, 3), np.float32))
    assert last.terminated.tolist() == [False, True]


def test_a_diverging_simulation_starts_over_quietly_as_in_gymnasium(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pair = Pair("Hopper-v5", 2)
    pair.throw(0, 1e11)  # MuJoCo takes this for divergence and resets
    last = pair.step(np.arange(2), np.zeros((2, 3), np.float32))
    assert np.abs(last.observations[0]).max() < 2
    pair.step(np.arange(2), np.full((2, 3), np.nan, np.float32))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_loading_is_silent_and_leaves_mujoco_as_it_was(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make("HalfCheetah-v4", 1)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    # Outside of our calls MuJoCo speaks as before, which also shows that there was something to silence.
    assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    mujoco.MjModel.from_xml_path(str(assets / "half_cheetah.xml"))
    assert "settotalmass" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["MUJOCO_LOG.TXT"]


def test_threads_do_not_undo_each_others_silence() -> None:
    loud = mujoco.MjLogConfig.get()
    assert loud.logto_console
    first, second = quiet_mujoco(), quiet_mujoco()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not mujoco.MjLogConfig.get().logto_console
    second.__exit__(None, None, None)
    assert mujoco.MjLogConfig.get().logto_console


def test_needs_neither_mujoco_for_the_interface_nor_gymnasiums_own_robots() -> None:
    program = (
        "import sys; from cwbc.envs import make; assert 'mujoco' not in sys.modules;"
        "make('Hopper-v5', 1); assert 'gymnasium.envs.mujoco' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
