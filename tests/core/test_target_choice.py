"""Targets chosen by a critic: stitching, limits by a given target, files, and the critics against NumPy."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import random_arrays
from value_problems import (
    GOAL,
    LENGTH,
    WALKS,
    close,
    differences,
    in_float64,
    initial_critics,
    line,
    numpy_mlp,
    numpy_values,
    small,
)

from cwbc.core import sampling, training_loop
from cwbc.core.methods import Training, method_from_json, parse, to_json
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.target_choice import TargetChoice
from cwbc.data.formats.arrays import from_arrays
from cwbc.runs.evaluating import evaluate
from cwbc.runs.policies import Policies, Policy
from cwbc.runs.training import train
from cwbc.system.errors import InputError

SIZES = {"candidates": 8, "compared": 4, "candidate_reach": 1.5, "layers": 1}


def trained(name: str, steps: int = 300) -> Policies:
    common = {"discount": 0.9, "steps": steps, "batch_size": 32, "learning_rate": 1e-3, "context": 4}
    return train(line(*WALKS), *small(name, **common, **SIZES), (0, 1))


@pytest.fixture(autouse=True, scope="module")
def short_chunks() -> Iterator[None]:
    """Of one length, so that trainings of other steps are one program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_loop, "chunk_length", lambda *_: 20)
        yield


@pytest.fixture(scope="module")
def policies() -> Policies:
    return trained("rvs+c+q")


def test_it_stitches_and_a_low_target_limits_it(policies: Policies) -> None:
    target = policies.spec.method.learner.open_target(policies.spec.horizon)
    assert target is not None
    sweep = evaluate(policies, "cwbc-line-v0", [0.0, target], episodes=1)
    # No logged walk from state 0 has a return above 0: cloning cannot reach the goal, its critics can.
    np.testing.assert_array_equal(sweep.returns[:, :, 0], [[0.0, GOAL], [0.0, GOAL]])
    alone = evaluate(policies, "cwbc-line-v0", (), episodes=1)
    np.testing.assert_array_equal(alone.targets, [np.nan])
    np.testing.assert_array_equal(alone.returns[:, 0], sweep.returns[:, 1])
    assert policies.sweep_in_words(0, 10) == "without a target, 20 episodes"


def test_the_value_of_proposals_in_the_loss_stitches_too() -> None:
    found = trained("rvs+qr", steps=500)
    assert evaluate(found, "cwbc-line-v0", (), episodes=1).returns.mean() == GOAL


@pytest.mark.parametrize("name", ["rvs+q", "dt+q"])
def test_an_episode_begins_with_the_action_that_critics_value_most(name: str) -> None:
    found = trained(name, steps=20)
    spec, learner, parameters = found.spec, found.spec.method.learner, found.policy().parameters
    assert isinstance(learner, TargetChoice)
    assert learner.lowest_average is not None
    assert learner.highest_average is not None
    base = dataclasses.replace(spec, method=dataclasses.replace(spec.method, learner=learner.base))
    proposer, policy = Policy(base, parameters["base"]), found.policy()
    for state in range(LENGTH):
        observation, proposed = np.eye(LENGTH)[state], []
        for average in np.linspace(learner.lowest_average, learner.highest_average, learner.candidates):
            proposer.begin(average * spec.horizon)
            proposed.append(proposer.act(observation))
        actions = spec.actions.encode(jnp.asarray(np.array(proposed)))
        observations = np.tile(spec.observations.received(observation), (len(actions), 1))
        values = numpy_values(in_float64(parameters["critics"]), observations, in_float64(actions), True)
        policy.begin()
        np.testing.assert_allclose(policy.act(observation), proposed[values.mean(axis=0).argmax()], atol=1e-5)


def test_a_policy_begins_without_a_target_and_survives_its_file(policies: Policies, tmp_path: Path) -> None:
    policies.policy(1).save(tmp_path / "policy.safetensors")
    loaded = Policy.load(tmp_path / "policy.safetensors")
    observation = np.eye(LENGTH)[0]
    actions = []
    for policy in (policies.policy(1), loaded):
        policy.begin()
        actions.append(policy.act(observation))
    np.testing.assert_array_equal(actions[0], actions[1])
    assert actions[0][0] > 0  # towards the goal
    rvs = Policy(PolicySpec.fit(parse("rvs"), line(*WALKS), Training(steps=1)), {})
    with pytest.raises(InputError, match=r"rvs is conditioned on a target return, .*; call begin\(target\)"):
        rvs.begin()


def test_far_above_all_candidates_the_target_does_not_matter(policies: Policies) -> None:
    learner = policies.spec.method.learner
    assert isinstance(learner, TargetChoice)
    highest = learner.highest_average
    assert highest is not None
    policy, actions = policies.policy(0), []
    for target in (highest * policies.spec.horizon, 50 * highest * policies.spec.horizon, 1e12, None):
        policy.begin(target)
        actions.append(policy.act(np.eye(LENGTH)[1]))
    np.testing.assert_allclose(actions[0], actions[1], rtol=1e-5)
    np.testing.assert_array_equal(actions[2], actions[3])


