"""Results do not depend on the units of rewards, observations and actions, nor on a constant in rewards."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from cwbc.core.methods import sized, with_options
from cwbc.core.trajectories import Trajectories
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.data.formats.arrays import from_arrays
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.sweeps import Sweep
from cwbc.runs.policies import Policies
from cwbc.runs.training import train

STEPS, EPISODES = 12, 40
METHODS = ("bc+f", "rvs", "rvs+cwbc", "dt+w+c", "dt-concat")
# Discrete actions change the loss alone, which is the same for all methods with a condition.
CASES = [(name, False) for name in METHODS] + [(name, True) for name in ("bc+f", "rvs+cwbc", "dt+w+c")]


def numbers(discrete: bool, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Observations, actions and rewards of episodes of one length; an action that fits is paid more."""
    random = np.random.default_rng(seed)
    skill = np.repeat(random.uniform(0, 1, EPISODES), STEPS)
    observations = random.normal(3.0, 2.0, (EPISODES * STEPS, 2))
    wanted = np.tanh(observations[:, 0] - 3)
    actions = skill * wanted + (1 - skill) * random.uniform(-1, 1, len(skill))
    rewards = np.round(8 * (1 - np.abs(actions - wanted))) / 4  # of few bits, so that returns tie
    return observations, (actions > 0).astype(np.int64) if discrete else 20 * actions[:, None], rewards


def dataset(
    discrete: bool, reward: float = 1.0, shift: float = 0.0, observation: float = 1.0, action: float = 1.0
) -> Trajectories:
    observations, actions, rewards = numbers(discrete)
    ends = np.arange(1, len(rewards) + 1) % STEPS == 0
    return from_arrays(
        "units",
        (observations * observation).astype(np.float32),
        actions if discrete else (actions * action).astype(np.float32),
        (rewards * reward + shift).astype(np.float32),
        np.zeros(len(ends), bool),
        ends,
    )


def trained(name: str, data: Trajectories) -> Policies:
    method, training, _ = with_options(
        *sized(name, "small"), {"steps": 20, "batch_size": 8, "context": 4, "width": 16, "layers": 1}
    )
    return train(data, method, training, (0,))


def actions(
    policies: Policies, targets: NDArray[Any], rewards: NDArray[Any], observation: float
) -> NDArray[Any]:
    """What a policy does for several targets over a few steps that are the same in every unit."""
    policy = policies.policy()
    random = np.random.default_rng(1)
    policy.begin(targets)
    taken = []
    for t in range(6):
        seen = (random.normal(3, 2, (len(targets), 2)) * observation).astype(np.float32)
        taken.append(policy.act(seen, None if t == 0 else np.full(len(targets), rewards[t])))
    return np.stack(taken)


TARGETS, REWARDS = np.array([-5.0, 10.0, 18.0, 25.0, 200.0]), np.array([0, 1.0, 0.5, 2.0, -1.0, 1.5])


def acted(name: str, discrete: bool, **units: float) -> tuple[Any, NDArray[Any]]:
    policies = trained(name, dataset(discrete, **units))
    reward, shift = units.get("reward", 1.0), units.get("shift", 0.0)
    targets, rewards = TARGETS * reward + STEPS * shift, REWARDS * reward + shift
    found = actions(policies, targets, rewards, units.get("observation", 1.0))
    return policies.parameters, found if discrete else found / units.get("action", 1.0)


def assert_same(one: tuple[Any, NDArray[Any]], other: tuple[Any, NDArray[Any]]) -> None:
    """Bit for bit the same parameters and actions."""
    jax.tree.map(np.testing.assert_array_equal, one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def assert_close(one: tuple[Any, NDArray[Any]], other: tuple[Any, NDArray[Any]]) -> None:
    """The same up to the rounding of float32, which twenty steps of Adam enlarge."""
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-3), one[0], other[0])
    np.testing.assert_allclose(one[1], other[1], atol=0.05 if one[1].ndim == 3 else 0)


@pytest.fixture(scope="module")
def plain() -> dict[tuple[str, bool], tuple[Any, NDArray[Any]]]:
    return {(name, discrete): acted(name, discrete) for name, discrete in CASES}


@pytest.mark.parametrize(("name", "discrete"), CASES)
@pytest.mark.parametrize("power", [-20, 13])
def test_rewards_times_a_power_of_two_give_the_same_bits(
    name: str, discrete: bool, power: int, plain: dict[Any, Any]
) -> None:
    assert_same(acted(name, discrete, reward=2.0**power), plain[name, discrete])


