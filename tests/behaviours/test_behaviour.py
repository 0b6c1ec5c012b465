"""A behaviour acts in numpy as it does in JAX, and its file brings it back."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from cwbc import checkpoints
from cwbc.behaviours import Behaviour, load, sac
from cwbc.errors import InputError


def behaviour() -> Behaviour:
    generator = np.random.default_rng(2)
    shapes = {"first": (17, 64), "second": (64, 64), "output": (64, 12)}
    actor = {
        name: {
            "weight": generator.normal(0, 0.2, shape).astype(np.float32),
            "bias": generator.normal(0, 0.2, shape[1]).astype(np.float32),
        }
        for name, shape in shapes.items()
    }
    low, high = np.full(6, -2, np.float32), np.full(6, 4, np.float32)
    return Behaviour(actor, low, high, {"steps": 12, "return": 3.5})


OBSERVATIONS = np.random.default_rng(0).normal(size=(9, 17))


def test_numpy_acts_as_jax_does() -> None:
    subject = behaviour()
    means, _ = sac.distribution(subject.actor, jnp.asarray(OBSERVATIONS))
    np.testing.assert_allclose(subject.act(OBSERVATIONS), 1 + 3 * np.tanh(means), atol=1e-5)
    noise = np.random.default_rng(5).standard_normal((9, 6), np.float32)
    actions, _ = sac.sample(subject.actor, jnp.asarray(OBSERVATIONS), jnp.asarray(noise))
    drawn = subject.act(OBSERVATIONS, np.random.default_rng(5))
    np.testing.assert_allclose(drawn, 1 + 3 * np.asarray(actions), atol=1e-5)


def test_the_same_generator_draws_the_same_actions() -> None:
    first, second = (behaviour().act(OBSERVATIONS, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_what_is_read_back_acts_as_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "behaviour.safetensors"
    behaviour().save(path)
    back = load(path)
    assert back.about == {"steps": 12, "return": 3.5}
    np.testing.assert_array_equal(back.act(OBSERVATIONS), behaviour().rounded().act(OBSERVATIONS))
    assert path.stat().st_size < 16_000


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    checkpoints.write(tmp_path / "other", {"x": np.zeros(1)}, {})
    with pytest.raises(InputError, match="holds no behaviour"):
        load(tmp_path / "other")
