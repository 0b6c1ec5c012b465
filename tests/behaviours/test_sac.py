"""Soft actor-critic: densities, targets and temperature by hand, and a bandit whose best action is known."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cwbc.behaviours.sac import (
    SAC,
    SACState,
    Transitions,
    distribution,
    initialize,
    insert,
    learn,
    losses,
    q_values,
    sample,
    update,
)
from cwbc.system.errors import InputError

SMALL = SAC(
    copies=8,
    updates=50,
    batch=64,
    capacity=512,
    warmup=8,
    actor_width=16,
    critic_width=32,
    actor_rate=3e-3,
    critic_rate=3e-3,
)


@functools.cache
def learner() -> SACState:
    state: SACState = jax.jit(initialize, static_argnums=(0, 1, 2))(SMALL, 1, 1, jax.random.key(0))
    return state


NOISE = np.random.default_rng(3).normal(size=(2, 5, 1)).astype(np.float32)
sampled, q_of = jax.jit(sample), jax.jit(q_values)
gradients_of_losses = jax.jit(jax.grad(losses, argnums=1, has_aux=True), static_argnums=0)


def targets_by_hand(actor: Any, targets: Any, batch: Transitions) -> jax.Array:
    """What the critics are to expect at a temperature of 1."""
    actions, densities = sampled(actor, batch.next_observations, NOISE[1])
    after = q_of(targets, batch.next_observations, actions).min(axis=0) - densities
    return batch.rewards + SMALL.discount * (1 - batch.terminated) * after


def rows(count: int = 5) -> Transitions:
    generator = np.random.default_rng(1)
    observations, next_observations = generator.normal(size=(2, count, 1))
    actions, rewards = generator.uniform(-1, 1, (count, 1)), generator.normal(size=count)
    terminated = np.arange(count) % 2 == 0
    parts = (observations, actions, rewards, terminated, next_observations)
    return Transitions(*(jnp.asarray(part, jnp.float32) for part in parts))


def ring(*values: float) -> list[float]:
    """A replay of six transitions after inserting rewards in pairs."""
    empty = jnp.zeros((6, 1))
    replay = Transitions(empty, empty, empty[:, 0], empty[:, 0], empty)
    for steps in range(0, len(values), 2):
        fresh = jax.tree.map(lambda x: x[:2], replay)._replace(
            rewards=jnp.array(values[steps : steps + 2], jnp.float32)
        )
        replay = jax.jit(insert)(replay, fresh, steps)
    return [float(reward) for reward in replay.rewards]


def test_a_replay_fills_up_in_order_and_its_oldest_transitions_are_overwritten() -> None:
    assert ring(1, 2, 3, 4) == [1, 2, 3, 4, 0, 0]
    assert ring(1, 2, 3, 4, 5, 6, 7, 8) == [7, 8, 3, 4, 5, 6]


def test_the_density_of_an_action_integrates_to_one_and_is_the_derivative_of_its_distribution() -> None:
    actor = learner().parameters["actor"]
    observation = jnp.array([0.3])
    noise = jnp.linspace(-6, 6, 4001)[:, None]
    actions, densities = sampled(actor, jnp.broadcast_to(observation, (4001, 1)), noise)
    x, p = np.asarray(actions[:, 0], np.float64), np.exp(np.asarray(densities, np.float64))
    assert np.trapezoid(p, x) == pytest.approx(1, abs=1e-3)
    # P(a <= x) = Φ((atanh x - mean) / std), so its slope is the density.
    means, log_stds = (float(part[0]) for part in jax.jit(distribution)(actor, observation))
    grid = np.linspace(-0.9, 0.9, 7)

    def cumulative(x: float) -> float:
        return 0.5 * math.erf((math.atanh(x) - means) / math.exp(log_stds) / math.sqrt(2))

    slopes = [(cumulative(x + 1e-5) - cumulative(x - 1e-5)) / 2e-5 for x in grid]
    np.testing.assert_allclose(np.interp(grid, x, p), slopes, rtol=1e-3, atol=1e-5)


def test_densities_stay_finite_where_tanh_is_flat() -> None:
    _, densities = sampled(learner().parameters["actor"], jnp.full((1, 1), 1e3), jnp.full((1, 1), 8.0))
    assert bool(jnp.isfinite(densities).all())


def test_a_time_limit_bootstraps_and_a_termination_does_not() -> None:
    """Where all critics and the reward are 0, only a termination has no loss."""
    state, batch = learner(), rows()._replace(rewards=jnp.zeros(5))
    parameters = state.parameters | {"critics": jax.tree.map(jnp.zeros_like, state.targets)}
    for terminated, targets in ((1.0, [0.0] * 5), (0.0, None)):
        batch = batch._replace(terminated=jnp.full(5, terminated))
        _, metrics = gradients_of_losses(SMALL, parameters, state.targets, batch, NOISE)
        wanted = targets_by_hand(parameters["actor"], state.targets, batch)
        if targets is not None:
            np.testing.assert_array_equal(wanted, targets)
        assert float(metrics["critic_loss"]) == pytest.approx(2 * float(jnp.square(wanted).mean()), rel=1e-5)
    assert float(metrics["critic_loss"]) > 0


def test_critics_regress_on_the_target_of_the_target_networks() -> None:
    state, batch = learner(), rows()
    targets = jax.tree.map(lambda x: 2 * np.asarray(x), state.targets)
    _, metrics = gradients_of_losses(SMALL, state.parameters, targets, batch, NOISE)
    wanted = targets_by_hand(state.parameters["actor"], targets, batch)
    values = q_of(state.parameters["critics"], batch.observations, batch.actions)
    expected = jnp.square(values[0] - wanted).mean() + jnp.square(values[1] - wanted).mean()
    assert float(metrics["critic_loss"]) == pytest.approx(float(expected), rel=1e-5)


def test_each_loss_moves_its_own_part_alone() -> None:
    """The gradients of the sum are those of three losses, each written down for one part by itself."""
    state, batch = learner(), rows()
    whole, _ = gradients_of_losses(SMALL, state.parameters, state.targets, batch, NOISE)
    actor, critics = state.parameters["actor"], state.parameters["critics"]
    wanted = targets_by_hand(actor, state.targets, batch)

    @jax.jit
    @jax.grad
    def regression(critics: Any) -> jax.Array:
        return jnp.square(q_values(critics, batch.observations, batch.actions) - wanted).mean(axis=1).sum()

    @jax.jit
    @jax.grad
    def worth(actor: Any) -> jax.Array:
        actions, densities = sample(actor, batch.observations, NOISE[0])
        first, second = q_values(critics, batch.observations, actions)
        return (densities - jnp.minimum(first, second)).mean()

    for part, expected in (("critics", regression(critics)), ("actor", worth(actor))):
        jax.tree.map(
            functools.partial(np.testing.assert_allclose, rtol=2e-4, atol=2e-5), whole[part], expected
        )


def test_the_targets_follow_the_critics() -> None:
    state = learner()
    after, _ = jax.jit(update, static_argnums=0)(SMALL, state, rows(), NOISE)
    rate = SMALL.target_rate
    expected = jax.tree.map(
        lambda old, new: (1 - rate) * np.asarray(old) + rate * np.asarray(new),
        state.targets,
        after.parameters["critics"],
    )
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-6), after.targets, expected)
    assert not np.allclose(after.targets["output"]["bias"], state.targets["output"]["bias"], atol=1e-6)


@pytest.mark.parametrize(("spread", "sign"), [(0.0, 1), (-20.0, -1)])
def test_the_temperature_falls_above_the_target_entropy_and_rises_below(spread: float, sign: int) -> None:
    """Descent goes against the slope; the target is -1."""
    state, actor = learner(), learner().parameters["actor"]
    output = actor["output"] | {"bias": jnp.array([0.0, spread])}  # of the mean, and of the log std
    parameters = state.parameters | {"actor": actor | {"output": output}}
    gradients, metrics = gradients_of_losses(SMALL, parameters, state.targets, rows(), NOISE)
    assert float(gradients["log_temperature"]) == pytest.approx(float(metrics["entropy"]) + 1)
    assert np.sign(gradients["log_temperature"]) == sign


def test_a_bandit_is_solved() -> None:
    """One step, reward -(action - 0.5 · observation)²: the best action is half of the observation."""
    settings = dataclasses.replace(SMALL, copies=512, warmup=512)
    generator = np.random.default_rng(0)
    observations = generator.uniform(-1, 1, (512, 1))
    actions = generator.uniform(-1, 1, (512, 1))
    rewards = -10 * np.square(actions - 0.5 * observations)[:, 0]
    parts = (observations, actions, rewards, np.ones(512), observations)
    state, replay = learner(), Transitions(*(jnp.asarray(part, jnp.float32) for part in parts))
    step = jax.jit(learn, static_argnums=0)
    for number in range(20):
        state, metrics = step(settings, state, replay, 512, jax.random.key(number))
    observed = jnp.linspace(-0.9, 0.9, 7)[:, None]
    means, _ = jax.jit(distribution)(state.parameters["actor"], observed)
    np.testing.assert_allclose(jnp.tanh(means), observed / 2, atol=0.1)
    assert float(metrics["entropy"][-1]) == pytest.approx(-1, abs=0.3)


@pytest.mark.parametrize("wrong", [{"copies": 0}, {"capacity": 1001}, {"discount": 1.0}, {"warmup": 3}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        SAC(**wrong)
