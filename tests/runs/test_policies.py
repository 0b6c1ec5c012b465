"""Acting equals training on the same history, for every base; files and mistakes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from damage import changed, flipped
from numpy.typing import NDArray
from toys import HORIZON, cloning, random_parameters, tiny, toy_data

from cwbc.core.acting import History
from cwbc.core.conditioning import standardized
from cwbc.core.methods import Training, parse
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.spaces import ActionSpace
from cwbc.runs.policies import Policies, Policy
from cwbc.system import tensor_files
from cwbc.system.errors import InputError

CONTEXT = 4
TRAINING = Training(context=CONTEXT)
BASES = ["bc", "rvs", "dt", "dt-concat"]


def policy(name: str, discrete: bool = False) -> Policy:
    spec = PolicySpec.fit(tiny(name, layers=2), toy_data(discrete=discrete), TRAINING)
    return Policy(spec, random_parameters(spec, 7))


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
    spec, learner = trained.spec, cloning(trained.spec.method)
    mean, std = spec.observations.arrays
    encoded = window(_encoded(spec, actions), first)
    history = History(
        observations=window((observations - mean) / std, first),
        actions=encoded,
        returns_to_go=window(
            standardized(learner.condition, returns_to_go, np.arange(now + 1), HORIZON), first
        ),
        timesteps=np.arange(first, first + CONTEXT, dtype=np.int32)[None],
        frames=None,
    )
    return np.asarray(_chosen(spec, trained.parameters, history))[0, now - first]


def window(values: NDArray[Any], first: int) -> NDArray[np.float32]:
    """The values of a window from step `first` on, and garbage where it is not full yet, as in training."""
    values = np.asarray(values, np.float32)[first:]
    garbage = np.full((CONTEXT - len(values), *values.shape[1:]), 3.0)
    return np.concatenate([values, garbage])[None].astype(np.float32)


def _encoded(spec: PolicySpec, actions: NDArray[Any]) -> NDArray[np.float32]:
    longer = np.resize(actions, (HORIZON, *actions.shape[1:]))  # of one shape, which is compiled once
    return np.asarray(_encode(spec.actions, longer))[: len(actions)]


@functools.partial(jax.jit, static_argnums=0)
def _encode(space: ActionSpace, actions: Any) -> jax.Array:
    return space.encode(actions)


@functools.partial(jax.jit, static_argnums=0)
def _chosen(spec: PolicySpec, parameters: Any, history: History) -> jax.Array:
    learner = cloning(spec.method)
    read = parameters | learner.prepared(parameters)
    return spec.actions.choose(learner.outputs(spec, read, history, history.actions))


@pytest.mark.parametrize(
    ("name", "discrete"), [*((name, False) for name in BASES), ("rvs", True), ("dt", True)]
)
def test_acting_equals_the_training_pass_on_the_same_history(name: str, discrete: bool) -> None:
    """Discrete actions of a network that reads one step, and of one that reads those before it."""
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
def test_the_target_and_the_rewards_matter(name: str) -> None:
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
    assert loaded.spec == saved.spec
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
    for each, largest in ((wide, 4.0), (data, 1.0)):
        spec = PolicySpec.fit(parse("rvs"), each, TRAINING)
        assert spec.actions.choose(jnp.full((1,), 20.0))[0] == pytest.approx(largest)


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


def test_the_repr_of_a_policy() -> None:
    trained = policy("rvs+cwbc")
    assert repr(trained) == "Policy('rvs+cwbc')"
    trained.about |= {"dataset": "spring", "seed": 3}
    assert repr(trained) == "Policy('rvs+cwbc', dataset='spring', seed=3)"


def test_mistakes_are_errors() -> None:
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


@pytest.mark.parametrize("target", ["600", [], [1.0, "2"], [[1.0]], [[1.0], [1.0, 2.0]], 1e300, 1j])
def test_a_target_that_is_no_number_is_refused_and_changes_nothing(target: Any) -> None:
    trained = policy("rvs")
    trained.begin(1.0)
    with pytest.raises(InputError, match="a target is a finite number, or a sequence of at least one; got"):
        trained.begin(target)
    trained.act([0.0, 0.0])


@pytest.mark.parametrize("observation", ["go", ["0", "1"], None, [[0.0], [1.0, 2.0]], {"x": 1}])
def test_an_observation_that_is_no_numbers_is_refused(observation: Any) -> None:
    trained = policy("rvs")
    trained.begin(1.0)
    with pytest.raises(InputError, match=r"an observation is numbers of shape \(2,\); got"):
        trained.act(observation)
    trained.act([0, 1])
    with pytest.raises(InputError, match="a reward is a finite number; got '1'"):
        trained.act([0.0, 0.0], "1")


def saved(path: Path, **changes: Any) -> Path:
    """A policy's file with these tensors instead, or with another description under the key `about` etc."""
    policy("rvs").save(path)
    tensors, description = tensor_files.read(path)
    for name, value in changes.items():
        (tensors if isinstance(value, np.ndarray) else description)[name.replace("__", "/")] = value
    tensor_files.write(path, tensors, description)
    return path


