"""A behaviour acts in numpy as it does in JAX, exactly alike everywhere, and its file brings it back."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from cwbc.behaviours import sac
from cwbc.behaviours.policies import BehaviourPolicy, UniformPolicy, load
from cwbc.system import tensor_files
from cwbc.system.errors import InputError


def policy() -> BehaviourPolicy:
    generator = np.random.default_rng(2)
    shapes = {"first": (17, 64), "second": (64, 64), "output": (64, 12)}
    actor = {}
    for name, shape in shapes.items():
        actor[f"actor/{name}/weight"] = generator.normal(0, 0.2, shape)
        actor[f"actor/{name}/bias"] = generator.normal(0, 0.2, shape[1])
    return BehaviourPolicy.of(actor, np.full(6, -2, np.float32), np.full(6, 4, np.float32))


GENERATOR = np.random.default_rng(0)
OBSERVATIONS = GENERATOR.normal(size=(9, 17))
NOISE = GENERATOR.normal(size=(9, 6))


def test_numpy_acts_as_jax_does() -> None:
    subject = policy()
    actor = {
        layer: {part: jnp.asarray(subject.actor[f"actor/{layer}/{part}"]) for part in ("weight", "bias")}
        for layer in ("first", "second", "output")
    }
    means, _ = sac.distribution(actor, jnp.asarray(OBSERVATIONS))
    np.testing.assert_allclose(subject.act(OBSERVATIONS), 1 + 3 * np.tanh(means), atol=3e-4)
    actions, _ = sac.sample(actor, jnp.asarray(OBSERVATIONS), jnp.asarray(NOISE))
    np.testing.assert_allclose(subject.act(OBSERVATIONS, NOISE), 1 + 3 * np.asarray(actions), atol=3e-4)


def test_the_order_of_a_sum_does_not_matter() -> None:
    """Else each kind of processor, which adds in its own order, would generate its own data."""
    subject = policy()
    inputs, units = (np.random.default_rng(3).permutation(size) for size in (17, 64))
    shuffled = subject.actor | {
        "actor/first/weight": subject.actor["actor/first/weight"][inputs][:, units],
        "actor/first/bias": subject.actor["actor/first/bias"][units],
        "actor/second/weight": subject.actor["actor/second/weight"][units],
    }
    other = BehaviourPolicy(shuffled, subject.low, subject.high)
    many = np.random.default_rng(4).normal(0, 20, (5000, 17))
    np.testing.assert_array_equal(subject.act(many), other.act(many[:, inputs]))
    np.testing.assert_array_equal(subject.act(many)[:7], subject.act(many[:7]))


def test_uniform_actions_fill_the_range() -> None:
    low, high = np.array([-2, 0], np.float32), np.array([4, 1], np.float32)
    actor = UniformPolicy(low, high)
    actions = actor.act(np.zeros((4000, 3)), actor.noise(np.random.default_rng(0), 4000))
    np.testing.assert_allclose(actions.min(axis=0), low, atol=0.02)
    np.testing.assert_allclose(actions.max(axis=0), high, atol=0.02)
    np.testing.assert_allclose(actions.mean(axis=0), [1, 0.5], atol=0.1)
    np.testing.assert_array_equal(actor.act(np.zeros((2, 3))), [[1, 0.5]] * 2)


def test_what_is_read_back_acts_as_what_was_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    policy().save(path)
    np.testing.assert_array_equal(load(path).act(OBSERVATIONS, NOISE), policy().act(OBSERVATIONS, NOISE))
    assert path.stat().st_size < 16_000


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    tensor_files.write(tmp_path / "other", {"x": np.zeros(1)}, {})
    with pytest.raises(InputError, match="holds no behaviour policy"):
        load(tmp_path / "other")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("actor/second/bias", np.nan, "the tensor actor/second/bias has nan"),
        ("low", np.inf, "the tensor low has inf"),
        ("actor/output/bias", None, r"the tensor actor/output/bias is \[2\] of float16; expected \["),
        ("actor/third/bias", 0.0, "holds no behaviour policy"),
    ],
)
def test_a_behaviour_that_does_not_fit_is_refused(
    tmp_path: Path, name: str, value: float | None, message: str
) -> None:
    path = tmp_path / "policy.safetensors"
    policy().save(path)
    tensors, _ = tensor_files.read(path)
    other = np.zeros(2, np.float16) if name not in tensors else tensors[name].copy()
    tensors[name] = np.resize(other, 2) if value is None else np.full_like(other, value)
    tensor_files.write(path, tensors, {})
    with pytest.raises(InputError, match=message):
        load(path)
