"""Convolutions: sizes and outputs by hand, and policies that learn from pixels as they are sampled."""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from pixels import BEST, HORIZON, SIDE, PixelCopies, pixel_data
from toys import cloning, random_arrays, random_parameters, tiny, toy_data

from cwbc.core import encoders, training_loop
from cwbc.core.acting import History, act
from cwbc.core.encoders import Convolutions
from cwbc.core.evaluation import roll_out
from cwbc.core.memory import check_training
from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.sampling import Choice, Episodes, RandomNumbers, choose, gathered, in_host_memory, to_device
from cwbc.core.simulation import Transition
from cwbc.core.spaces import Image
from cwbc.runs.policies import Policies, Policy
from cwbc.runs.training import train
from cwbc.system import tensor_files
from cwbc.system.errors import InputError

DATA = pixel_data()
SMALL = Convolutions((4, 8), (3, 3), (1, 1))
OPTIONS: dict[str, Any] = {"channels": SMALL.channels, "kernels": SMALL.kernels, "strides": SMALL.strides}
TRAINING = Training(steps=20, batch_size=8, context=3, frame_stack=3)
NAMES = pytest.mark.parametrize("name", ["rvs", "dt"])


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several of them in a training, all of one length and thus of one program."""
    monkeypatch.setattr(training_loop, "chunk_length", lambda *_: 10)


def specified(name: str, training: Training = TRAINING) -> PolicySpec:
    return PolicySpec.fit(tiny(name, **OPTIONS), DATA, training)


# Convolutions


def test_sizes_of_the_papers_encoder_by_hand() -> None:
    encoder = Convolutions().fit((84, 84, 4))
    assert encoder == Convolutions((32, 32, 64), (8, 4, 3), (4, 2, 1))
    # 84 -> 20 -> 9 -> 7 pixels on a side.
    assert encoder.features((84, 84, 4)) == 7 * 7 * 64
    assert encoder.outputs((84, 84, 4)) == 20 * 20 * 32 + 9 * 9 * 32 + 7 * 7 * 64
    assert encoder.products((84, 84, 4)) == (
        20 * 20 * 32 * (8 * 8 * 4) + 9 * 9 * 32 * (4 * 4 * 32) + 7 * 7 * 64 * (3 * 3 * 32)
    )
    shapes = jax.eval_shape(lambda key: encoder.initialize(key, (84, 84, 4)), jax.random.key(0))
    assert [shapes[f"convolution{i}"]["weight"].shape for i in range(3)] == [
        (8, 8, 4, 32), (4, 4, 32, 32), (3, 3, 32, 64)
    ]  # fmt: skip


def test_small_images_have_small_kernels() -> None:
    assert Convolutions().fit((10, 12, 1)) == Convolutions((32, 64), (3, 3), (1, 1))
    assert Convolutions(channels=(4, 4)).fit((10, 10, 1)) == Convolutions((4, 4), (3, 3), (1, 1))


def test_outputs_by_hand() -> None:
    """A kernel of ones and a bias of -1 sum every square of 2 x 2 pixels, from a corner to the other."""
    encoder = Convolutions((1,), (2,), (2,))
    weight, bias = np.ones((2, 2, 1, 1), np.float32), np.full(1, -1.0, np.float32)
    parameters = {"convolution0": {"weight": weight, "bias": bias}}
    image = np.array([[255, 0, 51, 51], [0, 255, 51, 0], [0, 0, 255, 255], [0, 0, 255, 255]], np.uint8)
    found = jax.jit(lambda *given: encoder(*given))(parameters, image[None, None, :, :, None])
    np.testing.assert_allclose(found, [[[1.0, 0.0, 0.0, 3.0]]], atol=1e-6)  # ReLU of 2, 0.6, 0 and 4, minus 1


@pytest.mark.parametrize(("size", "side", "stride"), [(84, 8, 4), (20, 4, 2), (9, 3, 1), (11, 4, 3)])
def test_convolutions_on_a_cpu_equal_those_on_an_accelerator(
    size: int, side: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, random = Convolutions((5,), (side,), (stride,)), np.random.default_rng(0)
    images = random.integers(0, 256, (2, 3, size, size + 1, 4)).astype(np.uint8)
    limit = 1 / side**2  # as of fresh parameters

    def outputs() -> jax.Array:
        return jax.jit(lambda *given: encoder(*given))(parameters, images)  # compiled anew at every call

    drawn = random_arrays(lambda key: encoder.initialize(key, (size, size + 1, 4)), 0)
    parameters = jax.tree.map(lambda x: np.asarray(limit * x), drawn)
    on_cpu = outputs()
    assert on_cpu.shape == (2, 3, encoder.features((size, size + 1, 4)))
    monkeypatch.setattr(encoders, "on_cpu", lambda: False)
    np.testing.assert_allclose(outputs(), on_cpu, atol=1e-5)


def test_initial_weights_are_uniform_within_the_root_of_the_inputs() -> None:
    initial = jax.jit(lambda key: SMALL.initialize(key, (SIDE, SIDE, 3)))
    layer = initial(jax.random.key(0))["convolution1"]
    weights, limit = np.asarray(layer["weight"]), 1 / np.sqrt(3 * 3 * 4)
    assert 0.9 * limit < np.abs(weights).max() <= limit
    assert abs(weights.mean()) < 0.1 * limit


@pytest.mark.parametrize("shape", [(5, 50, 1), (7, 3, 1)])
def test_images_that_are_too_small_are_refused(shape: tuple[int, ...]) -> None:
    encoder = Convolutions((4, 4, 4), (3, 3, 3), (1, 1, 1))
    with pytest.raises(InputError, match=f"images of {shape[0]} x {shape[1]} pixels are too small for"):
        encoder.features(shape)


def test_options_of_images_are_refused_for_vectors() -> None:
    with pytest.raises(InputError, match="channels, kernels and strides are options for image observations"):
        PolicySpec.fit(tiny("rvs", **OPTIONS), toy_data(), TRAINING)


def test_the_memory_of_images_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = specified("rvs")
    monkeypatch.setattr("cwbc.core.memory.total_memory", lambda: 2e6)
    check_training(spec, TRAINING, 1)
    # Three frames of every step of 50 batches: 50 x 8 x 3 x 300 bytes, and what the convolutions put out.
    outputs = 8 * 3 * (16 + 8 * 8 * 4 + 6 * 6 * 8)
    assert spec.method.learner.activations(spec, TRAINING) == outputs
    monkeypatch.setattr("cwbc.core.memory.total_memory", lambda: 1e5)
    with pytest.raises(InputError, match="rvs would take at least"):
        check_training(spec, TRAINING, 1)


# Frames are stacked the same in training and in acting


def stacked_by_hand(frames: NDArray[np.uint8], stack: int) -> NDArray[np.uint8]:
    """The last frames of every step of one episode as channels, the first repeated before it."""
    numbers = [[max(t - back, 0) for back in range(stack)][::-1] for t in range(len(frames))]
    return np.stack([np.concatenate([frames[n] for n in each], axis=-1) for each in numbers])


@NAMES
def test_windows_and_histories_have_the_same_frames(name: str) -> None:
    spec = specified(name)
    source = to_device(DATA, spec.method)

    @jax.jit
    def chosen(episodes: Episodes, columns: Any) -> tuple[Choice, jax.Array]:
        random = RandomNumbers.of(jnp.uint32(0), jnp.int32(0), 40)
        choice = choose(random, episodes, spec.observations, TRAINING.context)
        return choice, spec.observations.sampled(gathered(columns, choice).observations, ())

    choice, found = chosen(source.episodes, source.columns)
    sampled = np.asarray(found)
    assert sampled.shape == (40, 3, SIDE, SIDE, 3)
    assert sampled.dtype == np.uint8
    received = received_by_hand(spec)
    mask, rows = np.asarray(choice.mask), np.asarray(choice.rows)
    assert {0, 1, 2, 3} == set(np.asarray(choice.timesteps)[mask].tolist())
    np.testing.assert_array_equal(sampled[mask], received[rows[mask]])


def received_by_hand(spec: PolicySpec) -> NDArray[np.uint8]:
    """What acting has in its history at every step of the dataset, all episodes at once. [step, ...]"""
    episodes = DATA.observations.reshape(-1, HORIZON, SIDE, SIDE, 1)
    parameters, history, found = random_parameters(spec, 0), History.empty(spec, len(episodes)), []
    compiled = jax.jit(functools.partial(act, spec))
    for t in range(HORIZON):
        history, _ = compiled(
            parameters,
            history,
            np.int32(t),
            spec.observations.received(episodes[:, t]),
            np.zeros(len(episodes), np.float32),
        )
        found.append(np.asarray(history.observations)[:, min(t, spec.memory - 1)])
    received = np.stack(found, axis=1)
    expected = np.stack([stacked_by_hand(frames, spec.observations.stack) for frames in episodes])
    np.testing.assert_array_equal(received, expected)
    return received.reshape(-1, SIDE, SIDE, spec.observations.stack)


@NAMES
def test_acting_equals_the_training_pass_on_the_same_frames(name: str) -> None:
    spec = specified(name, Training(context=HORIZON, frame_stack=2))
    policy, learner = Policy(spec, random_parameters(spec, 1)).acting("greedy"), cloning(spec.method)
    frames = DATA.observations[:HORIZON]
    policy.begin(2.0)
    for t in range(HORIZON):
        policy.act(frames[t], None if t == 0 else 0.5)
    remaining = 2.0 - 0.5 * np.arange(HORIZON)
    returns_to_go = [spec.standardized(np.asarray(g), t) for t, g in enumerate(remaining)]
    assert policy._history is not None
    history = History(
        observations=stacked_by_hand(frames, 2)[None],
        actions=policy._history.actions if spec.memory > 1 else np.zeros((1, HORIZON, 2), np.float32),
        returns_to_go=np.array(returns_to_go)[None],
        timesteps=np.arange(HORIZON, dtype=np.int32)[None],
        frames=None,
    )

    @jax.jit
    def training_pass(parameters: Any, history: History) -> jax.Array:
        read = parameters | learner.prepared(parameters)
        return learner.outputs(spec, read, history, history.actions)[0]

    outputs = training_pass(policy.parameters, history)
    policy.begin(2.0)
    taken = [int(policy.act(frames[t], None if t == 0 else 0.5)) for t in range(HORIZON)]
    assert taken == np.asarray(outputs).argmax(axis=-1).tolist()


def test_streamed_frames_give_the_same_bits_as_frames_on_the_device() -> None:
    """Of one network: windows are sampled before any network reads them."""
    one, other = (train(DATA, tiny("rvs", **OPTIONS), TRAINING, (0, 3), data_on=place) for place in PLACES)
    jax.tree.map(np.testing.assert_array_equal, one.parameters, other.parameters)


PLACES: tuple[Any, Any] = ("device", "host")


def test_frames_in_host_memory_are_stored_once() -> None:
    source = in_host_memory(DATA, specified("rvs").method)
    assert np.shares_memory(source.columns.observations, DATA.observations)


# Acting


class _Threads(PixelCopies):
    """Copies that record which thread steps which, and fail at a step."""

    def __init__(self, count: int, fails_at: int | None = None) -> None:
        super().__init__(count)
        self.stepped_by: dict[int, set[int]] = {}
        self._fails_at, self._steps = fails_at, np.zeros(count, int)

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        self._steps[episodes] += 1
        if 0 in episodes and self._steps[0] == self._fails_at:
            raise ValueError("the emulator crashed")
        for episode in episodes.tolist():
            self.stepped_by.setdefault(episode, set()).add(threading.get_ident())
        return super().step(episodes, actions)


def test_several_threads_act_and_simulate_where_copies_are_independent() -> None:
    policies = train(DATA, tiny("rvs", **OPTIONS), TRAINING, (0, 3)).acting("greedy")
    found = []
    for independent in (False, True):
        simulator, reported = _Threads(12), list[int]()
        arguments = (policies.spec, policies.parameters, np.tile(np.arange(6.0), 2), range(12), simulator)
        found.append(roll_out(*arguments, independent=independent, progress=reported.append))
        threads = set().union(*simulator.stepped_by.values())
        assert len(simulator.stepped_by) == 12
        assert all(len(each) == 1 for each in simulator.stepped_by.values())
        assert (threads == {threading.get_ident()}) is not independent
        assert reported == [1, 2, 3, 4]
    for one, other in zip(*(vars(each).values() for each in found), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_error_in_a_thread_ends_the_evaluation() -> None:
    policies = train(DATA, tiny("rvs", **OPTIONS), TRAINING, (0, 3)).acting("greedy")
    arguments = (policies.spec, policies.parameters, np.arange(12.0), range(12), _Threads(12, fails_at=2))
    with pytest.raises(ValueError, match="the emulator crashed"):
        roll_out(*arguments, independent=True)


# Learning


@functools.cache
def learned(name: str, frame_stack: int) -> Policies:
    settings = Training(
        steps=600 if name == "dt" else 800, batch_size=32, context=HORIZON, frame_stack=frame_stack
    )
    sizes = {"width": 32, "layers": 2 if name == "dt" else 1, "dropout": 0.0, "learning_rate": 1e-3}
    return train(DATA, tiny(name, **sizes, **OPTIONS), settings, (0, 1)).acting("greedy")


def achieved(policies: Policies, target: float, one_at_a_time: bool = False) -> NDArray[np.float64]:
    """Returns of 20 episodes of each seed, from states that are not in the data."""
    count = 20 * len(policies.seeds)
    seeds = range(1000, 1000 + count)
    targets = np.full(count, float(target))
    copies, how = PixelCopies(count), one_at_a_time
    rollouts = roll_out(policies.spec, policies.parameters, targets, seeds, copies, one_at_a_time=how)
    assert (rollouts.lengths == HORIZON).all()
    return rollouts.returns


@pytest.mark.parametrize(("name", "frame_stack"), [("rvs", 2), ("dt", 2)])
def test_policies_follow_their_targets_in_pixels(name: str, frame_stack: int) -> None:
    policies = learned(name, frame_stack)
    assert (achieved(policies, BEST) == BEST).mean() > 0.9
    assert (achieved(policies, 0.0) == 0).mean() > 0.9


def test_one_frame_does_not_show_the_direction() -> None:
    assert achieved(learned("rvs", 1), BEST).mean() < 0.7 * BEST


def test_episodes_one_at_a_time_equal_those_side_by_side() -> None:
    policies = learned("rvs", 2)
    np.testing.assert_array_equal(achieved(policies, BEST), achieved(policies, BEST, one_at_a_time=True))


def test_a_run_on_pixels_is_loaded(tmp_path: Path) -> None:
    policies = train(DATA, tiny("rvs", **OPTIONS), TRAINING, (0, 3), tmp_path / "run")
    assert isinstance(policies.spec.observations, Image)
    loaded = Policies.load(tmp_path / "run")
    assert loaded.spec == policies.spec
    assert loaded.spec.sampled
    jax.tree.map(np.testing.assert_array_equal, loaded.parameters, policies.parameters)
    # Of a version that took the most likely actions.
    checkpoint = tmp_path / "run" / tensor_files.CHECKPOINT
    tensors, description = tensor_files.read(checkpoint)
    del description["design"]["sampled"]
    tensor_files.write(checkpoint, tensors, description)
    assert not Policies.load(tmp_path / "run").spec.sampled
    assert not train(DATA, tiny("rvs", **OPTIONS), TRAINING, (0, 3), tmp_path / "run").spec.sampled


@NAMES
def test_policies_of_pixels_are_saved_and_loaded(name: str, tmp_path: Path) -> None:
    spec = specified(name)
    one = Policy(spec, random_parameters(spec, 3))
    one.save(tmp_path / "policy")
    other = Policy.load(tmp_path / "policy")
    for policy in (one, other):
        policy.begin([0.0, 3.0])
    for t in range(HORIZON):
        frames, rewards = DATA.observations[[t, HORIZON + t]], None if t == 0 else [0.0, 1.0]
        np.testing.assert_array_equal(one.act(frames, rewards), other.act(frames, rewards))


def test_frames_that_are_no_bytes_are_refused() -> None:
    spec = specified("rvs")
    policy = Policy(spec, random_parameters(spec, 0))
    policy.begin(1.0)
    for value in (-1.0, 255.5, 256.0, np.nan):
        frame = np.zeros((SIDE, SIDE, 1))
        frame[2, 3, 0] = value
        with pytest.raises(InputError, match=rf"bytes, 0 to 255; got {value} at \[2, 3, 0\]"):
            policy.act(frame)
    with pytest.raises(InputError, match=r"shape \(10, 9\); expected \(10, 10, 1\)"):
        policy.act(np.zeros((SIDE, SIDE - 1)))
    policy.act(np.full((SIDE, SIDE, 1), 255))


def test_an_interrupted_training_on_pixels_resumes_with_the_same_bits(tmp_path: Path) -> None:
    whole = train(DATA, tiny("rvs+cwbc", **OPTIONS), TRAINING, (0,))
    with pytest.raises(KeyboardInterrupt):
        train(DATA, tiny("rvs+cwbc", **OPTIONS), TRAINING, (0,), tmp_path, should_stop=lambda: True)
    resumed = train(DATA, tiny("rvs+cwbc", **OPTIONS), TRAINING, (0,), tmp_path)
    jax.tree.map(np.testing.assert_array_equal, resumed.parameters, whole.parameters)
