"""TD3+BC, ReBRAC, IQL and CQL: against NumPy, on problems with a known optimum, in any unit."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from value_problems import (
    GOAL,
    LENGTH,
    WALKS,
    close,
    differences,
    in_float64,
    initial_critics,
    initial_mlp,
    line,
    numpy_mlp,
    numpy_values,
    small,
)

from cwbc.core import critics, sampling, training_loop
from cwbc.core.actor_critic import ActorCritic, ActorCriticBatch
from cwbc.core.cql import ConservativeQ, ConservativeQBatch
from cwbc.core.critics import Adam, TransitionBatch
from cwbc.core.iql import LARGEST_WEIGHT, ImplicitQ
from cwbc.core.methods import Method, Training, parse, sized
from cwbc.core.networks import MLP
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByLength
from cwbc.data.formats.arrays import from_arrays
from cwbc.runs.evaluating import evaluate
from cwbc.runs.training import train
from cwbc.system.errors import InputError

NAMES = ("td3bc", "rebrac", "iql", "cql")
PRESETS: tuple[Any, ...] = ("paper", "small")
QUICK: dict[str, dict[str, Any]] = {name: {"layers": 1} for name in NAMES}  # to compile
QUICK["cql"]["sampled_actions"] = 4


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one length: trainings of other steps, and on other data of the same shape, are one program."""
    monkeypatch.setattr(training_loop, "chunk_length", lambda *_: 20)


@pytest.mark.parametrize("name", NAMES)
def test_it_stitches_what_no_logged_trajectory_does(name: str) -> None:
    data = line(*WALKS)
    from_start = [each for each, (first, _) in zip(data.returns, WALKS, strict=True) if first == 0]
    assert max(from_start) == 0.0
    # The actor must leave the mean of the logged actions.
    weaker = {
        "iql": {"advantage_temperature": 20.0, "expectile": 0.9},
        "cql": {"conservative_weight": 1.0},
    }.get(name, {"actor_penalty": 0.05})
    method, settings = small(name, discount=0.9, steps=1000, **QUICK[name], **weaker)
    policies = train(data, method, settings, (0, 1))
    sweep = evaluate(policies, "cwbc-line-v0", [0.0], episodes=1)
    assert not sweep.takes_target
    np.testing.assert_array_equal(sweep.returns, GOAL)
    np.testing.assert_array_equal(sweep.lengths, LENGTH)


@pytest.mark.parametrize("name", NAMES)
def test_it_finds_the_best_action_among_bad_ones(name: str) -> None:
    """Without a later step that counts: most logged actions are far from the one with the highest reward."""
    walks, random = line(*WALKS), np.random.default_rng(0)
    count = walks.steps
    actions = np.where(np.arange(count) % 6 == 0, 0.5, -0.6) + 0.1 * random.standard_normal(count)
    actions = np.clip(actions, -0.7, 0.7)
    actions[[0, 1]] = 0.7, -0.7  # as many steps, and the same bounds, as on the line
    rewards = -np.abs(actions - 0.5)
    data = dataclasses.replace(
        walks,
        name="bandit",
        observations=np.ones_like(walks.observations),
        actions=actions[:, None].astype(np.float32),
        rewards=rewards.astype(np.float32),
    )
    options = {"iql": {"advantage_temperature": 20.0}, "cql": {"conservative_weight": 0.1}}.get(
        name, {"actor_penalty": 0.1, "value_coefficient": 1.0}
    )
    method, settings = small(name, discount=0.0, steps=1000, **QUICK[name], **options)
    policy = train(data, method, settings, (0,)).policy(0)
    policy.begin(0.0)
    assert abs(actions.mean() - 0.5) > 0.7  # what cloning would do
    assert abs(float(policy.act(np.ones(LENGTH))[0]) - 0.5) < 0.25


