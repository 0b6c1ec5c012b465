"""An observation space of one's own: a state's number, which a network reads as one of several inputs."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from toys import tiny

from cwbc.core import policy_spec
from cwbc.core.methods import Training, with_all_options
from cwbc.data.formats.arrays import from_arrays
from cwbc.runs.training import train

STATES = 5
BEST = np.array([0.9, -0.7, 0.2, -0.1, 0.5])  # action of each state: no line through them


@dataclasses.dataclass(frozen=True)
class StateNumber:
    """Numbers of states from 0, in place of vectors or images."""

    count: int

    dtype, stack, is_stacked, values, arrays = np.float32, 1, False, "whole numbers", ()
    shape = (1,)

    @property
    def encoded_shape(self) -> tuple[int, ...]:
        return (self.count,)

    @property
    def form(self) -> StateNumber:
        return self

    def is_valid(self, observations: NDArray[Any]) -> NDArray[np.bool_]:
        return (observations >= 0) & (observations < self.count) & (observations % 1 == 0)

    def received(self, observations: Any) -> Any:
        return np.eye(self.count, dtype=np.float32)[observations[..., 0].astype(int)]

    def sampled(self, observations: jax.Array, arrays: Any = ()) -> jax.Array:
        return jax.nn.one_hot(observations[..., 0].astype(jnp.int32), self.count)

    def rows_read(self, rows: Any, first_rows: Any) -> Any:
        return rows


@pytest.mark.parametrize("name", ["rvs", "dt"])
def test_a_space_is_one_class_from_data_to_actions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    states = np.random.default_rng(0).integers(0, STATES, 400)
    ends = np.arange(400) % 4 == 3
    data = from_arrays(
        "states", states[:, None].astype(float), BEST[states][:, None], np.ones(400), ends, ~ends & False
    )
    monkeypatch.setattr(policy_spec, "observation_space", lambda *_: StateNumber(STATES))
    settings = Training(steps=400, batch_size=32, context=4)
    method, _ = with_all_options(tiny(name), settings, {"learning_rate": 0.01})
    policy = train(data, method, settings, (0,)).policy()
    policy.begin([4.0] * STATES)
    found = policy.act(np.arange(STATES, dtype=float)[:, None])
    np.testing.assert_allclose(found[:, 0], BEST, atol=0.15)