def test_goals_and_gradients_of_the_critics_are_those_of_numpy() -> None:
    data = line(*WALKS)
    sizes = {"width": 4, "layers": 1, "critic_layers": 1, "compared": 3}
    method, settings = small("rvs+q", batch_size=8, context=5, discount=0.9, **sizes)
    spec = PolicySpec.fit(method, data, settings)
    learner = spec.method.learner
    assert isinstance(learner, TargetChoice)
    source = sampling.to_device(data, spec.method)

    @jax.jit
    def batch_of(episodes: sampling.Episodes, columns: Any, numbers: Any) -> Any:
        seed, number = jnp.uint32(0), jnp.int32(0)
        gather = functools.partial(sampling.gathered, columns)
        return learner.batch(*sampling.sample(spec, settings, episodes, seed, number, gather), numbers)

    batch = batch_of(source.episodes, source.columns, learner.numbers)
    base = random_arrays(lambda key: learner.base.initial_parameters(spec, key), 1)
    ensemble = initial_critics(learner.critic_network, spec, 2)
    found = jax.jit(functools.partial(learner.goals, spec))(base, ensemble, batch, learner.numbers)

    n = in_float64(batch.transitions)
    condition = learner.base.condition
    assert condition is not None
    best = np.full(len(n.rewards), -np.inf)
    for average in np.linspace(learner.lowest_average or 0.0, learner.highest_average or 0.0, 3):
        bounded = 3 * np.tanh((average - condition.center) / condition.unit / 3)
        rows = np.concatenate([n.next_observations, np.full((len(best), 1), bounded)], axis=1)
        actions = np.tanh(numpy_mlp(in_float64(base), rows))
        values = numpy_values(in_float64(ensemble), n.next_observations, actions, True)
        best = np.maximum(best, values.min(axis=0))
    goals = n.rewards + 0.9 * n.continues * best
    close(found, goals)

    logged = in_float64(jax.jit(spec.actions.encode)(batch.transitions.actions))

    def loss(parameters: Any) -> float:
        errors = numpy_values(parameters, n.observations, logged, True) - goals
        return float((np.square(errors) * n.weights).sum())

    grad = jax.grad(lambda ensemble: learner.critic_loss(ensemble, spec, batch.transitions, found))
    gradients = jax.jit(grad)(ensemble)
    close(gradients, differences(loss, in_float64(ensemble)))


def test_the_value_of_its_proposals_is_a_part_of_the_loss() -> None:
    # From one state, -1 was logged nine times in ten and 1 else, where the reward is the action.
    count, ends = 200, np.ones(200, bool)
    actions = np.where(np.arange(count) % 10 == 0, 1.0, -1.0)[:, None]
    data = from_arrays("bandit", np.ones((count, 1)), actions, actions[:, 0], ends, ~ends)
    predicted: dict[str, list[float]] = {}
    for name in ("rvs+q", "rvs+qr"):
        method, settings = small(name, steps=300, batch_size=32, learning_rate=1e-3, context=2)
        policy = train(data, method, settings, (0,)).policy()
        predicted[name] = []
        for target in (-1.0, 0.0):
            policy.begin(target)
            predicted[name].append(float(policy.act(np.ones(1))[0]))
    assert predicted["rvs+q"][0] == pytest.approx(-1, abs=0.1)  # cloned: what returned -1
    assert predicted["rvs+qr"][1] > predicted["rvs+q"][1] + 0.2  # between the logged ones: worth more


def test_the_method_is_described_in_json_and_refuses_what_it_cannot_use() -> None:
    method = parse("rvs+w+c+q")
    assert method_from_json(to_json(method), "here") == method
    fitted = method.fit(line(*WALKS))
    assert fitted.learner.is_fitted
    assert method_from_json(to_json(fitted), "here") == fitted
    with pytest.raises(InputError, match=r"\+q chooses among targets, and bc takes none"):
        parse("bc+q")
    with pytest.raises(InputError, match=r"method 'td3bc\+q': td3bc takes no parts"):
        parse("td3bc+q")
    ends = np.ones(4, bool)
    discrete = from_arrays("choices", np.ones((4, 2)), np.array([0, 1, 0, 1]), np.ones(4), ends, ~ends)
    with pytest.raises(InputError, match="continuous actions, choices has discrete ones"):
        method.fit(discrete)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"candidate_reach": -1.0}, "candidate_reach must be at least 0; got -1"),
        ({"candidate_reach": 1e30}, "candidate_reach must be at most 1000"),
        ({"reward_scale": 0.0}, "reward_scale must be above 0; got 0"),
        ({"critic_layers": 0}, "critic_layers must be from 1 to 100; got 0"),
        ({"lowest_average": 5.0, "highest_average": 1.0}, "lowest_average is 5.0, above highest_average"),
    ],
)
def test_what_no_choice_can_be_made_with_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        small("rvs+q", **options)[0].fit(line(*WALKS))
    with pytest.raises(InputError, match="reward_scale must be above 0; got -1"):
        small("td3bc", reward_scale=-1.0)
    with pytest.raises(InputError, match=r"unknown method 'rvs\+q\+qr'"):
        parse("rvs+q+qr")


def test_candidates_do_not_depend_on_the_unit_of_the_rewards() -> None:
    rare = (*[WALKS[0]] * 4, WALKS[2])  # one of five reaches the goal
    one, other = (parse("rvs+q").fit(line(*rare, unit=unit)).learner for unit in (1.0, 2.0**20))
    np.testing.assert_array_equal(one.numbers["candidates"], other.numbers["candidates"])
    assert isinstance(one, TargetChoice)
    wider = dataclasses.replace(one, candidate_reach=2.0, highest_average=None).fit(line(*rare))
    assert wider.numbers["candidates"][-1] > one.numbers["candidates"][-1]


def test_candidates_exceed_the_best_return_only_where_good_episodes_are_rare() -> None:
    for walks, exceed in ((WALKS, False), ((*[WALKS[0]] * 4, WALKS[2]), True)):
        data = line(*walks)
        learner = parse("rvs+q").fit(data).learner
        assert isinstance(learner, TargetChoice)
        assert learner.highest_average is not None
        assert (learner.highest_average > data.best / data.horizon) == exceed