@pytest.mark.parametrize("name", NAMES)
def test_the_unit_of_the_rewards_does_not_matter(name: str) -> None:
    method, settings = small(name, steps=20, **QUICK[name])
    one, other, third = (
        train(line(*WALKS, unit=unit), method, settings, (0,)).parameters for unit in (1.0, 2.0**20, 1e-5)
    )
    jax.tree.map(np.testing.assert_array_equal, one, other)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), one, third)


def test_whole_numbers_are_numbers() -> None:
    for name, options in (
        ("td3bc", {"discount": 1, "actor_penalty": 2}),
        ("cql", {"conservative_weight": 5}),
    ):
        learner: Any = small(name, **options)[0].learner
        assert {key: float(learner.numbers[key]) for key in options} == options
        assert learner.form == small(name)[0].learner.form
        with pytest.raises(InputError, match="discount must be at most 1; got 2"):
            small(name, discount=2)


def test_returns_that_are_equal_up_to_rounding_have_the_scale_of_the_rewards() -> None:
    ends = np.array([False, True, True, False, True])
    rewards = np.array([0.1, 0.2, 0.3, 0.05, 0.25])
    arrays = (np.ones((5, 2)), np.linspace(-1, 1, 5)[:, None], rewards)
    data = from_arrays("equal", *arrays, ends, np.zeros(5, bool))
    assert data.episodes == 3
    assert critics.reward_scale(data) == pytest.approx(1 / np.abs(rewards).mean(), rel=1e-4)


def test_data_without_transitions_is_refused() -> None:
    ends = np.ones(4, bool)
    arrays = (np.ones((4, 2)), np.linspace(-1, 1, 4)[:, None], np.ones(4))
    with pytest.raises(InputError, match="single has no transitions: every episode is truncated"):
        parse("td3bc").fit(from_arrays("single", *arrays, ~ends, ends))
    parse("td3bc").fit(from_arrays("single", *arrays, ends, ~ends))


def test_a_batch_without_a_transition_changes_nothing() -> None:
    """Of two windows, few have a known next step: all but one episode are truncated after one step."""
    method, settings = small("td3bc", steps=40, batch_size=1, layers=1)
    policies = train(line((3, (0.5, 0.5)), *[(0, (0.5,))] * 20), method, settings, (0,))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(policies.parameters))


def test_discrete_actions_and_images_are_refused() -> None:
    ends = np.ones(4, bool)
    discrete = from_arrays("choices", np.ones((4, 2)), np.array([0, 1, 0, 1]), np.ones(4), ends, ~ends)
    with pytest.raises(
        InputError, match="choices has discrete ones; bc, rvs, dt and dt-concat take both, and discrete-cql"
    ):
        parse("iql").fit(discrete)
    method, settings = small("td3bc", steps=11)
    with pytest.raises(InputError, match=r"steps .*a multiple of 2"):
        train(line(*WALKS), method, settings, (0,))


def test_a_truncated_step_is_left_out_and_a_terminated_one_does_not_bootstrap() -> None:
    """Four steps: to the goal in two, and truncated after two."""
    method, settings = small("td3bc", steps=2)
    data = line((3, (0.5, 0.5)), (0, (0.5, 0.5)))
    spec = PolicySpec.fit(method, data, settings)
    source = sampling.to_device(data, spec.method)

    @jax.jit
    def sampled(episodes: sampling.Episodes, columns: Any) -> TransitionBatch:
        seed, number = jnp.uint32(0), jnp.int32(0)
        gather = functools.partial(sampling.gathered, columns)
        return TransitionBatch.of(sampling.sample(spec, settings, episodes, seed, number, gather)[0])

    batch = sampled(source.episodes, source.columns)
    mean, std = data.observation_statistics
    states = np.round(np.asarray(batch.observations) * std + mean).argmax(axis=1)
    np.testing.assert_array_equal(np.unique(states), [0, 1, 3, 4])
    np.testing.assert_array_equal(np.asarray(batch.continues) == 0, states == 4)
    np.testing.assert_array_equal(np.asarray(batch.weights) == 0, states == 1)
    np.testing.assert_allclose(np.asarray(batch.weights).sum(), 1, rtol=1e-6)


