"""An epsilon-greedy policy acts in numpy as its network does, with the same bits in any order of its sums."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from pixels import SIDE
from toys import random_arrays

from cwbc.behaviours import policies
from cwbc.behaviours.pqn import QNetwork
from cwbc.behaviours.value_policies import Layer, UniformChoice, ValuePolicy
from cwbc.system import tensor_files
from cwbc.system.errors import InputError

GAME, PIXELS, VECTOR = (
    QNetwork((84, 84, 1), 4, 512, 6),
    QNetwork((SIDE, SIDE, 1), 2, 16, 2),
    QNetwork((3,), 1, 32, 4),
)
GENERATOR = np.random.default_rng(5)


def trained(network: QNetwork) -> Any:
    return jax.device_get(random_arrays(network.initialize, 1))


def observations(network: QNetwork, count: int = 40) -> Any:
    size = (count, network.stack * int(np.prod(network.shape)))
    is_image = len(network.shape) == 3
    # A few bright pixels, as most games have them.
    return (
        255 * (GENERATOR.uniform(size=size) < 0.05).astype(np.uint8)
        if is_image
        else GENERATOR.normal(size=size)
    )


@pytest.mark.parametrize("network", [PIXELS, VECTOR])
def test_numpy_acts_as_the_network_does(network: QNetwork) -> None:
    parameters, seen = trained(network), observations(network)
    found = network.policy(parameters, 0.0).values(seen)
    frames = seen.reshape(len(seen), network.stack, -1)
    expected = np.asarray(
        jax.jit(network)(parameters, frames.astype(np.uint8 if network.stack > 1 else np.float32))
    )
    # Weights have 8 bits, so values are off by a few hundredths of how far they differ among observations.
    spread = expected.std(axis=0).mean()
    assert np.sqrt(np.square(found - expected).mean()) < 0.1 * spread
    assert (found.argmax(axis=-1) == expected.argmax(axis=-1)).mean() > 0.9


def test_the_order_of_a_sum_does_not_matter() -> None:
    """Each layer of a game's network adds in float32, and to the same bits whichever product comes first."""
    policy = GAME.policy(trained(GAME), 0.0)
    inputs = GENERATOR.integers(256, size=(2, 84, 84, 4)).astype(np.float32)
    for number, layer in enumerate(policy.layers):
        sums = layer.sums(inputs)
        assert sums.dtype == np.float32, number
        flat = layer.weight.reshape(-1, layer.weight.shape[-1]).astype(np.int64)
        read = reads(inputs, layer)
        order = GENERATOR.permutation(len(flat))
        one_by_one = np.zeros((len(read), flat.shape[-1]), np.float32)
        for place in order:
            one_by_one += read[:, place, None] * flat[place].astype(np.float32)
        np.testing.assert_array_equal(sums.reshape(one_by_one.shape), one_by_one)
        np.testing.assert_array_equal(one_by_one, read.astype(np.int64) @ flat)  # nothing was rounded
        inputs = layer(inputs)


def reads(inputs: Any, layer: Layer) -> Any:
    """What each output of a layer reads, [output, input], patch by patch."""
    if not layer.stride:
        return inputs.reshape(len(inputs), -1)
    side, last = len(layer.weight), inputs.shape[1] - len(layer.weight) + 1
    places = itertools.product(inputs, range(0, last, layer.stride), range(0, last, layer.stride))
    return np.stack(
        [image[row : row + side, column : column + side].ravel() for image, row, column in places]
    )


def test_sums_that_float32_cannot_hold_are_added_in_float64() -> None:
    largest = Layer(np.full((600, 1), 127, np.int8), 1.0, np.zeros(1, np.float32))
    inputs = np.full((1, 600), 255, np.float32)
    assert largest.sums(inputs).dtype == np.float64
    assert largest.sums(inputs).item() == 600 * 127 * 255 > 2**24


def test_an_action_depends_on_its_own_observation_alone() -> None:
    policy, seen = PIXELS.policy(trained(PIXELS), 0.3), observations(PIXELS)
    noise = GENERATOR.uniform(size=len(seen))
    together = policy.act(seen, noise)
    alone = [policy.act(seen[row : row + 1], noise[row : row + 1]).item() for row in range(len(seen))]
    np.testing.assert_array_equal(together, alone)
    assert together.dtype == np.int32


def test_epsilon_of_the_actions_are_random_and_evenly_so() -> None:
    policy = dataclasses.replace(VECTOR.policy(trained(VECTOR), 0.0), epsilon=0.4)
    seen = np.repeat(observations(VECTOR, 1), 8000, axis=0)
    (best,) = np.unique(policy.act(seen))
    actions = policy.act(seen, policy.noise(np.random.default_rng(0), len(seen)))
    fractions = np.bincount(actions, minlength=4) / len(actions)
    expected = np.full(4, 0.1)
    expected[best] += 0.6
    np.testing.assert_allclose(fractions, expected, atol=0.02)
    assert policy.uniform == UniformChoice(4)
    noise = policy.uniform.noise(np.random.default_rng(0), 8000)
    np.testing.assert_allclose(np.bincount(policy.uniform.act(seen, noise)) / 8000, 0.25, atol=0.02)


def test_what_is_read_back_acts_as_what_was_evaluated(tmp_path: Path) -> None:
    policy, seen = GAME.policy(trained(GAME), 0.25), observations(GAME, 3)
    policy.save(tmp_path / "policy.safetensors")
    again = policies.load(tmp_path / "policy.safetensors")
    assert isinstance(again, ValuePolicy)
    np.testing.assert_array_equal(again.values(seen), policy.values(seen))
    assert (again.epsilon, again.stack, again.shape, again.action_count) == (0.25, 4, (84, 84, 1), 6)
    assert (tmp_path / "policy.safetensors").stat().st_size < 1e6  # of 1.7 million parameters


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda tensors, facts: tensors.update({"0/bias": np.full(32, np.nan, np.float32)}),
            "0/bias has nan",
        ),
        (lambda tensors, facts: tensors.update({"0/bias": np.zeros(3, np.float32)}), r"0/bias is \[3\] of"),
        (lambda tensors, facts: tensors.pop("1/weight"), "holds no behaviour policy"),
        (
            lambda tensors, facts: tensors.update({"1/weight": np.zeros(9, np.uint8)}),
            "holds no behaviour policy",
        ),
        (lambda tensors, facts: facts.update(shape=[4]), "holds no behaviour policy"),
        (lambda tensors, facts: facts.update(layers=facts["layers"][:1] * 2), "holds no behaviour policy"),
        (lambda tensors, facts: facts.pop("epsilon"), "holds no behaviour policy"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "policy.safetensors"
    VECTOR.policy(trained(VECTOR), 0.0).save(path)
    tensors, description = tensor_files.read(path)
    change(tensors, description["values"])
    tensor_files.write(path, tensors, {"values": description["values"]})
    with pytest.raises(InputError, match=message):
        policies.load(path)
