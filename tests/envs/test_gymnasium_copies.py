"""Gymnasium environments without a batch of their own, against a loop written by hand."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.envs import allow, make
from cwbc.envs.gymnasium_copies import Generic
from cwbc.envs.locomotion import Locomotion
from cwbc.system.errors import InputError


class Toy(gymnasium.Env[Any, Any]):
    """Shows the number of steps so far; its spaces are the test's choice."""

    def __init__(self, **chosen: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = chosen["observations"], chosen["actions"]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        self.steps = 0
        return self._show(), {}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self._show(), float(np.sum(action)), False, False, {}

    def _show(self) -> NDArray[Any]:
        return np.full(self.observation_space.shape or (), self.steps, self.observation_space.dtype)


IMAGES = spaces.Box(0, 255, (2, 3), np.uint8)
SIX = spaces.Discrete(6)


class GoalToy(gymnasium.Env[Any, Any]):
    """A goal dictionary as Gymnasium-Robotics has them."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Dict(
        {
            "observation": spaces.Box(-10, 10, (3,), np.float64),
            "desired_goal": spaces.Box(-10, 10, (1,), np.float64),
            "achieved_goal": spaces.Box(-10, 10, (1,), np.float64),
        }
    )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.place = 0
        return self._show(), {}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.place += int(action)
        return self._show(), float(self.place == 7), self.place == 7, False, {}

    def _show(self) -> dict[str, Any]:
        seen = np.array([0.5, 0.25, self.place])
        return {"observation": seen, "desired_goal": np.full(1, 7.0), "achieved_goal": seen[2:]}


BLACKJACK = "Blackjack-limited-v0"  # Gymnasium's own has no limit on the length of an episode


@pytest.fixture
def structured() -> Iterator[None]:
    gymnasium.register("GoalToy-v0", entry_point=lambda **_: GoalToy(), max_episode_steps=10)
    table = "gymnasium.envs.toy_text.blackjack:BlackjackEnv"
    gymnasium.register(BLACKJACK, entry_point=table, max_episode_steps=20, kwargs={"sab": True})
    yield
    del gymnasium.registry["GoalToy-v0"], gymnasium.registry[BLACKJACK]


@pytest.fixture
def register() -> Iterator[Any]:
    def add(observations: spaces.Space[Any], actions: spaces.Space[Any], limit: int | None = 10) -> str:
        kwargs = {"observations": observations, "actions": actions}
        gymnasium.register("Toy-v0", entry_point=Toy, max_episode_steps=limit, kwargs=kwargs)
        return "Toy-v0"

    yield add
    gymnasium.registry.pop("Toy-v0", None)


@pytest.mark.parametrize("environment", ["Pendulum-v1", "CartPole-v1"])
def test_equals_a_plain_gymnasium_loop(environment: str) -> None:
    simulator = make(environment, 3)
    singles = [gymnasium.make(environment) for _ in range(3)]
    generator = np.random.default_rng(0)
    found = simulator.reset(np.arange(3), [5, 6, 7])
    np.testing.assert_array_equal(found, [e.reset(seed=5 + i)[0] for i, e in enumerate(singles)])
    for step in range(simulator.horizon):
        # The first pauses at every third step, and finished episodes start over.
        episodes = np.arange(int(step % 3 == 0), 3)
        if simulator.discrete:
            native = actions = generator.integers(0, simulator.action_size, len(episodes))
        else:
            native = actions = generator.uniform(-2, 2, (len(episodes), 1)).astype(np.float32)
        transition = simulator.step(episodes, actions)
        expected = [singles[i].step(action) for i, action in zip(episodes, native, strict=True)]
        observations, rewards, terminated, truncated, _ = zip(*expected, strict=True)
        np.testing.assert_array_equal(transition.observations, observations)
        np.testing.assert_array_equal(transition.rewards, rewards)
        np.testing.assert_array_equal(transition.terminated, terminated)
        np.testing.assert_array_equal(transition.truncated, truncated)
        ended = episodes[transition.terminated | transition.truncated]
        found = simulator.reset(ended, [step] * len(ended))
        np.testing.assert_array_equal(
            found, np.reshape([singles[i].reset(seed=step)[0] for i in ended], found.shape)
        )
    simulator.close()


def test_describes_the_environment() -> None:
    cart = make("CartPole-v1", 1)
    assert (cart.observation_size, cart.action_size, cart.discrete, cart.horizon) == (4, 2, True, 500)
    pendulum = make("Pendulum-v1", 1)
    assert (pendulum.observation_size, pendulum.action_size, pendulum.discrete) == (3, 1, False)
    assert pendulum.horizon == 200


def test_agrees_with_the_batched_robots_without_a_sound(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    batched, plain = make("HalfCheetah-v4", 2), Generic("HalfCheetah-v4", 2)
    assert isinstance(batched, Locomotion)
    assert (plain.observation_size, plain.action_size, plain.horizon) == (17, 6, 1000)
    np.testing.assert_array_equal(batched.reset(np.arange(2), [0, 1]), plain.reset(np.arange(2), [0, 1]))
    actions = np.random.default_rng(0).uniform(-1, 1, (20, 2, 6)).astype(np.float32)
    for action in actions:
        left, right = batched.step(np.arange(2), action), plain.step(np.arange(2), action)
        np.testing.assert_array_equal(left.observations, right.observations)
        np.testing.assert_array_equal(left.rewards, right.rewards)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_flattens_images_and_cuts_at_the_limit(register: Any) -> None:
    simulator = make(register(IMAGES, spaces.Box(-1, 1, (2, 2)), limit=3), 2)
    assert (simulator.observation_size, simulator.action_size) == (6, 4)
    simulator.reset(np.arange(2), [0, 0])
    truncated = [simulator.step(np.arange(2), np.ones((2, 4))).truncated.tolist() for _ in range(2)]
    last = simulator.step(np.arange(2), np.full((2, 4), 9.0))
    assert [*truncated, last.truncated.tolist()] == [[False] * 2, [False] * 2, [True] * 2]
    assert last.rewards.tolist() == [36.0, 36.0]
    np.testing.assert_array_equal(last.observations, np.full((2, 6), 3, np.float32))


@pytest.mark.parametrize("environment", ["FrozenLake-v1", BLACKJACK, "GoalToy-v0"])
def test_structured_observations_are_flattened_as_gymnasium_does(environment: str, structured: None) -> None:
    simulator = make(environment, 2)
    singles = [gymnasium.make(environment) for _ in range(2)]
    flat = functools.partial(spaces.flatten, singles[0].observation_space)
    assert simulator.observation_size == spaces.flatdim(singles[0].observation_space)
    found = simulator.reset(np.arange(2), [3, 4])
    np.testing.assert_array_equal(found, [flat(e.reset(seed=3 + i)[0]) for i, e in enumerate(singles)])
    generator = np.random.default_rng(0)
    for step in range(20):
        actions = generator.integers(0, simulator.action_size, 2)
        transition = simulator.step(np.arange(2), actions)
        expected = [single.step(action) for single, action in zip(singles, actions, strict=True)]
        observations, rewards, terminated, truncated, _ = zip(*expected, strict=True)
        np.testing.assert_array_equal(transition.observations, [*map(flat, observations)])
        np.testing.assert_array_equal(transition.rewards, rewards)
        np.testing.assert_array_equal(transition.terminated, terminated)
        np.testing.assert_array_equal(transition.truncated, truncated)
        ended = np.flatnonzero(transition.terminated | transition.truncated)
        simulator.reset(ended, [step] * len(ended))
        for episode in ended:
            singles[episode].reset(seed=step)
    simulator.close()


def test_goal_dictionaries_lie_in_the_order_of_their_keys(structured: None) -> None:
    simulator = make("GoalToy-v0", 1)
    assert simulator.observation_size == 5
    # achieved_goal, desired_goal, observation
    assert simulator.reset(np.arange(1), [0]).tolist() == [[0, 7, 0.5, 0.25, 0]]
    assert simulator.step(np.arange(1), np.array([1])).observations.tolist() == [[1, 7, 0.5, 0.25, 1]]


def test_discrete_actions_may_begin_anywhere(register: Any) -> None:
    simulator = make(register(IMAGES, spaces.Discrete(3, start=-5)), 2)
    assert (simulator.discrete, simulator.action_size) == (True, 3)
    simulator.reset(np.arange(2), [0, 0])
    # The reward is the action itself.
    assert simulator.step(np.arange(2), np.array([0, 2])).rewards.tolist() == [-5, -3]


def test_an_unknown_name_brings_the_nearest_ones() -> None:
    with pytest.raises(InputError, match=r"'CartPoel-v1'; did you mean 'CartPole-v1'.*; .* module:ID"):
        make("CartPoel-v1", 1)
    with pytest.raises(InputError, match="unknown environment 'Walker2d'; did you mean 'Walker2d-v"):
        make("Walker2d", 1)


def test_an_environment_that_cannot_be_made_says_why() -> None:
    # Either package's word: Gymnasium-Robotics has its own on this, once something has imported it.
    with pytest.raises(InputError, match=r"'Hopper-v3' cannot be created: .*(gymnasium-robotics|mujoco_py)"):
        make("Hopper-v3", 1)
    allow("no_such_module:Toy-v0")
    with pytest.raises(InputError, match=r"'no_such_module:Toy-v0' cannot be created: .*no_such_module"):
        make("no_such_module:Toy-v0", 1)


def test_an_environment_without_a_limit_is_refused(register: Any) -> None:
    with pytest.raises(InputError, match=r"Toy-v0 sets no limit .* max_episode_steps"):
        make(register(IMAGES, SIX, limit=None), 1)


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        (spaces.Text(6), SIX, "Toy-v0 has observations of which 'observation' is in a Text space"),
        (spaces.Dict({"map": spaces.Graph(IMAGES, None)}), SIX, "of which 'map' is in a Graph space"),
        (IMAGES, spaces.MultiBinary(2), r"actions in MultiBinary\(2\); only Box and Discrete"),
    ],
)
def test_unsupported_spaces_are_named(
    register: Any, observations: spaces.Space[Any], actions: spaces.Space[Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(register(observations, actions), 1)


def test_a_robot_of_gymnasium_is_drawn_without_its_renderer() -> None:
    simulator, rows = make("InvertedPendulum-v5", 2, drawn=True), np.arange(2)
    simulator.reset(rows, [0, 0])
    before = simulator.picture(0)
    np.testing.assert_array_equal(before, simulator.picture(1))
    for _ in range(5):
        simulator.step(rows[:1], np.ones((1, 1)))
    assert (simulator.picture(0) != before).any()
    np.testing.assert_array_equal(before, simulator.picture(1))
    simulator.close()


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 1), (2, 3, 3), (2, 3, 4)])
def test_an_observed_image_is_its_picture(register: Any, shape: tuple[int, ...]) -> None:
    simulator, rows = make(register(spaces.Box(0, 255, shape, np.uint8), SIX), 2, drawn=True), np.arange(2)
    simulator.reset(rows, [0, 0])
    simulator.step(rows[1:], np.array([0]))
    for episode in (0, 1):  # images show the number of steps
        np.testing.assert_array_equal(simulator.picture(episode), np.full((2, 3, 3), episode))
    simulator.close()
