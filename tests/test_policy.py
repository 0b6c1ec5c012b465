"""Acting equals training on the same history, for every base; files and mistakes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from toys import HORIZON, drawn, toy_data

from cwbc.design import Design
from cwbc.errors import InputError
from cwbc.methods import parse, small
from cwbc.policy import Policy

CONTEXT = 4
BASES = ["bc", "rvs", "dt", "dt-concat"]


def policy(name: str, discrete: bool = False) -> Policy:
    method = small(parse(name))
    method = dataclasses.replace(method, network=dataclasses.replace(method.network, width=16))
    data = toy_data(discrete=discrete)
    design = Design.fit(method, data, CONTEXT)
    return Policy(design, drawn(design.initialize, 7), *data.observation_statistics)


def history(episodes: int, steps: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    generator = np.random.default_rng(1)
    return generator.normal(size=(steps, episodes, 2)), generator.normal(size=(steps, episodes))


def training_outputs(
    trained: Policy,
    observations: NDArray[np.float64],  # [step, dimension], up to now
    actions: NDArray[Any],  # [step, ...], up to now
    rewards: NDArray[np.float64],  # [step], of the steps before
    target: float,
) -> NDArray[np.float32]:
    """What the training pass gives at the last step of a window that ends now, built by hand."""
    now = len(observations) - 1
    first = max(0, now - CONTEXT + 1)
    returns_to_go = target - np.concatenate([[0], np.cumsum(rewards)])[: now + 1]
    normalized = (observations - trained.observation_mean) / trained.observation_deviation
    encoded = np.asarray(trained.design.actions.encode(jnp.asarray(actions)))

    def window(values: NDArray[Any]) -> jax.Array:
        # A window that is not full yet goes on with garbage after the present, as in training.
        values = np.asarray(values, np.float32)[first : now + 1]
        garbage = np.full((CONTEXT - len(values), *values.shape[1:]), 3.0)
        return jnp.asarray(np.concatenate([values, garbage])[None], jnp.float32)

    outputs = _outputs(
        trained.design,
        trained.parameters | trained.design.prepared(trained.parameters),
        window(normalized),
        window(returns_to_go),
        window(encoded),
        jnp.arange(first, first + CONTEXT)[None],
    )
    return np.asarray(trained.design.actions.choose(outputs)[0, now - first])


_outputs = jax.jit(Design.outputs, static_argnums=0)


@pytest.mark.parametrize("discrete", [False, True], ids=["continuous", "discrete"])
@pytest.mark.parametrize("name", BASES)
def test_acting_equals_the_training_pass_on_the_same_history(name: str, discrete: bool) -> None:
    trained = policy(name, discrete)
    observations, rewards = history(episodes=3, steps=HORIZON)
    targets = [3.0, -2.0, 0.5]
    trained.begin(targets)
    taken: list[NDArray[np.float32]] = []
    for t in range(HORIZON):  # more than twice the context window
        taken.append(trained.act(observations[t], None if t == 0 else rewards[t - 1]))
        for episode, target in enumerate(targets):
            expected = training_outputs(
                trained,
                observations[: t + 1, episode],
                np.stack(taken)[:, episode],
                rewards[:t, episode],
                target,
            )
            np.testing.assert_allclose(taken[t][episode], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["rvs", "dt", "dt-concat"])
def test_the_asked_return_and_the_rewards_matter(name: str) -> None:
    trained = policy(name)
    observation = np.zeros((3, 2))
    trained.begin([0.0, 5.0, 0.0])
    first = trained.act(observation)
    assert np.abs(first[0] - first[1]).max() > 1e-6
    np.testing.assert_allclose(first[0], first[2], rtol=1e-6)
    second = trained.act(observation, [0.0, 0.0, 3.0])
    assert np.abs(second[0] - second[2]).max() > 1e-6


def test_one_episode_equals_the_same_episode_among_many() -> None:
    observations, rewards = history(episodes=3, steps=6)
    many, one = policy("dt"), policy("dt")
    many.begin([1.0, 2.0, 3.0])
    one.begin(2.0)
    for t in range(6):
        together = many.act(observations[t], None if t == 0 else rewards[t - 1])
        alone = one.act(observations[t, 1], None if t == 0 else rewards[t - 1, 1])
        assert alone.shape == (1,)
        np.testing.assert_allclose(together[1], alone, rtol=1e-5, atol=1e-6)


def test_begin_forgets_everything() -> None:
    trained = policy("dt")
    observations, rewards = history(episodes=1, steps=6)

    def episode() -> list[NDArray[np.float32]]:
        trained.begin([2.0])
        return [trained.act(observations[t], None if t == 0 else rewards[t - 1]) for t in range(6)]

    np.testing.assert_array_equal(episode(), episode())


@pytest.mark.parametrize("discrete", [False, True], ids=["continuous", "discrete"])
def test_a_saved_policy_acts_the_same(tmp_path: Path, discrete: bool) -> None:
    saved = policy("dt+w", discrete)
    saved.about["dataset"] = "toy"
    saved.save(tmp_path / "policy.safetensors")
    loaded = Policy.load(tmp_path / "policy.safetensors")
    assert loaded.design == saved.design
    assert loaded.about == {"dataset": "toy"}
    observations, rewards = history(episodes=3, steps=6)
    for one in (saved, loaded):
        one.begin([1.0, 2.0, 3.0])
    for t in range(6):
        reward = None if t == 0 else rewards[t - 1]
        np.testing.assert_array_equal(saved.act(observations[t], reward), loaded.act(observations[t], reward))


def test_actions_beyond_one_are_reachable_when_the_data_has_them() -> None:
    data = toy_data()
    wide = dataclasses.replace(data, actions=data.actions * 8)  # up to 4
    design = Design.fit(parse("rvs"), wide, CONTEXT)
    assert design.actions.choose(jnp.full((1,), 20.0))[0] == pytest.approx(4.0)
    assert Design.fit(parse("rvs"), data, CONTEXT).actions.choose(jnp.full((1,), 20.0))[0] == pytest.approx(
        1.0
    )


@pytest.mark.parametrize("name", ["rvs", "dt"])
def test_a_broken_observation_is_refused_and_leaves_no_trace(name: str) -> None:
    one, other = policy(name), policy(name)
    observations, rewards = history(episodes=3, steps=4)
    for each in (one, other):
        each.begin([1.0, 2.0, 3.0])
    for t in range(4):
        reward = None if t == 0 else rewards[t - 1]
        for value in (np.nan, np.inf):
            broken = observations[t].copy()
            broken[2, 1] = value
            with pytest.raises(InputError, match=rf"finite numbers; got {value} at \[2, 1\]"):
                one.act(broken, reward)
        np.testing.assert_array_equal(one.act(observations[t], reward), other.act(observations[t], reward))


def test_a_policy_says_what_it_is() -> None:
    trained = policy("rvs+cwbc")
    assert repr(trained) == "Policy('rvs+cwbc')"
    trained.about |= {"dataset": "spring", "seed": 3}
    assert repr(trained) == "Policy('rvs+cwbc', dataset='spring', seed=3)"


def test_mistakes_are_told() -> None:
    trained = policy("rvs")
    with pytest.raises(InputError, match="call begin"):
        trained.act([0.0, 0.0])
    with pytest.raises(InputError, match="finite number"):
        trained.begin(float("nan"))
    trained.begin(1.0)
    with pytest.raises(InputError, match="takes no reward"):
        trained.act([0.0, 0.0], 1.0)
    with pytest.raises(InputError, match=r"shape \(3,\); expected \(2,\)"):
        trained.act([0.0, 0.0, 0.0])
    trained.act([0.0, 0.0])
    with pytest.raises(InputError, match="needs the reward"):
        trained.act([0.0, 0.0])
    with pytest.raises(InputError, match=r"reward has shape \(2,\)"):
        trained.act([0.0, 0.0], [1.0, 2.0])
    with pytest.raises(InputError, match="a reward is a finite number"):
        trained.act([0.0, 0.0], float("nan"))
    with pytest.raises(InputError, match="no trained run"):
        Policy.load(Path(__file__).parent)