@pytest.fixture
def example() -> tuple[PolicySpec, TransitionBatch, Any]:
    data = line(*WALKS)
    spec = PolicySpec.fit(*_fitted("td3bc", data))
    random = np.random.default_rng(1)
    rows = 6
    arrays: dict[str, Any] = {
        "observations": random.standard_normal((rows, LENGTH)),
        "actions": random.uniform(-0.7, 0.7, (rows, 1)),
        "rewards": random.standard_normal(rows),
        "next_observations": random.standard_normal((rows, LENGTH)),
        "next_actions": random.uniform(-0.7, 0.7, (rows, 1)),
        "continues": np.array([1, 1, 0, 1, 1, 1]),
        "weights": np.array([0.2, 0.2, 0.2, 0.2, 0.2, 0]),
    }
    transitions = TransitionBatch(**{name: array.astype(np.float32) for name, array in arrays.items()})
    return spec, transitions, random


def _fitted(name: str, data: Trajectories) -> tuple[Method, Trajectories, Training]:
    method, settings = small(name, width=4)
    return method, data, settings


@pytest.mark.parametrize("name", ["td3bc", "rebrac"])
def test_an_update_of_an_actor_and_its_critics_is_that_of_numpy(name: str, example: Any) -> None:
    spec, now, random = example
    learner = small(name, width=4, discount=0.9)[0].learner
    assert isinstance(learner, ActorCritic)
    normed, mean = name == "rebrac", name == "td3bc"
    actor, target_actor = (initial_mlp(learner.network, 1, seed) for seed in (0, 1))
    ensemble, target = (initial_critics(learner.network, spec, seed) for seed in (2, 3))
    noise = (2 * random.standard_normal(now.actions.shape)).astype(np.float32)
    batch, numbers = ActorCriticBatch(now, noise), learner.numbers

    n, bounds = in_float64(now), spec.actions
    middle, half = (bounds.highest[0] + bounds.lowest[0]) / 2, (bounds.highest[0] - bounds.lowest[0]) / 2
    logged, next_logged = (n.actions - middle) / half, (n.next_actions - middle) / half
    chosen = np.tanh(numpy_mlp(in_float64(target_actor), n.next_observations))
    chosen = np.clip(chosen + np.clip(0.2 * in_float64(noise), -0.5, 0.5), -1, 1)
    later = numpy_values(in_float64(target), n.next_observations, chosen, normed).min(axis=0)
    later -= learner.critic_penalty * np.square(chosen - next_logged).sum(axis=1)
    goals = n.rewards + 0.9 * n.continues * later
    close(jax.jit(functools.partial(learner.goals, spec))(target_actor, target, batch, numbers), goals)

    def critic_loss(parameters: Any) -> float:
        errors = numpy_values(parameters, n.observations, logged, normed) - goals
        return float((np.square(errors) * n.weights).sum())

    given = goals.astype(np.float32)
    grad = jax.value_and_grad(lambda ensemble: learner.critic_loss(ensemble, spec, batch, given))
    loss, gradients = jax.jit(grad)(ensemble)
    close(loss, critic_loss(in_float64(ensemble)))
    close(gradients, differences(critic_loss, in_float64(ensemble)))

    before = numpy_mlp(in_float64(actor), n.observations)
    values = numpy_values(in_float64(ensemble), n.observations, np.tanh(before), normed)
    size = (np.abs(values[0] if mean else values.min(axis=0)) * n.weights).sum()

    def actor_loss(parameters: Any) -> float:
        actions = np.tanh(numpy_mlp(parameters, n.observations))
        values = numpy_values(in_float64(ensemble), n.observations, actions, normed)
        value = ((values[0] if mean else values.min(axis=0)) * n.weights).sum()
        distance = (np.square(actions - logged).sum(axis=1) * n.weights).sum()
        return float(learner.actor_penalty * distance - learner.value_coefficient * value / size)

    grad = jax.value_and_grad(lambda actor: learner.actor_loss(actor, spec, ensemble, batch, numbers)[0])
    loss, gradients = jax.jit(grad)(actor)
    close(loss, actor_loss(in_float64(actor)))
    close(gradients, differences(actor_loss, in_float64(actor)))


