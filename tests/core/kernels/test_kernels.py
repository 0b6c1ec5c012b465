"""The choice between kernels and plain operations."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import random_arrays

from cwbc.core import kernels
from cwbc.core.layers import Parameters
from cwbc.core.networks import MLP, Network, Transformer

PALLAS = "jax.experimental.pallas"
WINDOWS, STEPS, OBSERVATIONS, ACTIONS = 2, 4, 3, 2


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


def weights(inputs: int, width: int, outputs: int, dtype: Any = jnp.bfloat16) -> list[Parameters]:
    sizes = [(inputs, width, jnp.float32), (width, width, dtype), (width, outputs, jnp.float32)]
    return [{"weight": jnp.zeros((i, o), kind), "bias": jnp.zeros(o, kind)} for i, o, kind in sizes]


def tokens(count: int, width: int, dtype: Any = jnp.bfloat16) -> jax.Array:
    return jnp.zeros((1, count, width), dtype)


def decisions() -> list[bool]:
    """Of all three, at sizes that there are kernels for."""
    x = tokens(60, 128)
    mlp, attention = kernels.do_mlp(weights(18, 256, 6)), kernels.do_attention(tokens(60, 3 * 128), 1)
    return [mlp, attention, kernels.do_join(x, x)]


def test_a_cpu_takes_plain_operations() -> None:
    assert decisions() == [False, False, False]


@pytest.mark.usefixtures("gpu")
def test_a_gpu_takes_kernels() -> None:
    assert decisions() == [True, True, True]


@pytest.mark.usefixtures("gpu")
def test_a_jax_without_pallas_takes_plain_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without_triton:
        without_triton.setattr("importlib.util.find_spec", lambda name: None)
        assert decisions() == [False, False, False]
    for name in [name for name in sys.modules if name.startswith(PALLAS)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, PALLAS, None)  # as if it could not be imported
    assert decisions() == [False, False, False]


@pytest.mark.usefixtures("gpu")
def test_sizes_without_kernels_take_plain_operations() -> None:
    assert not kernels.do_mlp(weights(18, 256, 6, jnp.float32))
    assert not kernels.do_mlp(weights(18, 100, 6))  # columns that do not fill a program
    assert not kernels.do_mlp(weights(64, 256, 6))
    assert not kernels.do_mlp(weights(18, 256, 64))
    assert not kernels.do_mlp(weights(18, 256, 6)[::2])  # nothing in between
    assert not kernels.do_attention(tokens(60, 3 * 128, jnp.float32), 1)
    assert not kernels.do_attention(tokens(129, 3 * 128), 1)
    assert not kernels.do_attention(tokens(60, 3 * 96), 1)  # no power of two
    assert not kernels.do_attention(tokens(60, 3 * 128), 16)  # heads of 8
    assert not kernels.do_attention(tokens(60, 3 * 256), 1)
    for width in (8, 96, 1024):
        assert not kernels.do_join(tokens(60, width), tokens(60, width))
    assert not kernels.do_join(tokens(60, 128), tokens(60, 128, jnp.float32))


@pytest.mark.parametrize(
    ("network", "taken"),
    [
        (MLP(width=128), {"mlp"}),
        (MLP(width=128, dropout=0.5), set()),  # of which there is no kernel
        (Transformer(width=16, layers=1), {"attention", "join"}),
    ],
)
def test_networks_compute_the_same_with_kernels(
    network: Network, taken: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    shape = (WINDOWS, STEPS)
    observations, actions, conditions = (
        generator.normal(size=size).astype(np.float32)
        for size in ((*shape, OBSERVATIONS), (*shape, ACTIONS), shape)
    )
    parameters = random_arrays(lambda key: network.initialize(key, OBSERVATIONS, ACTIONS, True, STEPS), 1)
    timesteps = np.broadcast_to(np.arange(STEPS, dtype=np.int32), shape)
    key = jax.random.key(0) if network.dropout == 0.5 else None

    def outputs() -> jax.Array:
        @jax.jit  # anew at every call, with the operations that are chosen then
        def run(parameters: Any, *inputs: Any) -> jax.Array:
            return network(parameters | network.prepared(parameters, jnp.dtype("bfloat16")), *inputs)

        return run(parameters, observations, conditions, actions, timesteps, key)

    plain = outputs()
    used: set[str] = set()

    def noted(module: str, name: str) -> None:
        kernel: Callable[..., Any] = getattr(importlib.import_module(f"cwbc.core.kernels.{module}"), name)

        def run(*arguments: Any) -> Any:
            used.add(name)
            return kernel(*arguments)  # by Pallas' interpreter, on a CPU

        monkeypatch.setattr(f"cwbc.core.kernels.{module}.{name}", run)

    noted("mlp", "mlp")
    noted("attention", "attention")
    noted("joining", "join")
    monkeypatch.setattr(kernels, "_here", lambda x: x.dtype == jnp.bfloat16)
    np.testing.assert_allclose(outputs(), plain, atol=0.02)
    assert used == taken
