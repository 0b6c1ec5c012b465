"""Atari games: the paper's protocol, seeds, options in the id, and what is refused."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cwbc import envs
from cwbc.envs.atari import SIZE, Atari, Game
from cwbc.system.errors import InputError, UnavailableError

BREAKOUT, PONG = "ALE/Breakout-v5", "ALE/Pong-v5"


def played(simulator: Any, row: int, seed: int, steps: int = 60) -> tuple[NDArray[np.uint8], list[float]]:
    """The frames and rewards of one episode under fixed actions."""
    rows, generator = np.array([row]), np.random.default_rng(0)
    frames, rewards = [simulator.reset(rows, [seed])], []
    for action in generator.integers(simulator.action_size, size=steps):
        outcome = simulator.step(rows, np.array([action]))
        frames.append(outcome.observations)
        rewards.append(float(outcome.rewards[0]))
    return np.concatenate(frames), rewards


def test_an_episode_depends_on_its_seed_alone() -> None:
    for options in ("", "?sticky_actions=0.25"):
        simulator = envs.make(PONG + options, 3)
        assert isinstance(simulator, Atari)
        first, rewards = played(simulator, 0, seed=5)
        again, others = played(simulator, 2, seed=5)
        np.testing.assert_array_equal(first, again)
        assert rewards == others
        after, _ = played(simulator, 0, seed=5)  # the copy has played before
        np.testing.assert_array_equal(first, after)
        assert (played(simulator, 0, seed=2**31 + 6)[0] != first).any()
        simulator.close()


def test_copies_are_stepped_as_alone_and_those_left_out_stand_still() -> None:
    simulator, alone = envs.make(BREAKOUT, 3), envs.make(BREAKOUT, 1)
    simulator.reset(np.arange(3), [1, 2, 3])
    expected, _ = played(alone, 0, seed=2, steps=10)
    generator = np.random.default_rng(0)
    for step, action in enumerate(generator.integers(alone.action_size, size=10)):
        simulator.step(np.array([0]), np.array([0]))  # not the one that is compared
        outcome = simulator.step(np.array([1, 2]), np.array([action, 0]))
        np.testing.assert_array_equal(outcome.observations[0], expected[step + 1])


def test_the_protocol_is_the_papers() -> None:
    simulator = envs.make(BREAKOUT, 8)
    assert (simulator.observation_size, simulator.action_size, simulator.discrete) == (SIZE * SIZE, 4, True)
    assert envs.is_independent(BREAKOUT)
    assert not envs.is_independent("Hopper-v5")
    assert simulator.horizon == envs.time_limit(BREAKOUT) == 27_000
    assert simulator.reset(np.arange(8), range(8)).dtype == np.uint8
    # Qbert gives 25 points for a cube: rewards are not clipped.
    qbert = envs.make("ALE/Qbert-v5", 1)
    assert max(played(qbert, 0, seed=0, steps=100)[1]) >= 25


def test_episodes_end_when_no_life_is_left() -> None:
    simulator = envs.make(BREAKOUT, 1)
    rows = np.array([0])
    simulator.reset(rows, [0])
    fire = np.array([1])  # and never move
    ends = [simulator.step(rows, fire) for _ in range(60)]  # of five balls, some are left
    assert not any(end.terminated[0] or end.truncated[0] for end in ends)
    while not ends[-1].terminated[0]:
        ends.append(simulator.step(rows, fire))
    assert len(ends) < 2000
    assert not ends[-1].truncated[0]


def test_options_are_part_of_the_id() -> None:
    assert Game.of(f"{BREAKOUT}?sticky_actions=0.25&no_ops=0&fire_on_reset=true") == Game(
        "Breakout", sticky_actions=0.25, no_ops=0, fire_on_reset=True
    )
    assert envs.time_limit(f"{BREAKOUT}?frame_skip=2") == 54_000
    everything = envs.make(f"{BREAKOUT}?all_actions=true", 1)
    assert everything.action_size == 18
    still = envs.make(f"{PONG}?no_ops=0", 1)  # no seed matters
    np.testing.assert_array_equal(played(still, 0, seed=1)[0], played(still, 0, seed=2)[0])


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ("ALE/Brakout-v5", "unknown game 'Brakout'; did you mean 'Breakout'"),
        ("ALE/Breakout-v4", "'ALE/Breakout-v4' is no environment; Atari's are like ALE/Breakout-v5"),
        ("ALE/Breakout", "'ALE/Breakout' is no environment"),
        (f"{BREAKOUT}?sticky=1", "unknown option of a game 'sticky'; did you mean 'sticky_actions'"),
        (f"{BREAKOUT}?sticky_actions=1", "sticky_actions must be at least 0, below 1; got 1.0"),
        (f"{BREAKOUT}?sticky_actions=nan", "sticky_actions must be at least 0, below 1; got nan"),
        (f"{BREAKOUT}?frame_skip=four", "frame_skip must be a whole number; got 'four'"),
        (f"{BREAKOUT}?no_ops=", "no_ops must be a whole number; got ''"),
        (f"{BREAKOUT}?fire_on_reset=yes", "fire_on_reset must be true or false; got 'yes'"),
    ],
)
def test_what_is_no_game_is_refused(environment: str, text: str) -> None:
    with pytest.raises(InputError, match=text.replace("?", r"\?")):
        envs.make(environment, 1)


def test_without_its_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(UnavailableError, match=r"Atari games need .* pip install 'cwbc\[atari\]'"):
        envs.make(BREAKOUT, 1)


def test_a_drawn_game_is_the_same_game_with_its_screen() -> None:
    game = f"{BREAKOUT}?sticky_actions=0.25"
    drawn, plain = envs.make(game, 2, drawn=True), envs.make(game, 1)
    frames, rewards = played(drawn, 1, seed=5)
    expected, others = played(plain, 0, seed=5)
    np.testing.assert_array_equal(frames, expected)
    assert rewards == others
    screen = drawn.picture(1)
    assert screen.shape == (210, 160, 3)
    luminance = screen @ np.array([0.299, 0.587, 0.114])
    # The observation is the screen in gray, scaled: their columns and rows have the same means.
    for axis in (0, 1):
        small, large = frames[-1].reshape(84, 84).mean(axis=axis), luminance.mean(axis=axis)
        shrunk = np.interp(np.linspace(0, 1, 84), np.linspace(0, 1, len(large)), large)
        assert np.corrcoef(small, shrunk)[0, 1] > 0.95
    assert len(np.unique(screen.reshape(-1, 3), axis=0)) > 5  # in colour
    assert not drawn.picture(0).any()  # not begun