def test_an_update_of_implicit_q_learning_is_that_of_numpy(example: Any) -> None:
    spec, now, _ = example
    learner = dataclasses.replace(ImplicitQ(MLP(4, 2)), discount=0.9)
    numbers = learner.numbers
    actor = {**initial_mlp(learner.network, 1, 0), "log_std": np.array([-0.3], np.float32)}
    ensemble = initial_critics(learner.network, spec, 1)
    value = initial_mlp(learner.network, 1, 2)
    logged = jax.jit(spec.actions.encode)(now.actions)
    n, a = in_float64(now), in_float64(logged)
    values = numpy_values(in_float64(ensemble), n.observations, a, False).min(axis=0)

    def value_loss(parameters: Any) -> float:
        errors = values - numpy_mlp(parameters, n.observations)[:, 0]
        return float((np.abs(0.7 - (errors < 0)) * np.square(errors) * n.weights).sum())

    grad = jax.jit(jax.value_and_grad(learner.value_loss))
    loss, gradients = grad(value, now, values.astype(np.float32), numbers)
    close(loss, value_loss(in_float64(value)))
    close(gradients, differences(value_loss, in_float64(value)))

    advantages = values - numpy_mlp(in_float64(value), n.observations)[:, 0]
    weights = np.minimum(np.exp(3 * advantages), LARGEST_WEIGHT)

    def actor_loss(parameters: Any) -> float:
        std, means = np.exp(parameters["log_std"]), np.tanh(numpy_mlp(parameters, n.observations))
        density = np.exp(-np.square((a - means) / std) / 2) / std  # but for a constant
        return float(-(weights * np.log(density).sum(axis=1) * n.weights).sum())

    grad_of_actor = jax.jit(jax.value_and_grad(learner.actor_loss, has_aux=True))
    (loss, _), gradients = grad_of_actor(actor, now, logged, advantages.astype(np.float32), numbers)
    close(loss, actor_loss(in_float64(actor)))
    close(gradients, differences(actor_loss, in_float64(actor)))

    goals = n.rewards + 0.9 * n.continues * numpy_mlp(in_float64(value), n.next_observations)[:, 0]

    def critic_loss(parameters: Any) -> float:
        errors = numpy_values(parameters, n.observations, a, False) - goals
        return float((np.square(errors) * n.weights).sum())

    grad_of_critics = jax.jit(jax.value_and_grad(learner.critic_loss))
    loss, gradients = grad_of_critics(ensemble, now, logged, goals.astype(np.float32))
    close(loss, critic_loss(in_float64(ensemble)))
    close(gradients, differences(critic_loss, in_float64(ensemble)))