def test_a_policy_of_another_seed_and_one_in_place_of_a_run_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "policy")
    with pytest.raises(InputError, match="holds one policy, not that of seed 0; load it without a seed"):
        Policy.load(path, seed=0)
    with pytest.raises(InputError, match="is a policy, not a run's checkpoint"):
        Policies.load(path)
    path = saved(tmp_path / "policy", about={"seed": 3})
    assert Policy.load(path, seed=3).about == Policy.load(path).about == {"seed": 3}
    with pytest.raises(InputError, match="holds the policy of seed 3, not that of seed 1"):
        Policy.load(path, seed=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters__layer0__bias": np.full(16, np.nan, np.float32)}, "layer0/bias has nan at"),
        (
            {"parameters__layer0__bias": np.zeros(15, np.float32)},
            r"layer0/bias is \[15\] of float32",
        ),
        ({"parameters__layer7__bias": np.zeros(1, np.float32)}, "has a tensor parameters/layer7/bias"),
        ({"about": []}, "description.about is a list; expected an object"),
        ({"design": 3}, "description.design is 3; expected an object"),
    ],
)
def test_a_file_that_does_not_fit_its_specification_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=rf"{tmp_path / 'policy'}.*{message}"):
        Policy.load(saved(tmp_path / "policy", **changes))


@pytest.mark.parametrize(
    ("place", "value"), [("width", 10**15), ("width", 17), ("layers", 10**9), ("layers", 1), ("dropout", "x")]
)
def test_sizes_that_are_not_those_of_the_tensors_are_refused(tmp_path: Path, place: str, value: Any) -> None:
    path = tmp_path / "policy"
    policy("rvs").save(path)
    tensors, description = tensor_files.read(path)
    description["design"]["method"]["network"][place] = value
    tensor_files.write(path, tensors, description)
    with pytest.raises(InputError, match=str(path)):
        Policy.load(path)


def test_a_damaged_policy_is_refused_or_acts_the_same(tmp_path: Path) -> None:
    path, generator = tmp_path / "policy", np.random.default_rng(0)
    policy("rvs").save(path)
    whole = path.read_bytes()
    tensors, description = tensor_files.read(path)
    for _ in range(60):
        path.write_bytes(flipped(whole, generator))
        with pytest.raises(InputError, match=str(path)):
            Policy.load(path)
    for _ in range(60):  # with valid checksums
        tensor_files.write(path, tensors, changed(description, generator) | {"format": 2})
        with contextlib.suppress(InputError):
            loaded = Policy.load(path)
            loaded.begin(1.0)
            assert np.isfinite(loaded.act([0.0, 0.0])).all()
