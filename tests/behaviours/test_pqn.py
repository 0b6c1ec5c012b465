"""PQN: lambda-returns and frames by hand, the loss of an update, sizes of trainings, and what is refused."""

from __future__ import annotations

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pixels import PIXELS
from toys import AIM

from cwbc import envs
from cwbc.behaviours.pqn import PQN, QNetwork, Rollout, initialize, learn, push, targets
from cwbc.system.errors import InputError

SETTINGS = PQN(copies=3, rollout=4, epochs=1, minibatches=1, rate=1e-2, width=8, stack=1)
NETWORK = QNetwork((2,), 1, 8, 3)


def rollout() -> Rollout:
    """Four steps of three copies; at the second, the first copy terminates and the second is truncated."""
    generator = np.random.default_rng(0)
    rewards, values = generator.normal(size=(2, 4, 3)).astype(np.float32)
    terminated, truncated = np.zeros((2, 4, 3), bool)
    terminated[1, 0] = truncated[1, 1] = True
    frames = generator.normal(size=(4, 3, 1, 2)).astype(np.float32)
    actions = generator.integers(3, size=(4, 3)).astype(np.int32)
    newest = generator.normal(size=(3, 2)).astype(np.float32)
    before, taken, highest = (tuple(part) for part in (frames, actions, values))
    return Rollout(before, taken, highest, rewards, terminated, truncated, newest, np.zeros(3, bool))


def forward_view(steps: Rollout, last: Any, step: int, copy: int) -> float:
    """The lambda-return as a sum of n-step returns, the last of which has all the weight that is left."""
    values = np.array([*steps.values, last])[:, copy]
    returns, reward, discount = [], 0.0, 1.0
    for now in range(step, 4):
        if steps.truncated[now, copy]:
            break
        reward += discount * float(steps.rewards[now, copy])
        discount *= SETTINGS.discount * (not steps.terminated[now, copy])
        returns.append(reward + discount * float(values[now + 1]))
    weights = (1 - SETTINGS.trace) * SETTINGS.trace ** np.arange(len(returns))
    weights[-1] = 1 - weights[:-1].sum()
    return float(weights @ returns)


def test_targets_are_lambda_returns_within_an_episode() -> None:
    steps, last = rollout(), np.array([0.3, -1.0, 2.0], np.float32)
    found = np.asarray(jax.jit(targets, static_argnums=0)(SETTINGS, steps, last))
    assert found[1, 0] == steps.rewards[1, 0]  # terminated: nothing follows
    for step, copy in np.ndindex(4, 3):
        is_cut = steps.truncated[step, copy]
        expected = steps.values[step][copy] if is_cut else forward_view(steps, last, step, copy)
        assert found[step, copy] == pytest.approx(expected, rel=1e-5)


def test_an_update_regresses_the_actions_that_were_taken_on_the_targets() -> None:
    """A truncated step has no loss."""
    steps, state = rollout(), initialize(SETTINGS, NETWORK, jax.random.key(0))
    last = NETWORK(state.parameters, steps.newest[:, None]).max(axis=-1)
    wanted = np.asarray(targets(SETTINGS, steps, last)).reshape(-1)
    values = np.asarray(NETWORK(state.parameters, jnp.concatenate(steps.frames)))
    errors = values[np.arange(12), np.concatenate(steps.actions)] - wanted
    expected = np.mean(np.square(errors) * ~steps.truncated.reshape(-1)) / 2
    step = jax.jit(learn, static_argnums=(0, 1))
    losses = []
    for number in range(300):
        state, metrics = step(SETTINGS, NETWORK, state, steps, jax.random.key(number))
        losses.append(float(metrics["loss"][0]))
    assert losses[0] == pytest.approx(expected, rel=1e-5)
    assert losses[-1] < losses[0] / 2


def test_frames_follow_each_other_and_the_first_is_repeated() -> None:
    frames = jnp.array([[[1], [2], [3]], [[4], [5], [6]]], jnp.uint8)
    after = push(frames, jnp.array([[7], [8]], jnp.uint8), jnp.array([False, True]))
    np.testing.assert_array_equal(after[..., 0], [[2, 3, 7], [8, 8, 8]])
    assert after.dtype == np.uint8


def sized(environment: str, steps: int, **options: Any) -> PQN:
    with contextlib.closing(envs.make(environment, 1)) as simulator:
        settings = PQN.sized(simulator, steps, options)
        settings.check(environment, simulator)
        return settings


def test_sizes_depend_on_the_environment_and_on_the_length_of_a_training() -> None:
    cart = sized("CartPole-v1", 10_000_000)
    assert (cart.exploration, cart.interval, cart.stack, cart.reward_limit) == (1_200_000, 125_000, 1, None)
    pixels = sized(PIXELS, 1000, interval=7)
    assert (pixels.exploration, pixels.interval, pixels.stack, pixels.reward_limit) == (500, 7, 4, 1.0)
    np.testing.assert_allclose(pixels.epsilon_at(np.array([0, 250, 500, 900])), [1, 0.5005, 0.001, 0.001])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"copies": 0}, "copies must be at least 1"),
        ({"rollout": 20_000}, "rollout must be at most 10,000"),
        ({"minibatches": 5}, r"minibatches must be a divisor of copies x rollout \(4096\)"),
        ({"epsilon": 1.5}, "epsilon must be at least 0 and at most 1"),
        ({"discount": 1.0}, "discount must be at least 0 and below 1"),
        ({"rate": 0.0}, "rate must be positive"),
        ({"reward_limit": -1.0}, "reward_limit must be positive"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        PQN(**wrong)


def test_environments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match=f"{AIM} has continuous actions; PQN needs discrete ones"):
        sized(AIM, 1000)
    with pytest.raises(InputError, match="stack must be 1 for CartPole-v1, whose observations are no images"):
        sized("CartPole-v1", 1000, stack=2)