@pytest.mark.parametrize(("name", "discrete"), CASES)
@pytest.mark.parametrize("unit", [1e-6, 0.01, 100, 1e6])
def test_rewards_in_any_unit_give_the_same(
    name: str, discrete: bool, unit: float, plain: dict[Any, Any]
) -> None:
    assert_close(acted(name, discrete, reward=unit), plain[name, discrete])


@pytest.mark.parametrize(("name", "discrete"), CASES)
@pytest.mark.parametrize("shift", [-3.3, 100.0])
def test_a_constant_in_every_reward_changes_nothing_where_episodes_have_one_length(
    name: str, discrete: bool, shift: float, plain: dict[Any, Any]
) -> None:
    assert_close(acted(name, discrete, shift=shift), plain[name, discrete])


@pytest.mark.parametrize("name", METHODS)
def test_observations_and_actions_times_a_power_of_two_give_the_same_bits(
    name: str, plain: dict[Any, Any]
) -> None:
    assert_same(acted(name, False, observation=2.0**-20, action=2.0**-9), plain[name, False])
    if (name, True) in plain:
        assert_same(acted(name, True, observation=2.0**20), plain[name, True])


@pytest.mark.parametrize(
    ("name", "observation", "action"),
    [("rvs+cwbc", 1e-6, 1e3), ("rvs+cwbc", 1e6, 1e-6), ("dt+w+c", 1e-6, 1e3)],
)
def test_observations_and_actions_in_any_unit_give_the_same(
    name: str, observation: float, action: float, plain: dict[Any, Any]
) -> None:
    """Of the methods with all parts: each other has fewer; to the last bit they are compared above."""
    assert_close(acted(name, False, observation=observation, action=action), plain[name, False])


def test_the_papers_scale_depends_on_the_unit() -> None:
    """What the others are for; and that the tests above can fail."""
    method, training, _ = with_options(
        *sized("rvs", "small"),
        {"steps": 20, "batch_size": 8, "context": 4, "width": 16, "layers": 1, "condition_scale": "paper"},
    )
    one, other = (train(dataset(False, reward=unit), method, training, (0,)) for unit in (1.0, 100.0))
    weights = [np.asarray(each.parameters["layer0"]["weight"]) for each in (one, other)]
    assert np.abs(weights[0] - weights[1]).max() > 1e-3


def test_a_dimension_that_never_changes_is_ignored_in_training_and_moderate_in_acting() -> None:
    data = dataset(False)
    constant = dataclasses.replace(data, observations=np.full_like(data.observations, 7.0))
    mean, std = constant.observation_statistics
    np.testing.assert_allclose(mean, 7.0)
    # A change of a percent is a percent of its size, not 70,000 standard deviations.
    np.testing.assert_allclose((7.07 - mean) / std, 0.01, rtol=1e-3)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_targets_and_scores_do_not_depend_on_the_unit(unit: float) -> None:
    data = dataset(False, reward=unit)
    targets = np.array(data.task.targets(data.best))
    plain = dataset(False).task.targets(dataset(False).best)
    np.testing.assert_allclose(targets / unit, plain, rtol=1e-5)
    sweep = Sweep(
        "any",
        np.arange(3),
        targets,
        np.tile(targets[None, :, None], (3, 1, 2)),
        np.ones((3, len(targets), 2), np.int64),
    )
    found = EvaluatedMethod.of(sweep, DatasetSummary.of(data)).to_json()
    assert found["calibration_error"]["value"] == pytest.approx(0, abs=1e-3)
    assert found["at_dataset_best"]["value"] == pytest.approx(100, abs=1e-3)
    assert found["ood_retention"]["value"] == pytest.approx(1)


@pytest.mark.parametrize("reach", [1.0, 50.0, 1e6, float(np.finfo(np.float32).max), np.inf])
def test_bounds_of_the_environment_that_are_far_away_do_not_matter(reach: float) -> None:
    bounded = dataset(False).described(action_bounds=((-reach,), (reach,)))
    found = actions(trained("rvs", bounded), TARGETS, REWARDS, 1.0)
    if reach == 50.0:  # a little more than the data's 20
        assert np.abs(found).max() <= 50
    else:
        np.testing.assert_array_equal(found, acted("rvs", False)[1])