def test_an_update_of_conservative_q_learning_is_that_of_numpy(example: Any) -> None:
    spec, now, random = example
    learner = dataclasses.replace(ConservativeQ(MLP(4, 2)), discount=0.9, sampled_actions=2)
    numbers, rows = learner.numbers, len(now.rewards)
    actor = initial_mlp(learner.network, 2, 0)
    ensemble = initial_critics(learner.network, spec, 1)
    noise = random.standard_normal((2, rows, 3, 1)).astype(np.float32)
    uniform = random.uniform(-1, 1, (rows, 2, 1)).astype(np.float32)
    batch = ConservativeQBatch(now, noise[0], noise[1], uniform)
    n, logged = in_float64(now), in_float64(jax.jit(spec.actions.encode)(now.actions))

    def sampled(parameters: Any, s: Any, noise: Any) -> tuple[Any, Any]:
        """One action of each row, and its log density by the change of variables."""
        outputs = numpy_mlp(parameters, s)
        mean, std = outputs[:, :1], np.exp(outputs[:, 1:])
        before = mean + std * noise
        normal = np.exp(-np.square(noise) / 2) / (std * np.sqrt(2 * np.pi))
        return np.tanh(before), np.log(normal / (1 - np.square(np.tanh(before))))[:, 0]

    policy, both = in_float64(actor), in_float64(ensemble)
    later, _ = sampled(policy, n.next_observations, in_float64(noise[1][:, 0]))
    goals = n.rewards + 0.9 * n.continues * numpy_values(both, n.next_observations, later, False).min(axis=0)
    close(jax.jit(learner.goals)(actor, ensemble, batch, numbers), goals)

    proposals = [(in_float64(uniform[:, i]), np.full(rows, np.log(0.5))) for i in range(2)]
    proposals += [sampled(policy, n.observations, in_float64(noise[0][:, i])) for i in (1, 2)]
    proposals += [sampled(policy, n.next_observations, in_float64(noise[1][:, i])) for i in (1, 2)]

    def critic_loss(parameters: Any) -> float:
        of_logged = numpy_values(parameters, n.observations, logged, False)
        ratios = [
            np.exp(numpy_values(parameters, n.observations, actions, False) - density)
            for actions, density in proposals
        ]
        gaps = np.log(np.sum(ratios, axis=0)) - of_logged
        return float(((np.square(of_logged - goals) + 10 * gaps) * n.weights).sum())

    given = goals.astype(np.float32)
    grad = jax.value_and_grad(lambda both: learner.critic_loss(both, spec, actor, batch, given, numbers)[0])
    loss, gradients = jax.jit(grad)(ensemble)
    close(loss, critic_loss(both))
    close(gradients, differences(critic_loss, both))

    def actor_loss(parameters: Any) -> float:
        actions, density = sampled(parameters, n.observations, in_float64(noise[0][:, 0]))
        values = numpy_values(both, n.observations, actions, False).min(axis=0)
        return float(((0.3 * density - values) * n.weights).sum())

    grad = jax.value_and_grad(lambda a: learner.actor_loss(a, spec, ensemble, jnp.float32(0.3), batch)[0])
    loss, gradients = jax.jit(grad)(actor)
    close(loss, actor_loss(policy))
    close(gradients, differences(actor_loss, policy))


def test_adam_is_optax_s() -> None:
    import optax

    parameters = {"a": np.array([1.0, -2.0], np.float32), "b": np.array([[0.5]], np.float32)}
    mine, theirs = (parameters, Adam.of(parameters)), (parameters, optax.adam(0.1).init(parameters))

    @jax.jit
    def step(mine: Any, theirs: Any, number: Any) -> Any:
        gradients = jax.tree.map(lambda x: jnp.sin(x + number), mine[0])
        updates, state = optax.adam(0.1).update(gradients, theirs[1])
        moved = optax.apply_updates(theirs[0], updates), state
        return mine[1].apply(gradients, mine[0], jnp.float32(0.1)), moved

    for number in range(5):
        mine, theirs = step(mine, theirs, number)
    close(mine[0], theirs[0])


def test_default_settings_are_the_authors() -> None:
    assert [sized(name, "paper")[1].batch_size for name in NAMES] == [256, 1024, 256, 256]
    for name in NAMES:
        method, training = sized(name, "paper")
        assert training.steps == 10**6
        assert isinstance(method.weighting, ByLength)
    for alias, name in (("td3+bc", "td3bc"), ("CQL-H", "cql")):
        for preset in PRESETS:
            (own, training), (other, others) = sized(name, preset), sized(alias, preset)
            assert (own.learner, training) == (other.learner, others)
    for name in ("td3bc+w", "iql+cwbc", "cql-h+f"):
        with pytest.raises(InputError, match="takes no parts; parts are for bc, rvs, dt, dt-concat"):
            parse(name)
